// SPDX-License-Identifier: Apache-2.0
// A model that no frame needs for a while: it is unloaded, what is asked meanwhile is answered as
// before, and the next frame finds it again.
#include <gst/analytics/analytics.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/support/gst_infer_idle.h"

namespace {

using namespace vartml::test;
using vartml::ErrorCode;
using vartml::gst::get_inference;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferIdle : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

// How many messages of that name came so far, and were not looked at.
unsigned count_messages(InferHarness& t, const char* name) {
    unsigned count = 0;
    while (GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ELEMENT)) {
        count += gst_structure_has_name(gst_message_get_structure(message), name);
        gst_message_unref(message);
    }
    return count;
}

// ---- unloaded and back ----

struct KindCase {
    const char* name;
    void (*prepare)(GstElement* element);
};
class InferIdleKind : public testing::TestWithParam<KindCase> {};
TEST_P(InferIdleKind, ComesBackAsItWas) {
    reset_fake_model();
    {
        GstElement* element = drowsy();
        GetParam().prepare(element);
        InferHarness t(element);
        const Seen first = see(t, 5);
        EXPECT_EQ(first.status, InferenceStatus::inferred);
        for (guint64 n = 1; n < 4; ++n) {
            ASSERT_TRUE(all_sleep());
            GstStructure* unloaded = wait_message(t.bus, "vartml-model-unloaded");
            ASSERT_NE(unloaded, nullptr);
            guint idle_ms = 0;
            EXPECT_STREQ(gst_structure_get_string(unloaded, "model"), "fake");
            EXPECT_TRUE(gst_structure_get_uint(unloaded, "idle-ms", &idle_ms));
            EXPECT_EQ(idle_ms, 1u);
            gst_structure_free(unloaded);
            const Seen again = see(t, 5);
            EXPECT_EQ(again.status, InferenceStatus::inferred);
            EXPECT_EQ(again.seq, n);
            EXPECT_EQ(again.first_byte, first.first_byte);
            EXPECT_EQ(again.record, first.record) << "results that are kept are of this model";
            EXPECT_TRUE(comes(t, "vartml-model-loaded"));
        }
        EXPECT_EQ(t.stat("inferences"), 4u);
        EXPECT_EQ(t.stat("model-swaps"), 0u);
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const KindCase kind_cases[] = {
    {"Alone", [](GstElement*) {}},
    {"Shared", [](GstElement* e) { g_object_set(e, "model-instance-id", "idle kind", nullptr); }},
    {"OfShortRuns", [](GstElement*) { fake_model().on_host = true; }},
    {"InBatches",
     [](GstElement* e) {
         fake_model().batch = 4;
         g_object_set(e, "batch-timeout", 0, nullptr);
     }},
    {"CompiledFirst",
     [](GstElement* e) { g_object_set(e, "model", model_file(".onnx").c_str(), nullptr); }},
    {"OnLateFrames",
     [](GstElement* e) { gst_util_set_object_arg(G_OBJECT(e), "on-late", "skip"); }},
};
INSTANTIATE_TEST_SUITE_P(Idle, InferIdleKind, testing::ValuesIn(kind_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferIdle, AModelThatNoFrameCameForIsUnloadedToo) {
    InferHarness t(drowsy());
    ASSERT_TRUE(all_sleep());
    EXPECT_EQ(see(t, 3).status, InferenceStatus::inferred);
}

TEST_F(InferIdle, TensorsThatDownstreamHoldsStayValidAndKeepNoRunner) {
    InferHarness t(drowsy());
    ASSERT_EQ(t.push(7), GST_FLOW_OK);
    GstBuffer* held = t.pull();
    ASSERT_TRUE(all_sleep());
    EXPECT_EQ(t.stat("output-buffers"), 1u);
    float scores[4] = {};
    gst_buffer_extract(get_inference(held, 0)->data[0], 0, scores, sizeof scores);
    EXPECT_EQ(scores[3], -1);
    gst_buffer_unref(held);
}

TEST_F(InferIdle, WarningsOfTheModelAreToldOnce) {
    fake_model().cpu_operators = 3;
    InferHarness t(drowsy());
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
    see(t, 0);
    ASSERT_TRUE(all_sleep());
    see(t, 1);
    GstMessage* warning = gst_bus_pop_filtered(t.bus, GST_MESSAGE_WARNING);
    EXPECT_EQ(warning, nullptr);
}

// Nothing is said of time: another element is put to sleep as often as it takes to be sure that
// this one was looked at.
void others_sleep() {
    InferHarness other(drowsy());
    for (guint64 n = 0; n < 5; ++n) {
        ASSERT_TRUE(says_it_sleeps(other));
        see(other, n);
    }
}

TEST_F(InferIdle, FramesInFlightKeepTheirModel) {
    InferHarness t(drowsy());
    ASSERT_TRUE(says_it_sleeps(t));
    fake_model().hold = true;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    fake_model().wait_submitted(1);
    {
        InferHarness other(drowsy());  // whose frames would be held, too
        ASSERT_TRUE(says_it_sleeps(other));
    }
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    fake_model().wait_submitted(2);
    EXPECT_EQ(count_messages(t, "vartml-model-loaded"), 1u) << "it was there all the time";
    fake_model().release();
    for (int n = 0; n < 2; ++n) EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    EXPECT_TRUE(all_sleep());
}

// The picture leaves at its time, and no other comes that would take the result.
TEST_F(InferIdle, ResultsOfFramesThatLeftBeforeThemAreKept) {
    GstElement* element = drowsy();
    gst_util_set_object_arg(G_OBJECT(element), "keep-rate", "yes");
    InferHarness t(element);
    ASSERT_TRUE(says_it_sleeps(t));
    fake_model().hold = true;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::pending);
    fake_model().release();
    ASSERT_TRUE(says_it_sleeps(t));
    EXPECT_EQ(t.stat("inferences"), 1u);
    {
        const std::lock_guard lock(fake_model().mutex);
        fake_model().hold = true;
    }
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    const auto out = t.pull_out();
    EXPECT_EQ(out.status, InferenceStatus::carried);
    EXPECT_EQ(out.run, 0);
    fake_model().release();
}

TEST_F(InferIdle, AFrameThatIsRefusedNeedsNoModel) {
    InferHarness t(drowsy());
    GstPad* src = gst_element_get_static_pad(t.element, "src");
    gst_pad_add_probe(
        src, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
            gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
            GST_PAD_PROBE_INFO_DATA(info) = nullptr;
            GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_EOS;
            return GST_PAD_PROBE_HANDLED;
        },
        nullptr, nullptr);
    gst_object_unref(src);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    ASSERT_TRUE(all_sleep());
    EXPECT_EQ(t.push(1), GST_FLOW_EOS);
    EXPECT_EQ(fake_model().live_runners, 0u);
}

// As in a pipeline that is paused.
TEST_F(InferIdle, FramesThatDownstreamDoesNotTakeKeepTheirModel) {
    GstElement* element = drowsy();
    gst_util_set_object_arg(G_OBJECT(element), "inference-interval", "2");
    InferHarness t(element);
    ASSERT_TRUE(says_it_sleeps(t));
    GstPad* src = gst_element_get_static_pad(t.element, "src");
    const gulong block = gst_pad_add_probe(
        src, GstPadProbeType(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
        [](GstPad*, GstPadProbeInfo*, gpointer) { return GST_PAD_PROBE_OK; }, nullptr, nullptr);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    others_sleep();
    EXPECT_EQ(count_messages(t, "vartml-model-unloaded"), 0u);
    gst_pad_remove_probe(src, block);
    gst_object_unref(src);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::skipped_interval);
    EXPECT_TRUE(all_sleep());
}

TEST_F(InferIdle, TheFirstFrameAfterwardsIsInferredThoughNothingMoves) {
    GstElement* element = drowsy();
    g_object_set(element, "motion-threshold", 8, "motion-max-age", GST_CLOCK_TIME_NONE, nullptr);
    InferHarness t(element);
    const Seen first = see(t, 0);
    ASSERT_TRUE(all_sleep());
    const Seen again = see(t, 0);
    EXPECT_EQ(again.status, InferenceStatus::inferred);
    EXPECT_EQ(again.record, first.record);
}

TEST_F(InferIdle, TrackedObjectsKeepTheirResults) {
    const auto frame = [](guint64 number) {
        GstBuffer* buffer = InferHarness::frame(number);
        GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
        GstAnalyticsMtd od, track;
        gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("car"), 0, 0, 8, 8, 0.9f,
                                               &od);
        gst_analytics_relation_meta_add_tracking_mtd(meta, 7, 0, &track);
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od.id,
                                                 track.id);
        return buffer;
    };
    GstElement* element = drowsy();
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
    g_object_set(element, "roi-min-size", 2, "roi-reinfer-interval", 0, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 2; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame(n)), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const Inference* result = get_inference(out, n);
        EXPECT_EQ(result->status, n ? InferenceStatus::carried : InferenceStatus::inferred);
        gst_buffer_unref(out);
        ASSERT_TRUE(all_sleep());
    }
}

// ---- asleep ----

std::string text_of(GstCaps* caps) {
    gchar* text = gst_caps_to_string(caps);
    std::string copy = text;
    g_free(text);
    gst_caps_unref(caps);
    return copy;
}
std::string caps_at(InferHarness& t, const char* pad_name) {
    GstPad* pad = gst_element_get_static_pad(t.element, pad_name);
    std::string text = text_of(gst_pad_query_caps(pad, nullptr));
    gst_object_unref(pad);
    return text;
}

struct QuestionCase {
    const char* name;
    std::string (*answer)(InferHarness& t);
};
class InferIdleAnswers : public testing::TestWithParam<QuestionCase> {};
TEST_P(InferIdleAnswers, AsItDoesAwake) {
    reset_fake_model();
    fake_model().input = FakeInput::picture;
    fake_model().warm_up_ms = 2;
    {
        GstElement* element = drowsy();
        gst_util_set_object_arg(G_OBJECT(element), "input-is-tensor", "yes");
        g_object_set(element, "preprocess", nullptr, "async-depth", 5, nullptr);
        InferHarness t(element, "video/x-raw,format=RGB,width=16,height=12,framerate=30/1");
        gst_harness_set_live(t.h, TRUE);
        ASSERT_EQ(gst_harness_push(t.h, InferHarness::frame(0, 16 * 12 * 3)), GST_FLOW_OK);
        t.pull_out();
        const std::string awake = GetParam().answer(t);
        ASSERT_TRUE(all_sleep());
        EXPECT_EQ(GetParam().answer(t), awake);
        EXPECT_EQ(fake_model().live_runners, 0u) << "it needs no model to say so";
        ASSERT_EQ(gst_harness_push(t.h, InferHarness::frame(1, 16 * 12 * 3)), GST_FLOW_OK);
        t.pull_out();
        EXPECT_EQ(GetParam().answer(t), awake);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const QuestionCase question_cases[] = {
    {"Latency",
     [](InferHarness& t) {
         const GstClockTime latency = gst_harness_query_latency(t.h);
         EXPECT_GE(latency, 2 * GST_MSECOND);
         return std::to_string(latency);
     }},
    {"CapsOfTheSink",
     [](InferHarness& t) {
         std::string caps = caps_at(t, "sink");
         EXPECT_NE(caps.find("width=(int)16"), std::string::npos) << "narrowed: " << caps;
         return caps;
     }},
    {"CapsOfTheSource", [](InferHarness& t) { return caps_at(t, "src"); }},
    {"AcceptCaps",
     [](InferHarness& t) {
         std::string all;
         for (const char* format : {"RGB", "BGR", "GRAY8"}) {
             GstCaps* caps = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, format,
                                                 "width", G_TYPE_INT, 16, "height", G_TYPE_INT, 12,
                                                 "framerate", GST_TYPE_FRACTION, 30, 1, nullptr);
             all += gst_pad_peer_query_accept_caps(t.h->srcpad, caps) ? "yes " : "no ";
             gst_caps_unref(caps);
         }
         return all;
     }},
    {"Allocation",
     [](InferHarness& t) {
         GstCaps* caps = gst_pad_get_current_caps(t.h->srcpad);
         GstQuery* query = gst_query_new_allocation(caps, TRUE);
         EXPECT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
         guint size = 0, min = 0, max = 0;
         gst_query_parse_nth_allocation_pool(query, 0, nullptr, &size, &min, &max);
         const GstStructure* params = nullptr;
         gst_query_parse_nth_allocation_meta(query, 0, &params);
         gchar* text = gst_structure_to_string(params);
         std::string all = std::to_string(size) + " " + std::to_string(min) + " " + text;
         EXPECT_GT(min, 5u);
         g_free(text);
         gst_query_unref(query);
         gst_caps_unref(caps);
         return all;
     }},
    {"Properties",
     [](InferHarness& t) {
         return model_in_use(t.element) + std::to_string(t.stat("failed")) +
                std::to_string(t.stat("model-swaps")) + std::to_string(t.stat("interval"));
     }},
};
INSTANTIATE_TEST_SUITE_P(Idle, InferIdleAnswers, testing::ValuesIn(question_cases),
                         [](const auto& info) { return std::string(info.param.name); });

struct EventCase {
    const char* name;
    void (*happens)(InferHarness& t);
};
class InferIdleEvent : public testing::TestWithParam<EventCase> {};
TEST_P(InferIdleEvent, PassesAndTheNextFrameIsInferred) {
    reset_fake_model();
    {
        InferHarness t(drowsy());
        see(t, 0);
        ASSERT_TRUE(all_sleep());
        GetParam().happens(t);
        EXPECT_EQ(fake_model().live_runners, 0u) << "nothing wakes it but a frame";
        const Seen seen = see(t, 1);
        EXPECT_EQ(seen.offset, 1u);
        EXPECT_EQ(seen.status, InferenceStatus::inferred);
        EXPECT_EQ(seen.record->model_epoch, 0u);
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
void begin_segment(InferHarness& t) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_segment(&segment)));
}
void flush(InferHarness& t) {
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
    begin_segment(t);
}
const EventCase event_cases[] = {
    {"Segment", begin_segment},
    {"Flush", flush},
    {"EndOfStream",
     [](InferHarness& t) {
         ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_eos()));
         // It leaves behind the frame that is there.
         while (true) {
             GstEvent* event = gst_harness_pull_event(t.h);
             ASSERT_NE(event, nullptr);
             const bool eos = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
             gst_event_unref(event);
             if (eos) break;
         }
         flush(t);
     }},
    {"Caps",
     [](InferHarness& t) {
         gst_harness_set_src_caps_str(t.h,
                                      "video/x-raw,format=GRAY8,width=24,height=32,framerate=5/1");
     }},
    {"Quality",
     [](InferHarness& t) {
         ASSERT_TRUE(gst_harness_push_upstream_event(
             t.h, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 2, GST_SECOND, 0)));
     }},
    {"Reconfigure",
     [](InferHarness& t) {
         ASSERT_TRUE(gst_harness_push_upstream_event(t.h, gst_event_new_reconfigure()));
     }},
    {"StopAndStart",
     [](InferHarness& t) {
         ASSERT_EQ(gst_element_set_state(t.element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
         ASSERT_NE(gst_element_set_state(t.element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
         gst_harness_set_src_caps_str(t.h, gray_caps);
         ASSERT_TRUE(all_sleep());
     }},
};
INSTANTIATE_TEST_SUITE_P(Idle, InferIdleEvent, testing::ValuesIn(event_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferIdle, CapsThatDoNotSuitTheModelAreRefusedAsleep) {
    fake_model().input = FakeInput::picture;
    GstElement* element = drowsy();
    gst_util_set_object_arg(G_OBJECT(element), "input-is-tensor", "yes");
    g_object_set(element, "preprocess", nullptr, nullptr);
    InferHarness t(element, "video/x-raw,format=RGB,width=16,height=12,framerate=30/1");
    ASSERT_TRUE(all_sleep());
    gst_harness_set_src_caps_str(t.h, gray_caps);
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 1u);
}

// ---- the way back ----

struct FailedCase {
    const char* name;
    const char* id;
    void (*prepare)(const std::string& model);
};
class InferIdleFails : public testing::TestWithParam<FailedCase> {};
TEST_P(InferIdleFails, WithTheUsualError) {
    reset_fake_model();
    {
        const TempDir folder;
        const std::string model = folder / "gone.rai";
        if (FILE* file = std::fopen(model.c_str(), "w")) std::fclose(file);
        GstElement* element = drowsy();
        g_object_set(element, "model", model.c_str(), nullptr);
        InferHarness t(element);
        ASSERT_TRUE(all_sleep());
        GetParam().prepare(model);
        EXPECT_EQ(t.push(0), GST_FLOW_ERROR);
        GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ERROR);
        ASSERT_NE(message, nullptr);
        const GstStructure* details = nullptr;
        gst_message_parse_error_details(message, &details);
        EXPECT_STREQ(gst_structure_get_string(details, "id"), GetParam().id);
        gst_message_unref(message);
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const FailedCase failed_cases[] = {
    {"Missing", "infer-model-missing", [](const std::string& file) { std::remove(file.c_str()); }},
    {"Corrupt", "infer-model-bad",
     [](const std::string&) {
         fake_model().open = vartml::Error{ErrorCode::bad_model, "entry 'a' is damaged"};
     }},
    {"DeviceTaken", "infer-device-busy",
     [](const std::string&) {
         fake_model().create = vartml::Error{ErrorCode::busy, "another process has it"};
     }},
};
INSTANTIATE_TEST_SUITE_P(Idle, InferIdleFails, testing::ValuesIn(failed_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferIdle, AFlushEndsTheWaitForTheModelAndAStopItsLoad) {
    GstElement* element = drowsy();
    g_object_set(element, "model", model_file(".onnx").c_str(), nullptr);
    InferHarness t(element);
    ASSERT_TRUE(says_it_sleeps(t));
    fake_model().compile_waits = true;
    GstFlowReturn flow = GST_FLOW_OK;
    std::thread upstream([&] { flow = t.push(0); });
    {
        std::unique_lock lock(fake_model().mutex);
        fake_model().changed.wait(lock, [] { return fake_model().compiles > 1; });
    }
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
    upstream.join();
    EXPECT_EQ(flow, GST_FLOW_FLUSHING);
    EXPECT_EQ(gst_element_set_state(t.element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
}

TEST_F(InferIdle, AFileThatIsAnotherModelNowIsASwap) {
    InferHarness t(drowsy());
    const Seen first = see(t, 0);
    ASSERT_TRUE(all_sleep());
    fake_model().signature = "ffeeddccbbaa99887766554433221100";
    const Seen again = see(t, 1);
    EXPECT_EQ(again.record->model_hash, fake_model().signature);
    EXPECT_EQ(again.record->model_epoch, 1u);
    EXPECT_TRUE(comes(t, "vartml-model-changed"));
    EXPECT_EQ(t.stat("model-swaps"), 1u);
}

// Who asks, flushes and swaps does so at any moment.
TEST_F(InferIdle, LosesAndRepeatsNothingWhateverComesBetween) {
    constexpr guint64 frames = 150;
    InferHarness t(drowsy());
    gst_harness_set_live(t.h, TRUE);
    std::atomic<bool> done{false};
    std::thread asks([&] {
        for (unsigned n = 0; !done; ++n) {
            (void)gst_harness_query_latency(t.h);
            (void)caps_at(t, "sink");
            (void)t.stat("in-flight");
            if (n % 64 == 0)
                g_object_set(t.element, "model", model_file(n % 128 ? "2.rai" : ".rai").c_str(),
                             nullptr);
        }
    });
    for (guint64 n = 0; n < frames; ++n) {
        const Seen seen = see(t, n);
        ASSERT_EQ(seen.offset, n);
        ASSERT_EQ(seen.status, InferenceStatus::inferred);
        if (n % 10 == 9) {
            ASSERT_TRUE(says_it_sleeps(t));
        }
        if (n % 50 == 49) flush(t);
    }
    done = true;
    asks.join();
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
}

}  // namespace
