// SPDX-License-Identifier: Apache-2.0
// Regions of tracked objects: each is inferred once, again after a while or when it has grown, and
// carries its result meanwhile.
#include <gst/analytics/analytics.h>

#include "gst/infer/track_results.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::get_inference;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

struct Object {
    guint64 track;
    int x, y, w, h;
    const char* label = "car";
};

GstBuffer* frame_with(guint64 number, const std::vector<Object>& objects,
                      GstAnalyticsRelTypes relation = GST_ANALYTICS_REL_TYPE_RELATE_TO) {
    GstBuffer* buffer = InferHarness::frame(number);
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
    for (const Object& o : objects) {
        GstAnalyticsMtd od, track;
        gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(o.label), o.x, o.y, o.w,
                                               o.h, 0.9f, &od);
        if (!o.track) continue;
        gst_analytics_relation_meta_add_tracking_mtd(meta, o.track, 0, &track);
        gst_analytics_relation_meta_set_relation(meta, relation, od.id, track.id);
    }
    return buffer;
}

class InferTracks : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }

    static GstElement* tracked_infer(unsigned interval, double growth = 0) {
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
        g_object_set(element, "roi-min-size", 2, "roi-reinfer-interval", interval,
                     "roi-reinfer-growth", growth, nullptr);
        return element;
    }
    // Per result on the frame: the number of the run, and of which detection; with a * where it is
    // carried. It takes the frame.
    static std::string pull(InferHarness& t) {
        GstBuffer* buffer = t.pull();
        if (!buffer) return "no frame";
        std::string all;
        for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i) {
            if (one->data.empty()) {
                all += std::string(vartml::gst::status_nick(one->status)) + " ";
                continue;
            }
            float run = -1;
            gst_buffer_extract(one->data[0], 0, &run, sizeof run);
            all += std::to_string(int(run)) + "@" + std::to_string(one->region_od) +
                   (one->status == InferenceStatus::carried ? "* " : " ");
        }
        gst_buffer_unref(buffer);
        return all;
    }
};

TEST_F(InferTracks, AnObjectIsInferredOnceAndKeepsItsResult) {
    InferHarness t(tracked_infer(0));
    // Detections have ids 0, 2 …, their tracks 1, 3 …
    const std::pair<std::vector<Object>, const char*> frames[] = {
        {{{7, 0, 0, 8, 8}}, "0@0 "},
        {{{7, 1, 0, 8, 8}, {8, 16, 0, 8, 8}}, "1@2 0@0* "},
        {{{8, 17, 0, 8, 8}, {7, 2, 0, 8, 8}}, "skipped-track 1@0* 0@2* "},
        {{}, "skipped-region "},
        {{{0, 2, 0, 8, 8}}, "2@0 "},  // not tracked: on every frame
        {{{0, 2, 0, 8, 8}}, "3@0 "},
        {{{7, 3, 0, 8, 8}}, "skipped-track 0@0* "},
    };
    for (guint64 n = 0; n < std::size(frames); ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame_with(n, frames[n].first)), GST_FLOW_OK);
        EXPECT_EQ(pull(t), frames[n].second) << n;
    }
    EXPECT_EQ(t.stat("inferences"), 4u);
    EXPECT_EQ(t.stat("tracks-carried"), 4u);
    EXPECT_EQ(t.stat("skipped-track"), 2u);
    EXPECT_EQ(t.stat("skipped-region"), 1u);
}

// Of two trackers each has a first track.
TEST_F(InferTracks, ObjectsOfTwoTrackersAreTwo) {
    InferHarness t(tracked_infer(0));
    const std::vector<Object> both = {{1, 0, 0, 8, 8}, {1, 16, 0, 8, 8, "person"}};
    ASSERT_EQ(gst_harness_push(t.h, frame_with(0, both)), GST_FLOW_OK);
    EXPECT_EQ(pull(t), "0@0 1@2 ");
    ASSERT_EQ(gst_harness_push(t.h, frame_with(1, both)), GST_FLOW_OK);
    EXPECT_EQ(pull(t), "skipped-track 0@0* 1@2* ");
}

TEST_F(InferTracks, AndAgainAfterSoManyFramesOrWhenItHasGrown) {
    struct Case {
        unsigned interval;
        double growth;
        std::vector<int> sizes;  // of the object, frame by frame
        std::vector<bool> inferred;
    } cases[] = {
        {1, 0, {8, 8, 8}, {true, true, true}},
        {3, 0, {8, 8, 8, 8, 8, 8, 8}, {true, false, false, true, false, false, true}},
        {0, 0, {4, 8, 16}, {true, false, false}},
        {0, 0.5, {8, 9, 10, 12, 12, 8}, {true, false, true, false, false, false}},
        {4, 1, {8, 12, 12, 12, 12, 12}, {true, true, false, false, false, true}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(std::to_string(c.interval) + " frames, " + std::to_string(c.growth));
        InferHarness t(tracked_infer(c.interval, c.growth));
        for (guint64 n = 0; n < c.sizes.size(); ++n) {
            const int size = c.sizes[n];
            ASSERT_EQ(gst_harness_push(t.h, frame_with(n, {{7, 0, 0, size, size}})), GST_FLOW_OK);
            const std::string said = pull(t);
            EXPECT_EQ(said.find('*') == std::string::npos, c.inferred[n]) << n << ": " << said;
        }
    }
}

TEST_F(InferTracks, AResultLiesWhereTheObjectIsNow) {
    InferHarness t(tracked_infer(0));
    ASSERT_EQ(gst_harness_push(t.h, frame_with(0, {{7, 4, 6, 8, 12}})), GST_FLOW_OK);
    gst_buffer_unref(t.pull());
    ASSERT_EQ(gst_harness_push(t.h, frame_with(1, {{7, 10, 0, 16, 18}})), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    const Inference* i = get_inference(out, 1);
    ASSERT_NE(i, nullptr);
    EXPECT_EQ(i->region_x, 10);
    EXPECT_EQ(i->region_height, 18);
    // 16x12 of the model onto 16x18 at 10,0.
    EXPECT_DOUBLE_EQ(i->to_frame.a, 1);
    EXPECT_DOUBLE_EQ(i->to_frame.c, 10);
    EXPECT_DOUBLE_EQ(i->to_frame.e, 1.5);
    EXPECT_DOUBLE_EQ(i->to_frame.f, 0);
    EXPECT_EQ(i->result_seq, 0u);
    EXPECT_EQ(i->age_ns, GST_SECOND / 30);
    EXPECT_NE(gst_buffer_get_meta(out, GST_TENSOR_META_API_TYPE), nullptr);
    gst_buffer_unref(out);
}

TEST_F(InferTracks, KnownObjectsTakeNoPlaceOfOthers) {
    GstElement* element = tracked_infer(0);
    g_object_set(element, "roi-max", 1, nullptr);
    InferHarness t(element);
    const std::vector<Object> three = {{1, 0, 0, 8, 8}, {2, 8, 0, 8, 8}, {3, 16, 0, 8, 8}};
    const char* const want[] = {"0@0 ", "1@2 0@0* ", "2@4 0@0* 1@2* ",
                                "skipped-track 0@0* 1@2* 2@4* "};
    for (guint64 n = 0; n < 4; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame_with(n, three)), GST_FLOW_OK);
        EXPECT_EQ(pull(t), want[n]) << n;
    }
}

TEST_F(InferTracks, AFailedInferenceIsMadeAgain) {
    fake_model().failing = {0};
    InferHarness t(tracked_infer(0));
    const char* const want[] = {"failed ", "1@0 ", "skipped-track 1@0* "};
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame_with(n, {{7, 0, 0, 8, 8}})), GST_FLOW_OK);
        EXPECT_EQ(pull(t), want[n]) << n;
    }
}

TEST_F(InferTracks, AreFoundByEitherRelation) {
    InferHarness t(tracked_infer(0));
    for (guint64 n = 0; n < 2; ++n) {
        ASSERT_EQ(
            gst_harness_push(t.h, frame_with(n, {{7, 0, 0, 8, 8}}, GST_ANALYTICS_REL_TYPE_CONTAIN)),
            GST_FLOW_OK);
        EXPECT_EQ(pull(t), n ? "skipped-track 0@0* " : "0@0 ");
    }
}

// Ids of another stream begin anew.
TEST_F(InferTracks, ANewStreamHasNewObjects) {
    InferHarness t(tracked_infer(0));
    for (int stream = 0; stream < 2; ++stream) {
        gst_harness_push_event(t.h, gst_event_new_stream_start(stream ? "b" : "a"));
        gst_harness_set_src_caps_str(t.h, gray_caps);
        ASSERT_EQ(gst_harness_push(t.h, frame_with(0, {{7, 0, 0, 8, 8}})), GST_FLOW_OK);
        EXPECT_EQ(pull(t), std::to_string(stream) + "@0 ");
    }
}

TEST(TrackResults, ForgetObjectsThatAreNotSeen) {
    using vartml::gst::infer::FrameRegion;
    vartml::gst::infer::TrackResults results;
    FrameRegion region = {0, 0, 8, 8};
    region.track = 1;
    results.asked(region, 0);
    EXPECT_FALSE(results.due(region, 1, {0, 0}));
    FrameRegion other = region;
    other.track = 2;
    results.asked(other, 200);  // a new object: those not seen for 300 frames go
    EXPECT_FALSE(results.due(region, 200, {0, 0}));
    other.track = 3;
    results.asked(other, 501);
    EXPECT_TRUE(results.due(region, 501, {0, 0}));
}

}  // namespace
