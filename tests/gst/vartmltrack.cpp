// SPDX-License-Identifier: Apache-2.0
#include <gst/controller/controller.h>

#include <algorithm>

#include "gst/metadata/mtd.h"
#include "tests/gst/track_harness.h"

namespace {

using namespace track_test;

TEST_F(Track, GivesDetectionsTracksThatUpstreamReads) {
    open();
    EXPECT_EQ(see({{10}, {200}}), (Found{{10, "cat", 1}, {200, "cat", 2}}));
    std::vector<TrackInfo> infos;
    GstBuffer* in = frame_with({{202}, {12}});
    const GstClockTime now = GST_BUFFER_PTS(in);
    EXPECT_EQ(track(in, &infos), (Found{{202, "cat", 2}, {12, "cat", 1}}));
    ASSERT_EQ(infos.size(), 2u);
    for (const TrackInfo& info : infos) {
        EXPECT_EQ(info.first_seen, 0u);
        EXPECT_EQ(info.last_seen, now);
        EXPECT_FALSE(info.lost);
    }
}

// Whoever went out on the left comes back on the right: what it looks like tells.
TEST_F(Track, KnowsAgainWhatLooksTheSame) {
    const std::vector<float> red = {1, 0}, blue = {0, 1};
    set("reid-similarity", "0.8");
    set("max-lost", "10000000000");
    open();
    const auto with = [&](const std::vector<std::pair<Box, std::vector<float>>>& objects) {
        GstBuffer* buffer = frame();
        for (const auto& [box, looks] : objects) {
            const guint od = add_box(buffer, box);
            GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
            GstAnalyticsMtd embedding;
            EXPECT_TRUE(add_embedding(meta, looks, &embedding));
            gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od,
                                                     embedding.id);
        }
        return track(buffer);
    };
    EXPECT_EQ(with({{{10}, red}, {{100}, blue}}), (Found{{10, "cat", 1}, {100, "cat", 2}}));
    for (int i = 0; i < 10; ++i) with({{{100}, blue}});
    EXPECT_EQ(with({{{250}, red}, {{100}, blue}}), (Found{{250, "cat", 1}, {100, "cat", 2}}));
}

TEST_F(Track, LeavesTheFrameAsItCame) {
    open();
    GstBuffer* in = frame_with({{10}});
    GST_BUFFER_PTS(in) = 5 * GST_SECOND;
    GST_BUFFER_DTS(in) = 4 * GST_SECOND;
    GST_BUFFER_DURATION(in) = 7;
    GST_BUFFER_OFFSET(in) = 11;
    GST_BUFFER_OFFSET_END(in) = 12;
    GST_BUFFER_FLAG_SET(in, GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_GAP);
    const GstMemory* memory = gst_buffer_peek_memory(in, 0);
    gst_buffer_ref(in);  // somebody else has it too: its memory is shared, not copied
    GstBuffer* out = run(in);
    EXPECT_NE(out, in);
    EXPECT_EQ(found_on(in), (Found{{10, "cat", 0}}));
    EXPECT_EQ(found_on(out), (Found{{10, "cat", 1}}));
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), memory);
    EXPECT_EQ(GST_BUFFER_PTS(out), 5 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DTS(out), 4 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DURATION(out), 7u);
    EXPECT_EQ(GST_BUFFER_OFFSET(out), 11u);
    EXPECT_EQ(GST_BUFFER_OFFSET_END(out), 12u);
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_MARKER));
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_GAP));
    gst_buffer_unref(in);
    gst_buffer_unref(out);
    EXPECT_EQ(stat("copied"), 0u);
}

TEST_F(Track, KeepsTensorsOfASharedFrameAndCountsCopiesOfItsMemory) {
    open();
    GstBuffer* in = frame_with({{10}});
    GstTensor** tensors = g_new(GstTensor*, 1);
    tensors[0] = gst_tensor_alloc(1);
    tensors[0]->id = g_quark_from_string("out");
    tensors[0]->data_type = GST_TENSOR_DATA_TYPE_FLOAT32;
    tensors[0]->dims[0] = 1;
    tensors[0]->data = gst_buffer_new_allocate(nullptr, 4, nullptr);
    gst_tensor_meta_set(gst_buffer_add_tensor_meta(in), 1, tensors);
    GST_MINI_OBJECT_FLAG_SET(gst_buffer_peek_memory(in, 0), GST_MEMORY_FLAG_NO_SHARE);
    gst_buffer_ref(in);
    GstBuffer* out = run(in);
    EXPECT_NE(gst_buffer_get_tensor_meta(out), nullptr);
    gst_buffer_unref(in);
    gst_buffer_unref(out);
    EXPECT_EQ(stat("copied"), 1u);
}

TEST_F(Track, LeavesDetectionsAloneThatHaveATrack) {
    for (const auto relation : {GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_REL_TYPE_CONTAIN}) {
        if (!harness_) open();
        GstBuffer* in = frame_with({{10}, {200}});
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(in);
        GstAnalyticsMtd track;
        gst_analytics_relation_meta_add_tracking_mtd(meta, 77, 0, &track);
        gst_analytics_relation_meta_set_relation(meta, relation, 0, track.id);
        GstBuffer* out = run(in);
        const Found found = found_on(out);
        EXPECT_EQ(found[0].id, relation == GST_ANALYTICS_REL_TYPE_RELATE_TO ? 77u : 0u);
        EXPECT_EQ(found[1].id, 1u);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(stat("tracks-total"), 1u);
}

TEST_F(Track, PredictedDetectionsMoveInsideTheFrame) {
    open();
    for (int i = 0; i < 30; ++i) infer({{.x = 6 * i + 80, .score = 0.75f, .label = "dog"}});
    const GstClockTime last = pts_ - step;
    for (int i = 30; i < 40; ++i) {
        GstBuffer* in = frame();
        add_record(in, InferenceStatus::skipped_interval);
        GstBuffer* out = run(in);
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
        gpointer state = nullptr;
        GstAnalyticsMtd od, cls, track;
        ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                        gst_analytics_od_mtd_get_mtd_type(), &od));
        int x, y, w, h;
        float score;
        gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score);
        EXPECT_NEAR(x, 6 * i + 80, 1);
        EXPECT_NEAR(x + w, std::min(6 * i + 120, 320), 1);
        EXPECT_EQ(y, 100);
        EXPECT_EQ(score, 0.75f);
        ASSERT_TRUE(gst_analytics_relation_meta_get_direct_related(
            meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, gst_analytics_cls_mtd_get_mtd_type(),
            nullptr, &cls));
        EXPECT_STREQ(g_quark_to_string(gst_analytics_cls_mtd_get_quark(&cls, 0)), "dog");
        EXPECT_EQ(gst_analytics_cls_mtd_get_level(&cls, 0), 0.75f);
        ASSERT_TRUE(track_of(meta, od.id, track));
        EXPECT_EQ(info_of(track).first_seen, 0u);
        EXPECT_EQ(info_of(track).last_seen, last);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(skip(), Found{});  // it has left
}

// Also where a corner is outside: what is cut off a turned box is another box.
TEST_F(Track, PredictedDetectionsAreTurnedAsTheyWereLast) {
    open();
    for (int i = 0; i < 30; ++i)
        infer({{.x = 6 * i + 40, .w = 80, .h = 20, .angle = 0.6f}, {.x = 20, .y = 20}});
    for (int i = 30; i < 36; ++i) {
        GstBuffer* in = frame();
        add_record(in, InferenceStatus::skipped_interval);
        GstBuffer* out = run(in);
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
        gpointer state = nullptr;
        GstAnalyticsMtd od;
        unsigned turned = 0, upright = 0;
        while (gst_analytics_relation_meta_iterate(meta, &state,
                                                   gst_analytics_od_mtd_get_mtd_type(), &od)) {
            int x, y, w, h;
            float angle, score;
            gst_analytics_od_mtd_get_oriented_location(&od, &x, &y, &w, &h, &angle, &score);
            turned += angle == 0.6f && std::abs(x - (6 * i + 40)) <= 1 && std::abs(y - 100) <= 1 &&
                      std::abs(w - 80) <= 1 && std::abs(h - 20) <= 1;
            upright += angle == 0 && x == 20 && y == 20 && w == 40 && h == 40;
        }
        EXPECT_EQ(turned, 1u) << i;
        EXPECT_EQ(upright, 1u) << i;
        gst_buffer_unref(out);
    }
}

// Results of three frames earlier, each on five frames: boxes that move by 3 pixels per frame are
// shown where they are when the picture is taken, and keep their track.
TEST_F(Track, MovesCarriedDetectionsToTheTimeOfTheFrame) {
    open();
    constexpr int late = 3, each = 5;
    guint64 id = 0;
    for (int n = 0; n < 60; ++n) {
        const int of = std::max(0, (n - late) / each * each);  // the frame that was inferred
        GstBuffer* buffer = frame_with({{.x = 3 * of}});
        Inference inference;
        inference.status = InferenceStatus::carried;
        inference.result_id = guint64(of) + 1;
        inference.age_ns = guint64(n - of) * step;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
        const Found found = track(buffer);
        ASSERT_EQ(found.size(), 1u) << n;
        if (n == 0) id = found[0].id;
        EXPECT_EQ(found[0].id, id) << n;
        EXPECT_NE(id, 0u);
        if (n >= 30) {
            EXPECT_NEAR(found[0].x, 3 * n, 2) << n;
        }
    }
    EXPECT_EQ(stat("matched"), 11u);  // each result counts once: those of frames 5 to 55
    EXPECT_EQ(stat("tracks-total"), 1u);
}

TEST_F(Track, CarriedDetectionsStayWherePredictionIsOff) {
    set("predict", "false");
    open();
    for (int n = 0; n < 10; ++n) {
        const int of = n / 3 * 3;
        GstBuffer* buffer = frame_with({{.x = 3 * of}});
        Inference inference;
        inference.status = InferenceStatus::carried;
        inference.result_id = guint64(of) + 1;
        inference.age_ns = guint64(n - of) * step;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
        EXPECT_EQ(track(buffer), (Found{{3 * of, "cat", 1}})) << n;
    }
}

// What belongs to a box goes with it, and what refers to Mtds goes on to.
TEST_F(Track, CarriedDetectionsStayOnFramesThatShowWhatTheirsShowed) {
    open();
    for (int n = 0; n < 12; ++n) {
        const int of = std::min(n, 6);  // an object that moves, and then stands
        GstBuffer* buffer = frame_with({{.x = 5 * of}});
        Inference inference;
        inference.status = of == n ? InferenceStatus::inferred : InferenceStatus::carried;
        inference.fate = of == n ? InferenceStatus::inferred : InferenceStatus::skipped_still;
        inference.result_id = guint64(of) + 1;
        inference.age_ns = guint64(n - of) * step;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
        EXPECT_EQ(track(buffer), (Found{{5 * of, "cat", 1}})) << n;
    }
}

TEST_F(Track, MovesWhatBelongsToACarriedDetection) {
    open();
    const auto with_details = [&](int x, guint64 result, guint64 age) {
        GstBuffer* buffer = frame();
        const guint od = add_box(buffer, {.x = x});
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        const vartml::Keypoint point = {.x = float(x + 10), .y = 110, .score = 1, .visible = true};
        GstAnalyticsMtd keypoints, related;
        EXPECT_TRUE(add_keypoints(meta, {0, std::span(&point, 1)}, &keypoints));
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od,
                                                 keypoints.id);
        Inference inference;
        inference.status = InferenceStatus::carried;
        inference.result_id = result;
        inference.age_ns = age;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
        get_inference(buffer, 0, &related);
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od,
                                                 related.id);
        return buffer;
    };
    for (int n = 0; n < 20; ++n) gst_buffer_unref(run(with_details(4 * n, guint64(n) + 1, 0)));
    GstBuffer* out = run(with_details(4 * 19, 20, step));
    EXPECT_NEAR(found_on(out)[0].x, 80, 1);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd od, mtd;
    ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                    gst_analytics_od_mtd_get_mtd_type(), &od));
    bool inference = false, keypoints = false;
    state = nullptr;
    while (gst_analytics_relation_meta_get_direct_related(
        meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_MTD_TYPE_ANY, &state, &mtd)) {
        inference = inference || gst_analytics_mtd_get_mtd_type(&mtd) == inference_mtd_type();
        if (const auto found = get_keypoints(mtd)) {
            keypoints = true;
            EXPECT_NEAR(found->points[0].x, 90, 1);
        }
    }
    EXPECT_TRUE(inference);
    EXPECT_TRUE(keypoints);
    gst_buffer_unref(out);
}

TEST_F(Track, PredictsOnlyWhenAsked) {
    set("predict", "false");
    open();
    infer({{10}});
    EXPECT_EQ(skip(), Found{});
    set("predict", "true");
    EXPECT_EQ(skip(), (Found{{10, "cat", 1}}));
    EXPECT_EQ(infer({{10}}), (Found{{10, "cat", 1}}));
}

TEST_F(Track, IdsAreTheSameWithAnyInterval) {
    std::vector<Found> outcomes;
    for (const int interval : {1, 5}) {
        if (harness_) TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr, pts_ = 0;
        open();
        for (int i = 0; i <= 40; ++i) {
            const std::vector<Box> boxes = {{.x = 20 + 3 * i, .y = 40},
                                            {.x = 200 - 3 * i, .y = 60}};
            const Found found = i % interval ? skip() : infer(boxes);
            ASSERT_EQ(found.size(), 2u);
            EXPECT_EQ(found[0].id, 1u);
            EXPECT_EQ(found[1].id, 2u);
            EXPECT_NEAR(found[0].x, boxes[0].x, i > 10 ? 3 : 20)
                << "interval " << interval << ", " << i;
            if (i == 40) outcomes.push_back(found);
        }
    }
    EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST_F(Track, StreamStartBeginsAtOneAndAFlushDoesNot) {
    open();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    flush();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 2}}));
    gst_harness_push_event(harness_, gst_event_new_stream_start("other"));
    gst_harness_set_src_caps_str(harness_, frame_caps);
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
}

// The same scene in more pixels, as of a stream that adapts.
TEST_F(Track, GoesOnWithFramesOfAnotherSize) {
    const Box small = {.x = 10, .y = 100, .w = 40, .h = 40};
    const Box large = {.x = 20, .y = 300, .w = 80, .h = 120};
    open();
    EXPECT_EQ(infer({small}), (Found{{10, "cat", 1}}));
    gst_harness_set_src_caps_str(harness_, "video/x-raw,format=GRAY8,width=640,height=600");
    EXPECT_EQ(skip(), (Found{{20, "cat", 1}}));
    EXPECT_EQ(infer({large}), (Found{{20, "cat", 1}}));
    EXPECT_EQ(stat("lost"), 0u);
}

TEST_F(Track, CarriedDetectionsGoOnWithFramesOfAnotherSize) {
    for (const bool decoded_again : {true, false}) {
        if (!harness_) open();
        flush();
        guint64 id = 0;
        for (const int by : {1, 1, 2, 2}) {
            gst_harness_set_src_caps_str(
                harness_, by == 1 ? frame_caps : "video/x-raw,format=GRAY8,width=640,height=400");
            std::vector<Box> boxes;
            if (decoded_again || !id) boxes = {{10 * by, 100 * by, 40 * by, 40 * by}};
            GstBuffer* buffer = frame_with(boxes);
            Inference inference;
            inference.status = InferenceStatus::carried;
            inference.result_id = 1;
            EXPECT_TRUE(add_inference(buffer, inference, 0));
            const Found found = track(buffer);
            ASSERT_EQ(found.size(), 1u);
            if (!id) id = found[0].id;
            EXPECT_EQ(found[0], (Tracked{10 * by, "cat", id})) << by;
        }
    }
    EXPECT_EQ(stat("tracks-total"), 2u);
    EXPECT_EQ(stat("lost"), 0u);
}

TEST_F(Track, AStepOfMoreThanTenSecondsEndsTracks) {
    open();
    see({{10}});
    pts_ = 10 * GST_SECOND;
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    pts_ = 20 * GST_SECOND + 1;
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 2}}));
    pts_ = 0;
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 3}}));
}

TEST_F(Track, FramesWithoutTimeAreAsFarApartAsTheyLast) {
    for (const char* caps :
         {frame_caps, "video/x-raw,format=GRAY8,width=320,height=200,framerate=0/1"}) {
        if (!harness_) {
            set("max-lost", "100000000");
            open(caps);
        } else {
            gst_harness_set_src_caps_str(harness_, caps);
            flush();
        }
        const auto untimed = [&](const std::vector<Box>& boxes) {
            GstBuffer* in = frame_with(boxes);
            GST_BUFFER_PTS(in) = GST_CLOCK_TIME_NONE;
            return track(in);
        };
        const guint64 id = untimed({{10}})[0].id;
        untimed({});
        untimed({});
        EXPECT_EQ(untimed({{10}})[0].id, id);  // 67 ms after it was lost
        for (int i = 0; i < 5; ++i) untimed({});
        EXPECT_EQ(untimed({{10}})[0].id, id + 1);
    }
}

// 10 pixels per frame: nobody who is expected where he was is found there.
TEST_F(Track, FollowsThroughFramesOfOnePts) {
    open();
    for (int i = 0; i < 20; ++i) {
        pts_ = GST_SECOND;
        EXPECT_EQ(see({{10 * i}}), (Found{{10 * i, "cat", 1}})) << i;
    }
}

// Ten frames of each PTS are given 0.3 s, and the next PTS is 33 ms behind it: time stands still.
TEST_F(Track, ItsTimeDoesNotStepBackWhereThePtsDoNot) {
    open();
    std::vector<TrackInfo> infos;
    GstClockTime last = 0;
    for (int i = 0; i < 30; ++i) {
        pts_ = GST_SECOND + GstClockTime(i / 10) * 33 * GST_MSECOND;
        EXPECT_EQ(track(frame_with({{2 * i}}), &infos), (Found{{2 * i, "cat", 1}})) << i;
        EXPECT_GE(infos.back().last_seen, last) << i;
        EXPECT_LE(infos.back().last_seen, pts_ + 10 * GST_SECOND / 30) << i;
        last = infos.back().last_seen;
    }
    pts_ = 0;  // here they do
    track(frame_with({{60}}), &infos);
    EXPECT_EQ(infos.back().last_seen, 0u);
}

TEST_F(Track, FollowsThroughASegmentThatPlaysBackwards) {
    set("max-lost", "100000000");
    open();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = -1;
    segment.stop = segment.position = 5 * GST_SECOND;
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    std::vector<TrackInfo> infos;
    for (int i = 0; i < 20; ++i) {
        pts_ = 5 * GST_SECOND - GstClockTime(i) * step;
        GstBuffer* in = frame_with({{10 * i}});
        EXPECT_EQ(track(in, &infos), (Found{{10 * i, "cat", 1}})) << i;
        EXPECT_EQ(infos.back().first_seen, 5 * GST_SECOND);
        EXPECT_EQ(infos.back().last_seen, 5 * GST_SECOND - GstClockTime(i) * step);
    }
    for (int i = 20; i < 26; ++i) {  // lost for longer than max-lost
        pts_ = 5 * GST_SECOND - GstClockTime(i) * step;
        see({});
    }
    pts_ = 4 * GST_SECOND;
    EXPECT_EQ(see({{200}}), (Found{{200, "cat", 2}}));
    segment.rate = 1;  // and on from a later place
    segment.stop = GST_CLOCK_TIME_NONE;
    segment.start = segment.position = segment.time = 6 * GST_SECOND;
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    for (int i = 0; i < 5; ++i) {
        pts_ = 6 * GST_SECOND + GstClockTime(i) * step;
        const GstClockTime now = pts_;
        track(frame_with({{200}}), &infos);
        EXPECT_EQ(infos.back().last_seen, now);
    }
}

TEST_F(Track, ScoresDecideOverBirthAndBand) {
    set("high-score", "0.7");
    set("low-score", "0.3");
    set("new-track-score", "0.8");
    open();
    EXPECT_EQ(see({{.x = 10, .score = 0.75f}}), (Found{{10, "cat", 0}}));
    EXPECT_EQ(see({{.x = 10, .score = 0.8f}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(see({{.x = 10, .score = 0.3f}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(see({{.x = 10, .score = 0.29f}}), (Found{{10, "cat", 0}}));
    EXPECT_EQ(see({{.x = 10, .score = 0.69f}}),
              (Found{{10, "cat", 0}}));  // lost: wants a certain one
    EXPECT_EQ(see({{.x = 10, .score = 0.7f}}), (Found{{10, "cat", 1}}));
}

TEST_F(Track, OverlapsDecideInTheirAssociation) {
    set("match-iou", "0.6");
    set("low-match-iou", "0.8");
    open();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(see({{20}}), (Found{{20, "cat", 1}}));  // 0.6
    flush();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 2}}));
    EXPECT_EQ(see({{.x = 20, .score = 0.4f}}), (Found{{20, "cat", 0}}));
}

TEST_F(Track, AlgorithmDecidesHowToAssign) {
    for (const auto& [nick, want] : {std::pair("bytetrack", Found{{23, "cat", 1}, {38, "cat", 2}}),
                                     std::pair("iou", Found{{23, "cat", 2}, {38, "cat", 3}})}) {
        if (harness_) TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr;
        set("algorithm", nick);
        set("match-iou", "0.3");
        open();
        see({{10}, {24}});
        EXPECT_EQ(see({{23}, {38}}), want) << nick;
    }
}

TEST_F(Track, AlgorithmIsTakenOverAtStartAlone) {
    set("match-iou", "0.3");
    open();
    see({{10}, {24}});
    set("algorithm", "iou");
    EXPECT_EQ(see({{23}, {38}}), (Found{{23, "cat", 1}, {38, "cat", 2}}));
}

TEST_F(Track, ReportsAfterMinHits) {
    set("min-hits", "2");
    open();
    EXPECT_EQ(infer({{10}}), (Found{{10, "cat", 0}}));
    EXPECT_EQ(skip(), Found{});
    EXPECT_EQ(infer({{10}}), (Found{{10, "cat", 1}}));
    EXPECT_EQ(skip(), (Found{{10, "cat", 1}}));
}

TEST_F(Track, ClassesAreKeptApartAndMayBeChosen) {
    open();
    see({{10}});
    EXPECT_EQ(see({{.x = 10, .label = "dog"}}), (Found{{10, "dog", 2}}));
    set("per-class", "false");
    EXPECT_EQ(see({{.x = 10, .label = "bird"}})[0].id, 1u);
    flush();
    set("classes", " dog, bird");
    EXPECT_EQ(see({{10}, {.x = 100, .label = "dog"}}), (Found{{10, "cat", 0}, {100, "dog", 3}}));
    set("classes", "");
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 4}}));
}

TEST_F(Track, CountsWhatItDid) {
    open();
    see({{10}, {200}});
    see({{10}, {200}});
    see({{10}});
    EXPECT_EQ(stat("tracks-live"), 1u);
    EXPECT_EQ(stat("tracks-total"), 2u);
    EXPECT_EQ(stat("matched"), 3u);
    EXPECT_EQ(stat("lost"), 1u);
    gst_element_set_state(element(), GST_STATE_NULL);
    gst_element_set_state(element(), GST_STATE_PLAYING);
    EXPECT_EQ(stat("tracks-total"), 0u);
}

TEST_F(Track, FollowsAController) {
    for (const char* name :
         {"high-score", "low-score", "new-track-score", "match-iou", "low-match-iou"}) {
        const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element()), name);
        EXPECT_TRUE(spec->flags & GST_PARAM_CONTROLLABLE) << name;
    }
    GstControlSource* source = gst_interpolation_control_source_new();
    g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
    auto* values = GST_TIMED_VALUE_CONTROL_SOURCE(source);
    gst_timed_value_control_source_set(values, 0, 0.6);
    gst_timed_value_control_source_set(values, GST_SECOND, 0.95);
    gst_object_add_control_binding(
        GST_OBJECT(element()),
        gst_direct_control_binding_new_absolute(GST_OBJECT(element()), "new-track-score", source));
    gst_object_unref(source);
    open();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    pts_ = GST_SECOND;
    EXPECT_EQ(see({{10}, {200}}), (Found{{10, "cat", 1}, {200, "cat", 0}}));
}

TEST_F(Track, KeepsItsOptionsWhereNewOnesContradictEachOther) {
    open();
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    for (int times = 0; times < 2; ++times) {
        for (int i = 0; i < 3; ++i) {
            set("low-score", "0.8");  // as a controller does, with each frame
            EXPECT_EQ(see({{.x = 10, .score = 0.4f}}), (Found{{10, "cat", 1}}));
        }
        GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_WARNING);
        ASSERT_NE(message, nullptr);
        GError* error = nullptr;
        gst_message_parse_warning(message, &error, nullptr);
        EXPECT_STREQ(error->message,
                     "Could not take the new options: low score 0.8 is above high score 0.5, "
                     "expected at most that: it begins the band below; lower the low score; the "
                     "options before stay");
        g_error_free(error);
        gst_message_unref(message);
        EXPECT_EQ(gst_bus_pop_filtered(bus_, GST_MESSAGE_WARNING), nullptr);
        set("low-score", "0.3");
        EXPECT_EQ(see({{.x = 10, .score = 0.4f}}), (Found{{10, "cat", 1}}));
    }
}

TEST_F(Track, RefusesBandsThatContradictEachOther) {
    set("low-score", "0.8");
    EXPECT_EQ(gst_element_set_state(element(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    const GstStructure* details = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    EXPECT_TRUE(g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS));
    EXPECT_STREQ(error->message,
                 "Could not track detections: low score 0.8 is above high score 0.5, expected at "
                 "most that: it begins the band below; lower the low score");
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "track-scores");
    EXPECT_STREQ(gst_structure_get_string(details, "property"), "low-score");
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_state(element(), GST_STATE_NULL);
}

TEST_F(Track, TakesAnyCapsAndOffersVideoMeta) {
    open("video/x-raw(memory:Foo),format=NV12,width=320,height=200");
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    gst_harness_set_src_caps_str(harness_, "application/x-something");
    EXPECT_EQ(see({{10}}), (Found{{10, "cat", 1}}));
    GstCaps* caps = gst_caps_from_string(frame_caps);
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    EXPECT_EQ(gst_query_get_n_allocation_pools(query), 0u);
    gst_query_unref(query);
    gst_caps_unref(caps);
}

TEST_F(Track, TakesManyDetectionsOnOneFrame) {
    open("video/x-raw,format=GRAY8,width=10000,height=200,framerate=30/1");
    std::vector<Box> boxes;
    for (int i = 0; i < 200; ++i) boxes.push_back({50 * i});
    for (int round = 0; round < 3; ++round) {
        const Found found = infer(boxes);
        for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].id, i + 1);
    }
    EXPECT_EQ(skip().size(), 200u);
}

TEST_F(Track, SurvivesFlushesAndStateCycles) {
    open();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(see({{10}}).size(), 1u);
        flush();
    }
    for (int i = 0; i < 1000; ++i) {
        GstElement* other =
            GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_TRACK, nullptr)));
        gst_element_set_state(other, GST_STATE_PAUSED);
        gst_element_set_state(other, GST_STATE_NULL);
        gst_object_unref(other);
    }
    EXPECT_EQ(gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR), nullptr);
}

// The leaks tracer (GST_TRACERS in meson.build) knows every object; run last, after the others have
// put theirs away.
TEST(ZTrackLeaks, LeavesNoObjectBehind) {
    GList* tracers = gst_tracing_get_active_tracers();
    GstStructure* live = nullptr;
    for (GList* item = tracers; item; item = item->next) {
        if (g_str_has_prefix(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer")) {
            g_signal_emit_by_name(item->data, "get-live-objects", &live);
        }
    }
    g_list_free_full(tracers, gst_object_unref);
    if (!live) GTEST_SKIP() << "the leaks tracer is not active";
    const GValue* list = gst_structure_get_value(live, "live-objects-list");
    for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
        const GValue* item = gst_value_list_get_value(list, i);
        const auto* entry = static_cast<const GstStructure*>(g_value_get_boxed(item));
        const GValue* object = gst_structure_get_value(entry, "object");
        const std::string type = G_VALUE_TYPE_NAME(object);
        // What the process keeps on purpose: the harness's clock is the default one, factories are
        // cached.
        EXPECT_TRUE(type == "GstTestClock" || type == "GstElementFactory") << type;
    }
    gst_structure_free(live);
}

}  // namespace
