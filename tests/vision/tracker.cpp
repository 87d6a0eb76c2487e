// SPDX-License-Identifier: Apache-2.0
// The rules of the tracker, one by one.
#include <vartml/track.h>

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace vartml;
using Ids = std::vector<uint64_t>;
constexpr uint64_t second = 1'000'000'000, frame = second / 30;

Detection box(float x, float score = 0.9f, int32_t class_id = 0, float width = 40) {
    return {x, 100, x + width, 140, score, class_id};
}

// A tracker with a clock of 30 frames per second.
struct Stream {
    explicit Stream(const TrackOptions& options = {}) : tracker(options) {}
    Ids see(std::vector<Detection> detections) {
        tracker.update(pts, detections, identities);
        pts += frame;
        Ids ids;
        for (const Identity& identity : identities) ids.push_back(identity.id);
        return ids;
    }
    std::vector<PredictedBox> skip() {
        std::vector<PredictedBox> boxes;
        tracker.predict(pts, boxes);
        pts += frame;
        return boxes;
    }
    Tracker tracker;
    uint64_t pts = 0;
    std::vector<Identity> identities;
};

TEST(Tracker, CountsIdsFromOneAndNeverGivesOneTwice) {
    Stream s;
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 2}));
    EXPECT_EQ(s.see({box(200), box(0)}), (Ids{2, 1}));  // whatever their order
    s.tracker.end_tracks();
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{3, 4}));
    s.tracker.restart();
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 2}));
}

TEST(Tracker, EndsALostTrackAfterItsTime) {
    for (const uint64_t later : {second, second + 1}) {
        Stream s({.max_lost_ns = second});
        s.see({box(0)});
        const uint64_t lost_at = s.pts;
        EXPECT_EQ(s.see({}), Ids{});
        EXPECT_EQ(s.tracker.counts().live, 0u);
        s.pts = lost_at + later;
        EXPECT_EQ(s.see({box(0)}), (Ids{later == second ? 1u : 2u})) << later;
    }
    Stream s({.max_lost_ns = 0});
    s.see({box(0)});
    s.see({});
    EXPECT_EQ(s.see({box(0)}), Ids{2});
}

TEST(Tracker, DoesNotAgeOnFramesThatWereNotInferred) {
    Stream s({.max_lost_ns = frame});
    s.see({box(0)});
    for (int i = 0; i < 90; ++i) s.skip();
    EXPECT_EQ(s.see({box(0)}), Ids{1});
    EXPECT_EQ(s.tracker.counts().lost, 0u);
}

TEST(Tracker, ExpectsTracksWhereTheyMoveTo) {
    Stream s;
    for (int i = 0; i < 20; ++i) s.see({box(4.f * static_cast<float>(i), 0.8f, 7), box(300)});
    s.see({box(80, 0.8f, 7)});  // the other is lost
    const uint64_t last = s.pts - frame;
    for (int i = 21; i < 26; ++i) {
        const auto boxes = s.skip();
        ASSERT_EQ(boxes.size(), 1u);
        EXPECT_EQ(boxes[0].identity.id, 1u);
        EXPECT_EQ(boxes[0].identity.first_seen_ns, 0u);
        EXPECT_EQ(boxes[0].last_seen_ns, last);
        EXPECT_EQ(boxes[0].box.score, 0.8f);
        EXPECT_EQ(boxes[0].box.class_id, 7);
        EXPECT_NEAR(boxes[0].box.x0, 4 * i, 1);
        EXPECT_NEAR(boxes[0].box.x1, 4 * i + 40, 1);
        EXPECT_NEAR(boxes[0].box.y0, 100, 1);
    }
}

TEST(Tracker, BeginsTracksAtTheirScoreOnly) {
    for (const auto algorithm : {TrackAlgorithm::bytetrack, TrackAlgorithm::iou}) {
        Stream s({.algorithm = algorithm, .new_track_score = 0.7});
        EXPECT_EQ(s.see({box(0, 0.69f)}), Ids{0});
        EXPECT_EQ(s.see({box(0, 0.7f)}), Ids{1});
        EXPECT_EQ(s.see({box(0, 0.55f)}), Ids{1});
    }
}

TEST(Tracker, BeginsTracksWithWhatIsCertainEnoughForTheFirstAssociation) {
    Stream s;
    const auto certain = static_cast<float>(TrackOptions().high_score);
    EXPECT_EQ(s.see({box(0, certain), box(200, certain - 0.01f)}), (Ids{1, 0}));
}

TEST(Tracker, ByteTrackBeginsNoTrackWithAnUncertainBox) {
    for (const auto algorithm : {TrackAlgorithm::bytetrack, TrackAlgorithm::iou}) {
        Stream s({.algorithm = algorithm, .new_track_score = 0.2});
        EXPECT_EQ(s.see({box(0, 0.3f)}), Ids{algorithm == TrackAlgorithm::iou ? 1u : 0u});
        EXPECT_EQ(s.see({box(0, 0.5f)}), Ids{1});
    }
}

// What goes behind an edge gets narrower and would be without width before it comes back.
TEST(Tracker, WhatIsHiddenPieceByPieceKeepsTheSizeThatItHadLast) {
    Stream s;
    for (int i = 0; i <= 12; ++i) s.see({box(0, 0.9f, 0, 40 - 2 * static_cast<float>(i))});
    for (int i = 0; i < 20; ++i) s.see({});
    EXPECT_EQ(s.see({box(-20, 0.9f, 0, 40)}), Ids{1});
}

TEST(Tracker, KeepsTracksOverUncertainBoxesButDoesNotFindThemAgainByThose) {
    Stream s;
    s.see({box(0)});
    EXPECT_EQ(s.see({box(0, 0.1f)}), Ids{1});
    EXPECT_EQ(s.see({box(0, 0.09f)}), Ids{0});  // below the second band: lost
    EXPECT_EQ(s.see({box(0, 0.3f)}), Ids{0});
    EXPECT_EQ(s.see({box(0, 0.5f)}), Ids{1});
}

TEST(Tracker, IouTakesBoxesOfAllScoresAtOnce) {
    Stream s({.algorithm = TrackAlgorithm::iou});
    s.see({box(0)});
    EXPECT_EQ(s.see({box(0, 0.09f)}), Ids{0});
    EXPECT_EQ(s.see({box(0, 0.1f)}), Ids{1});  // also brings it back
}

TEST(Tracker, WantsEnoughOverlap) {
    struct Row {
        double match, low_match;
        float offset, score;  // overlap of boxes 40 wide: (40 - offset) / (40 + offset)
        uint64_t id;
    };
    const Row rows[] = {
        {0.5, 0.9, 13, 0.9f, 1},  // 0.51
        {0.5, 0.1, 14, 0.9f, 2},  // 0.48: a track of its own
        {0.9, 0.5, 13, 0.3f, 1},
        {0.1, 0.5, 14, 0.3f, 0},
    };
    for (const Row& row : rows) {
        Stream s({.match_iou = row.match, .low_match_iou = row.low_match});
        s.see({box(0)});
        EXPECT_EQ(s.see({box(row.offset, row.score)}), Ids{row.id})
            << row.offset << ' ' << row.score;
    }
    Stream s({.match_iou = 0});
    s.see({box(0)});
    EXPECT_EQ(s.see({box(41)}), Ids{2});  // none is none
}

TEST(Tracker, CertainBoxesComeFirst) {
    Stream s;
    s.see({box(0)});
    // The uncertain box is nearer, but there is a certain one.
    EXPECT_EQ(s.see({box(1, 0.4f), box(10, 0.9f)}), (Ids{0, 1}));
}

TEST(Tracker, ByteTrackAssignsForTheWholeFrameAndIouOneByOne) {
    // The largest overlap of all, 2 with the first box (0.95), leaves 1 alone; 0.51 and 0.48 is
    // more.
    const std::vector<Detection> chain = {box(0), box(14)};
    Stream optimal({.match_iou = 0.3}),
        greedy({.algorithm = TrackAlgorithm::iou, .match_iou = 0.3});
    optimal.see(chain);
    greedy.see(chain);
    const std::vector<Detection> moved = {box(13), box(28)};
    EXPECT_EQ(greedy.see(moved), (Ids{2, 3}));
    EXPECT_EQ(optimal.see(moved), (Ids{1, 2}));
}

TEST(Tracker, TiesAreTheLowerIds) {
    for (const auto algorithm : {TrackAlgorithm::bytetrack, TrackAlgorithm::iou}) {
        Stream s({.algorithm = algorithm});
        EXPECT_EQ(s.see({box(20), box(0)}), (Ids{1, 2}));
        EXPECT_EQ(s.see({box(10)}), Ids{1});
    }
}

TEST(Tracker, ReportsATrackAfterItsHits) {
    Stream s({.min_hits = 3});
    EXPECT_EQ(s.see({box(0)}), Ids{0});
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{0, 0}));
    EXPECT_TRUE(s.skip().empty());
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 0}));
    EXPECT_EQ(s.identities[0].first_seen_ns, 0u);
    EXPECT_EQ(s.see({box(0)}), Ids{1});  // the other missed a frame and begins anew
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 0}));
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 0}));
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 2}));
    EXPECT_EQ(s.tracker.counts().total, 2u);
}

TEST(Tracker, KeepsClassesApartUnlessToldOtherwise) {
    Stream apart, together({.per_class = false});
    for (Stream* s : {&apart, &together}) s->see({box(0, 0.9f, 1)});
    EXPECT_EQ(apart.see({box(0, 0.9f, 2)}), Ids{2});
    EXPECT_EQ(together.see({box(0, 0.9f, 2)}), Ids{1});
    EXPECT_EQ(together.skip()[0].box.class_id, 2);
}

TEST(Tracker, LongStepsOfTimeEndAllTracks) {
    struct Row {
        int64_t step;
        uint64_t id;
        bool skip;  // the step is to a frame that is not inferred
    };
    constexpr auto s = static_cast<int64_t>(second);
    const Row rows[] = {
        {10 * s, 1, false},      {10 * s + 1, 2, false}, {-10 * s, 1, false},
        {-10 * s - 1, 2, false}, {9 * s, 1, true},       {10 * s + 1, 2, true},
    };
    for (const Row& row : rows) {
        Stream stream;
        stream.pts = 100 * second;
        stream.see({box(0)});
        stream.pts = 100 * second + static_cast<uint64_t>(row.step);
        if (row.skip) {
            EXPECT_EQ(stream.skip().size(), row.id == 1 ? 1u : 0u);
        }
        EXPECT_EQ(stream.see({box(0)}), Ids{row.id}) << row.step;
    }
}

TEST(Tracker, TimeThatGoesBackALittleStandsStill) {
    Stream s;
    s.pts = 5 * second;
    for (int i = 0; i < 10; ++i) s.see({box(4.f * static_cast<float>(i))});
    s.see({});  // lost
    s.pts = 4 * second;
    EXPECT_EQ(s.see({box(40)}), Ids{1});
    EXPECT_EQ(s.identities[0].first_seen_ns, 5 * second);
}

TEST(Tracker, LeavesBoxesWithoutAreaAlone) {
    const float nan = std::nanf("");
    Stream s;
    const std::vector<Detection> odd = {box(0, 0.9f, 0, 0),
                                        box(0, 0.9f, 0, -5),
                                        box(nan),
                                        {0, 0, HUGE_VALF, 10, 0.9f, 0},
                                        box(0, nan)};
    EXPECT_EQ(s.see(odd), (Ids{0, 0, 0, 0, 0}));
    EXPECT_EQ(s.see({box(0)}), Ids{1});
}

TEST(Tracker, Counts) {
    Stream s;
    s.see({box(0), box(200)});
    s.see({box(0), box(200)});
    s.see({box(0)});
    const TrackCounts counts = s.tracker.counts();
    EXPECT_EQ(counts.live, 1u);
    EXPECT_EQ(counts.total, 2u);
    EXPECT_EQ(counts.matched, 3u);
    EXPECT_EQ(counts.lost, 1u);
    s.tracker.restart();
    EXPECT_EQ(s.tracker.counts().total, 2u);
    EXPECT_EQ(s.tracker.counts().live, 0u);
}

TEST(Tracker, TakesNewOptionsFromTheNextFrame) {
    Stream s;
    s.see({box(0)});
    s.tracker.set_options({.new_track_score = 0.95});
    EXPECT_EQ(s.see({box(0), box(200)}), (Ids{1, 0}));
}

TEST(Tracker, RefusesBandsThatContradictEachOther) {
    const auto done = check({.high_score = 0.3, .low_score = 0.4});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(done.error().message.find("low score 0.4 is above high score 0.3"), std::string::npos)
        << done.error().message;
    EXPECT_TRUE(check({.high_score = 0.4, .low_score = 0.4}));
    EXPECT_TRUE(check({.algorithm = TrackAlgorithm::iou, .high_score = 0.3, .low_score = 0.4}));
}

}  // namespace
