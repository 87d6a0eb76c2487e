// SPDX-License-Identifier: Apache-2.0
#include "gst/gstvartmlmetajoin.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/check/gsttestclock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "gst/join/joint.h"
#include "gst/metadata/inference.h"
#include "tests/gst/join_harness.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;
using namespace vartml::test;

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

TEST_F(MetaJoin, AGapOfPicturesLetsTheirMetadataGo) {
    open();
    for (GstClockTime n = 0; n < 64; ++n) push_meta(n * step);
    ASSERT_TRUE(gst_harness_push_event(main_, gst_event_new_gap(0, 70 * step)));
    for (GstClockTime n = 64; n < 80; ++n) push_meta(n * step);
    EXPECT_EQ(push_main(72 * step), (std::vector<Box>{scaled_}));
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
