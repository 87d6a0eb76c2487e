// SPDX-License-Identifier: Apache-2.0
// Frames of a stream that keeps its rate: they leave at their time, with the newest result and its
// age. And those of one that does not: they wait behind frames that are inferred, and none is held
// back at the door.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gst/infer/admission.h"
#include "gst/infer/result_writer.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::Inference;
using vartml::gst::InferenceRecord;
using vartml::gst::InferenceStatus;
using vartml::gst::infer::InferenceTime;
using vartml::gst::infer::KnownResult;

guint64 pts(guint64 number) {
    return number * GST_SECOND / 30;
}

// Keeps its rate and waits for no result, so that the test alone says when one is there.
GstElement* make_keeping(const char* choice = "yes") {
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "keep-rate", choice);
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "auto");
    g_object_set(element, "latency", guint64(0), nullptr);
    return element;
}

void hold(bool yes) {
    if (!yes) return fake_model().release();
    const std::lock_guard lock(fake_model().mutex);
    fake_model().hold = true;
}

void wait_finished(unsigned count) {
    std::unique_lock lock(fake_model().mutex);
    fake_model().changed.wait(lock, [&] { return fake_model().finished >= count; });
}

class KeepRate : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }

    // What a frame says of its result; `run`: of its tensors, -1 without.
    struct Seen {
        guint64 offset;
        InferenceStatus status, fate;
        guint64 result_seq, age_ns, result_id;
        int run;
        bool operator==(const Seen&) const = default;
    };
    static Seen pull(InferHarness& t) {
        GstBuffer* buffer = t.pull();
        if (!buffer) {
            ADD_FAILURE() << "no frame came";
            return {};
        }
        const Inference* i = vartml::gst::get_inference(buffer, 0);
        Seen seen = {GST_BUFFER_OFFSET(buffer),
                     i->status,
                     i->fate,
                     i->result_seq,
                     i->age_ns,
                     i->result_id,
                     -1};
        if (!i->data.empty()) {
            float score = -1;
            gst_buffer_extract(i->data[0], 0, &score, sizeof score);
            seen.run = int(score);
            EXPECT_NE(gst_buffer_get_meta(buffer, GST_TENSOR_META_API_TYPE), nullptr);
        }
        gst_buffer_unref(buffer);
        return seen;
    }
    // One frame whose result comes after it has left.
    static void infer_behind(InferHarness& t, guint64 number, unsigned finished) {
        hold(true);
        ASSERT_EQ(t.push(number), GST_FLOW_OK);
        pull(t);
        hold(false);
        wait_finished(finished);
    }
};

TEST_F(KeepRate, FramesLeaveBeforeTheirResultAndLaterOnesCarryIt) {
    InferHarness t(make_keeping());
    hold(true);
    for (guint64 n = 0; n < 2; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        const Seen seen = pull(t);  // though the device answers nothing
        EXPECT_EQ(seen.offset, n);
        EXPECT_EQ(seen.status, InferenceStatus::pending);
        EXPECT_EQ(seen.run, -1);
    }
    ASSERT_EQ(t.push(2), GST_FLOW_OK);  // no room at the device
    EXPECT_EQ(pull(t).status, InferenceStatus::skipped_busy);
    constexpr std::chrono::milliseconds long_wait(20);
    std::this_thread::sleep_for(long_wait);
    hold(false);
    wait_finished(2);
    hold(true);
    guint64 result = 0;
    for (guint64 n = 3; n < 8; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        const Seen seen = pull(t);
        EXPECT_EQ(seen.offset, n);
        EXPECT_EQ(seen.status, InferenceStatus::carried);
        EXPECT_EQ(seen.fate, n < 5 ? InferenceStatus::pending : InferenceStatus::skipped_busy);
        EXPECT_EQ(seen.result_seq, 1u);
        EXPECT_EQ(seen.age_ns, pts(n) - pts(1));
        EXPECT_EQ(seen.run, 1);
        if (!result) result = seen.result_id;
        EXPECT_NE(seen.result_id, 0u);
        EXPECT_EQ(seen.result_id, result);
    }
    EXPECT_EQ(t.stat("in-flight-max"), 2u);
    EXPECT_EQ(t.stat("carried"), 5u);
    EXPECT_EQ(t.stat("age-max-us"), (pts(7) - pts(1)) / 1000);
    EXPECT_GE(t.stat("result-p50-us"), 20'000u);  // though they left long before
    hold(false);
}

// 10 s is long enough for any result.
TEST_F(KeepRate, AResultThatIsExpectedInTimeIsTheFramesOwn) {
    GstElement* element = make_keeping();
    g_object_set(element, "latency", guint64(10 * GST_SECOND), nullptr);
    InferHarness t(element);
    hold(true);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    fake_model().wait_submitted(1);
    EXPECT_EQ(gst_harness_buffers_in_queue(t.h), 0u);
    hold(false);
    const Seen seen = pull(t);
    EXPECT_EQ(seen.status, InferenceStatus::inferred);
    EXPECT_EQ(seen.result_seq, 0u);
    EXPECT_EQ(seen.age_ns, 0u);
    EXPECT_EQ(seen.run, 0);
}

// Processors make a run each; a third frame waits at the device only where a run is about to end.
TEST_F(KeepRate, EveryProcessorHasARunAndTheNextFrameWaitsForTheFirstToEnd) {
    const unsigned beside = std::min(2u, g_get_num_processors());  // of async-depth
    struct Row {
        bool on_host;
        unsigned run_ms, in_flight;
    };
    const Row rows[] = {
        {false, 200, 1},        // an NPU makes one run after the other
        {false, 1, 2},          // and has the next one when it is done with the first
        {true, 200, beside},    // no run ends within a frame of 33 ms
        {true, 1, beside + 1},  // each does
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(std::to_string(row.on_host) + " " + std::to_string(row.run_ms));
        reset_fake_model();
        fake_model().on_host = row.on_host;
        fake_model().warm_up_ms = row.run_ms;
        InferHarness t(make_keeping());
        hold(true);
        for (guint64 n = 0; n < 6; ++n) {
            ASSERT_EQ(t.push(n), GST_FLOW_OK);
            const bool inferred = n < row.in_flight;
            EXPECT_EQ(pull(t).status,
                      inferred ? InferenceStatus::pending : InferenceStatus::skipped_busy)
                << n;
        }
        EXPECT_EQ(t.stat("in-flight-max"), row.in_flight);
        hold(false);
    }
}

// Streams share what the device makes beside each other: none waits behind many of another.
TEST_F(KeepRate, StreamsOfOneModelHaveTheirShareOfTheRuns) {
    fake_model().on_host = true;
    fake_model().warm_up_ms = 200;
    std::vector<std::unique_ptr<InferHarness>> all;
    for (unsigned i = 0; i < 2 * g_get_num_processors(); ++i) {
        GstElement* element = make_keeping();
        g_object_set(element, "model-instance-id", "shared", "async-depth", 4, nullptr);
        all.push_back(std::make_unique<InferHarness>(element));
    }
    hold(true);
    for (auto& t : all) {
        for (guint64 n = 0; n < 3; ++n) {
            ASSERT_EQ(t->push(n), GST_FLOW_OK);
            EXPECT_EQ(pull(*t).status,
                      n == 0 ? InferenceStatus::pending : InferenceStatus::skipped_busy);
        }
    }
    hold(false);
}

TEST_F(KeepRate, AtTheEndOfTheStreamEveryInferenceIsCounted) {
    InferHarness t(make_keeping());
    hold(true);
    for (guint64 n = 0; n < 5; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    std::thread device([] {
        fake_model().wait_submitted(2);
        hold(false);
    });
    gst_harness_push_event(t.h, gst_event_new_eos());
    GstEvent* event;
    do {
        event = gst_harness_pull_event(t.h);
        ASSERT_NE(event, nullptr);
        const bool last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
        if (last) break;
    } while (true);
    device.join();
    EXPECT_EQ(t.stat("frames"), 5u);
    EXPECT_EQ(t.stat("inferences"), 2u);
    EXPECT_EQ(t.stat("skipped-busy"), 3u);
    EXPECT_EQ(t.stat("in-flight"), 0u);
}

TEST_F(KeepRate, AllFramesLeaveInOrderAndAsTheyCame) {
    constexpr guint64 frames = 600;
    fake_model().shuffle_seed = 7;
    GstElement* element = make_keeping();
    g_object_set(element, "async-depth", 4, nullptr);
    InferHarness t(element);
    std::thread upstream([&] {
        for (guint64 n = 0; n < frames; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    });
    guint64 last_result = 0;
    bool any = false;
    for (guint64 n = 0; n < frames; ++n) {
        GstBuffer* buffer = t.pull();
        ASSERT_EQ(GST_BUFFER_OFFSET(buffer), n);
        EXPECT_EQ(GST_BUFFER_PTS(buffer), pts(n));
        const Inference* i = vartml::gst::get_inference(buffer, 0);
        EXPECT_EQ(i->frame_seq, n);
        EXPECT_TRUE(i->has_result() || !any) << n << " after one with a result";
        any = any || i->has_result();
        if (i->has_result()) {
            EXPECT_GE(i->result_seq, last_result) << "results do not go back";
            EXPECT_LE(i->result_seq, n);
            last_result = i->result_seq;
        }
        gst_buffer_unref(buffer);
    }
    upstream.join();
}

TEST_F(KeepRate, NoResultOutlivesItsModelItsStreamItsPictureSizeOrAFlush) {
    struct Row {
        const char* what;
        void (*change)(InferHarness& t);
    };
    const Row rows[] = {
        {"flush",
         [](InferHarness& t) {
             gst_harness_push_event(t.h, gst_event_new_flush_start());
             gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE));
             GstSegment segment;
             gst_segment_init(&segment, GST_FORMAT_TIME);
             gst_harness_push_event(t.h, gst_event_new_segment(&segment));
         }},
        {"stream",
         [](InferHarness& t) {
             gst_harness_push_event(t.h, gst_event_new_stream_start("another"));
         }},
        {"size",
         [](InferHarness& t) {
             gst_harness_set_src_caps_str(
                 t.h, "video/x-raw,format=GRAY8,width=24,height=32,framerate=30/1");
         }},
        {"model",
         [](InferHarness& t) {
             t.messages(GST_MESSAGE_ELEMENT);
             g_object_set(t.element, "model", model_file("2.rai").c_str(), nullptr);
             GstMessage* loaded =
                 gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ELEMENT);
             ASSERT_NE(loaded, nullptr);
             gst_message_unref(loaded);
         }},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.what);
        reset_fake_model();
        InferHarness t(make_keeping());
        infer_behind(t, 0, 1);
        hold(true);
        ASSERT_EQ(t.push(1), GST_FLOW_OK);
        EXPECT_EQ(pull(t).status, InferenceStatus::carried);
        row.change(t);
        ASSERT_EQ(t.push(2), GST_FLOW_OK);
        EXPECT_EQ(pull(t).status, InferenceStatus::pending);
        hold(false);
    }
}

TEST_F(KeepRate, AFailedRunIsAWarningAndFramesCarryWhatWasBefore) {
    fake_model().failing = {1, 2, 3};
    InferHarness t(make_keeping());
    for (unsigned run = 0; run < 3; ++run) infer_behind(t, run, run + 1);
    hold(true);
    ASSERT_EQ(t.push(3), GST_FLOW_OK);
    const Seen seen = pull(t);
    EXPECT_EQ(seen.status, InferenceStatus::carried);
    EXPECT_EQ(seen.result_seq, 0u);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 2u);
    EXPECT_EQ(t.stat("failed"), 2u);
    hold(false);
    wait_finished(4);
    t.push(4);  // finds the third
    GstMessage* error = gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
    ASSERT_NE(error, nullptr);
    gst_message_unref(error);
}

TEST_F(KeepRate, IsForLiveStreamsUnlessTheUserSaysOtherwise) {
    struct Row {
        const char *keep_rate, *on_late;
        bool live, keeps;
    };
    const Row rows[] = {
        {"auto", "auto", true, true}, {"auto", "auto", false, false},
        {"auto", "skip", true, true}, {"auto", "block", true, false},  // every frame is inferred
        {"no", "auto", true, false},  {"yes", "auto", false, true},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(std::string(row.keep_rate) + " " + row.on_late + (row.live ? " live" : ""));
        reset_fake_model();
        GstElement* element = make_keeping(row.keep_rate);
        gst_util_set_object_arg(G_OBJECT(element), "on-late", row.on_late);
        InferHarness t(element);
        gst_harness_set_live(t.h, row.live);
        hold(true);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        fake_model().wait_submitted(1);
        if (!row.keeps) hold(false);
        EXPECT_EQ(pull(t).status, row.keeps ? InferenceStatus::pending : InferenceStatus::inferred);
        hold(false);
    }
}

// Results of regions belong to boxes of their frame.
TEST_F(KeepRate, RegionsOfALiveStreamAreWaitedForAndThatIsSaidOnce) {
    for (const char* region : {"roi", "full-frame"}) {
        reset_fake_model();
        GstElement* element = make_keeping("auto");
        gst_util_set_object_arg(G_OBJECT(element), "inference-region", region);
        InferHarness t(element);
        gst_harness_set_live(t.h, TRUE);
        for (guint64 n = 0; n < 3; ++n) {
            ASSERT_EQ(t.push(n), GST_FLOW_OK);
            pull(t);
        }
        EXPECT_EQ(t.messages(GST_MESSAGE_INFO), region == std::string("roi") ? 1u : 0u);
    }
}

// A run of 200 ms, a frame each 33 ms.
TEST_F(KeepRate, WithoutItNoFrameWaitsAtTheDoorDuringAnInference) {
    fake_model().warm_up_ms = 200;
    hold(true);
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "skip");
    InferHarness t(element);
    constexpr guint64 frames = 13;  // of two inferences
    for (guint64 n = 0; n < frames; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    hold(false);
    for (guint64 n = 0; n < frames; ++n) {
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, n);
        EXPECT_EQ(out.status, n < 2 ? InferenceStatus::inferred : InferenceStatus::skipped_busy);
    }
}

// Runs of 200 ms are no part of the time that pictures of 30 frames/s are late by.
TEST_F(KeepRate, TheLatencyIsThatOfThePictures) {
    for (const char* choice : {"auto", "no"}) {
        reset_fake_model();
        fake_model().warm_up_ms = 200;
        GstElement* element = make_keeping(choice);
        g_object_set(element, "latency", GST_CLOCK_TIME_NONE, nullptr);
        InferHarness t(element);
        gst_harness_set_live(t.h, TRUE);
        const GstClockTime latency = gst_harness_query_latency(t.h);
        EXPECT_EQ(latency >= 200 * GST_MSECOND, choice == std::string("no")) << latency;
    }
}

TEST(InferenceTime, IsTheMedianOfTheLastNine) {
    InferenceTime time;
    time.begin(100);
    EXPECT_EQ(time.us(), 100u);
    for (int i = 0; i < 4; ++i) time.add(500);
    EXPECT_EQ(time.us(), 100u);  // a busy moment changes nothing
    time.add(500);
    EXPECT_EQ(time.us(), 500u);
    time.begin(7);
    EXPECT_EQ(time.us(), 7u);
}

TEST(InferenceTime, MustFallByAQuarterToBeInTimeAgain) {
    InferenceTime time;
    const auto after = [&](uint64_t us) {
        for (int i = 0; i < 9; ++i) time.add(us);
        return time.within(100);
    };
    time.begin(90);
    EXPECT_TRUE(time.within(100));
    EXPECT_FALSE(after(101));
    EXPECT_FALSE(after(90));
    EXPECT_TRUE(after(75));
    EXPECT_TRUE(after(100));
}

TEST(KnownResult, IsTheNewestAndHasAnAge) {
    const vartml::gst::infer::Clock::time_point start{};
    const auto ms = [](int n) { return std::chrono::milliseconds(n); };
    const auto record = std::make_shared<InferenceRecord>();
    Inference inference;
    inference.record = record;
    inference.frame_seq = inference.result_seq = 5;
    KnownResult known;
    EXPECT_TRUE(known.of(record.get(), "", 0, 0).empty());
    ASSERT_TRUE(known.begin(5 * GST_MSECOND, start + ms(5)));
    known.add(inference);
    EXPECT_FALSE(known.begin(3 * GST_MSECOND, start + ms(3)));  // a run that another overtook
    ASSERT_EQ(known.of(record.get(), "", 0, 0).size(), 1u);
    EXPECT_EQ(known.of(record.get(), "", 0, 0)[0].result_seq, 5u);
    EXPECT_TRUE(known.of(record.get(), "", 1, 0).empty());
    EXPECT_TRUE(known.of(nullptr, "", 0, 0).empty());
    EXPECT_EQ(known.age_ns(9 * GST_MSECOND, start + ms(20)), 4 * GST_MSECOND);
    EXPECT_EQ(known.age_ns(GST_CLOCK_TIME_NONE, start + ms(20)), 15 * GST_MSECOND);
    EXPECT_EQ(known.age_ns(2 * GST_MSECOND, start + ms(20)), 15 * GST_MSECOND);  // times went back
    ASSERT_TRUE(known.begin(6 * GST_MSECOND, start + ms(6)));                    // of two tiles
    for (inference.tile = 0; inference.tile < 2; ++inference.tile) known.add(inference);
    ASSERT_EQ(known.of(record.get(), "", 0, 0).size(), 2u);
    EXPECT_EQ(known.of(record.get(), "", 0, 0)[1].tile, 1u);
    known.forget();
    EXPECT_TRUE(known.of(record.get(), "", 0, 0).empty());
}

}  // namespace
