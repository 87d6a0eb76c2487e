// SPDX-License-Identifier: Apache-2.0
// vartmlpublish and a real broker that goes and comes, and a pipeline that is killed.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "gst/gstvartmlpublish.h"
#include "tests/publish/broker.h"
#include "tests/publish/lines.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml::test;

// No test pushes more. Frames come faster than any camera's: the queue takes what a busy machine's
// thread has not got to.
constexpr guint most_frames = 1000;

// The element with its bus.
class Pipeline {
public:
    Pipeline(int port, const std::string& spool)
        : element_(GST_ELEMENT(gst_object_ref_sink(
              g_object_new(GST_TYPE_VARTML_PUBLISH, "address", "127.0.0.1", "port",
                           static_cast<guint>(port), "spool-dir", spool.c_str(), "add-empty", TRUE,
                           "queue-size", most_frames, "drain-timeout", 3600000u, nullptr)))),
          bus_(gst_bus_new()) {
        gst_util_set_object_arg(G_OBJECT(element_), "method", "mqtt");
        gst_element_set_bus(element_, bus_);
        harness_ = gst_harness_new_with_element(element_, "sink", "src");
        gst_harness_set_src_caps_str(harness_, "video/x-raw,format=GRAY8,width=16,height=16");
    }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    ~Pipeline() {
        gst_harness_teardown(harness_);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(bus_);
    }
    // Every frame leaves at once, as the same buffer.
    void push(int frames) {
        for (int i = 0; i < frames; ++i) {
            GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16 * 16, nullptr);
            GST_BUFFER_PTS(buffer) = frames_++ * GST_SECOND / 30;
            EXPECT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
            GstBuffer* out = gst_harness_try_pull(harness_);
            EXPECT_EQ(out, buffer);
            gst_clear_buffer(&out);
        }
    }
    void end() { gst_harness_push_event(harness_, gst_event_new_eos()); }
    void wait_for(const std::string& state) {
        std::string found;
        while (found != state) {
            GstMessage* message =
                gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT);
            const GstStructure* said = gst_message_get_structure(message);
            if (gst_structure_has_name(said, "vartml-publish-state"))
                found = gst_structure_get_string(said, "state");
            gst_message_unref(message);
        }
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element_, "stats", &stats, nullptr);
        guint64 value = 0;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }

private:
    GstElement* element_;
    GstBus* bus_;
    GstHarness* harness_ = nullptr;
    guint64 frames_ = 0;
};

class Outage : public testing::Test {
protected:
    void SetUp() override {
        if (broker_program().empty()) GTEST_SKIP() << "the program mosquitto is not installed";
    }
    TempDir temp_;
    const std::string spool_ = temp_ / "spool";
};

TEST_F(Outage, OfABrokerThatIsStoppedAndStartedLosesNothingAndHoldsNoFrame) {
    Broker broker;
    broker.start();
    Subscriber subscriber(broker.port());
    subscriber.subscribe();
    Pipeline pipeline(broker.port(), spool_);
    pipeline.wait_for("connected");
    constexpr int outages = 2;
    for (int i = 0; i < outages; ++i) {
        pipeline.push(100);
        broker.stop();  // with records on their way; what it has acknowledged it keeps
        pipeline.push(100);
        pipeline.wait_for("spooling");
        pipeline.push(100);
        broker.start();
        pipeline.wait_for("connected");
    }
    pipeline.push(1);
    pipeline.end();
    EXPECT_EQ(pipeline.stat("dropped"), 0u);
    EXPECT_EQ(pipeline.stat("reconnects"), guint64(outages));
    EXPECT_EQ(pipeline.stat("spool-records"), 0u);
    constexpr uint64_t all = outages * 300 + 1;
    subscriber.collect([](const auto& messages) {
        return !messages.empty() && seen(messages.back().second).last == all - 1;
    });
    const auto lines = subscriber.texts();
    const Seen first = seen(lines.front());
    EXPECT_EQ(expect_in_order(lines, first.run, first.first), all);
}

// The broker takes what it is sent and says nothing: all of it is on its way when the pipeline is
// killed.
TEST_F(Outage, AfterTheConnectedPipelineIsKilledEveryRecordWasAcknowledgedOrIsInTheSpool) {
    constexpr int acknowledged = 50, records = 200;
    Broker broker;
    broker.start();
    int to_child[2], to_parent[2];
    ASSERT_EQ(::pipe(to_child), 0);
    ASSERT_EQ(::pipe(to_parent), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char x;
        Pipeline pipeline(broker.port(), spool_);
        pipeline.wait_for("connected");
        pipeline.push(acknowledged);
        while (pipeline.stat("sent") < acknowledged) std::this_thread::yield();
        if (::write(to_parent[1], "x", 1) != 1 || ::read(to_child[0], &x, 1) != 1) _exit(1);
        pipeline.push(records - acknowledged);
        const gint64 end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;  // only where it fails
        while (pipeline.stat("queued") > 0 && g_get_monotonic_time() < end)
            std::this_thread::yield();
        if (::write(to_parent[1], "x", 1) != 1) _exit(1);
        for (;;) ::pause();
    }
    char x;
    ASSERT_EQ(::read(to_parent[0], &x, 1), 1);
    broker.pause();
    ASSERT_EQ(::write(to_child[1], "x", 1), 1);
    ASSERT_EQ(::read(to_parent[0], &x, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
    broker.stop(SIGKILL);  // nor does it read later what it was sent

    broker.start();
    Subscriber subscriber(broker.port());
    subscriber.subscribe();
    Pipeline next(broker.port(), spool_);
    next.push(1);
    next.end();
    subscriber.collect([](const auto& messages) {
        return messages.size() > 1 &&
               seen(messages.back().second).run != seen(messages.front().second).run;
    });
    auto lines = subscriber.texts();
    lines.pop_back();  // of the second pipeline: the spool goes first
    const Seen first = seen(lines.front());
    EXPECT_LE(first.first, uint64_t(acknowledged));
    EXPECT_EQ(expect_in_order(lines, first.run, first.first), uint64_t(records));
}

}  // namespace
