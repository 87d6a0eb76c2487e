// SPDX-License-Identifier: Apache-2.0
// Runs that take less time than waking a thread: frames leave on the thread that brings them, and
// everything else is as with a device.
#include <atomic>
#include <thread>

#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

class InferShortRuns : public testing::Test {
protected:
    void SetUp() override {
        reset_fake_model();
        fake_model().on_host = true;
    }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

// What passes the src pad, in order, and on which thread.
struct Seen {
    std::string kinds;  // f: frame, e: custom event, s: segment, c: caps, E: EOS
    unsigned elsewhere = 0;
    std::thread::id here = std::this_thread::get_id();

    void watch(GstElement* element) {
        GstPad* pad = gst_element_get_static_pad(element, "src");
        gst_pad_add_probe(
            pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
            [](GstPad*, GstPadProbeInfo* info, gpointer self) {
                static_cast<Seen*>(self)->add(info);
                return GST_PAD_PROBE_OK;
            },
            this, nullptr);
        gst_object_unref(pad);
    }
    void add(GstPadProbeInfo* info) {
        if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
            kinds += 'f';
            elsewhere += std::this_thread::get_id() != here;
            return;
        }
        switch (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info))) {
            case GST_EVENT_CUSTOM_DOWNSTREAM:
                kinds += 'e';
                break;
            case GST_EVENT_CAPS:
                kinds += 'c';
                break;
            case GST_EVENT_EOS:
                kinds += 'E';
                break;
            default:
                break;
        }
    }
};

GstEvent* custom_event() {
    return gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("marker"));
}

TEST_F(InferShortRuns, FramesLeaveOnTheThreadThatBringsThem) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);  // behind the first events, perhaps
    t.pull_out();
    Seen seen;
    seen.watch(t.element);
    for (guint64 n = 1; n < 100; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        ASSERT_EQ(gst_harness_buffers_in_queue(t.h), 1u) << "it is out when push() returns";
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, n);
        EXPECT_EQ(out.run, int(n));
        EXPECT_EQ(out.status, InferenceStatus::inferred);
    }
    EXPECT_EQ(seen.elsewhere, 0u);
    EXPECT_EQ(t.stat("in-flight-max"), 1u);
}

// An event goes through the queue; the frame behind it must not overtake it.
TEST_F(InferShortRuns, FramesDoNotOvertakeEvents) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    Seen seen;
    seen.watch(t.element);
    std::string want;
    for (guint64 n = 0; n < 200; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        want += 'f';
        if (n % 3 == 0) {
            ASSERT_TRUE(gst_harness_push_event(t.h, custom_event()));
            want += 'e';
        }
        if (n % 7 == 0) {
            GstCaps* caps = gst_caps_from_string(gray_caps);
            gst_caps_set_simple(caps, "framerate", GST_TYPE_FRACTION, n % 2 ? 25 : 30, 1, nullptr);
            ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_caps(caps)));
            gst_caps_unref(caps);
            want += 'c';
        }
    }
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_eos()));
    want += 'E';
    for (int n = 0; n < 200; ++n) t.pull_out();
    GstQuery* drain = gst_query_new_drain();  // behind the last event
    GstPad* sink = gst_element_get_static_pad(t.element, "sink");
    gst_pad_query(sink, drain);
    gst_object_unref(sink);
    gst_query_unref(drain);
    while (gst_harness_events_in_queue(t.h) > 0) {
        GstEvent* event = gst_harness_pull_event(t.h);
        const bool last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
        if (last) break;
    }
    EXPECT_EQ(seen.kinds, want);
}

TEST_F(InferShortRuns, DownstreamsResultReachesUpstreamAtOnce) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    GstPad* pad = gst_element_get_static_pad(t.element, "src");
    gst_pad_unlink(pad, t.h->sinkpad);
    EXPECT_EQ(t.push(1), GST_FLOW_NOT_LINKED);
    EXPECT_EQ(t.push(2), GST_FLOW_NOT_LINKED);
    ASSERT_EQ(gst_pad_link(pad, t.h->sinkpad), GST_PAD_LINK_OK);  // sends RECONFIGURE
    EXPECT_EQ(t.push(3), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().offset, 3u);
    gst_object_unref(pad);
}

TEST_F(InferShortRuns, TheThirdFailedRunInARowIsAnError) {
    fake_model().failing = {1, 2, 3};
    InferHarness t;
    EXPECT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    EXPECT_EQ(t.push(1), GST_FLOW_OK);
    EXPECT_EQ(t.push(2), GST_FLOW_OK);
    EXPECT_EQ(t.push(3), GST_FLOW_ERROR);
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 1u);
}

TEST_F(InferShortRuns, AFlushEndsAPushThatDownstreamHolds) {
    InferHarness t;
    std::atomic<bool> held{false};
    GstPad* pad = gst_element_get_static_pad(t.element, "src");
    const gulong probe = gst_pad_add_probe(
        pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
        [](GstPad*, GstPadProbeInfo*, gpointer flag) {
            *static_cast<std::atomic<bool>*>(flag) = true;
            return GST_PAD_PROBE_OK;
        },
        &held, nullptr);
    GstFlowReturn flow = GST_FLOW_OK;
    std::thread upstream([&] {
        for (guint64 n = 0; flow == GST_FLOW_OK; ++n) flow = t.push(n);
    });
    while (!held) std::this_thread::yield();
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
    upstream.join();
    EXPECT_EQ(flow, GST_FLOW_FLUSHING);
    gst_pad_remove_probe(pad, probe);
    gst_object_unref(pad);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
    while (GstBuffer* old = gst_harness_try_pull(t.h)) gst_buffer_unref(old);
    ASSERT_EQ(t.push(50), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().offset, 50u);
}

TEST_F(InferShortRuns, FlushesAndStopsAtRandomMomentsLeaveNothing) {
    InferHarness t;
    std::atomic<bool> stop{false}, flushing{false}, idle{false};
    std::atomic<guint64> pushed{0};
    std::thread upstream([&] {
        while (!stop) {
            if ((idle = flushing.load())) {
                std::this_thread::yield();
                continue;
            }
            pushed += t.push(pushed) == GST_FLOW_OK;
            while (GstBuffer* out = gst_harness_try_pull(t.h)) gst_buffer_unref(out);
        }
    });
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    guint32 x = 7;
    for (int round = 0; round < 200; ++round) {
        const guint64 until = pushed + (x = x * 1664525 + 1013904223) % 7;
        while (pushed < until) std::this_thread::yield();
        flushing = true;
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
        while (!idle) std::this_thread::yield();
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
        flushing = idle = false;
    }
    gst_element_set_state(t.element, GST_STATE_NULL);  // in the middle of a push
    stop = true;
    upstream.join();
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
}

}  // namespace
