// SPDX-License-Identifier: Apache-2.0
// Frames on which nothing moves: they carry the last result, until something does or it is too old.
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::get_inference;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferMotion : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }

    static GstElement* resting_infer(guint64 max_age = 5 * GST_SECOND) {
        GstElement* element = make_infer();
        g_object_set(element, "motion-threshold", 8, "motion-max-age", max_age, nullptr);
        return element;
    }
    // A frame of one brightness.
    static GstBuffer* frame(guint64 number, int brightness) {
        GstBuffer* buffer = InferHarness::frame(number);
        gst_buffer_memset(buffer, 0, guint8(brightness), 32 * 24);
        return buffer;
    }
    // The run whose result the frame has, and what it says of itself; it takes the frame.
    static std::string pull(InferHarness& t) {
        GstBuffer* buffer = t.pull();
        if (!buffer) return "no frame";
        const Inference* i = get_inference(buffer, 0);
        std::string said = vartml::gst::status_nick(i->fate);
        if (!i->data.empty()) {
            float run = -1;
            gst_buffer_extract(i->data[0], 0, &run, sizeof run);
            said += " " + std::to_string(int(run)) + ", " +
                    std::to_string(i->age_ns / GST_MSECOND) + " ms";
        }
        EXPECT_EQ(i->status == InferenceStatus::carried,
                  i->fate == InferenceStatus::skipped_still && !i->data.empty());
        gst_buffer_unref(buffer);
        return said;
    }
};

TEST_F(InferMotion, FramesThatShowTheSameCarryTheResult) {
    InferHarness t(resting_infer());
    const int shown[] = {50, 50, 55, 70, 70, 50};
    const char* const want[] = {"inferred 0, 0 ms",       "skipped-still 0, 33 ms",
                                "skipped-still 0, 66 ms", "inferred 1, 0 ms",
                                "skipped-still 1, 33 ms", "inferred 2, 0 ms"};
    for (guint64 n = 0; n < 6; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n, shown[n])), GST_FLOW_OK);
        EXPECT_EQ(pull(t), want[n]) << n;
    }
    EXPECT_EQ(t.stat("inferences"), 3u);
    EXPECT_EQ(t.stat("skipped-still"), 3u);
    EXPECT_EQ(t.stat("carried"), 3u);
    EXPECT_EQ(t.stat("conversions"), 3u);
}

TEST_F(InferMotion, AResultIsRenewedWhenItIsOld) {
    InferHarness t(resting_infer(100 * GST_MSECOND));
    for (guint64 n = 0; n < 9; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n, 50)), GST_FLOW_OK);
        // Frames are 33.3 ms apart: the fourth one is 100 ms later.
        EXPECT_EQ(pull(t).starts_with("inferred"), n % 3 == 0) << n;
    }
}

TEST_F(InferMotion, AFailedInferenceIsMadeAgain) {
    fake_model().failing = {0};
    InferHarness t(resting_infer());
    const char* const want[] = {"failed", "inferred 1, 0 ms", "skipped-still 1, 33 ms"};
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n, 50)), GST_FLOW_OK);
        EXPECT_EQ(pull(t), want[n]) << n;
    }
}

// Nobody is shown with what was found before he came.
TEST_F(InferMotion, WhatLooksLikeAFailedFrameCarriesNothingOlder) {
    fake_model().failing = {1};
    InferHarness t(resting_infer());
    const struct {
        int grey;
        const char* want;
    } frames[] = {{50, "inferred 0, 0 ms"}, {200, "failed"}, {200, "inferred 2, 0 ms"}};
    guint64 number = 0;
    for (const auto& f : frames) {
        ASSERT_EQ(gst_harness_push(t.h, frame(number, f.grey)), GST_FLOW_OK);
        EXPECT_EQ(pull(t), f.want) << number;
        ++number;
    }
}

// Also where it was not known yet that it failed.
TEST_F(InferMotion, WhatLooksLikeAFrameThatFailsLaterCarriesNothingOlder) {
    fake_model().failing = {1};
    InferHarness t(resting_infer());
    ASSERT_EQ(gst_harness_push(t.h, frame(0, 50)), GST_FLOW_OK);
    EXPECT_EQ(pull(t), "inferred 0, 0 ms");
    fake_model().hold = true;
    ASSERT_EQ(gst_harness_push(t.h, frame(1, 200)), GST_FLOW_OK);
    ASSERT_EQ(gst_harness_push(t.h, frame(2, 200)), GST_FLOW_OK);
    fake_model().release();
    EXPECT_EQ(pull(t), "failed");
    EXPECT_EQ(pull(t), "skipped-still");
    ASSERT_EQ(gst_harness_push(t.h, frame(3, 200)), GST_FLOW_OK);
    EXPECT_EQ(pull(t), "inferred 2, 0 ms");
}

TEST_F(InferMotion, NothingIsCarriedOverAFlush) {
    InferHarness t(resting_infer());
    ASSERT_EQ(gst_harness_push(t.h, frame(0, 50)), GST_FLOW_OK);
    pull(t);
    gst_harness_push_event(t.h, gst_event_new_flush_start());
    gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(t.h, gst_event_new_segment(&segment));
    const char* const want[] = {"inferred 1, 0 ms", "skipped-still 1, 33 ms"};
    for (guint64 n = 0; n < 2; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n, 50)), GST_FLOW_OK);
        EXPECT_EQ(pull(t), want[n]) << n;
    }
}

TEST_F(InferMotion, FramesWaitBehindTheOneTheyAreLike) {
    fake_model().hold = true;
    InferHarness t(resting_infer());
    ASSERT_EQ(gst_harness_push(t.h, frame(0, 50)), GST_FLOW_OK);
    ASSERT_EQ(gst_harness_push(t.h, frame(1, 50)), GST_FLOW_OK);
    fake_model().release();
    EXPECT_EQ(pull(t), "inferred 0, 0 ms");
    EXPECT_EQ(pull(t), "skipped-still 0, 33 ms");
}

TEST_F(InferMotion, AllTilesOfAFrameAreCarried) {
    GstElement* element = resting_infer();
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", "tiles");
    g_object_set(element, "tile-grid", "2x1", "tile-overlap", 0.0, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 2; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n, 50)), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        unsigned tiles = 0;
        while (get_inference(out, tiles)) {
            EXPECT_EQ(get_inference(out, tiles)->status,
                      n ? InferenceStatus::carried : InferenceStatus::inferred);
            ++tiles;
        }
        EXPECT_EQ(tiles, 3u);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(t.stat("carried"), 1u);
}

TEST_F(InferMotion, WithRegionsItIsRefusedInOneSentence) {
    GstElement* element = resting_infer();
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    EXPECT_EQ(gst_element_set_state(element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstMessage* message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    EXPECT_STREQ(
        error->message,
        "Could not load the model: property 'motion-threshold' is 8 and "
        "'inference-region' is roi, but results of regions belong to the boxes of their own "
        "frame; set motion-threshold on the vartmlinfer that finds the boxes, and "
        "roi-reinfer-interval on this one");
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_state(element, GST_STATE_NULL);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
}

}  // namespace
