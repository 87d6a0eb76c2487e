// SPDX-License-Identifier: Apache-2.0
// Where metadata of a small picture lies on the large one.
#include "gst/gstvartmlmetajoin.h"

#include <gst/analytics/analytics.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <vector>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "tests/gst/join_harness.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;
using namespace vartml::test;

TEST_F(MetaJoin, ScalesEveryKindOfMetadata) {
    open();
    GstBuffer* in = frame(0);
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(in);
    const guint od = add_od(in, {10, 20, 30, 40});
    add_od(in, {100, 100, 20, 10}, 0.5f);
    add_od(in, {400, 20, 30, 40});  // outside: dropped
    GstAnalyticsMtd cls, track, mask, points, embedding;
    gst_analytics_relation_meta_add_one_cls_mtd(meta, 0.5f, g_quark_from_string("cat"), &cls);
    gst_analytics_relation_meta_add_tracking_mtd(meta, 7, 3, &track);
    guint region = 1;
    GstBuffer* picture = gst_buffer_new_allocate(nullptr, 4, nullptr);
    gst_buffer_add_video_meta(picture, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 4, 1);
    gst_analytics_relation_meta_add_segmentation_mtd(meta, picture, GST_SEGMENTATION_TYPE_INSTANCE,
                                                     1, &region, 10, 20, 30, 40, &mask);
    const vartml::Keypoint joint[] = {{1.5f, 2.5f, 0.5f, true}};
    add_keypoints(meta, {g_quark_from_string("coco17"), joint}, &points);
    const float vector[] = {1, 0};
    add_embedding(meta, vector, &embedding);
    for (const guint id : {cls.id, track.id, mask.id, points.id, embedding.id})
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od, id);
    Inference inference;
    inference.frame_width = 320, inference.frame_height = 180;
    inference.region_x = 10, inference.region_y = 20;
    inference.region_width = 30, inference.region_height = 40;
    inference.region_od = static_cast<int>(od);
    inference.to_frame = {1, 2, 3, 4, 5, 6};
    inference.run_us = 9;
    GstBuffer* tensor = gst_buffer_new_allocate(nullptr, 4, nullptr);
    inference.data = {tensor};
    ASSERT_TRUE(add_inference(in, inference, 1));
    gst_buffer_add_video_region_of_interest_meta(in, "roi", 10, 20, 30, 40);
    ASSERT_EQ(gst_harness_push(meta_, in), GST_FLOW_OK);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(tensor), 1);  // let go on arrival
    gst_buffer_unref(tensor);

    GstBuffer* main = frame(0);
    const guint own = add_od(main, {1, 2, 3, 4});  // of another element: is added to
    GstMemory* memory = gst_buffer_peek_memory(main, 0);
    ASSERT_EQ(gst_harness_push(main_, main), GST_FLOW_OK);
    GstBuffer* out = gst_harness_pull(main_);
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), memory);
    meta = gst_buffer_get_analytics_relation_meta(out);
    const auto boxes = boxes_of(out);
    ASSERT_EQ(boxes.size(), 3u);
    EXPECT_EQ(boxes[0], (Box{1, 2, 3, 4}));
    EXPECT_EQ(boxes[1], scaled_);
    EXPECT_EQ(boxes[2], (Box{600, 600, 120, 60}));
    GstAnalyticsMtd joined_od, mtd;
    ASSERT_TRUE(gst_analytics_relation_meta_get_mtd(
        meta, own + 1, gst_analytics_od_mtd_get_mtd_type(), &joined_od));
    const auto related = [&](GstAnalyticsMtdType type) {
        return gst_analytics_relation_meta_get_direct_related(
            meta, joined_od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, type, nullptr, &mtd);
    };
    ASSERT_TRUE(related(gst_analytics_cls_mtd_get_mtd_type()));
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&mtd, 0), g_quark_from_string("cat"));
    ASSERT_TRUE(related(gst_analytics_tracking_mtd_get_mtd_type()));
    guint64 id;
    GstClockTime first, last;
    gboolean lost;
    gst_analytics_tracking_mtd_get_info(&mtd, &id, &first, &last, &lost);
    EXPECT_EQ(id, 7u);
    ASSERT_TRUE(related(gst_analytics_segmentation_mtd_get_mtd_type()));
    Box rectangle;
    GstBuffer* got = gst_analytics_segmentation_mtd_get_mask(
        &mtd, &rectangle[0], &rectangle[1], reinterpret_cast<guint*>(&rectangle[2]),
        reinterpret_cast<guint*>(&rectangle[3]));
    EXPECT_EQ(got, picture);  // mask pixels untouched
    EXPECT_EQ(rectangle, scaled_);
    gst_buffer_unref(got);
    ASSERT_TRUE(related(keypoints_mtd_type()));
    const auto keypoints = get_keypoints(mtd);
    EXPECT_EQ(keypoints->points[0].x, 9);
    EXPECT_EQ(keypoints->points[0].y, 15);
    EXPECT_EQ(keypoints->points[0].score, 0.5f);
    EXPECT_EQ(keypoints->skeleton, g_quark_from_string("coco17"));
    ASSERT_TRUE(related(embedding_mtd_type()));
    EXPECT_EQ(get_embedding(mtd)[0], 1);
    const Inference* joined = get_inference(out, 0);
    ASSERT_NE(joined, nullptr);
    EXPECT_EQ(joined->frame_width, 1920u);
    EXPECT_EQ(joined->frame_height, 1080u);
    EXPECT_EQ(
        (Box{joined->region_x, joined->region_y, joined->region_width, joined->region_height}),
        scaled_);
    EXPECT_EQ(joined->region_od, static_cast<int>(joined_od.id));
    EXPECT_EQ(joined->run_us, 9u);
    const vartml::Affine& map = joined->to_frame;
    EXPECT_EQ((std::array{map.a, map.b, map.c, map.d, map.e, map.f}),
              (std::array<decltype(map.a), 6>{6, 12, 18, 24, 30, 36}));
    const auto* roi = gst_buffer_get_video_region_of_interest_meta_id(out, 0);
    ASSERT_NE(roi, nullptr);
    EXPECT_EQ((Box{int(roi->x), int(roi->y), int(roi->w), int(roi->h)}), scaled_);
    gst_buffer_unref(out);
}

// Without the box they would be the class, the track and the inference of the whole picture.
TEST_F(MetaJoin, DropsWhatBelongsToDroppedBoxesAlone) {
    open();
    GstBuffer* in = frame(0);
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(in);
    const guint inside = add_od(in, {10, 20, 30, 40}), outside = add_od(in, {400, 20, 30, 40});
    GstAnalyticsMtd lost, shared, picture, track;
    gst_analytics_relation_meta_add_one_cls_mtd(meta, 1, g_quark_from_string("lost"), &lost);
    gst_analytics_relation_meta_add_one_cls_mtd(meta, 1, g_quark_from_string("shared"), &shared);
    gst_analytics_relation_meta_add_one_cls_mtd(meta, 1, g_quark_from_string("picture"), &picture);
    gst_analytics_relation_meta_add_tracking_mtd(meta, 7, 3, &track);
    const auto relate = [meta](guint from, guint to) {
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, from, to);
    };
    relate(outside, lost.id);
    relate(track.id, outside);  // in either direction
    relate(outside, shared.id);
    relate(inside, shared.id);
    const vartml::ZonePoint corners[] = {{0, 0}, {10, 0}, {0, 10}};
    GstAnalyticsMtd zone;
    ASSERT_TRUE(add_zone(meta, {g_quark_from_string("gate"), false, {}, corners}, &zone));
    gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_CONTAIN, zone.id,
                                             outside);
    for (const guint od : {inside, outside}) {
        Inference inference;
        inference.frame_width = 320, inference.frame_height = 180;
        inference.region_od = static_cast<int>(od);
        ASSERT_TRUE(add_inference(in, inference, 1));
    }
    ASSERT_EQ(gst_harness_push(meta_, in), GST_FLOW_OK);
    ASSERT_EQ(gst_harness_push(main_, frame(0)), GST_FLOW_OK);
    GstBuffer* out = gst_harness_pull(main_);
    meta = gst_buffer_get_analytics_relation_meta(out);
    EXPECT_EQ(boxes_of(out), (std::vector<Box>{scaled_}));
    std::vector<std::string> classes;
    unsigned tracks = 0, zones = 0;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        const auto type = gst_analytics_mtd_get_mtd_type(&mtd);
        if (type == gst_analytics_cls_mtd_get_mtd_type())
            classes.emplace_back(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&mtd, 0)));
        tracks += type == gst_analytics_tracking_mtd_get_mtd_type();
        zones += get_zone(mtd).has_value();
    }
    EXPECT_EQ(classes, (std::vector<std::string>{"shared", "picture"}));
    EXPECT_EQ(tracks, 0u);
    EXPECT_EQ(zones, 1u);
    ASSERT_NE(get_inference(out, 0), nullptr);
    EXPECT_GE(get_inference(out, 0)->region_od, 0);
    EXPECT_EQ(get_inference(out, 1), nullptr);
    gst_buffer_unref(out);
}

// What was inferred is known by its place in the frame as it was then.
TEST_F(MetaJoin, ScalesRegionsOfFramesThatWereScaledAfterInference) {
    open();
    GstBuffer* in = frame(0);
    gst_buffer_add_analytics_relation_meta(in);
    Inference inference;
    inference.frame_width = 640, inference.frame_height = 360;  // twice the small picture
    inference.region_x = 20, inference.region_y = 40;
    inference.region_width = 60, inference.region_height = 80;
    inference.to_frame = {1, 0, 10, 0, 1, 20};  // follows what scales
    ASSERT_TRUE(add_inference(in, inference, 1));
    ASSERT_EQ(gst_harness_push(meta_, in), GST_FLOW_OK);
    ASSERT_EQ(gst_harness_push(main_, frame(0)), GST_FLOW_OK);
    GstBuffer* out = gst_harness_pull(main_);
    const Inference* joined = get_inference(out, 0);
    ASSERT_NE(joined, nullptr);
    EXPECT_EQ(
        (Box{joined->region_x, joined->region_y, joined->region_width, joined->region_height}),
        scaled_);
    EXPECT_EQ(joined->frame_width, 1920u);
    EXPECT_EQ(joined->to_frame.a, 6);
    EXPECT_EQ(joined->to_frame.c, 60);
    gst_buffer_unref(out);
}

// Corners are rounded, not sizes: boxes that touch still touch.
TEST_F(MetaJoin, RoundsCornersAndClips) {
    open("video/x-raw,format=GRAY8,width=800,height=450,framerate=25/1");
    GstBuffer* in = frame(0);
    for (const Box& box :
         {Box{1, 1, 2, 2}, Box{3, 1, 2, 2}, Box{310, 170, 50, 50}, Box{-9, 0, 5, 5}})
        add_od(in, box);
    ASSERT_EQ(gst_harness_push(meta_, in), GST_FLOW_OK);
    // 2.5 times: 1 -> 2.5 -> 3, 3 -> 7.5 -> 8, 5 -> 12.5 -> 13
    EXPECT_EQ(push_main(0), (std::vector<Box>{{3, 3, 5, 5}, {8, 3, 5, 5}, {775, 425, 25, 25}}));
}

TEST_F(MetaJoin, RegionSaysWhatTheSmallPictureShows) {
    set("region", "960,540,320,320");
    open(large, "video/x-raw,format=GRAY8,width=160,height=320,framerate=25/1");
    push_meta(0);
    EXPECT_EQ(push_main(0), (std::vector<Box>{{980, 560, 60, 40}}));
}

TEST_F(MetaJoin, AWholePictureMayHaveBeenStretched) {
    set("region", "whole");
    open(large, "video/x-raw,format=GRAY8,width=640,height=640,framerate=25/1");
    push_meta(0, {64, 64, 128, 128});
    EXPECT_EQ(push_main(0), (std::vector<Box>{{192, 108, 384, 216}}));
}

// Hardware in front of a model knows no border.
TEST_F(MetaJoin, ACamerasTensorIsTheWholePictureStretched) {
    open(large,
         "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=HC48,width=640,height=640,"
         "framerate=25/1");
    push_meta(0, {64, 64, 128, 128});
    EXPECT_EQ(push_main(0), (std::vector<Box>{{192, 108, 384, 216}}));
}

TEST_F(MetaJoin, OtherAspectsAreAnErrorWithoutRegion) {
    open(large, "video/x-raw,format=GRAY8,width=320,height=320,framerate=25/1");
    push_meta(0);
    EXPECT_EQ(gst_harness_push(main_, frame(0)), GST_FLOW_ERROR);
    EXPECT_EQ(id_of(GST_MESSAGE_ERROR), "join-geometry");
}

TEST_F(MetaJoin, PixelAspectCounts) {
    open(large,
         "video/x-raw,format=GRAY8,width=320,height=320,pixel-aspect-ratio=16/9,framerate=25/1");
    push_meta(0, {10, 20, 32, 32});
    EXPECT_EQ(push_main(0), (std::vector<Box>{{60, 68, 192, 108}}));
}

TEST_F(MetaJoin, ABadRegionIsAnErrorAtStart) {
    for (const char* region : {"1,2,3", "a,b,c,d", "0,0,0,10", "0,0,nan,10", "Whole"}) {
        set("region", region);
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        EXPECT_EQ(id_of(GST_MESSAGE_ERROR), "join-region") << region;
        gst_element_set_state(element_, GST_STATE_NULL);
    }
}

}  // namespace
