// SPDX-License-Identifier: Apache-2.0
// Frames through vartmlinfer on the fake model: order, metadata, depth, flush, end of stream.
#include <gst/analytics/analytics.h>
#include <gst/base/base.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "gst/support/tensor_meta.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferFlow : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

TEST_F(InferFlow, OutputOrderIsInputOrderWhateverTheCompletionOrder) {
    fake_model().shuffle_seed = 7;
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 6, nullptr);
    InferHarness t(element);
    std::thread upstream([&] {
        for (guint64 n = 0; n < 300; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    });
    for (int n = 0; n < 300; ++n) {
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, guint64(n));
        EXPECT_EQ(out.status, InferenceStatus::inferred);
        EXPECT_EQ(out.run, n);
    }
    upstream.join();
    EXPECT_LE(t.stat("in-flight-max"), 6u);
}

TEST_F(InferFlow, TimesOffsetsAndFlagsLeaveAsTheyCame) {
    InferHarness t;
    GstBuffer* in = InferHarness::frame(5);
    GST_BUFFER_DTS(in) = 17;
    GST_BUFFER_OFFSET_END(in) = 99;
    GST_BUFFER_FLAG_SET(
        in, GST_BUFFER_FLAG_DISCONT | GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_DELTA_UNIT);
    const guint flags = GST_BUFFER_FLAGS(in);
    GstMemory* memory = gst_buffer_peek_memory(in, 0);
    ASSERT_EQ(gst_harness_push(t.h, in), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    EXPECT_EQ(GST_BUFFER_PTS(out), 5 * GST_SECOND / 30);
    EXPECT_EQ(GST_BUFFER_DTS(out), 17u);
    EXPECT_EQ(GST_BUFFER_DURATION(out), GST_SECOND / 30);
    EXPECT_EQ(GST_BUFFER_OFFSET(out), 5u);
    EXPECT_EQ(GST_BUFFER_OFFSET_END(out), 99u);
    EXPECT_EQ(GST_BUFFER_FLAGS(out), flags);
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), memory);
    gst_buffer_unref(out);
}

TEST_F(InferFlow, TensorsAreOnTheFrameAndInTheRecord) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    auto* meta =
        reinterpret_cast<GstTensorMeta*>(gst_buffer_get_meta(out, GST_TENSOR_META_API_TYPE));
    ASSERT_NE(meta, nullptr);
    ASSERT_EQ(meta->num_tensors, 1u);
    const GstTensor* tensor = meta->tensors[0];
    EXPECT_EQ(tensor->id, g_quark_from_string("scores"));
    EXPECT_EQ(tensor->data_type, GST_TENSOR_DATA_TYPE_FLOAT32);
    EXPECT_EQ(tensor->dims_order, GST_TENSOR_DIM_ORDER_ROW_MAJOR);
    ASSERT_EQ(tensor->num_dims, 2u);
    EXPECT_EQ(tensor->dims[0], 1u);
    EXPECT_EQ(tensor->dims[1], 4u);
    EXPECT_EQ(gst_buffer_get_size(tensor->data), 16u);
    const Inference* inference = vartml::gst::get_inference(out, 0);
    ASSERT_NE(inference, nullptr);
    ASSERT_EQ(inference->data.size(), 1u);
    EXPECT_EQ(inference->data[0], tensor->data);
    EXPECT_EQ(inference->frame_width, 32u);
    EXPECT_EQ(inference->frame_height, 24u);
    EXPECT_EQ(inference->record->model_width, fake_width);
    EXPECT_EQ(inference->record->model_height, fake_height);
    EXPECT_DOUBLE_EQ(inference->to_frame.a, 2);
    EXPECT_DOUBLE_EQ(inference->to_frame.e, 2);
    gst_buffer_unref(out);
}

TEST_F(InferFlow, AFrameThatAnotherElementHoldsStaysAsItIs) {
    InferHarness t;
    GstBuffer* shared = InferHarness::frame(0);
    gst_buffer_ref(shared);  // the other branch of a tee
    ASSERT_EQ(gst_harness_push(t.h, shared), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    EXPECT_NE(out, shared);
    EXPECT_EQ(vartml::gst::get_inference(shared, 0), nullptr);
    EXPECT_NE(vartml::gst::get_inference(out, 0), nullptr);
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), gst_buffer_peek_memory(shared, 0));
    EXPECT_EQ(t.stat("copies"), 0u);
    gst_buffer_unref(out);
    gst_buffer_unref(shared);
}

// A second model behind the first, with a tee between them.
TEST_F(InferFlow, AFrameThatAnotherElementHoldsKeepsTheTensorsThatItCameWith) {
    InferHarness first, second;
    ASSERT_EQ(first.push(0), GST_FLOW_OK);
    GstBuffer* shared = first.pull();
    ASSERT_NE(shared, nullptr);
    gst_buffer_ref(shared);
    ASSERT_EQ(gst_harness_push(second.h, shared), GST_FLOW_OK);
    GstBuffer* out = second.pull();
    EXPECT_NE(out, shared);
    for (unsigned i = 0; i < 2; ++i) {
        const Inference* inference = vartml::gst::get_inference(out, i);
        ASSERT_NE(inference, nullptr) << i;
        bool found = false;
        vartml::gst::for_each_tensor_meta(out, [&](const GstTensorMeta* meta) {
            found |= meta->tensors[0]->data == inference->data.at(0);
            return true;
        });
        EXPECT_TRUE(found) << i;
    }
    EXPECT_EQ(gst_buffer_get_n_meta(out, GST_TENSOR_META_API_TYPE), 2u);
    EXPECT_EQ(gst_buffer_get_n_meta(shared, GST_TENSOR_META_API_TYPE), 1u);
    gst_buffer_unref(out);
    gst_buffer_unref(shared);
}

TEST_F(InferFlow, EveryFrameLeavesBeforeEndOfStream) {
    fake_model().hold = true;
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_eos()));
    EXPECT_EQ(gst_harness_buffers_in_queue(t.h), 0u);
    fake_model().release();
    EXPECT_EQ(t.pull_out().offset, 0u);
    EXPECT_EQ(t.pull_out().offset, 1u);
    GstEvent* event;
    do {
        event = gst_harness_pull_event(t.h);
        ASSERT_NE(event, nullptr);
        const bool last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
        if (last) break;
    } while (true);
    EXPECT_EQ(t.stat("frames"), 2u);
    EXPECT_EQ(t.stat("inferences"), 2u);
}

GstEvent* marker(unsigned n) {
    return gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM,
                                gst_structure_new("marker", "n", G_TYPE_UINT, n, nullptr));
}

// A harness keeps frames and events apart, so a probe writes down the order of both.
GstPadProbeReturn write_down(GstPad*, GstPadProbeInfo* info, gpointer log) {
    auto& text = *static_cast<std::string*>(log);
    if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
        text += "f" + std::to_string(GST_BUFFER_OFFSET(GST_PAD_PROBE_INFO_BUFFER(info))) + " ";
    } else {
        GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
        const GstStructure* s = gst_event_get_structure(event);
        guint n;
        if (s && gst_structure_get_uint(s, "n", &n)) {
            text += "e" + std::to_string(n) + " ";
        } else if (GST_EVENT_TYPE(event) == GST_EVENT_GAP ||
                   GST_EVENT_TYPE(event) == GST_EVENT_TAG) {
            text += std::string(GST_EVENT_TYPE_NAME(event)) + " ";
        }
    }
    return GST_PAD_PROBE_OK;
}

TEST_F(InferFlow, SerializedEventsKeepTheirPlaceBetweenFrames) {
    fake_model().hold = true;
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 8, nullptr);
    InferHarness t(element);
    std::string log;
    GstPad* pad = gst_element_get_static_pad(element, "src");
    gst_pad_add_probe(
        pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
        write_down, &log, nullptr);
    t.push(0);
    gst_harness_push_event(t.h, marker(0));
    gst_harness_push_event(t.h, gst_event_new_gap(0, 1));
    t.push(1);
    gst_harness_push_event(t.h, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "x", nullptr)));
    t.push(2);
    gst_harness_push_event(t.h, marker(1));
    gst_harness_push_event(t.h, gst_event_new_eos());
    fake_model().release();
    for (int n = 0; n < 3; ++n) t.pull_out();
    while (GstEvent* event = gst_harness_pull_event(t.h)) {
        const bool last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
        if (last) break;
    }
    EXPECT_EQ(log, "f0 e0 gap f1 tag f2 e1 ");
    gst_object_unref(pad);
}

TEST_F(InferFlow, CapsChangeBehindTheFramesInFlight) {
    fake_model().hold = true;
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 8, nullptr);
    InferHarness t(element);
    t.push(0);
    t.push(1);
    gst_harness_set_src_caps_str(t.h, "video/x-raw,format=GRAY8,width=64,height=48,framerate=30/1");
    gst_harness_push(t.h, InferHarness::frame(2, 64 * 48));
    fake_model().release();
    const guint widths[] = {32, 32, 64};
    for (guint64 n = 0; n < 3; ++n) {
        GstBuffer* out = t.pull();
        const Inference* inference = vartml::gst::get_inference(out, 0);
        EXPECT_EQ(inference->frame_width, widths[n]);
        EXPECT_DOUBLE_EQ(inference->to_frame.a, widths[n] / 16.0);
        EXPECT_EQ(inference->frame_seq, n);
        gst_buffer_unref(out);
    }
}

// As of an application that seeks where it gets a frame: the thread that pushes is the one that
// flushes.
TEST_F(InferFlow, AFlushInTheMidstOfAPushWaitsForNobody) {
    // Pushed by the task, and by the thread that brings the frame.
    for (const auto& [on_host, depth] : {std::pair{false, "1"}, {false, "3"}, {true, "1"}}) {
        reset_fake_model();
        fake_model().on_host = on_host;
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "async-depth", depth);
        InferHarness t(element);
        struct Once {
            GstPad* sink;
            bool begun = false;
            std::atomic<bool> done = false;
        } once{gst_element_get_static_pad(element, "sink")};
        GstPad* src = gst_element_get_static_pad(element, "src");
        gst_pad_add_probe(
            src, GST_PAD_PROBE_TYPE_BUFFER,
            [](GstPad*, GstPadProbeInfo*, gpointer data) {
                auto& one = *static_cast<Once*>(data);
                if (std::exchange(one.begun, true)) return GST_PAD_PROBE_OK;
                EXPECT_TRUE(gst_pad_send_event(one.sink, gst_event_new_flush_start()));
                EXPECT_TRUE(gst_pad_send_event(one.sink, gst_event_new_flush_stop(TRUE)));
                one.done = true;
                return GST_PAD_PROBE_DROP;
            },
            &once, nullptr);
        (void)t.push(0);
        while (!once.done) std::this_thread::yield();
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
        for (unsigned n = 100; n < 105; ++n) {
            ASSERT_EQ(t.push(n), GST_FLOW_OK);
            EXPECT_EQ(t.pull_out().offset, n);
        }
        gst_object_unref(src);
        gst_object_unref(once.sink);
    }
}

TEST_F(InferFlow, FlushWorksWithAnyNumberOfFramesInFlight) {
    for (unsigned pushed = 0; pushed < 6; ++pushed) {
        SCOPED_TRACE(pushed);
        reset_fake_model();
        fake_model().hold = true;
        GstElement* element = make_infer();
        g_object_set(element, "async-depth", 3, nullptr);
        InferHarness t(element);
        // From the fourth frame on, chain waits for room.
        std::thread upstream([&] {
            for (unsigned n = 0; n < pushed; ++n) {
                if (t.push(n) != GST_FLOW_OK) break;
            }
        });
        fake_model().wait_submitted(std::min(pushed, 3u));
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
        upstream.join();
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
        fake_model().release();
        const unsigned before = fake_model().submitted;
        for (unsigned n = 100; n < 105; ++n) {
            ASSERT_EQ(t.push(n), GST_FLOW_OK);
            const auto out = t.pull_out();
            EXPECT_EQ(out.offset, n);
            EXPECT_EQ(out.run, int(before + n - 100));
        }
    }
}

TEST_F(InferFlow, StoppingWithFramesInFlightGivesEverythingBack) {
    for (unsigned pushed = 0; pushed < 4; ++pushed) {
        reset_fake_model();
        fake_model().hold = true;
        {
            InferHarness t;
            std::thread upstream([&] {
                for (unsigned n = 0; n < pushed; ++n) t.push(n);
            });
            fake_model().wait_submitted(std::min(pushed, 2u));
            std::thread release([] { fake_model().release(); });
            gst_element_set_state(t.element, GST_STATE_NULL);
            release.join();
            upstream.join();
        }  // with the frames that left before the stop
        EXPECT_EQ(fake_model().live_runners, 0u);
    }
}

TEST_F(InferFlow, DownstreamMayKeepFramesAndTheirTensors) {
    InferHarness t;
    std::vector<GstBuffer*> kept;
    for (guint64 n = 0; n < 20; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        kept.push_back(t.pull());
    }
    EXPECT_GE(t.stat("output-buffers"), 20u);
    for (size_t n = 0; n < kept.size(); ++n) {
        float score = -1;
        gst_buffer_extract(vartml::gst::get_inference(kept[n], 0)->data[0], 0, &score,
                           sizeof score);
        EXPECT_EQ(score, float(n));
        gst_buffer_unref(kept[n]);
    }
    const guint64 after = t.stat("output-buffers");
    for (guint64 n = 0; n < 20; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        t.pull_out();
    }
    EXPECT_EQ(t.stat("output-buffers"), after);  // the same memory serves again
}

TEST_F(InferFlow, NoSlotIsNoFailure) {
    fake_model().refusals = 5;
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    const auto out = t.pull_out();
    EXPECT_EQ(out.status, InferenceStatus::inferred);
    EXPECT_EQ(out.run, 0);
}

TEST_F(InferFlow, OneFailedRunIsAWarningTheThirdInARowAnError) {
    fake_model().failing = {1, 3, 4, 5};
    InferHarness t;
    const InferenceStatus want[] = {InferenceStatus::inferred, InferenceStatus::failed,
                                    InferenceStatus::inferred, InferenceStatus::failed,
                                    InferenceStatus::failed};
    for (guint64 n = 0; n < 5; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, want[n]) << n;
    }
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 3u);
    t.push(5);
    GstMessage* message = gst_bus_timed_pop_filtered(t.bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR);
    const GstStructure* details;
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-run");
    GError* error;
    gst_message_parse_error(message, &error, nullptr);
    EXPECT_NE(std::string(error->message).find("RUNTIME_ERROR"), std::string::npos)
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
}

TEST_F(InferFlow, DownstreamsResultReachesUpstream) {
    InferHarness t;
    GstPad* pad = gst_element_get_static_pad(t.element, "src");
    gst_pad_unlink(pad, t.h->sinkpad);
    GstFlowReturn flow = GST_FLOW_OK;
    for (guint64 n = 0; n < 10 && flow == GST_FLOW_OK; ++n) flow = t.push(n);
    EXPECT_EQ(flow, GST_FLOW_NOT_LINKED);
    gst_object_unref(pad);
}

TEST_F(InferFlow, GoesOnWhenItIsLinkedAnew) {
    InferHarness t;
    GstPad* pad = gst_element_get_static_pad(t.element, "src");
    gst_pad_unlink(pad, t.h->sinkpad);
    GstFlowReturn flow = GST_FLOW_OK;
    for (guint64 n = 0; n < 10 && flow == GST_FLOW_OK; ++n) flow = t.push(n);
    ASSERT_EQ(flow, GST_FLOW_NOT_LINKED);
    ASSERT_EQ(gst_pad_link(pad, t.h->sinkpad), GST_PAD_LINK_OK);  // sends RECONFIGURE
    ASSERT_EQ(t.push(50), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    while (GST_BUFFER_OFFSET(out) < 50) {  // what was queued when the link broke
        gst_buffer_unref(out);
        out = t.pull();
        ASSERT_NE(out, nullptr);
    }
    gst_buffer_unref(out);
    gst_object_unref(pad);
}

size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return size_t(std::distance(begin(all), end(all)));
}

TEST_F(InferFlow, StartsAndStopsAHundredTimesAndLeavesNothingOpen) {
    size_t before = 0;
    for (int round = 0; round < 100; ++round) {
        {
            InferHarness t;
            ASSERT_EQ(t.push(0), GST_FLOW_OK);
            t.pull_out();
            gst_element_set_state(t.element, GST_STATE_NULL);
            gst_element_set_state(t.element, GST_STATE_PLAYING);
        }
        if (round == 0) before = open_descriptors();  // what GLib opens once stays open
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(InferFlow, FlushingAtRandomMomentsLosesNothingAndLeavesNothing) {
    fake_model().shuffle_seed = 3;
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 4, nullptr);
    {
        InferHarness t(element);
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
        guint32 x = 99;
        for (int round = 0; round < 200; ++round) {
            const guint64 until = pushed + (x = x * 1664525 + 1013904223) % 7;
            while (pushed < until) std::this_thread::yield();
            flushing = true;  // perhaps in the middle of a push, which the flush ends
            ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
            while (!idle) std::this_thread::yield();
            ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
            ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
            flushing = idle = false;
        }
        stop = true;
        upstream.join();
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
        EXPECT_LE(t.stat("in-flight-max"), 4u);
    }
}

TEST_F(InferFlow, StartsAndStopsAThousandTimes) {
    GstElement* element = make_infer();
    gst_object_ref_sink(element);
    for (int round = 0; round < 1000; ++round) {
        ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
        ASSERT_EQ(gst_element_set_state(element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    }
    gst_object_unref(element);
}

}  // namespace
