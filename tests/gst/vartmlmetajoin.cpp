// SPDX-License-Identifier: Apache-2.0
#include "gst/gstvartmlmetajoin.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/check/gsttestclock.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <thread>
#include <vector>

#include "gst/join/joint.h"
#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

constexpr char large[] = "video/x-raw,format=GRAY8,width=1920,height=1080,framerate=25/1";
constexpr char small[] = "video/x-raw,format=GRAY8,width=320,height=180,framerate=25/1";
constexpr GstClockTime step = 40 * GST_MSECOND;
using Box = std::array<int, 4>;

class MetaJoin : public testing::Test {
protected:
    void SetUp() override {
        element_ =
            GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_META_JOIN, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
    }
    void TearDown() override {
        if (meta_) gst_harness_teardown(meta_);
        if (main_) gst_harness_teardown(main_);
        gst_element_set_state(element_, GST_STATE_NULL);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(bus_);
    }
    void again() {
        TearDown();
        main_ = meta_ = nullptr;
        SetUp();
    }
    void set(const char* name, const char* value) {
        gst_util_set_object_arg(G_OBJECT(element_), name, value);
    }
    void open(const char* main_caps = large, const char* meta_caps = small) {
        main_ = gst_harness_new_with_element(element_, "sink_main", "src");
        meta_ = gst_harness_new_with_element(element_, "sink_meta", nullptr);
        for (GstHarness* h : {main_, meta_}) gst_harness_set_live(h, FALSE);
        gst_harness_set_src_caps_str(main_, main_caps);
        gst_harness_set_src_caps_str(meta_, meta_caps);
    }
    static GstBuffer* frame(GstClockTime pts) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16, nullptr);
        GST_BUFFER_PTS(buffer) = pts;
        GST_BUFFER_DURATION(buffer) = step;
        return buffer;
    }
    static guint add_od(GstBuffer* buffer, const Box& box, float angle = 0) {
        GstAnalyticsODMtd od;
        EXPECT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
            gst_buffer_add_analytics_relation_meta(buffer), g_quark_from_string("cat"), box[0],
            box[1], box[2], box[3], angle, 0.5f, &od));
        return od.id;
    }
    void push_meta(GstClockTime pts, const Box& box = {10, 20, 30, 40}) {
        GstBuffer* buffer = frame(pts);
        add_od(buffer, box);
        EXPECT_EQ(gst_harness_push(meta_, buffer), GST_FLOW_OK);
    }
    // The boxes of a main frame after it has passed.
    static std::vector<Box> boxes_of(GstBuffer* buffer) {
        std::vector<Box> boxes;
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        gpointer state = nullptr;
        GstAnalyticsMtd od;
        while (meta && gst_analytics_relation_meta_iterate(
                           meta, &state, gst_analytics_od_mtd_get_mtd_type(), &od)) {
            Box b;
            float angle, score;
            EXPECT_TRUE(gst_analytics_od_mtd_get_oriented_location(&od, &b[0], &b[1], &b[2], &b[3],
                                                                   &angle, &score));
            boxes.push_back(b);
        }
        return boxes;
    }
    std::vector<Box> push_main(GstClockTime pts) {
        EXPECT_EQ(gst_harness_push(main_, frame(pts)), GST_FLOW_OK);
        GstBuffer* out = gst_harness_pull(main_);
        std::vector<Box> boxes = boxes_of(out);
        EXPECT_EQ(GST_BUFFER_PTS(out), pts);
        gst_buffer_unref(out);
        return boxes;
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element_, "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }
    std::string id_of(GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        const GstStructure* details = nullptr;
        type == GST_MESSAGE_ERROR ? gst_message_parse_error_details(message, &details)
                                  : gst_message_parse_warning_details(message, &details);
        const std::string id = gst_structure_get_string(details, "id");
        gst_message_unref(message);
        return id;
    }

    static constexpr Box scaled_ = {60, 120, 180, 240};  // of {10, 20, 30, 40}: 6 times
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstHarness *main_ = nullptr, *meta_ = nullptr;
};

TEST_F(MetaJoin, TakesTheNearestWithinHalfAFrame) {
    struct Case {
        std::vector<GstClockTime> metas;
        GstClockTime main;
        int want;  // index of the meta frame, -1: none
    };
    const Case cases[] = {
        {{0, step}, 0, 0},                              // equal
        {{0, step, 2 * step}, step + step / 4, 1},      // offset
        {{0, 2 * step}, step, -1},                      // missing
        {{0, step}, step / 2, 0},                       // a tie goes to the earlier
        {{0, step, 2 * step}, step + step / 2 + 1, 2},  // nearer to the later
    };
    for (const Case& c : cases) {
        if (main_) again();
        open();
        for (size_t i = 0; i < c.metas.size(); ++i)
            push_meta(c.metas[i], {static_cast<int>(i), 0, 10, 10});
        const auto boxes = push_main(c.main);
        if (c.want < 0) {
            EXPECT_TRUE(boxes.empty());
            EXPECT_EQ(stat("unmatched"), 1u);
        } else {
            ASSERT_EQ(boxes.size(), 1u);
            EXPECT_EQ(boxes[0][0], 6 * c.want);
            EXPECT_EQ(stat("matched"), 1u);
        }
    }
}

// As where the first vartmlinfer is in front of the tee.
TEST_F(MetaJoin, SaysThatAResultComesByBothBranches) {
    open();
    for (const guint64 of_main : {1u, 7u, 7u}) {
        for (GstHarness* h : {meta_, main_}) {
            GstBuffer* buffer = frame(GstClockTime(of_main) * step);
            Inference inference;
            inference.result_id = h == meta_ ? 7 : of_main;
            EXPECT_TRUE(add_inference(buffer, inference, 8));
            EXPECT_EQ(gst_harness_push(h, buffer), GST_FLOW_OK);
        }
        gst_buffer_unref(gst_harness_pull(main_));
        EXPECT_EQ(id_of(GST_MESSAGE_WARNING),
                  of_main == 7 && stat("frames") == 2 ? "join-doubled" : "");
    }
}

TEST_F(MetaJoin, OneMetaFrameServesSeveralPictures) {
    set("tolerance", "100000000");
    open();
    push_meta(0);
    push_meta(10 * step);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(push_main(i * step), (std::vector<Box>{scaled_})) << i;
    EXPECT_TRUE(push_main(4 * step).empty());
}

// Behind a camera whose hardware makes the model's input.
TEST_F(MetaJoin, MetadataMayComeOnTensors) {
    for (const char* caps :
         {"application/x-vartml-tensor,data-type=int8,layout=HCWNC4,channels=3,width=320,"
          "height=180,framerate=25/1",
          "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=HC48,width=320,height=180,"
          "framerate=25/1"}) {
        SCOPED_TRACE(caps);
        if (main_) again();
        open(large, caps);
        push_meta(0);
        push_meta(10 * step);
        EXPECT_EQ(push_main(0), (std::vector<Box>{scaled_}));
    }
}

TEST_F(MetaJoin, WaitsForTheMetadataThatAFileBringsLater) {
    open();
    std::thread pictures([this] { EXPECT_EQ(push_main(step), (std::vector<Box>{scaled_})); });
    push_meta(0, {0, 0, 5, 5});
    push_meta(step);
    pictures.join();
    EXPECT_EQ(stat("timeouts"), 0u);
}

TEST_F(MetaJoin, AGapAndTheEndOfABranchEndTheWaiting) {
    open();
    std::thread pictures([this] {
        EXPECT_TRUE(push_main(step).empty());
        EXPECT_TRUE(push_main(9 * step).empty());
    });
    gst_harness_push_event(meta_, gst_event_new_gap(0, 2 * step));
    gst_harness_push_event(meta_, gst_event_new_eos());
    pictures.join();
    EXPECT_EQ(stat("unmatched"), 2u);
}

TEST_F(MetaJoin, AGapEndsBeforeTheFrameThatFollowsIt) {
    Joint joint;
    GstEvent* gap = gst_event_new_gap(step, step);
    follow(joint, joint.meta, gap);
    gst_event_unref(gap);
    EXPECT_TRUE(has_metadata(joint, 2 * step - 1));
    EXPECT_FALSE(has_metadata(joint, 2 * step));
}

TEST_F(MetaJoin, AGapReachesAsFarAsTheSegmentWhicheverWayItIsPlayed) {
    for (const double rate : {1., -1.}) {
        Joint joint;
        joint.meta.segment.rate = rate;
        joint.meta.segment.stop = 10 * step;
        GstEvent* gap = gst_event_new_gap(rate > 0 ? 8 * step : 2 * step, 5 * step);
        follow(joint, joint.meta, gap);
        gst_event_unref(gap);
        EXPECT_TRUE(has_metadata(joint, rate > 0 ? 10 * step - 1 : 8 * step)) << rate;
        EXPECT_FALSE(has_metadata(joint, rate > 0 ? 10 * step : 8 * step + 1)) << rate;
    }
}

// Until there is another segment: what SEGMENT seeks play ends without EOS.
TEST_F(MetaJoin, ASegmentThatIsDoneEndsTheWaiting) {
    Joint joint;
    const auto send = [&](JoinBranch& branch, GstEvent* event) {
        follow(joint, branch, event);
        gst_event_unref(event);
    };
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (GstEvent* next : {gst_event_new_segment(&segment), gst_event_new_stream_start("next"),
                           gst_event_new_flush_stop(TRUE)}) {
        EXPECT_FALSE(has_metadata(joint, step));
        send(joint.meta, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND));
        EXPECT_TRUE(has_metadata(joint, step));
        send(joint.meta, next);
        EXPECT_FALSE(has_metadata(joint, step));
    }
    for (GstClockTime n = 0; n < Matcher::most; ++n)
        joint.matcher.add({n * step, nullptr, 320, 180, 1, 1});
    EXPECT_FALSE(may_run_ahead(joint));
    send(joint.main, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND));
    EXPECT_TRUE(may_run_ahead(joint));
}

// Pictures of the next pass may come before the metadata's segment of it.
TEST_F(MetaJoin, ASegmentThatIsDoneEndsNoWaitingOfTheNextPass) {
    Joint joint;
    const auto send = [&](JoinBranch& branch, GstEvent* event, guint32 seek) {
        gst_event_set_seqnum(event, seek);
        follow(joint, branch, event);
        gst_event_unref(event);
    };
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    const guint32 first = gst_util_seqnum_next(), second = gst_util_seqnum_next();
    send(joint.main, gst_event_new_segment(&segment), first);
    send(joint.meta, gst_event_new_segment(&segment), first);
    send(joint.meta, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND), first);
    EXPECT_TRUE(has_metadata(joint, step));
    send(joint.main, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND), first);
    send(joint.main, gst_event_new_segment(&segment), second);
    EXPECT_FALSE(has_metadata(joint, step));
    send(joint.meta, gst_event_new_segment(&segment), second);
    send(joint.meta, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND), second);
    EXPECT_TRUE(has_metadata(joint, step));
    EXPECT_FALSE(joint.main.at_end());

    // Each is sought on its own: the metadata's next pass is over before the pictures' begins.
    const guint32 of_main = gst_util_seqnum_next(), of_meta = gst_util_seqnum_next();
    send(joint.main, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND), second);
    send(joint.meta, gst_event_new_segment(&segment), of_meta);
    send(joint.meta, gst_event_new_segment_done(GST_FORMAT_TIME, GST_SECOND), of_meta);
    send(joint.main, gst_event_new_segment(&segment), of_main);
    EXPECT_TRUE(has_metadata(joint, step));
}

TEST_F(MetaJoin, HalfAFrameIsShorterWherePicturesArePlayedFaster) {
    for (const double rate : {1.0, 2.0, 4.0, 0.5}) {
        SCOPED_TRACE(rate);
        if (main_) again();
        open();
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        segment.rate = rate;
        for (GstHarness* h : {main_, meta_})
            ASSERT_TRUE(gst_harness_push_event(h, gst_event_new_segment(&segment)));
        push_meta(0, {0, 0, 10, 10});
        push_meta(4 * step, {1, 0, 10, 10});
        for (int i = 0; i < 5; ++i) {
            const auto boxes = push_main(GstClockTime(i) * step);
            EXPECT_EQ(boxes.size(), i % 4 == 0 ? 1u : 0u) << i;
        }
    }
}

// A seek may begin in the middle of a picture.
TEST_F(MetaJoin, APictureThatReachesIntoTheSegmentHasItsMetadata) {
    open();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = segment.time = step + step / 2;
    for (GstHarness* h : {main_, meta_})
        ASSERT_TRUE(gst_harness_push_event(h, gst_event_new_segment(&segment)));
    for (int i = 0; i < 4; ++i) push_meta(GstClockTime(i) * step, {i, 0, 10, 10});
    EXPECT_TRUE(push_main(0).empty()) << "before the segment";
    for (int i = 1; i < 4; ++i)
        EXPECT_EQ(push_main(GstClockTime(i) * step), (std::vector<Box>{{6 * i, 0, 60, 60}})) << i;
    EXPECT_EQ(stat("matched"), 3u);
}

TEST_F(MetaJoin, WithoutSyncTakesWhatIsThereAndDropsWhatIsLate) {
    set("sync", "false");
    open();
    EXPECT_TRUE(push_main(0).empty());
    push_meta(10 * step);
    EXPECT_EQ(push_main(10 * step), (std::vector<Box>{scaled_}));
    push_meta(step);
    EXPECT_EQ(stat("late"), 1u);
}

TEST_F(MetaJoin, LivePicturesThatDoNotWaitAreNotLate) {
    set("timeout", "5000000");
    set("sync", "false");
    open();
    gst_harness_set_live(main_, TRUE);
    gst_harness_set_live(meta_, TRUE);
    gst_harness_set_upstream_latency(main_, 10 * GST_MSECOND);
    gst_harness_set_upstream_latency(meta_, 300 * GST_MSECOND);
    EXPECT_EQ(gst_harness_query_latency(main_), 10 * GST_MSECOND);
}

TEST_F(MetaJoin, LivePicturesWaitUntilTheirDeadline) {
    set("timeout", "5000000");
    open();
    gst_harness_set_live(main_, TRUE);
    gst_harness_set_live(meta_, TRUE);
    gst_harness_set_upstream_latency(main_, 10 * GST_MSECOND);
    gst_harness_set_upstream_latency(meta_, 30 * GST_MSECOND);
    GstTestClock* clock = GST_TEST_CLOCK(gst_test_clock_new());
    gst_element_set_clock(element_, GST_CLOCK(clock));
    EXPECT_EQ(gst_harness_query_latency(main_), 35 * GST_MSECOND);
    std::thread pictures([this] { EXPECT_TRUE(push_main(step).empty()); });
    GstClockID pending = nullptr;
    gst_test_clock_wait_for_next_pending_id(clock, &pending);
    EXPECT_EQ(gst_clock_id_get_time(pending), step + 35 * GST_MSECOND);
    gst_clock_id_unref(pending);
    EXPECT_TRUE(gst_test_clock_crank(clock));
    pictures.join();
    EXPECT_EQ(stat("timeouts"), 1u);
    gst_element_set_clock(element_, nullptr);
    gst_object_unref(clock);
}

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

TEST_F(MetaJoin, WarnsOnceOfFramesWithoutTime) {
    open();
    for (int i = 0; i < 3; ++i) push_meta(GST_CLOCK_TIME_NONE);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-pts");
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
    EXPECT_TRUE(push_main(GST_CLOCK_TIME_NONE).empty());  // passes without waiting
}

TEST_F(MetaJoin, SaysThatNothingIsLinkedToSinkMeta) {
    set("sync", "false");  // with it the picture would wait
    main_ = gst_harness_new_with_element(element_, "sink_main", "src");
    gst_harness_set_src_caps_str(main_, large);
    push_main(0);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-unlinked");
    push_main(step);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
}

TEST_F(MetaJoin, FailsWhereWhatAFrameWaitsForIsNotLinked) {
    const auto open_one = [this](const char* sink, const char* src, const char* caps) {
        GstHarness* harness = gst_harness_new_with_element(element_, sink, src);
        gst_harness_set_live(harness, FALSE);
        gst_harness_set_src_caps_str(harness, caps);
        return harness;
    };
    main_ = open_one("sink_main", "src", large);
    std::thread pictures([this] { EXPECT_EQ(gst_harness_push(main_, frame(0)), GST_FLOW_ERROR); });
    // Both wait for 10 s, at the same time.
    GstHarness* const main_alone = main_;
    GstElement* const element = element_;
    GstBus* const bus = bus_;
    SetUp();
    meta_ = open_one("sink_meta", nullptr, small);
    for (size_t i = 0; i < Matcher::most; ++i) push_meta(i * step);
    EXPECT_EQ(gst_harness_push(meta_, frame(Matcher::most * step)), GST_FLOW_ERROR);
    EXPECT_EQ(id_of(GST_MESSAGE_ERROR), "join-unlinked");
    pictures.join();
    main_ = nullptr;
    TearDown();
    main_ = main_alone, meta_ = nullptr, element_ = element, bus_ = bus;
    EXPECT_EQ(id_of(GST_MESSAGE_ERROR), "join-unlinked");
}

TEST_F(MetaJoin, WarnsWhereMetadataEndsThatNoPictureCanHave) {
    meta_ = gst_harness_new_with_element(element_, "sink_meta", nullptr);
    gst_harness_set_src_caps_str(meta_, small);
    push_meta(0);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
    gst_harness_push_event(meta_, gst_event_new_eos());
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-unlinked");
}

// As behind a tee without a queue, whose thread brings sink_meta nothing while it waits here.
TEST_F(MetaJoin, SaysOnceThatAPictureWaitsForLong) {
    open();
    std::thread pictures([this] { push_main(step); });
    GstMessage* message =
        gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, GST_MESSAGE_WARNING);
    gst_bus_post(bus_, message);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-waiting");
    push_meta(step);
    pictures.join();
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
}

// As where frames are dropped before sink_main alone.
TEST_F(MetaJoin, SaysOnceThatMetadataWaitsForLong) {
    open();
    std::thread metadata([this] {
        for (size_t i = 0; i <= Matcher::most + 1; ++i) push_meta(i * step);
    });
    if (GstMessage* message =
            gst_bus_timed_pop_filtered(bus_, 60 * GST_SECOND, GST_MESSAGE_WARNING))
        gst_bus_post(bus_, message);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-ahead");
    push_main(40 * step);
    metadata.join();
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
}

// What follows keeps the first picture, as encoders do, so that the pipeline never plays.
TEST(MetaJoinPipeline, SaysThatMetadataWaitsWhereItCannotPreroll) {
    gst_element_register(nullptr, "vartmlmetajoin", GST_RANK_NONE, GST_TYPE_VARTML_META_JOIN);
    GstElement* const pipeline = gst_parse_launch(
        ("vartmlmetajoin name=join ! identity drop-probability=1 ! fakesink  appsrc name=pictures "
         "format=time caps=" +
         std::string(large) + " ! join.sink_main  videotestsrc ! " + small + " ! join.sink_meta")
            .c_str(),
        nullptr);
    ASSERT_NE(pipeline, nullptr);
    GstElement* const pictures = gst_bin_get_by_name(GST_BIN(pipeline), "pictures");
    GstBuffer* const picture = gst_buffer_new_allocate(nullptr, size_t(1920) * 1080, nullptr);
    GST_BUFFER_PTS(picture) = 0;
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstFlowReturn flow = GST_FLOW_ERROR;
    g_signal_emit_by_name(pictures, "push-buffer", picture, &flow);
    gst_buffer_unref(picture);
    EXPECT_EQ(flow, GST_FLOW_OK);
    GstBus* const bus = gst_element_get_bus(pipeline);
    GstMessage* const message =
        gst_bus_timed_pop_filtered(bus, 60 * GST_SECOND, GST_MESSAGE_WARNING);
    ASSERT_NE(message, nullptr);
    const GstStructure* details = nullptr;
    gst_message_parse_warning_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "join-ahead");
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pictures);
    gst_object_unref(pipeline);
}

TEST_F(MetaJoin, WarnsOfAHundredPicturesWithoutMetadata) {
    open();
    push_meta(0);
    gst_harness_push_event(meta_, gst_event_new_eos());
    EXPECT_EQ(push_main(0).size(), 1u);
    for (int i = 1; i <= 99; ++i) push_main(i * step);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
    for (int i = 100; i <= 300; ++i) push_main(i * step);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-unmatched");
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
}

TEST_F(MetaJoin, WarnsOfAHundredPicturesThoughNoneEverMatched) {
    open();
    push_meta(1000 * step);
    for (int i = 0; i < 99; ++i) push_main(i * step);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
    for (int i = 99; i < 300; ++i) push_main(i * step);
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "join-unmatched");
    EXPECT_EQ(id_of(GST_MESSAGE_WARNING), "");
}

GstPadProbeReturn at_its_end(GstPad*, GstPadProbeInfo* info, gpointer) {
    gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_EOS;
    return GST_PAD_PROBE_HANDLED;
}

TEST_F(MetaJoin, MetadataDoesNotWaitWhenNothingDownstreamTakesPictures) {
    open();
    gst_pad_add_probe(main_->sinkpad, GST_PAD_PROBE_TYPE_BUFFER, at_its_end, nullptr, nullptr);
    push_meta(0);
    EXPECT_EQ(gst_harness_push(main_, frame(0)), GST_FLOW_EOS);
    for (int i = 1; i < 1000; ++i) push_meta(i * step);
}

TEST_F(MetaJoin, MetadataDoesNotWaitForPicturesWithoutTime) {
    open();
    push_main(GST_CLOCK_TIME_NONE);
    for (int i = 0; i < 1000; ++i) push_meta(i * step);
    EXPECT_EQ(push_main(999 * step), (std::vector<Box>{scaled_}));
}

TEST_F(MetaJoin, CapsOfEachBranchMayChange) {
    open();
    push_meta(0);
    push_meta(step);
    EXPECT_EQ(push_main(0), (std::vector<Box>{scaled_}));
    gst_harness_set_src_caps_str(meta_,
                                 "video/x-raw,format=GRAY8,width=640,height=360,framerate=25/1");
    push_meta(2 * step);
    push_meta(3 * step);
    EXPECT_EQ(push_main(step), (std::vector<Box>{scaled_}));  // of before
    EXPECT_EQ(push_main(2 * step), (std::vector<Box>{{30, 60, 90, 120}}));
    gst_harness_set_src_caps_str(main_,
                                 "video/x-raw,format=GRAY8,width=640,height=360,framerate=25/1");
    EXPECT_EQ(push_main(3 * step), (std::vector<Box>{{10, 20, 30, 40}}));
}

TEST_F(MetaJoin, AFlushOfEitherBranchEndsWaitingAndForgets) {
    open();
    push_meta(0);
    std::thread pictures(
        [this] { EXPECT_EQ(gst_harness_push(main_, frame(5 * step)), GST_FLOW_FLUSHING); });
    gst_harness_push_event(main_, gst_event_new_flush_start());
    pictures.join();
    gst_harness_push_event(main_, gst_event_new_flush_stop(TRUE));
    gst_harness_push_event(meta_, gst_event_new_flush_start());
    gst_harness_push_event(meta_, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (GstHarness* h : {main_, meta_}) gst_harness_push_event(h, gst_event_new_segment(&segment));
    push_meta(step);
    EXPECT_TRUE(push_main(0).empty());  // what was there at 0 is gone
    EXPECT_EQ(push_main(step), (std::vector<Box>{scaled_}));
}

TEST_F(MetaJoin, ABranchThatIsAheadWaitsForItsPictures) {
    open();
    std::thread ahead([this] {
        for (int i = 0; i < 200; ++i) push_meta(i * step);
    });
    for (int i = 0; i < 200; ++i) EXPECT_EQ(push_main(i * step).size(), 1u) << i;
    ahead.join();
    EXPECT_EQ(stat("matched"), 200u);
}

TEST_F(MetaJoin, APoolOfTwoOnTheMetaBranchIsEnough) {
    open();
    GstBufferPool* pool = gst_buffer_pool_new();
    GstStructure* config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, nullptr, 16, 2, 2);
    gst_buffer_pool_set_config(pool, config);
    gst_buffer_pool_set_active(pool, TRUE);
    for (int i = 0; i < 10; ++i) {
        GstBuffer* buffer = nullptr;
        GstBufferPoolAcquireParams params{};
        params.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT;
        ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, &params), GST_FLOW_OK) << i;
        GST_BUFFER_PTS(buffer) = i * step;
        add_od(buffer, {10, 20, 30, 40});
        ASSERT_EQ(gst_harness_push(meta_, buffer), GST_FLOW_OK);
    }
    for (int i = 0; i < 10; ++i) EXPECT_EQ(push_main(i * step).size(), 1u);
    gst_buffer_pool_set_active(pool, FALSE);
    gst_object_unref(pool);
}

}  // namespace
