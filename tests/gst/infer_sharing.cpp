// SPDX-License-Identifier: Apache-2.0
// Batches of one stream and of several, elements that share a model, and what they must agree on.
#include <algorithm>
#include <memory>
#include <thread>

#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferSharing : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

GstElement* batching(unsigned depth, int timeout_ms, const char* id = nullptr) {
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", depth, "batch-timeout", timeout_ms, "model-instance-id",
                 id, nullptr);
    return element;
}

constexpr int never = 60'000;  // a timeout that no test waits for

TEST_F(InferSharing, FramesOfOneStreamFillABatch) {
    fake_model().batch = 4;
    InferHarness t(batching(8, never));
    for (guint64 n = 0; n < 8; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    for (guint64 n = 0; n < 8; ++n) {
        const auto out = t.pull_out();
        EXPECT_EQ(out.offset, n);
        EXPECT_EQ(out.run, int(n / 4));
    }
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{4, 4}));
    EXPECT_EQ(t.stat("inferences"), 8u);
    EXPECT_EQ(t.stat("batches"), 2u);
    EXPECT_EQ(t.stat("batch-fill"), 4u);
}

TEST_F(InferSharing, TheBatchSizeMayBeSmallerThanTheModels) {
    fake_model().batch = 4;
    GstElement* element = batching(8, never);
    g_object_set(element, "batch-size", 2, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 4; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    for (guint64 n = 0; n < 4; ++n) EXPECT_EQ(t.pull_out().run, int(n / 2));
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{2, 2}));
}

TEST_F(InferSharing, AHalfBatchGoesAfterTheTimeout) {
    fake_model().batch = 4;
    InferHarness t(batching(8, 5));
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);  // nothing else would release it
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{1}));
}

TEST_F(InferSharing, NeverWaitingMeansBatchesOfWhatIsThere) {
    fake_model().batch = 4;
    InferHarness t(batching(8, 0));
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().offset, n);
    }
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{1, 1, 1}));
}

TEST_F(InferSharing, EndOfStreamClosesAHalfBatch) {
    fake_model().batch = 4;
    InferHarness t(batching(8, never));
    for (guint64 n = 0; n < 6; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_eos()));
    for (guint64 n = 0; n < 6; ++n) EXPECT_EQ(t.pull_out().offset, n);
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{4, 2}));
}

TEST_F(InferSharing, ASerializedQueryClosesAHalfBatch) {
    fake_model().batch = 4;
    InferHarness t(batching(8, never));
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    GstCaps* caps = gst_caps_from_string(gray_caps);
    GstQuery* query = gst_query_new_allocation(caps, FALSE);
    EXPECT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
    EXPECT_EQ(t.pull_out().offset, 0u);
    gst_query_unref(query);
    gst_caps_unref(caps);
}

TEST_F(InferSharing, TheAnnouncedLatencyHoldsTheWaitForABatch) {
    fake_model().batch = 4;
    InferHarness t(batching(8, 70));
    gst_harness_set_live(t.h, TRUE);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    EXPECT_GE(gst_harness_query_latency(t.h), 70 * GST_MSECOND);
}

// Each stream may have to wait for a run of every other one.
TEST_F(InferSharing, TheAnnouncedLatencyGrowsWithTheStreamsThatShare) {
    fake_model().warm_up_ms = 2;
    InferHarness first(batching(2, 0, "several"));
    gst_harness_set_live(first.h, TRUE);
    const GstClockTime alone = gst_harness_query_latency(first.h);
    EXPECT_GE(alone, 2 * GST_MSECOND);
    std::vector<std::unique_ptr<InferHarness>> others;
    for (int i = 0; i < 3; ++i)
        others.push_back(std::make_unique<InferHarness>(batching(2, 0, "several")));
    const GstClockTime together = gst_harness_query_latency(first.h);
    EXPECT_GE(together, 8 * GST_MSECOND);
    EXPECT_GT(together, alone);
    others.clear();
    EXPECT_EQ(gst_harness_query_latency(first.h), together) << "it never falls while playing";
}

TEST_F(InferSharing, ADepthBelowTheBatchIsOneWarning) {
    fake_model().batch = 4;
    InferHarness t(batching(2, 0));
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_WARNING);
    ASSERT_NE(message, nullptr);
    GError* error;
    gst_message_parse_warning(message, &error, nullptr);
    EXPECT_NE(std::string(error->message).find("batches never fill"), std::string::npos)
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
}

TEST_F(InferSharing, ElementsWithOneIdHaveOneRunnerAndShareBatches) {
    fake_model().batch = 2;
    InferHarness a(batching(4, never, "one")), b(batching(4, never, "one"));
    EXPECT_EQ(fake_model().live_runners, 1u);
    for (guint64 n = 0; n < 4; ++n) {
        ASSERT_EQ(a.push(n), GST_FLOW_OK);
        ASSERT_EQ(b.push(100 + n), GST_FLOW_OK);
        const auto from_a = a.pull_out(), from_b = b.pull_out();
        EXPECT_EQ(from_a.offset, n);
        EXPECT_EQ(from_b.offset, 100 + n);
        EXPECT_EQ(from_a.run, int(n));
        EXPECT_EQ(from_b.run, int(n));
    }
    EXPECT_EQ(a.stat("batches"), 4u);
    EXPECT_EQ(b.stat("batches"), 4u);
}

TEST_F(InferSharing, ElementsWithoutOneIdHaveTheirOwn) {
    InferHarness a(batching(2, 0, "one")), b(batching(2, 0, "two")), c;
    EXPECT_EQ(fake_model().live_runners, 3u);
}

TEST_F(InferSharing, ResultsGoBackToTheirOwnStreamWhateverTheOrder) {
    constexpr int streams = 5, frames = 200;
    fake_model().batch = 3;
    fake_model().shuffle_seed = 11;
    std::vector<std::unique_ptr<InferHarness>> all;
    for (int s = 0; s < streams; ++s)
        all.push_back(std::make_unique<InferHarness>(batching(4, 1, "many")));
    std::vector<std::thread> threads;
    for (int s = 0; s < streams; ++s) {
        threads.emplace_back([&, s] {
            for (int n = 0; n < frames; ++n) {
                GstBuffer* frame = InferHarness::frame(guint64(n));
                gst_buffer_memset(frame, 0, guint8(10 * s + 5), gst_buffer_get_size(frame));
                ASSERT_EQ(gst_harness_push(all[size_t(s)]->h, frame), GST_FLOW_OK);
            }
        });
    }
    // The first byte of a bf16 tensor of equal values tells the value apart.
    std::vector<float> byte_of(streams, -1);
    for (int n = 0; n < frames; ++n) {
        for (int s = 0; s < streams; ++s) {
            const auto out = all[size_t(s)]->pull_out();
            ASSERT_EQ(out.offset, guint64(n));
            if (n == 0) byte_of[size_t(s)] = out.first_byte;
            EXPECT_EQ(out.first_byte, byte_of[size_t(s)]) << "stream " << s << " frame " << n;
        }
    }
    std::ranges::sort(byte_of);
    EXPECT_EQ(std::ranges::adjacent_find(byte_of), byte_of.end()) << "frames look the same";
    for (std::thread& thread : threads) thread.join();
}

TEST_F(InferSharing, SaturatedStreamsGetEqualShares) {
    constexpr unsigned streams = 4, batch = 2;
    fake_model().batch = batch;
    fake_model().hold = true;
    std::vector<std::unique_ptr<InferHarness>> all;
    for (unsigned s = 0; s < streams; ++s)
        all.push_back(std::make_unique<InferHarness>(batching(8, never, "fair")));
    // The first takes all slots of the held device; then the others come, one after the other with
    // all they have.
    for (auto& t : all) {
        for (guint64 n = 0; n < 8; ++n) ASSERT_EQ(t->push(n), GST_FLOW_OK);
    }
    fake_model().release();
    std::vector<std::pair<int, unsigned>> order;  // run, stream
    for (unsigned s = 0; s < streams; ++s) {
        for (guint64 n = 0; n < 8; ++n) {
            const int run = all[s]->pull_out().run;
            if (s > 0) order.emplace_back(run, s);
        }
    }
    std::ranges::sort(order);
    std::vector<unsigned> count(streams);
    for (size_t i = 0; i < order.size(); ++i) {
        ++count[order[i].second];
        if (i + 1 < order.size() && order[i + 1].first == order[i].first) continue;  // same run
        const auto [least, most] = std::minmax_element(count.begin() + 1, count.end());
        EXPECT_LE(*most - *least, 1 + batch) << "after run " << order[i].first;
    }
}

TEST_F(InferSharing, AStreamThatStopsHoldsUpNoOther) {
    fake_model().batch = 2;
    InferHarness a(batching(4, never, "one"));
    {
        InferHarness b(batching(4, never, "one"));
        ASSERT_EQ(b.push(0), GST_FLOW_OK);  // waits for a second one
        gst_element_set_state(b.element, GST_STATE_NULL);
    }
    for (guint64 n = 0; n < 4; ++n) ASSERT_EQ(a.push(n), GST_FLOW_OK);
    for (guint64 n = 0; n < 4; ++n) EXPECT_EQ(a.pull_out().offset, n);
    EXPECT_EQ(fake_model().live_runners, 1u);
}

TEST_F(InferSharing, AStreamThatFlushesTakesItsFramesOutOfTheBatch) {
    fake_model().batch = 2;
    InferHarness a(batching(4, never, "one")), b(batching(4, never, "one"));
    ASSERT_EQ(b.push(0), GST_FLOW_OK);
    ASSERT_TRUE(gst_harness_push_event(b.h, gst_event_new_flush_start()));
    ASSERT_TRUE(gst_harness_push_event(b.h, gst_event_new_flush_stop(TRUE)));
    ASSERT_EQ(a.push(0), GST_FLOW_OK);
    ASSERT_EQ(a.push(1), GST_FLOW_OK);
    EXPECT_EQ(a.pull_out().offset, 0u);
    EXPECT_EQ(a.pull_out().offset, 1u);
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{2}));
}

TEST_F(InferSharing, TheModelStaysForTheLastThatUsesIt) {
    auto a = std::make_unique<InferHarness>(batching(2, 0, "one"));
    InferHarness b(batching(2, 0, "one"));
    a.reset();
    ASSERT_EQ(b.push(0), GST_FLOW_OK);
    EXPECT_EQ(b.pull_out().status, InferenceStatus::inferred);
    InferHarness c(batching(2, 0, "one"));
    EXPECT_EQ(fake_model().live_runners, 1u);
}

TEST_F(InferSharing, ViewsMayDifferBetweenElementsThatShare) {
    GstElement* hw = batching(2, 0, "one");
    gst_util_set_object_arg(G_OBJECT(hw), "output-tensor-type", "hw");
    InferHarness a(hw), b(batching(2, 0, "one"));
    ASSERT_EQ(a.push(0), GST_FLOW_OK);
    ASSERT_EQ(b.push(0), GST_FLOW_OK);
    EXPECT_EQ(a.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(b.pull_out().status, InferenceStatus::inferred);
}

// A CPU partition at the end has none, and must not keep a pipeline from it.
TEST_F(InferSharing, TheDevicesViewIsTakenWhereThereIsOne) {
    for (const bool there : {true, false}) {
        fake_model().output_hw_view = there;
        GstElement* element = batching(2, 0, "one");
        gst_util_set_object_arg(G_OBJECT(element), "output-tensor-type", "auto");
        InferHarness t(element);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const Inference* inference = vartml::gst::get_inference(out, 0);
        ASSERT_NE(inference, nullptr);
        EXPECT_EQ(inference->status, InferenceStatus::inferred);
        EXPECT_EQ(inference->record->hw, there);
        gst_buffer_unref(out);
    }
}

struct Conflict {
    const char *property, *value;
    const char *have, *want;  // both values are in the sentence
};
class InferConflict : public testing::TestWithParam<Conflict> {};
TEST_P(InferConflict, NamesBothValuesAndTheElementThatWasFirst) {
    const Conflict& c = GetParam();
    reset_fake_model();
    fake_model().batch = 4;
    {
        GstElement* first = batching(2, 0, "one");
        gst_object_set_name(GST_OBJECT(first), "first");
        InferHarness a(first);
        GstElement* element = batching(2, 0, "one");
        gst_object_ref_sink(element);
        gst_util_set_object_arg(G_OBJECT(element), c.property, c.value);
        GstBus* bus = gst_bus_new();
        gst_element_set_bus(element, bus);
        EXPECT_EQ(gst_element_set_state(element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
        ASSERT_NE(message, nullptr);
        GError* error = nullptr;
        const GstStructure* details = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        gst_message_parse_error_details(message, &details);
        EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-instance-conflict");
        EXPECT_STREQ(gst_structure_get_string(details, "property"), c.property);
        for (const char* part : {"'first'", c.have, c.want})
            EXPECT_NE(std::string(error->message).find(part), std::string::npos) << error->message;
        g_error_free(error);
        gst_message_unref(message);
        gst_element_set_state(element, GST_STATE_NULL);
        gst_element_set_bus(element, nullptr);
        gst_object_unref(bus);
        gst_object_unref(element);
        // The one that is there goes on.
        ASSERT_EQ(a.push(0), GST_FLOW_OK);
        EXPECT_EQ(a.pull_out().status, InferenceStatus::inferred);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const Conflict conflicts[] = {
    {"model", "another.rai", "model.rai", "another.rai"},
    {"device", "npu9", "'auto'", "'npu9'"},
    {"batch-size", "2", "'0'", "'2'"},
    {"runner-options", "o,start_column=(uint)4", "''", "start_column"},
};
INSTANTIATE_TEST_SUITE_P(Properties, InferConflict, testing::ValuesIn(conflicts),
                         [](const auto& info) {
                             std::string name = info.param.property;
                             std::erase(name, '-');
                             return name;
                         });

// Processors make runs beside each other: those that end together have begun when they were given.
TEST_F(InferSharing, RunsBesideEachOtherTakeTheirWholeTime) {
    fake_model().on_host = true;
    fake_model().warm_up_ms = 1;  // long enough for a thread of its own
    fake_model().hold = true;
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    fake_model().wait_submitted(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the device's time
    fake_model().release();
    for (int i = 0; i < 2; ++i) {
        GstBuffer* out = t.pull();
        const Inference* inference = vartml::gst::get_inference(out, 0);
        EXPECT_TRUE(g_get_num_processors() == 1 || inference->run_us >= 20'000)
            << inference->run_us;
        EXPECT_LE(inference->pre_us + inference->run_us, inference->total_us);
        gst_buffer_unref(out);
    }
}

TEST_F(InferSharing, TwoThatStartAtOnceLoadOnce) {
    fake_model().hold = false;
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<InferHarness>> all(4);
    for (auto& t : all)
        threads.emplace_back([&] { t = std::make_unique<InferHarness>(batching(2, 0, "race")); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fake_model().live_runners, 1u);
}

}  // namespace
