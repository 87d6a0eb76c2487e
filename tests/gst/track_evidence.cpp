// SPDX-License-Identifier: Apache-2.0
// What vartmltrack makes of the records of inferences: which frames age tracks, and whose results
// count.
#include <memory>

#include "tests/gst/track_harness.h"

namespace {

using namespace track_test;
using enum InferenceStatus;

// A vartmlinfer on a frame, and what was decoded of it.
struct Said {
    const char* infer;
    InferenceStatus status;
    std::vector<Box> boxes;
    guint64 result = 0;
    GstClockTime age = 0;
    bool region = false;
    unsigned epoch = 0;
};

class Evidences : public Track {
protected:
    // The next frame, on which they ran one after the other.
    Found on_frame(const std::vector<Said>& all) {
        GstBuffer* buffer = frame();
        for (unsigned i = 0; i < all.size(); ++i) {
            auto record = std::make_shared<InferenceRecord>();
            record->infer_id = all[i].infer;
            record->model_epoch = all[i].epoch;
            Inference inference;
            inference.status = all[i].status;
            inference.result_id = all[i].result;
            inference.age_ns = all[i].age;
            inference.region_od = all[i].region ? 0 : -1;
            inference.record = record;
            EXPECT_TRUE(add_inference(buffer, inference, 0));
            GstAnalyticsMtd mtd;
            EXPECT_NE(get_inference(buffer, i, &mtd), nullptr);
            for (const Box& box : all[i].boxes) {
                const guint od = add_box(buffer, box);
                gst_analytics_relation_meta_set_relation(
                    gst_buffer_get_analytics_relation_meta(buffer),
                    GST_ANALYTICS_REL_TYPE_RELATE_TO, od, mtd.id);
            }
        }
        return track(buffer);
    }
};

TEST_F(Track, EmptyFramesOfAnInferenceAgeTracks) {
    set("max-lost", "50000000");
    open();
    infer({{10}});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(infer({}), Found{});
    EXPECT_EQ(stat("lost"), 1u);
    EXPECT_EQ(infer({{10}}), (Found{{10, "cat", 2}}));
}

TEST_F(Track, FramesWithoutRecordAgeTracksUnlessSomeHadOne) {
    set("max-lost", "50000000");
    open();
    see({{10}});
    for (int i = 0; i < 3; ++i) see({});
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 2}}));
    infer({{10}});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(see({}), (Found{{10, "cat", 2}}));  // predicted
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 2}}));
}

TEST_F(Track, EveryKindOfSkippedFrameLeavesTracksAliveAndShowsThem) {
    set("max-lost", "0");
    open();
    infer({{10}});
    for (const auto status : {skipped_interval, skipped_late, skipped_busy, skipped_slo,
                              skipped_flag, skipped_region, skipped_still, skipped_track, failed}) {
        EXPECT_EQ(skip(status), (Found{{10, "cat", 1}})) << status_nick(status);
    }
    EXPECT_EQ(stat("lost"), 0u);
    EXPECT_EQ(infer({{10}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(infer({}), Found{});
    EXPECT_EQ(skip(), Found{});  // a lost track is not shown
}

TEST_F(Track, OneInferenceOfSeveralIsEnough) {
    set("max-lost", "0");
    open();
    infer({{10}});
    GstBuffer* in = frame();
    add_record(in, InferenceStatus::skipped_region);
    add_record(in, InferenceStatus::inferred);
    EXPECT_EQ(track(in), Found{});
    EXPECT_EQ(stat("lost"), 1u);
}

// A detector on every third frame, a model that finds no boxes on every one.
TEST_F(Evidences, AModelWithoutDetectionsAgesNoTrack) {
    set("max-lost", "0");
    open();
    on_frame({{"scene", inferred, {}}});  // nobody has found anything yet
    for (int n = 0; n < 9; ++n) {
        const Found found =
            n % 3 ? on_frame({{"boxes", skipped_interval, {}}, {"scene", inferred, {}}})
                  : on_frame({{"boxes", inferred, {{10}}}, {"scene", inferred, {}}});
        EXPECT_EQ(found, (Found{{10, "cat", 1}})) << n;
    }
    EXPECT_EQ(stat("lost"), 0u);
}

// Frames between the change and its first result name the new model.
TEST_F(Evidences, TracksOfTheModelBeforeAreNotShownAsThoseOfTheNext) {
    open();
    const Said next{.infer = "boxes", .status = skipped_busy, .boxes = {}, .epoch = 1};
    Said found = next;
    found.status = inferred, found.boxes = {{10}};
    on_frame({{"boxes", inferred, {{10}}}});
    EXPECT_EQ(on_frame({{"boxes", skipped_busy, {}}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(on_frame({next}), Found{});
    EXPECT_EQ(on_frame({found}), (Found{{10, "cat", 1}})) << "of the same class";
    EXPECT_EQ(on_frame({next}), (Found{{10, "cat", 1}}));
}

// What the other one found is still of the model that the frame names.
TEST_F(Evidences, TracksAreShownWhereOneOfTwoDetectorsHasAnotherModel) {
    open();
    on_frame({{"cars", inferred, {{10}}}, {"faces", inferred, {{60}}}});
    for (const InferenceStatus status : {skipped_busy, skipped_region}) {
        const Said faces{.infer = "faces", .status = status, .boxes = {}, .epoch = 1};
        EXPECT_EQ(on_frame({{"cars", skipped_interval, {}}, faces}).size(), 2u);
    }
}

// The detector before it, whose boxes are not tracked, says nothing of the one that was changed.
TEST_F(Evidences, TracksOfTheModelBeforeAreNotShownWhereTheNextHasNoRegions) {
    set("classes", "face");
    open();
    const Box body = {.x = 10, .label = "body"}, face = {.x = 20, .label = "face"};
    on_frame({{"bodies", inferred, {body}}, {"faces", inferred, {face}, 0, 0, true}});
    EXPECT_EQ(on_frame({{"bodies", skipped_late, {}}, {"faces", skipped_region, {}}}),
              (Found{{20, "face", 1}}));
    const Said next{.infer = "faces", .status = skipped_region, .boxes = {}, .epoch = 1};
    EXPECT_EQ(on_frame({{"bodies", skipped_late, {}}, next}), Found{});
}

TEST_F(Evidences, ADetectorThatFoundNothingAgesTracks) {
    set("max-lost", "0");
    open();
    on_frame({{"boxes", inferred, {{10}}}, {"scene", skipped_interval, {}}});
    EXPECT_EQ(on_frame({{"boxes", inferred, {}}, {"scene", skipped_interval, {}}}), Found{});
    EXPECT_EQ(stat("lost"), 1u);
}

// A detector of another stage, whose detections have a track or are of another class, is none.
TEST_F(Evidences, OnlyDetectorsOfWhatIsTrackedCount) {
    set("max-lost", "0");
    set("classes", "cat");
    open();
    const Said fire = {"fire", inferred, {{.x = 200, .label = "fire"}}};
    on_frame({{"boxes", inferred, {{10}}}, fire});
    EXPECT_EQ(on_frame({{"boxes", skipped_late, {}}, fire}),
              (Found{{200, "fire", 0}, {10, "cat", 1}}));
    EXPECT_EQ(on_frame({{"boxes", skipped_late, {}}, {"fire", inferred, {}}}),
              (Found{{10, "cat", 1}}));
}

// The model that looks into regions has none where the detector before it finds nothing.
TEST_F(Evidences, WithoutRegionsTheDetectorBeforeThemCounts) {
    set("max-lost", "0");
    set("classes", "face");
    open();
    const Box body = {.x = 10, .label = "body"}, face = {.x = 20, .label = "face"};
    const Found both = {{10, "body", 0}, {20, "face", 1}};
    EXPECT_EQ(on_frame({{"bodies", inferred, {body}}, {"faces", inferred, {face}, 0, 0, true}}),
              both);
    EXPECT_EQ(on_frame({{"bodies", skipped_late, {}}, {"faces", skipped_region, {}}}),
              (Found{{20, "face", 1}}));
    EXPECT_EQ(on_frame({{"bodies", inferred, {}}, {"faces", skipped_region, {}}}), Found{});
}

// With an element in front that is gone, and its record with it, the others count again.
TEST_F(Evidences, AllCountWhereNoDetectorLeftARecord) {
    set("max-lost", "0");
    open();
    on_frame({{"boxes", inferred, {{10}}}, {"scene", inferred, {}}});
    EXPECT_EQ(on_frame({{"scene", skipped_late, {}}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(on_frame({{"scene", inferred, {}}}), Found{});
}

// The results of a detector come on several frames, those of a second model on each.
TEST_F(Evidences, CarriedDetectionsCountOnceBesideAnotherModel) {
    open();
    for (int n = 0; n < 60; ++n) {
        const int of = n / 5 * 5;  // the frame that was inferred
        const Found found = on_frame({{"boxes",
                                       of == n ? inferred : carried,
                                       {{.x = 3 * of}},
                                       guint64(of) + 1,
                                       guint64(n - of) * step},
                                      {"scene", inferred, {}, 1000 + guint64(n)}});
        ASSERT_EQ(found.size(), 1u) << n;
        EXPECT_EQ(found[0].id, 1u) << n;
        if (n >= 30) {
            EXPECT_NEAR(found[0].x, 3 * n, 2) << n;
        }
    }
    EXPECT_EQ(stat("matched"), 11u);
}

// Two results of one frame, as of its tiles: those that carry them later carry the same.
TEST_F(Evidences, CarriedDetectionsOfSeveralResultsCountOnce) {
    open();
    for (int n = 0; n < 6; ++n) {
        const InferenceStatus status = n ? carried : inferred;
        const GstClockTime age = guint64(n) * step;
        EXPECT_EQ(on_frame({{"boxes", status, {{10}}, 1, age}, {"boxes", status, {{200}}, 2, age}}),
                  (Found{{10, "cat", 1}, {200, "cat", 2}}))
            << n;
    }
    EXPECT_EQ(stat("matched"), 0u);
}

}  // namespace
