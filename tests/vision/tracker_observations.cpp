// SPDX-License-Identifier: Apache-2.0
// ocsort and looks: what the tracker does beside the formulas of the paper, written out frame by
// frame as its authors' code has them.
#include <vartml/track.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

#include "lib/vision/tracker.h"

namespace {

using namespace vartml;
constexpr uint64_t second = 1'000'000'000, frame = second / 30;

Detection box(double x, double y, float score = 0.9f, double side = 40) {
    return {static_cast<float>(x),
            static_cast<float>(y),
            static_cast<float>(x + side),
            static_cast<float>(y + side),
            score,
            0};
}

struct Stream {
    explicit Stream(const TrackOptions& options) : tracker(options) {}
    std::vector<uint64_t> see(const std::vector<Detection>& detections,
                              const std::vector<std::vector<float>>& looks = {}) {
        const std::vector<std::span<const float>> spans(looks.begin(), looks.end());
        tracker.update(pts, detections, identities, spans);
        pts += frame;
        std::vector<uint64_t> ids;
        for (const Identity& identity : identities) ids.push_back(identity.id);
        return ids;
    }
    Tracker tracker;
    uint64_t pts = 0;
    std::vector<Identity> identities;
};

TrackOptions ocsort() {
    return {.algorithm = TrackAlgorithm::ocsort};
}

// ---- the paper, with plain loops ----

double overlap(const Detection& a, const Detection& b) {
    const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return 0;
    const auto area = [](const Detection& d) { return double(d.x1 - d.x0) * (d.y1 - d.y0); };
    return w * h / (area(a) + area(b) - w * h);
}

std::array<double, 2> direction(const Detection& from, const Detection& to) {
    const double dx = (double(to.x0) + to.x1) / 2 - (double(from.x0) + from.x1) / 2;
    const double dy = (double(to.y0) + to.y1) / 2 - (double(from.y0) + from.y1) / 2;
    const double norm = std::sqrt(dx * dx + dy * dy) + 1e-6;
    return {dx / norm, dy / norm};
}

// A track of the reference: its filter, and its observations by age.
struct Reference {
    vision::BoxMotion motion;
    std::vector<std::pair<int, Detection>> seen;  // age, box
    int age = 0;
    std::array<double, 2> velocity{};
    std::vector<int> missed{};  // ages
    std::optional<vision::BoxMotion> frozen{};

    explicit Reference(const Detection& first) : motion(first), seen{{0, first}} {}

    const Detection& previous() const {  // k_previous_obs with delta_t = 3
        for (int dt = 3; dt > 0; --dt)
            for (const auto& [when, what] : seen)
                if (when == age - dt) return what;
        return seen.back().second;
    }
    void predict() {
        motion.pass(1 / 30.);
        ++age;
    }
    void miss() {
        if (!frozen) frozen = motion;
        missed.push_back(age);
        if (missed.size() == 1) motion.hold_size();
    }
    void update(const Detection& z) {
        const auto [last_age, last] = seen.back();
        if (frozen) {  // unfreeze(): a virtual trajectory from the last observation to this one
            motion = *frozen;
            for (const int at : missed) {
                const double share = double(at - last_age) / (age - last_age);
                const auto part = [&](float a, float b) {
                    return static_cast<float>(a + share * (double(b) - a));
                };
                motion.see({.x0 = part(last.x0, z.x0),
                            .y0 = part(last.y0, z.y0),
                            .x1 = part(last.x1, z.x1),
                            .y1 = part(last.y1, z.y1)});
                motion.pass(1 / 30.);
            }
        }
        velocity = direction(previous(), z);
        motion.see(z);
        seen.push_back({age, z});
        missed.clear();
        frozen.reset();
    }
    double worth(const Detection& d, double lambda) const {
        const auto [x, y] = direction(previous(), d);
        const double cosine = std::clamp(x * velocity[0] + y * velocity[1], -1., 1.);
        const double pi = std::acos(-1.);
        return overlap(motion.expected(), d) +
               lambda * (pi / 2 - std::abs(std::acos(cosine))) / pi * d.score;
    }
};

// Two objects whose boxes overlap both tracks: the assignment with the larger sum of overlap and
// momentum, over random scenes.
TEST(OcSort, ChoosesByOverlapAndMomentumAsThePaperDoes) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> step(-5, 5), place(-30, 30), at(0, 20);
    int differs_from_overlap_alone = 0, compared = 0;
    for (int scene = 0; scene < 400; ++scene) {
        Stream s(ocsort());
        std::vector<Reference> tracks;
        const std::array<std::array<double, 2>, 2> start = {
            {{at(random), at(random)}, {90 + at(random), at(random)}}};
        const std::array<std::array<double, 2>, 2> go = {
            {{step(random), step(random)}, {step(random), step(random)}}};
        const int frames = 2 + scene % 5;
        for (int f = 0; f < frames; ++f) {
            std::vector<Detection> seen;
            for (int k = 0; k < 2; ++k)
                seen.push_back(
                    box(start[k][0] + f * go[k][0], start[k][1] + f * go[k][1], 0.9f, 120));
            const auto ids = s.see(seen);
            ASSERT_EQ(ids, (std::vector<uint64_t>{1, 2}));
            for (int k = 0; k < 2; ++k) {
                if (f == 0) {
                    tracks.emplace_back(seen[k]);
                } else {
                    tracks[k].predict();
                    tracks[k].update(seen[k]);
                }
            }
        }
        // Both detections between the two tracks.
        for (Reference& track : tracks) track.predict();
        const std::vector<Detection> both = {box(50 + place(random), place(random), 0.95f, 120),
                                             box(50 + place(random), place(random), 0.8f, 120)};
        const auto sum = [&](double lambda, int first) {
            return tracks[0].worth(both[first], lambda) + tracks[1].worth(both[1 - first], lambda);
        };
        bool gated = false;
        for (const Reference& track : tracks)
            for (const Detection& d : both)
                gated |= overlap(track.motion.expected(), d) < TrackOptions().match_iou + 1e-3;
        if (gated || std::abs(sum(0.2, 0) - sum(0.2, 1)) < 1e-4) continue;
        ++compared;
        const bool straight = sum(0.2, 0) > sum(0.2, 1);
        differs_from_overlap_alone += straight != (sum(0, 0) > sum(0, 1));
        EXPECT_EQ(s.see(both)[0], straight ? 1u : 2u) << scene;
    }
    EXPECT_GT(compared, 20);
    EXPECT_GT(differs_from_overlap_alone, 0);
}

// Lost for some frames and found again elsewhere: the estimate afterwards is that of a filter that
// was shown the straight line between.
TEST(OcSort, EstimatesALossAnewAlongALine) {
    for (const int lost : {1, 2, 4, 6}) {
        Stream s({.algorithm = TrackAlgorithm::ocsort, .match_iou = 0.01});
        Reference reference(box(0, 50));
        s.see({box(0, 50)});
        for (int f = 1; f < 6; ++f) {
            const Detection z = box(8 * f, 50 + 2 * f);
            EXPECT_EQ(s.see({z}), (std::vector<uint64_t>{1}));
            reference.predict();
            reference.update(z);
        }
        for (int f = 0; f < lost; ++f) {
            s.see({});
            reference.predict();
            reference.miss();
        }
        const Detection again = box(40 + 5 * (lost + 1), 60 - 3 * (lost + 1));
        reference.predict();
        ASSERT_EQ(s.see({again}), (std::vector<uint64_t>{1})) << lost;
        reference.update(again);
        std::vector<PredictedBox> predicted;
        s.tracker.predict(s.pts + 2 * frame, predicted);
        ASSERT_EQ(predicted.size(), 1u);
        const Detection expected = reference.motion.expected(static_cast<double>(3 * frame) * 1e-9);
        EXPECT_NEAR(predicted[0].box.x0, expected.x0, 0.02) << lost;
        EXPECT_NEAR(predicted[0].box.y0, expected.y0, 0.02) << lost;
        EXPECT_NEAR(predicted[0].box.x1, expected.x1, 0.02) << lost;
        // ByteTrack's would still go where the old velocity was.
        Stream other({.match_iou = 0.01});
        for (int f = 0; f < 6; ++f) other.see({box(8 * f, 50 + 2 * f)});
        for (int f = 0; f < lost; ++f) other.see({});
        if (other.see({again})[0] != 1) continue;
        std::vector<PredictedBox> old;
        other.tracker.predict(other.pts + 2 * frame, old);
        EXPECT_GT(std::abs(old[0].box.y0 - predicted[0].box.y0), 0.1) << lost;
    }
}

// It stood still while the filter went on: what was seen last is where it is.
TEST(OcSort, FindsWhatIsWhereItWasSeenLast) {
    for (const TrackAlgorithm algorithm : {TrackAlgorithm::bytetrack, TrackAlgorithm::ocsort}) {
        Stream s({.algorithm = algorithm});
        for (int f = 0; f < 8; ++f) s.see({box(12 * f, 50)});
        for (int f = 0; f < 6; ++f) s.see({});
        const bool recovers = algorithm == TrackAlgorithm::ocsort;
        EXPECT_EQ(s.see({box(12 * 7, 50)}), (std::vector<uint64_t>{recovers ? 1u : 2u}));
    }
}

// Boxes and directions that it remembers become those of frames with other pixels.
TEST(OcSort, RemembersWhatItSawInOtherPixels) {
    for (const int rescaled_at : {4, 8, 11}) {
        Stream s(ocsort()), large(ocsort());
        for (int f = 0; f < 14; ++f) {
            if (f == rescaled_at) s.tracker.rescale(2, 2);
            const double by = f < rescaled_at ? 1 : 2;
            const auto boxes = [f](double by) {
                std::vector<Detection> boxes;
                if (f < 8) boxes = {box(by * 12 * f, by * 50, 0.9f, by * 40)};
                if (f == 13) boxes = {box(by * 12 * 7, by * 50, 0.9f, by * 40)};
                return boxes;
            };
            EXPECT_EQ(s.see(boxes(by)), large.see(boxes(2))) << rescaled_at << ", frame " << f;
        }
        EXPECT_EQ(s.tracker.counts().total, 1u) << rescaled_at;
        std::vector<PredictedBox> some, all;
        s.tracker.predict(s.pts, some);
        large.tracker.predict(large.pts, all);
        ASSERT_EQ(some.size(), 1u);
        EXPECT_NEAR(some[0].box.x0, all[0].box.x0, 1) << rescaled_at;
        EXPECT_NEAR(some[0].box.y1, all[0].box.y1, 1) << rescaled_at;
    }
}

TEST(OcSort, GivesEqualIdsForEqualFrames) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> place(0, 300);
    std::vector<std::vector<Detection>> frames(60);
    for (auto& one : frames)
        for (int k = 0; k < 6; ++k) one.push_back(box(place(random), place(random)));
    std::vector<std::vector<uint64_t>> first;
    for (int run = 0; run < 2; ++run) {
        Stream s(ocsort());
        for (size_t f = 0; f < frames.size(); ++f) {
            const auto ids = s.see(frames[f]);
            if (run == 0)
                first.push_back(ids);
            else
                ASSERT_EQ(ids, first[f]);
        }
    }
}

// ---- looks ----

const std::vector<float> red = {1, 0}, blue = {0, 1}, none = {};

TEST(Looks, DecideWhereTwoBoxesOverlapBothTracks) {
    for (const double appearance : {0., 0.5}) {
        Stream s({.appearance = appearance});
        s.see({box(0, 0), box(30, 0)}, {red, blue});
        // Each a little nearer to the other's place.
        const auto ids = s.see({box(16, 0), box(14, 0)}, {red, blue});
        EXPECT_EQ(ids,
                  appearance > 0 ? (std::vector<uint64_t>{1, 2}) : (std::vector<uint64_t>{2, 1}));
    }
}

TEST(Looks, BringBackWhoWasAway) {
    for (const double similarity : {0., 0.8}) {
        Stream s({.max_lost_ns = 10 * second, .reid_similarity = similarity});
        s.see({box(0, 0), box(100, 0)}, {red, blue});
        s.see({box(100, 0)}, {blue});
        for (int f = 0; f < 20; ++f) s.see({box(100, 0)}, {blue});
        // On the other side of the picture; and somebody whom nobody knows.
        const std::vector<float> green = {-0.6f, -0.8f};
        const auto ids = s.see({box(100, 0), box(600, 300), box(400, 300)}, {blue, red, green});
        EXPECT_EQ(ids, similarity > 0 ? (std::vector<uint64_t>{2, 1, 3})
                                      : (std::vector<uint64_t>{2, 3, 4}));
    }
}

TEST(Looks, OfBoxesWithoutThemChangeNothing) {
    Stream with({}), without({});
    for (int f = 0; f < 10; ++f) {
        const std::vector<Detection> seen = {box(6 * f, 0), box(90 - 6 * f, 10)};
        EXPECT_EQ(with.see(seen, {none, none}), without.see(seen));
    }
    // Those of another model cannot be compared.
    EXPECT_EQ(with.see({box(60, 0), box(30, 10)}, {red, {0.6f, 0.8f, 0}}),
              without.see({box(60, 0), box(30, 10)}));
}

}  // namespace
