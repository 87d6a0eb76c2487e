// SPDX-License-Identifier: Apache-2.0
// Secondary inference: which regions of a frame are inferred, with which pixels, and what the frame
// says of them.
#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include "gst/infer/regions.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using namespace vartml::gst::infer;
using vartml::gst::get_inference;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

struct Box {
    const char* label;
    int x, y, w, h;
    float score;
};

int add_detection(GstBuffer* buffer, const Box& box) {
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
    GstAnalyticsODMtd mtd;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(box.label), box.x, box.y,
                                           box.w, box.h, box.score, &mtd);
    return int(mtd.id);
}

void add_roi(GstBuffer* buffer, const Box& box) {
    gst_buffer_add_video_region_of_interest_meta(buffer, box.label, guint(box.x), guint(box.y),
                                                 guint(box.w), guint(box.h));
}

std::string text(const std::vector<FrameRegion>& regions) {
    std::string all;
    for (const FrameRegion& r : regions) {
        all += std::to_string(r.x) + "," + std::to_string(r.y) + " " + std::to_string(r.width) +
               "x" + std::to_string(r.height) + (r.od >= 0 ? " od; " : "; ");
    }
    return all;
}

const Box person = {"person", 10, 20, 40, 60, 0.5f}, car = {"car", 0, 0, 30, 20, 0.9f},
          speck = {"person", 70, 70, 8, 30, 0.99f}, beyond = {"car", 80, 90, 60, 60, 0.3f};

struct RuleCase {
    const char* why;
    std::vector<Box> detections, rois;
    RegionRules rules;
    const char* want;
};

TEST(Regions, FollowTheRules) {
    const RuleCase cases[] = {
        {"nothing on the frame", {}, {}, {}, ""},
        {"best score first, the small one left out",
         {person, car, speck},
         {},
         {},
         "0,0 30x20 od; 10,20 40x60 od; "},
        {"what leaves the frame is clipped", {beyond}, {}, {.min_size = 10}, "80,90 20x10 od; "},
        {"what is clipped below the least size is left out", {beyond}, {}, {.min_size = 11}, ""},
        {"only the classes asked for",
         {person, car},
         {},
         {.classes = {"person", "dog"}},
         "10,20 40x60 od; "},
        {"only so many", {person, car}, {}, {.most = 1}, "0,0 30x20 od; "},
        {"enlarged on each side, inside the frame",
         {person, car},
         {},
         {.expand = 0.5},
         "0,0 45x30 od; 0,0 70x100 od; "},
        {"regions of interest come before detections", {person}, {car}, {}, "0,0 30x20; "},
        {"unless detections are asked for",
         {person},
         {car},
         {.source = RoiSource::detections},
         "10,20 40x60 od; "},
        {"and regions of interest alone where those are asked for",
         {person},
         {},
         {.source = RoiSource::roi_meta},
         ""},
        {"types of regions are classes", {}, {person, car}, {.classes = {"car"}}, "0,0 30x20; "},
        {"an empty box is none", {{"person", 5, 5, 0, 9, 1}}, {}, {.min_size = 0}, ""},
    };
    for (const RuleCase& c : cases) {
        SCOPED_TRACE(c.why);
        GstBuffer* buffer = gst_buffer_new();
        for (const Box& box : c.detections) add_detection(buffer, box);
        for (const Box& box : c.rois) add_roi(buffer, box);
        std::vector<FrameRegion> regions = {{1, 2, 3, 4, 5}};
        find_regions(buffer, c.rules, 100, 100, regions);
        EXPECT_EQ(text(regions), c.want);
        gst_buffer_unref(buffer);
    }
}

TEST(Regions, ClassesAreSeparatedByCommas) {
    Settings settings;
    settings.roi_classes = " person, traffic light ,,car";
    EXPECT_EQ(region_rules(settings).classes,
              (std::vector<std::string>{"person", "traffic light", "car"}));
}

class InferRegions : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }

    static GstElement* roi_infer() {
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
        g_object_set(element, "roi-min-size", 2, nullptr);
        return element;
    }
};

// Regions of interest get a detection each, so that what is found in them can be related to it.
TEST_F(InferRegions, ARegionOfInterestIsADetectionThatItsInferenceKnows) {
    GstElement* element = roi_infer();
    g_object_set(element, "roi-expand", 0.25, nullptr);
    InferHarness t(element);
    for (const bool there : {false, true}) {
        GstBuffer* frame = InferHarness::frame(0);
        add_roi(frame, {"face", 4, 6, 8, 12, 0});
        add_roi(frame, {"face", 16, 0, 16, 12, 0});
        // An element before has made it already.
        const int known = there ? add_detection(frame, {"face", 16, 0, 16, 12, 0.5f}) : -1;
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const int x[] = {4, 16};
        for (unsigned i = 0; i < 2; ++i) {
            const Inference* inference = get_inference(out, i);
            ASSERT_NE(inference, nullptr);
            ASSERT_GE(inference->region_od, 0);
            EXPECT_TRUE(!there || i == 0 || inference->region_od == known);
            GstAnalyticsODMtd od;
            ASSERT_TRUE(gst_analytics_relation_meta_get_od_mtd(
                gst_buffer_get_analytics_relation_meta(out), guint(inference->region_od), &od));
            int left, top, width, height;
            float score;
            gst_analytics_od_mtd_get_location(&od, &left, &top, &width, &height, &score);
            EXPECT_EQ(left, x[i]) << "where the region was before it was enlarged";
            EXPECT_EQ(gst_analytics_od_mtd_get_obj_type(&od), g_quark_from_string("face"));
        }
        EXPECT_EQ(get_inference(out, 2), nullptr);
        gst_buffer_unref(out);
    }
}

// Else what is found in them would be of the whole frame.
TEST_F(InferRegions, ARegionOfInterestOfNoTypeIsADetection) {
    InferHarness t(roi_infer());
    GstBuffer* frame = InferHarness::frame(0);
    gst_buffer_add_video_region_of_interest_meta_id(frame, 0, 4, 6, 8, 12);
    ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    const Inference* inference = get_inference(out, 0);
    ASSERT_NE(inference, nullptr);
    ASSERT_GE(inference->region_od, 0);
    GstAnalyticsODMtd od;
    ASSERT_TRUE(gst_analytics_relation_meta_get_od_mtd(gst_buffer_get_analytics_relation_meta(out),
                                                       guint(inference->region_od), &od));
    EXPECT_STREQ(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&od)), "region-of-interest");
    gst_buffer_unref(out);
}

TEST_F(InferRegions, EachRegionIsOneInferenceThatKnowsItsDetection) {
    InferHarness t(roi_infer());
    GstBuffer* frame = InferHarness::frame(0);
    const int first = add_detection(frame, {"a", 4, 6, 8, 12, 0.9f});
    const int second = add_detection(frame, {"b", 16, 0, 16, 12, 0.8f});
    ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    const Inference* a = get_inference(out, 0);
    const Inference* b = get_inference(out, 1);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(get_inference(out, 2), nullptr);
    EXPECT_EQ(a->region_od, first);
    EXPECT_EQ(b->region_od, second);
    EXPECT_EQ(a->region_x, 4);
    EXPECT_EQ(a->region_y, 6);
    EXPECT_EQ(a->region_width, 8);
    EXPECT_EQ(a->region_height, 12);
    // Model pixels map into the region: 16x12 onto 8x12 at 4,6.
    EXPECT_DOUBLE_EQ(a->to_frame.a, 0.5);
    EXPECT_DOUBLE_EQ(a->to_frame.c, 4);
    EXPECT_DOUBLE_EQ(a->to_frame.e, 1);
    EXPECT_DOUBLE_EQ(a->to_frame.f, 6);
    EXPECT_NE(a->data[0], b->data[0]);
    EXPECT_EQ(t.stat("frames"), 1u);
    EXPECT_EQ(t.stat("inferences"), 2u);
    EXPECT_EQ(t.stat("conversions"), 2u);
    gst_buffer_unref(out);
}

// A frame whose left half is 10 and right half 200.
TEST_F(InferRegions, OnlyThePixelsOfTheRegionAreRead) {
    InferHarness t(roi_infer());
    for (const bool right : {false, true}) {
        GstBuffer* frame = InferHarness::frame(0);
        GstMapInfo map;
        gst_buffer_map(frame, &map, GST_MAP_WRITE);
        for (gsize i = 0; i < map.size; ++i) map.data[i] = i % 32 < 16 ? 10 : 200;
        gst_buffer_unmap(frame, &map);
        add_detection(frame, {"half", right ? 16 : 0, 0, 16, 24, 1});
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        t.pull_out();
        const std::vector<uint8_t>& tensor = fake_model().last_input;  // bf16, HCWNC4
        for (size_t pixel = 0; pixel < tensor.size() / 8; ++pixel) {
            const unsigned bits = unsigned(tensor[8 * pixel + 1]) << 8 | tensor[8 * pixel];
            ASSERT_EQ(bits, right ? 0x4348u : 0x4120u) << pixel;  // 200 and 10 in bf16
        }
    }
}

TEST_F(InferRegions, AFrameWithoutRegionPassesWithoutWaiting) {
    fake_model().hold = true;
    InferHarness t(roi_infer());
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    EXPECT_EQ(get_inference(out, 0)->status, InferenceStatus::skipped_region);
    gst_buffer_unref(out);
    EXPECT_EQ(t.stat("skipped-region"), 1u);
    EXPECT_EQ(t.stat("inferences"), 0u);
}

TEST_F(InferRegions, MoreThanTheMostAreNotInferred) {
    GstElement* element = roi_infer();
    g_object_set(element, "roi-max", 3, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 5; ++n) {
        GstBuffer* frame = InferHarness::frame(n);
        for (int i = 0; i < 10; ++i) add_detection(frame, {"x", i, i, 8, 8, 0.1f * float(i)});
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
    }
    for (guint64 n = 0; n < 5; ++n) {
        GstBuffer* out = t.pull();
        EXPECT_EQ(GST_BUFFER_OFFSET(out), n);
        EXPECT_NE(get_inference(out, 2), nullptr);
        EXPECT_EQ(get_inference(out, 3), nullptr);
        gst_buffer_unref(out);
    }
}

TEST_F(InferRegions, RegionsOfSeveralFramesShareBatches) {
    fake_model().batch = 4;
    GstElement* element = roi_infer();
    g_object_set(element, "async-depth", 4, "batch-timeout", 60'000, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 4; ++n) {
        GstBuffer* frame = InferHarness::frame(n);
        for (guint64 i = 0; i <= n % 2 + 1; ++i) add_detection(frame, {"x", int(i), 0, 9, 9, 1});
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);  // 2, 3, 2, 3 regions
    }
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_eos()));
    for (guint64 n = 0; n < 4; ++n) EXPECT_EQ(t.pull_out().offset, n);
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{4, 4, 2}));
}

TEST_F(InferRegions, RulesMayChangeWhilePlaying) {
    InferHarness t(roi_infer());
    for (const char* classes : {"cat", "dog"}) {
        g_object_set(t.element, "roi-classes", classes, nullptr);
        GstBuffer* frame = InferHarness::frame(0);
        add_detection(frame, {"dog", 0, 0, 9, 9, 1});
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, classes == std::string("dog")
                                           ? InferenceStatus::inferred
                                           : InferenceStatus::skipped_region);
    }
}

}  // namespace
