// SPDX-License-Identifier: Apache-2.0
// vartmlinfer on the fake model: which frames are inferred, latency, errors by table, messages.
#include <gst/controller/controller.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::ErrorCode;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferPolicy : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

TEST_F(InferPolicy, IntervalInfersOneFrameInN) {
    GstElement* element = make_infer();
    g_object_set(element, "inference-interval", 3, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 9; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, n);
        EXPECT_EQ(out.status,
                  n % 3 == 0 ? InferenceStatus::inferred : InferenceStatus::skipped_interval);
    }
    EXPECT_EQ(t.stat("frames"), 9u);
    EXPECT_EQ(t.stat("inferences"), 3u);
    EXPECT_EQ(t.stat("skipped-interval"), 6u);
}

TEST_F(InferPolicy, AnIntervalThatIsLoweredHoldsForTheNextFrame) {
    GstElement* element = make_infer();
    g_object_set(element, "inference-interval", 10, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 8; ++n) {
        if (n == 5) g_object_set(t.element, "inference-interval", 1, nullptr);
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status,
                  n == 0 || n >= 5 ? InferenceStatus::inferred : InferenceStatus::skipped_interval)
            << n;
    }
}

TEST_F(InferPolicy, PropertiesThatAreWrittenTooLateAreNamed) {
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 4, nullptr);
    InferHarness t(element);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    g_object_set(t.element, "batch-timeout", 5, nullptr);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 0u);
    g_object_set(t.element, "async-depth", 3, nullptr);
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_WARNING);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    const std::string text = error->message;
    EXPECT_NE(text.find("property 'async-depth' was written in state PLAYING"), text.npos) << text;
    g_error_free(error);
    gst_message_unref(message);
}

// Results of regions belong to the boxes of their frame, so no other frame has them.
TEST_F(InferPolicy, KeepingTheRateOfRegionsIsRefusedWithAWarning) {
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
    InferHarness t(element);
    for (const char* choice : {"yes", "no", "yes"})
        gst_util_set_object_arg(G_OBJECT(element), "keep-rate", choice);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
}

TEST_F(InferPolicy, DamagedFramesPassWithoutInferenceAndRepeatedOnesDoNot) {
    InferHarness t;
    const std::pair<GstBufferFlags, InferenceStatus> cases[] = {
        {GST_BUFFER_FLAG_CORRUPTED, InferenceStatus::skipped_flag},
        {GST_BUFFER_FLAG_GAP, InferenceStatus::inferred},  // as videorate repeats it
    };
    for (const auto& [flag, want] : cases) {
        GstBuffer* buffer = InferHarness::frame(0);
        GST_BUFFER_FLAG_SET(buffer, flag);
        ASSERT_EQ(gst_harness_push(t.h, buffer), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, want);
    }
    GstBuffer* buffer = gst_buffer_new();
    GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_GAP);
    ASSERT_EQ(gst_harness_push(t.h, buffer), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::skipped_flag);
}

TEST_F(InferPolicy, LateFramesPassWhenSkippingIsAllowed) {
    for (const bool skip : {true, false}) {
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "on-late", skip ? "skip" : "block");
        InferHarness t(element);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        t.pull_out();
        gst_harness_push_upstream_event(
            t.h, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, 10 * GST_MSECOND, GST_SECOND));
        GstEvent* forwarded = nullptr;
        while (!forwarded) {
            forwarded = gst_harness_pull_upstream_event(t.h);
            ASSERT_NE(forwarded, nullptr);
            if (GST_EVENT_TYPE(forwarded) != GST_EVENT_QOS) gst_clear_event(&forwarded);
        }
        gst_event_unref(forwarded);
        ASSERT_EQ(t.push(30), GST_FLOW_OK);  // at 1 s, before 1.02 s
        EXPECT_EQ(t.pull_out().status,
                  skip ? InferenceStatus::skipped_late : InferenceStatus::inferred);
        ASSERT_EQ(t.push(31), GST_FLOW_OK);  // at 1.03 s
        EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
        GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_QOS);
        EXPECT_EQ(message != nullptr, skip);
        if (message) {
            GstFormat format;
            guint64 processed, dropped;
            gst_message_parse_qos_stats(message, &format, &processed, &dropped);
            EXPECT_EQ(format, GST_FORMAT_BUFFERS);
            EXPECT_EQ(processed, 1u);
            EXPECT_EQ(dropped, 1u);
            gst_message_unref(message);
        }
    }
}

TEST_F(InferPolicy, FramesThatMeetAFullDepthPassBehindThoseInFlight) {
    fake_model().hold = true;
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "skip");
    InferHarness t(element);
    for (guint64 n = 0; n < 4; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    EXPECT_EQ(gst_harness_buffers_in_queue(t.h), 0u);
    fake_model().release();
    for (guint64 n = 0; n < 4; ++n) {
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, n);
        EXPECT_EQ(out.status, n < 2 ? InferenceStatus::inferred : InferenceStatus::skipped_busy);
    }
    EXPECT_EQ(t.stat("in-flight-max"), 2u);
    EXPECT_EQ(t.stat("frames"), t.stat("inferences") + t.stat("skipped-busy"));
}

TEST_F(InferPolicy, LiveUpstreamChoosesSkip) {
    fake_model().hold = true;
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "auto");
    InferHarness t(element);
    gst_harness_set_live(t.h, TRUE);
    for (guint64 n = 0; n < 3; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    fake_model().release();
    t.pull_out();
    t.pull_out();
    EXPECT_EQ(t.pull_out().status, InferenceStatus::skipped_busy);
}

TEST_F(InferPolicy, LatencyIsAddedToALiveUpstream) {
    GstElement* element = make_infer();
    g_object_set(element, "latency", guint64(20 * GST_MSECOND), nullptr);
    InferHarness t(element);
    for (const bool live : {true, false}) {
        gst_harness_set_live(t.h, live);
        gst_harness_set_upstream_latency(t.h, 5 * GST_MSECOND);
        GstPad* pad = gst_element_get_static_pad(element, "src");
        GstQuery* query = gst_query_new_latency();
        ASSERT_TRUE(gst_pad_query(pad, query));
        gboolean is_live;
        GstClockTime min, max;
        gst_query_parse_latency(query, &is_live, &min, &max);
        EXPECT_EQ(bool(is_live), live);
        EXPECT_EQ(min, live ? 25 * GST_MSECOND : 5 * GST_MSECOND);
        gst_query_unref(query);
        gst_object_unref(pad);
    }
}

// Pools of downstream get room for the frames that wait here, strides are always allowed, and
// cropping by metadata never is.
TEST_F(InferPolicy, AllocationQueryIsAnsweredBehindTheFrames) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    GstCaps* caps = gst_caps_from_string(gray_caps);
    gst_harness_add_propose_allocation_meta(t.h, GST_VIDEO_META_API_TYPE, nullptr);
    gst_harness_add_propose_allocation_meta(t.h, GST_VIDEO_CROP_META_API_TYPE, nullptr);
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    EXPECT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
    EXPECT_EQ(gst_harness_buffers_in_queue(t.h), 1u);
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    EXPECT_EQ(gst_query_get_n_allocation_metas(query), 1u);
    gst_query_unref(query);
    gst_caps_unref(caps);
    t.pull_out();
}

TEST_F(InferPolicy, AFrameOfWhichOnlyAPartIsMeantIsRefused) {
    InferHarness t;
    GstBuffer* buffer = InferHarness::frame(0);
    GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
    crop->x = 3, crop->y = 4, crop->width = 5, crop->height = 6;
    gst_harness_push(t.h, buffer);
    GstMessage* message = gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_WARNING);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    EXPECT_NE(std::string(error->message).find("has a GstVideoCropMeta (5x6 at 3,4)"),
              std::string::npos)
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
}

TEST_F(InferPolicy, SayWhatWasLoaded) {
    InferHarness t;
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ELEMENT);
    ASSERT_NE(message, nullptr);
    const GstStructure* s = gst_message_get_structure(message);
    EXPECT_TRUE(gst_structure_has_name(s, "vartml-model-loaded"));
    EXPECT_STREQ(gst_structure_get_string(s, "model"), "fake");
    guint nodes = 0;
    EXPECT_TRUE(gst_structure_get_uint(s, "npu-nodes", &nodes));
    EXPECT_EQ(nodes, 10u);
    gst_message_unref(message);
}

TEST_F(InferPolicy, CompilesAnOnnxFileWithProgressBeforeTheFirstFrame) {
    GstElement* element = make_infer();
    g_object_set(element, "model", model_file(".onnx").c_str(), nullptr);
    InferHarness t(element);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ELEMENT);
    ASSERT_NE(message, nullptr);
    EXPECT_TRUE(gst_structure_has_name(gst_message_get_structure(message), "vartml-compile"));
    gst_message_unref(message);
    EXPECT_EQ(fake_model().compiles, 1u);
}

TEST_F(InferPolicy, LeavingTheStateCancelsTheCompiler) {
    fake_model().compile_waits = true;
    GstElement* element = make_infer();
    g_object_set(element, "model", model_file(".onnx").c_str(), nullptr);
    InferHarness t(element, nullptr);
    std::thread upstream([&] {
        gst_harness_set_src_caps_str(t.h, gray_caps);  // from GStreamer 1.28 on these wait, too
        EXPECT_NE(t.push(0), GST_FLOW_OK);
    });
    {
        std::unique_lock lock(fake_model().mutex);
        fake_model().changed.wait(lock, [] { return fake_model().compiles > 0; });
    }
    EXPECT_EQ(gst_element_set_state(element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    upstream.join();
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
}

struct ErrorCase {
    const char* name;
    const char* id;
    void (*prepare)(GstElement* element);
    const char* property;
    const char* says;  // part of the sentence
};

void set(GstElement* element, const char* property, const char* value) {
    gst_util_set_object_arg(G_OBJECT(element), property, value);
}

const ErrorCase error_cases[] = {
    {"NoModel", "infer-no-model", [](GstElement* e) { g_object_set(e, "model", nullptr, nullptr); },
     "model", ".onnx"},
    {"Missing", "infer-model-missing", [](GstElement* e) { set(e, "model", "no/such.rai"); },
     "model", "no/such.rai"},
    {"MissingPart", "infer-model-missing",
     [](GstElement*) {
         fake_model().open = vartml::Error{ErrorCode::not_found, "no vaiml_par_0 in 'x'"};
     },
     "model", "vaiml_par_0"},
    {"Corrupt", "infer-model-bad",
     [](GstElement*) {
         fake_model().open =
             vartml::Error{ErrorCode::bad_model, "entry 'a' at 12: found 3, expected 4"};
     },
     "model", "expected 4"},
    {"Sidecar", "infer-sidecar",
     [](GstElement* e) { set(e, "modelinfo-file", "no/such.modelinfo"); }, "modelinfo-file",
     "such.modelinfo"},
    {"SidecarInModel", "infer-sidecar",
     [](GstElement*) {
         fake_model().modelinfo = "[modelinfo]\nversion=1.0\nx-vartml-decodr=yolox\n";
     },
     "modelinfo-file", "x-vartml-decodr"},
    {"Preprocess", "infer-option", [](GstElement* e) { set(e, "preprocess", "chanels=bgr"); },
     "preprocess", "chanels"},
    {"PreprocessValue", "infer-option", [](GstElement* e) { set(e, "preprocess", "mean=abc"); },
     "preprocess", "property 'preprocess': key 'mean' is 'abc', expected 1 or 3 numbers"},
    {"PreprocessWord", "infer-option", [](GstElement* e) { set(e, "preprocess", "letterbox"); },
     "preprocess", "property 'preprocess': found 'letterbox', expected key=value"},
    {"PreprocessFeed", "infer-option", [](GstElement* e) { set(e, "preprocess", "feed=const:1"); },
     "preprocess", "for inputs beside the picture"},
    {"PreprocessTwice", "infer-option",
     [](GstElement* e) { set(e, "preprocess", "mean=0 mean=1"); }, "preprocess",
     "is '1', before it was '0'; remove one"},
    {"Batch", "infer-batch", [](GstElement* e) { set(e, "batch-size", "4"); }, "batch-size",
     "compiled for 1"},
    {"Option", "infer-option",
     [](GstElement* e) { set(e, "runner-options", "o,callback_order=completion"); },
     "runner-options", "callback_order"},
    {"OptionType", "infer-option",
     [](GstElement* e) { set(e, "runner-options", "o,start_column=1.5"); }, "runner-options",
     "start_column"},
    {"OptionRefused", "infer-option",
     [](GstElement*) {
         fake_model().create = vartml::Error{ErrorCode::invalid_argument, "unknown option 'x'"};
     },
     "runner-options", "unknown option"},
    {"Device", "infer-device-missing",
     [](GstElement* e) {
         set(e, "device", "npu9");
         fake_model().create = vartml::Error{ErrorCode::device, "create_runner: no device 'npu9'"};
     },
     "device", "npu9"},
    {"NoHwView", "infer-option",
     [](GstElement* e) {
         set(e, "output-tensor-type", "hw");
         fake_model().output_hw_view = false;
     },
     "output-tensor-type", "'scores'"},
    {"Fallback", "infer-fallback",
     [](GstElement* e) {
         set(e, "on-fallback", "error");
         fake_model().cpu_operators = 2;
     },
     "on-fallback", "TopK"},
    {"RegionsOfTensors", "infer-option",
     [](GstElement* e) {
         fake_model().input = FakeInput::four_bytes;
         set(e, "input-is-tensor", "yes");
         set(e, "inference-region", "roi");
     },
     "input-is-tensor", "a region"},
    {"RatesOfRegions", "infer-option",
     [](GstElement* e) {
         set(e, "keep-rate", "yes");
         set(e, "inference-region", "roi");
     },
     "keep-rate", "inference-region=full-frame"},
    {"SecondInput", "infer-inputs", [](GstElement*) { fake_model().second_input = true; },
     "modelinfo-file",
     "with the lines dir=input and x-vartml-feed=frame-size (its width, height) or const:<values> "
     "in section [size]"},
    {"Feed", "infer-inputs",
     [](GstElement*) {
         fake_model().second_input = true;
         fake_model().modelinfo =
             "[modelinfo]\nversion=1.0\n[size]\ndir=input\nx-vartml-feed=const:1,2,3\n";
     },
     "modelinfo-file", "const:1,2,3"},
    {"Copy", "infer-copy-forbidden",
     [](GstElement* e) {
         set(e, "copy-policy", "forbid");
         fake_model().output_hw_view = false;
     },
     "copy-policy", "output-cpu-view"},
};

class InferError : public testing::TestWithParam<ErrorCase> {};
TEST_P(InferError, IsOneMessageWithIdAndSentence) {
    const ErrorCase& c = GetParam();
    reset_fake_model();
    GstElement* element = make_infer();
    gst_object_ref_sink(element);
    c.prepare(element);
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    EXPECT_EQ(gst_element_set_state(element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    const GstStructure* details = nullptr;
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "id"), c.id) << error->message;
    EXPECT_STREQ(gst_structure_get_string(details, "property"), c.property);
    EXPECT_NE(std::string(error->message).find(c.says), std::string::npos) << error->message;
    EXPECT_TRUE(g_str_has_prefix(error->message, "Could not ")) << error->message;
    g_error_free(error);
    gst_message_unref(message);
    EXPECT_EQ(gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR), nullptr);
    gst_element_set_state(element, GST_STATE_NULL);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
    EXPECT_EQ(fake_model().live_runners, 0u);
}
INSTANTIATE_TEST_SUITE_P(Start, InferError, testing::ValuesIn(error_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferPolicy, AnInputThatIsNoPictureIsFed) {
    fake_model().second_input = true;
    fake_model().modelinfo =
        "[modelinfo]\nversion=1.0\n[size]\ndir=input\nx-vartml-feed=frame-size\n";
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(fake_model().last_size[0], 32);
    EXPECT_EQ(fake_model().last_size[1], 24);
}

TEST_F(InferPolicy, AControlledIntervalFollowsTheStreamTime) {
    GstElement* element = make_infer();
    GstControlSource* source = gst_interpolation_control_source_new();
    g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
    auto* values = GST_TIMED_VALUE_CONTROL_SOURCE(source);
    gst_timed_value_control_source_set(values, 0, 2);
    gst_timed_value_control_source_set(values, GST_SECOND, 1000);
    gst_object_add_control_binding(
        GST_OBJECT(element),
        gst_direct_control_binding_new_absolute(GST_OBJECT(element), "inference-interval", source));
    gst_object_unref(source);
    InferHarness t(element);
    GstSegment segment;  // of a film from its 100th second on
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = segment.position = 100 * GST_SECOND;
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
    for (int n = 0; n < 6; ++n) {
        GstBuffer* frame = InferHarness::frame(guint64(n));
        GST_BUFFER_PTS(frame) += segment.start;
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status,
                  n % 2 == 0 ? InferenceStatus::inferred : InferenceStatus::skipped_interval)
            << n;
    }
}

// Frames that take more than twice the target, and what becomes of the interval.
TEST_F(InferPolicy, ALatencyTargetWidensTheIntervalAndSaysSo) {
    GstElement* element = make_infer();
    g_object_set(element, "latency-target", 1, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 32; ++n) {
        {
            const std::lock_guard lock(fake_model().mutex);
            fake_model().hold = true;
        }
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the device's time
        fake_model().release();
        t.pull_out();
    }
    GstMessage* message = gst_bus_timed_pop_filtered(t.bus, 0, GST_MESSAGE_ELEMENT);
    while (message && !gst_message_has_name(message, "vartml-slo")) {
        gst_message_unref(message);
        message = gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ELEMENT);
    }
    ASSERT_NE(message, nullptr);
    guint interval = 0;
    EXPECT_TRUE(gst_structure_get_uint(gst_message_get_structure(message), "interval", &interval));
    EXPECT_EQ(interval, 2u);
    gst_message_unref(message);
    EXPECT_EQ(t.stat("interval"), 2u);
    std::vector<InferenceStatus> seen;
    for (guint64 n = 32; n < 36; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        seen.push_back(t.pull_out().status);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), InferenceStatus::skipped_slo), 2);
    EXPECT_EQ(t.stat("frames"), t.stat("inferences") + t.stat("skipped-slo"));
}

TEST_F(InferPolicy, FallbackIsOneWarning) {
    fake_model().cpu_operators = 2;
    InferHarness t;
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
}

TEST_F(InferPolicy, ACopyOfEveryFrameIsOneWarningAndCounted) {
    fake_model().output_hw_view = false;
    InferHarness t;
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        t.pull_out();
    }
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
    EXPECT_EQ(t.stat("copy-output-cpu-view-count"), 3u);
    EXPECT_EQ(t.stat("copies"), 3u);
}

TEST_F(InferPolicy, ACopyThatIsForbiddenWhilePlayingEndsTheStream) {
    fake_model().output_hw_view = false;
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    gst_util_set_object_arg(G_OBJECT(t.element), "copy-policy", "forbid");
    GstFlowReturn flow = GST_FLOW_OK;
    for (guint64 n = 1; n < 100 && flow == GST_FLOW_OK; ++n) flow = t.push(n);
    EXPECT_EQ(flow, GST_FLOW_ERROR);
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 1u);
}

TEST_F(InferPolicy, PropertiesHaveTextAndSurviveARoundTrip) {
    GstElement* element = make_infer();
    gst_object_ref_sink(element);
    guint count;
    GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
    for (guint i = 0; i < count; ++i) {
        if (specs[i]->owner_type != GST_TYPE_VARTML_INFER) continue;
        EXPECT_GT(std::string(g_param_spec_get_blurb(specs[i])).size(), 15u) << specs[i]->name;
    }
    g_free(specs);
    set(element, "runner-options", "o,start_column=(uint)4,debug=true,log_level=DEBUG");
    GstStructure* options = nullptr;
    g_object_get(element, "runner-options", &options, nullptr);
    guint column = 0;
    EXPECT_TRUE(gst_structure_get_uint(options, "start_column", &column));
    EXPECT_EQ(column, 4u);
    gst_structure_free(options);
    gst_object_unref(element);
}

}  // namespace
