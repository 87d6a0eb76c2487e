// SPDX-License-Identifier: Apache-2.0
// vartmlsrc and real cameras: RTSP and HTTP servers in processes of their own that go and come.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/gstvartmlsrc.h"
#include "tests/support/child.h"
#include "tests/support/free_port.h"
#include "tests/support/gst_main.h"
#include "tests/support/process_state.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml::test;

std::string camera_program() {
    const char* const path = std::getenv("VARTML_RTSP_CAMERA");
    return path ? path : "";
}

class RtspCamera {
public:
    // Words are those of rtsp_camera.cpp.
    explicit RtspCamera(std::vector<std::string> words = {}) : words_(std::move(words)) {}
    void start() {
        std::vector<std::string> all{camera_program(), std::to_string(port_.number())};
        all.insert(all.end(), words_.begin(), words_.end());
        process_.start(all);
        ASSERT_EQ(process_.line(), "ready " + std::to_string(port_.number()));
    }
    std::string uri(const std::string& login = "", const std::string& path = "camera") const {
        return "rtsp://" + (login.empty() ? "" : login + "@") +
               "127.0.0.1:" + std::to_string(port_.number()) + "/" + path;
    }
    Child& process() { return process_; }

private:
    const std::vector<std::string> words_;
    const FreePort port_;
    Child process_;
};

// `vartmlsrc ! MIDDLE ! fakesink`, with what came out of it.
class Viewer {
public:
    explicit Viewer(const std::string& uri, const std::string& properties = "",
                    const std::string& middle = "identity") {
        gst_element_register(nullptr, "vartmlsrc", GST_RANK_NONE, GST_TYPE_VARTML_SRC);
        GError* error = nullptr;
        pipeline_ = gst_parse_launch(("vartmlsrc name=src " + properties + " ! " + middle +
                                      " ! fakesink name=sink sync=false")
                                         .c_str(),
                                     &error);
        EXPECT_EQ(error, nullptr) << error->message;
        src_ = gst_bin_get_by_name(GST_BIN(pipeline_), "src");
        sink_ = gst_bin_get_by_name(GST_BIN(pipeline_), "sink");
        g_object_set(src_, "uri", uri.c_str(), nullptr);
        bus_ = gst_element_get_bus(pipeline_);
        GstPad* const pad = gst_element_get_static_pad(src_, "src");
        gst_pad_add_probe(
            pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
            [](GstPad*, GstPadProbeInfo* info, gpointer self) {
                static_cast<Viewer*>(self)->take(info);
                return GST_PAD_PROBE_OK;
            },
            this, nullptr);
        gst_object_unref(pad);
    }
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;
    ~Viewer() {
        set_state(GST_STATE_NULL);
        gst_clear_message(&last_);
        gst_object_unref(src_);
        gst_object_unref(sink_);
        gst_object_unref(bus_);
        gst_object_unref(pipeline_);
    }
    GstStateChangeReturn set_state(GstState state) {
        return gst_element_set_state(pipeline_, state);
    }
    // With NO_PREROLL the pipeline would not wait for its sinks, and they not play.
    void play() {
        const auto changed = set_state(GST_STATE_PLAYING);
        EXPECT_TRUE(changed == GST_STATE_CHANGE_SUCCESS || changed == GST_STATE_CHANGE_ASYNC)
            << gst_element_state_change_return_get_name(changed);
    }

    // Returns when so many more frames have come.
    void wait_for_frames(size_t more) {
        std::unique_lock lock(mutex_);
        const size_t enough = times_.size() + more;
        changed_.wait(lock, [&] { return times_.size() >= enough; });
    }
    // The message, which it keeps until the next.
    const GstStructure* wait_for_state(const std::string& state) {
        for (;;) {
            GstMessage* message =
                gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT);
            const GstStructure* said = gst_message_get_structure(message);
            const bool found = gst_structure_has_name(said, "vartml-src-state") &&
                               state == gst_structure_get_string(said, "state");
            gst_clear_message(&last_);
            last_ = message;
            if (found) return said;
        }
    }
    // Sentence of the next error or warning.
    std::string wait_for(GstMessageType type) {
        GstMessage* message = gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, type);
        GError* error = nullptr;
        if (type == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, nullptr);
        if (type == GST_MESSAGE_WARNING) gst_message_parse_warning(message, &error, nullptr);
        std::string text = error ? error->message : "";
        g_clear_error(&error);
        gst_message_unref(message);
        return text;
    }
    std::string stat(const char* name) const {
        GstStructure* stats = nullptr;
        g_object_get(src_, "stats", &stats, nullptr);
        gchar* text = g_strdup_value_contents(gst_structure_get_value(stats, name));
        std::string value = text;
        g_free(text);
        gst_structure_free(stats);
        std::erase(value, '"');
        return value;
    }
    // One stream, one segment, times that go on, and a mark at each connection.
    void expect_one_stream(size_t connections) {
        const std::lock_guard lock(mutex_);
        EXPECT_EQ(stream_starts_, 1u);
        EXPECT_EQ(segments_, 1u);
        EXPECT_EQ(ends_, 0u);
        EXPECT_EQ(discontinuities_, connections);
        for (size_t i = 1; i < times_.size(); ++i)
            ASSERT_GT(times_[i], times_[i - 1]) << "frame " << i << " of " << times_.size();
    }
    std::vector<GstClockTime> times() {
        const std::lock_guard lock(mutex_);
        return times_;
    }
    std::string caps() {
        const std::lock_guard lock(mutex_);
        return caps_;
    }
    void wait_for_end() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ > 0; });
    }
    void forget_messages() {
        gst_bus_set_flushing(bus_, TRUE);
        gst_bus_set_flushing(bus_, FALSE);
    }
    GstElement* element() { return src_; }
    GstElement* sink() { return sink_; }
    GstElement* pipeline() { return pipeline_; }
    GstBus* bus() { return bus_; }

private:
    void take(GstPadProbeInfo* info) {
        const std::lock_guard lock(mutex_);
        if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
            GstBuffer* const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
            times_.push_back(GST_BUFFER_PTS(buffer));
            discontinuities_ += GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DISCONT);
        } else {
            GstEvent* const event = GST_PAD_PROBE_INFO_EVENT(info);
            stream_starts_ += GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START;
            segments_ += GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT;
            ends_ += GST_EVENT_TYPE(event) == GST_EVENT_EOS;
            if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
                GstCaps* caps = nullptr;
                gst_event_parse_caps(event, &caps);
                gchar* text = gst_caps_to_string(caps);
                caps_ = text;
                g_free(text);
            }
        }
        changed_.notify_all();
    }

    GstElement *pipeline_ = nullptr, *src_ = nullptr, *sink_ = nullptr;
    GstBus* bus_ = nullptr;
    GstMessage* last_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<GstClockTime> times_;
    std::string caps_;
    size_t stream_starts_ = 0, segments_ = 0, ends_ = 0, discontinuities_ = 0;
};

// Keeps the next frame that leaves the viewer's source, as a paused sink does, until it is
// released.
class Holder {
public:
    explicit Holder(Viewer& viewer) : pad_(gst_element_get_static_pad(viewer.element(), "src")) {
        probe_ = gst_pad_add_probe(
            pad_, GST_PAD_PROBE_TYPE_BUFFER,
            [](GstPad*, GstPadProbeInfo*, gpointer shared) {
                Hold& hold = **static_cast<std::shared_ptr<Hold>*>(shared);
                std::unique_lock lock(hold.mutex);
                hold.holds = true;
                hold.changed.notify_all();
                hold.changed.wait(lock, [&] { return hold.released; });
                return GST_PAD_PROBE_OK;
            },
            new std::shared_ptr<Hold>(hold_),
            [](gpointer shared) { delete static_cast<std::shared_ptr<Hold>*>(shared); });
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
        gst_pad_remove_probe(pad_, probe_);
        gst_object_unref(pad_);
    }
    void wait_for_frame() {
        std::unique_lock lock(hold_->mutex);
        hold_->changed.wait(lock, [&] { return hold_->holds; });
    }
    void release() {
        const std::lock_guard lock(hold_->mutex);
        hold_->released = true;
        hold_->changed.notify_all();
    }

private:
    // The thread that was held leaves it behind this one's end.
    struct Hold {
        std::mutex mutex;
        std::condition_variable changed;
        bool holds = false, released = false;
    };
    GstPad* const pad_;
    gulong probe_ = 0;
    const std::shared_ptr<Hold> hold_ = std::make_shared<Hold>();
};

class Rtsp : public testing::Test {
protected:
    void SetUp() override {
        if (camera_program().empty()) GTEST_SKIP() << "gst-rtsp-server is not installed";
    }
};

// ---- cameras that go and come --------------------------------------------------------------

struct Outage {
    const char* name;
    const char* codec;
    void (*go)(RtspCamera&);
    void (*come)(RtspCamera&);
};
const Outage outages[] = {
    {"IsKilled", "h264", [](RtspCamera& c) { c.process().stop(SIGKILL); },
     [](RtspCamera& c) { c.start(); }},
    {"IsStopped", "jpeg", [](RtspCamera& c) { c.process().stop(SIGTERM); },
     [](RtspCamera& c) { c.start(); }},
    {"HangsAndIsStartedAnew", "jpeg", [](RtspCamera& c) { c.process().signal(SIGSTOP); },
     [](RtspCamera& c) {
         c.process().stop(SIGKILL);
         c.start();
     }},
    {"HangsAndGoesOn", "h264", [](RtspCamera& c) { c.process().signal(SIGSTOP); },
     [](RtspCamera& c) { c.process().signal(SIGCONT); }},
    {"ClosesItsConnections", "h264", [](RtspCamera& c) { c.process().tell("drop"); },
     [](RtspCamera&) {}},
};

class RtspOutage : public testing::TestWithParam<std::tuple<size_t, const char*>> {};

TEST_P(RtspOutage, IsOneStreamForWhatFollows) {
    if (camera_program().empty()) GTEST_SKIP() << "gst-rtsp-server is not installed";
    const Outage& outage = outages[std::get<0>(GetParam())];
    RtspCamera camera({outage.codec});
    camera.start();
    Viewer viewer(camera.uri(), std::string("timeout=1000 transport=") + std::get<1>(GetParam()));
    viewer.play();
    viewer.wait_for_state("playing");
    viewer.wait_for_frames(5);
    constexpr size_t times = 2;
    for (size_t i = 0; i < times; ++i) {
        outage.go(camera);
        const GstStructure* said = viewer.wait_for_state("waiting");
        EXPECT_STRNE(gst_structure_get_string(said, "reason"), "");
        EXPECT_EQ(camera.uri(), gst_structure_get_string(said, "uri"));
        outage.come(camera);
        viewer.wait_for_state("playing");
        viewer.wait_for_frames(5);
    }
    viewer.expect_one_stream(1 + times);
    EXPECT_EQ(viewer.stat("state"), "playing");
    EXPECT_EQ(viewer.stat("connections"), std::to_string(1 + times));
    EXPECT_EQ(viewer.stat("reason"), "");
    EXPECT_NE(viewer.caps().find("width=(int)64, height=(int)48"), std::string::npos)
        << viewer.caps();
}

INSTANTIATE_TEST_SUITE_P(OfACameraThat, RtspOutage,
                         testing::Combine(testing::Range<size_t>(0, std::size(outages)),
                                          testing::Values("tcp", "udp")),
                         [](const auto& info) {
                             return std::string(outages[std::get<0>(info.param)].name) + "By" +
                                    std::get<1>(info.param);
                         });

TEST_F(Rtsp, CameraThatIsNotThereYetIsWaitedFor) {
    RtspCamera camera;
    Viewer viewer(camera.uri());
    viewer.play();
    EXPECT_EQ(viewer.wait_for(GST_MESSAGE_WARNING),
              "Could not reach the camera: " + camera.uri() +
                  ": Could not open resource for reading and writing (Failed to connect. (Generic "
                  "error)); trying again");
    camera.start();
    viewer.wait_for_frames(5);
    viewer.expect_one_stream(1);
}

TEST_F(Rtsp, ManyFailedAttemptsAreFewMessages) {
    RtspCamera camera;
    Viewer viewer(camera.uri(), "retry-delay=1 retries=200");
    viewer.play();
    viewer.wait_for_state("failed");
    EXPECT_EQ(viewer.stat("failures"), "201");
    viewer.set_state(GST_STATE_READY);
    viewer.play();
    size_t messages = 0;
    for (bool failed = false; !failed; ++messages) {
        GstMessage* const message = gst_bus_timed_pop(viewer.bus(), GST_CLOCK_TIME_NONE);
        failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
        gst_message_unref(message);
    }
    EXPECT_LT(messages, 40u);
    viewer.wait_for_end();
}

struct Way {
    const char *server, *transport, *found;
};
class RtspTransport : public testing::TestWithParam<Way> {};

TEST_P(RtspTransport, IsFoundAndKept) {
    if (camera_program().empty()) GTEST_SKIP() << "gst-rtsp-server is not installed";
    const Way& way = GetParam();
    RtspCamera camera({way.server});
    camera.start();
    Viewer viewer(camera.uri(), std::string("transport=") + way.transport);
    viewer.play();
    viewer.wait_for_frames(5);
    EXPECT_EQ(viewer.stat("transport"), way.found);
    EXPECT_EQ(viewer.stat("failures"), "0")
        << "the other transport is no outage; " << viewer.wait_for(GST_MESSAGE_WARNING);
    camera.process().stop(SIGKILL);
    viewer.wait_for_state("waiting");
    camera.start();
    viewer.wait_for_state("playing");
    EXPECT_EQ(viewer.stat("transport"), way.found);
    viewer.expect_one_stream(2);
}

INSTANTIATE_TEST_SUITE_P(OfARtspCamera, RtspTransport,
                         testing::Values(Way{"jpeg", "auto", "udp"}, Way{"tcp-only", "auto", "tcp"},
                                         Way{"udp-lost", "auto", "tcp"}, Way{"jpeg", "tcp", "tcp"}),
                         [](const auto& info) {
                             std::string name =
                                 std::string(info.param.server) + info.param.transport;
                             std::erase(name, '-');
                             return name;
                         });

TEST_F(Rtsp, PipelineThatIsPausedGoesOn) {
    RtspCamera camera;
    camera.start();
    Viewer viewer(camera.uri());
    viewer.play();
    viewer.wait_for_frames(5);
    EXPECT_EQ(viewer.set_state(GST_STATE_PAUSED), GST_STATE_CHANGE_NO_PREROLL);
    viewer.play();
    viewer.wait_for_frames(5);
    viewer.set_state(GST_STATE_PAUSED);
    camera.process().stop(SIGKILL);
    camera.start();
    viewer.play();
    viewer.wait_for_frames(5);
    const auto times = viewer.times();
    EXPECT_TRUE(std::ranges::is_sorted(times));
}

// As by a model that is compiled when the first frame comes: longer than the six timeouts within
// which a first picture is expected.
TEST_F(Rtsp, CameraIsNotLostWhileItsFirstFrameIsHeld) {
    RtspCamera camera;
    camera.start();
    Viewer viewer(camera.uri(), "timeout=300", "identity name=slow sleep-time=2500000");
    viewer.play();
    viewer.wait_for_state("playing");
    GstElement* const slow = gst_bin_get_by_name(GST_BIN(viewer.pipeline()), "slow");
    g_object_set(slow, "sleep-time", 0U, nullptr);
    gst_object_unref(slow);
    viewer.wait_for_frames(5);
    EXPECT_EQ(viewer.stat("failures"), "0");
}

// Behind a queue, so that no sink holds a frame.
TEST_F(Rtsp, CameraIsNotLostWhileThePipelineIsPaused) {
    RtspCamera camera;
    camera.start();
    Viewer viewer(camera.uri(), "timeout=1000", "queue");
    viewer.play();
    viewer.wait_for_frames(5);
    EXPECT_EQ(viewer.set_state(GST_STATE_PAUSED), GST_STATE_CHANGE_NO_PREROLL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    viewer.play();
    viewer.wait_for_frames(5);
    EXPECT_EQ(viewer.stat("failures"), "0");
}

TEST_F(Rtsp, ElementStopsInEachOfItsStates) {
    RtspCamera camera;
    Viewer viewer(camera.uri());
    for (const char* state : {"connecting", "waiting"}) {
        viewer.play();
        viewer.wait_for_state(state);
        viewer.set_state(GST_STATE_READY);
        EXPECT_EQ(viewer.set_state(GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    }
    camera.start();
    camera.process().signal(SIGSTOP);  // it takes the connection, and says nothing
    viewer.play();
    viewer.wait_for_state("connecting");
    EXPECT_EQ(viewer.set_state(GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    camera.process().signal(SIGCONT);
    viewer.play();
    viewer.wait_for_frames(1);
    EXPECT_EQ(viewer.set_state(GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
}

// VARTML_TEST_CYCLES=1000 is the long form, which prints a line for each tenth of it.
TEST_F(Rtsp, ReconnectionsLeaveNoDescriptorAndNoThread) {
    const size_t cycles = number_from("VARTML_TEST_CYCLES", 20);
    RtspCamera camera;
    camera.start();
    Viewer viewer(camera.uri(), "transport=tcp latency=0 retry-delay=1");
    viewer.play();
    viewer.wait_for_frames(2);
    size_t descriptors = 0, threads = 0;
    for (size_t i = 0; i <= cycles; ++i) {
        camera.process().tell("drop");
        viewer.wait_for_state("waiting");
        viewer.wait_for_state("playing");
        viewer.wait_for_frames(2);
        if (i == 0 || i % std::max<size_t>(cycles / 10, 1) == 0) {
            // Threads of a pool go when they have had nothing to do.
            descriptors = std::max(descriptors, i == 0 ? open_descriptors() + 2 : 0);
            threads = std::max(threads, i == 0 ? running_threads() + 8 : 0);
            if (cycles > 100)
                std::printf("%6zu reconnections: %zu descriptors, %zu threads, %zu KiB\n", i,
                            open_descriptors(), running_threads(), resident_bytes() / 1024);
            EXPECT_LE(open_descriptors(), descriptors) << i;
            EXPECT_LE(running_threads(), threads) << i;
        }
    }
    viewer.expect_one_stream(cycles + 2);
}

// ---- logins --------------------------------------------------------------------------------

TEST_F(Rtsp, LoginComesFromTheAddressOrFromAFile) {
    RtspCamera camera({"login=viewer:Geheim77"});
    camera.start();
    TempDir dir;
    spill(dir / "login", "viewer:Geheim77\n");
    {
        Viewer viewer(camera.uri("viewer:Geheim77"));
        viewer.play();
        viewer.wait_for_frames(2);
    }
    Viewer viewer(camera.uri(), "login-file=" + dir / "login");
    viewer.play();
    viewer.wait_for_frames(2);
}

TEST_F(Rtsp, WrongPasswordIsSaidAndNotTriedOften) {
    RtspCamera camera({"login=viewer:Geheim77"});
    camera.start();
    Viewer viewer(camera.uri("viewer:falsch99"), "retry-delay=1");
    viewer.play();
    const GstStructure* said = viewer.wait_for_state("waiting");
    EXPECT_NE(std::string(gst_structure_get_string(said, "reason")).find("Unauthorized"),
              std::string::npos)
        << gst_structure_get_string(said, "reason");
    guint64 delay = 0;
    gst_structure_get_uint64(said, "delay", &delay);
    EXPECT_GE(delay, GST_SECOND / 2);
}

TEST(VartmlSrc, RefusesALoginFileThatHasNone) {
    TempDir dir;
    spill(dir / "empty", "\n");
    for (const char* name : {"empty", "absent"}) {
        Viewer viewer("rtsp://127.0.0.1/", "login-file=" + dir / name);
        EXPECT_EQ(viewer.set_state(GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        EXPECT_NE(viewer.wait_for(GST_MESSAGE_ERROR).find(dir / name), std::string::npos);
    }
}

std::string log_lines;
std::mutex log_mutex;

void keep_log(GstDebugCategory*, GstDebugLevel, const gchar*, const gchar*, gint, GObject*,
              GstDebugMessage* message, gpointer) {
    const std::lock_guard lock(log_mutex);
    log_lines += gst_debug_message_get(message) + std::string("\n");
}

TEST_F(Rtsp, PasswordIsInNoMessageLogLinePropertyOrDotFile) {
    RtspCamera camera({"login=viewer:Geheim77"});
    camera.start();
    gst_debug_remove_log_function(nullptr);
    gst_debug_add_log_function(keep_log, nullptr, nullptr);
    gst_debug_set_active(TRUE);
    gst_debug_set_default_threshold(GST_LEVEL_INFO);
    gst_debug_set_threshold_for_name("vartmlsrc", GST_LEVEL_TRACE);
    std::string seen;
    {
        Viewer viewer(camera.uri("viewer:Geheim77", "camera?token=Heimlich88"), "retry-delay=10");
        const auto look = [&] {
            gchar* uri = nullptr;
            g_object_get(viewer.element(), "uri", &uri, nullptr);
            gchar* dot =
                gst_debug_bin_to_dot_data(GST_BIN(viewer.pipeline()), GST_DEBUG_GRAPH_SHOW_VERBOSE);
            seen += std::string(uri) + dot;
            g_free(dot);
            g_free(uri);
            while (GstMessage* message = gst_bus_pop(viewer.bus())) {
                if (const GstStructure* s = gst_message_get_structure(message)) {
                    gchar* text = gst_structure_to_string(s);
                    seen += text;
                    g_free(text);
                }
                gst_message_unref(message);
            }
            seen += viewer.stat("uri") + viewer.stat("reason");
        };
        viewer.play();
        viewer.wait_for_frames(2);
        look();
        EXPECT_NE(seen.find("VartmlGstRTSPSrc"), std::string::npos) << "the dot has the source";
        camera.process().stop(SIGKILL);
        viewer.wait_for_state("waiting");
        look();
    }
    gst_debug_set_default_threshold(GST_LEVEL_NONE);
    gst_debug_remove_log_function(keep_log);
    const std::lock_guard lock(log_mutex);
    EXPECT_NE(seen.find("token=***"), std::string::npos);
    EXPECT_NE(log_lines.find("token=***"), std::string::npos);
    for (const char* secret : {"Geheim77", "Heimlich88"})
        EXPECT_EQ(seen.find(secret), std::string::npos);
    // Lines of rtspsrc at INFO have the address that it was given: without login.
    EXPECT_EQ(log_lines.find("Geheim77"), std::string::npos);
}

// What gst-launch-1.0 -e sends when it is interrupted, so that a file is complete.
TEST_F(Rtsp, EndsWhenTheApplicationSendsEos) {
    RtspCamera camera({"h264"});
    camera.start();
    for (const bool away : {false, true}) {
        Viewer viewer(camera.uri(), "retry-delay=3600000");
        viewer.play();
        viewer.wait_for_frames(3);
        if (away) camera.process().stop(SIGKILL);
        if (away) viewer.wait_for_state("waiting");
        EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
        viewer.wait_for(GST_MESSAGE_EOS);
        EXPECT_EQ(viewer.stat("state"), "ended");
        viewer.set_state(GST_STATE_READY);
        EXPECT_FALSE(gst_element_send_event(viewer.element(), gst_event_new_eos()));
        if (away) continue;
        viewer.play();  // and it begins anew
        viewer.wait_for_frames(3);
    }
}

TEST(Srt, PassphraseIsInNoMessagePropertyOrDotFile) {
    if (GstElementFactory* known = gst_element_factory_find("srtsrc"))
        gst_object_unref(known);
    else
        GTEST_SKIP() << "srtsrc is not installed";
    Viewer viewer("srt://127.0.0.1:9?passphrase=Geheim7777&mode=caller", "retries=0 timeout=500");
    viewer.play();
    gchar* dot =
        gst_debug_bin_to_dot_data(GST_BIN(viewer.pipeline()), GST_DEBUG_GRAPH_SHOW_VERBOSE);
    std::string seen = dot;
    g_free(dot);
    for (bool failed = false; !failed;) {
        GstMessage* message = gst_bus_timed_pop(viewer.bus(), GST_CLOCK_TIME_NONE);
        failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
        gchar* text = gst_message_get_structure(message)
                          ? gst_structure_to_string(gst_message_get_structure(message))
                          : nullptr;
        seen += text ? text : "";
        g_free(text);
        gst_message_unref(message);
    }
    EXPECT_NE(seen.find("passphrase=***"), std::string::npos);
    EXPECT_EQ(seen.find("Geheim7777"), std::string::npos) << seen;
}

TEST(Rtmp, LoginThatWouldNotBeSentIsRefused) {
    if (GstElementFactory* known = gst_element_factory_find("rtmp2src"))
        gst_object_unref(known);
    else
        GTEST_SKIP() << "rtmp2src is not installed";
    Viewer viewer("rtmp://me:secret@127.0.0.1:9/live/x", "retries=0");
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_NE(said.find("whose user and password"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

// ---- files, devices, HTTP ------------------------------------------------------------------

class VartmlSrcFile : public testing::Test {
protected:
    static void make(const std::string& line) {
        GstElement* pipeline = gst_parse_launch(line.c_str(), nullptr);
        ASSERT_NE(pipeline, nullptr);
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        GstBus* bus = gst_element_get_bus(pipeline);
        GstMessage* end = gst_bus_timed_pop_filtered(
            bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
        EXPECT_EQ(GST_MESSAGE_TYPE(end), GST_MESSAGE_EOS);
        gst_message_unref(end);
        gst_object_unref(bus);
        gst_element_set_state(pipeline, GST_STATE_NULL);
        gst_object_unref(pipeline);
    }
    void SetUp() override {
        make(
            "videotestsrc num-buffers=10 ! video/x-raw,width=64,height=48,framerate=10/1 ! "
            "jpegenc ! matroskamux name=mux ! filesink location=" +
            film_ + " audiotestsrc num-buffers=40 ! vorbisenc ! mux.");
        make(
            "videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! jpegenc ! filesink "
            "location=" +
            picture_);
    }
    TempDir dir_;
    const std::string film_ = dir_ / "film.mkv", picture_ = dir_ / "picture.jpg";
};

TEST_F(VartmlSrcFile, EndsTheStream) {
    for (const std::string& uri : {film_, "file://" + film_}) {
        Viewer viewer(uri);
        viewer.play();
        viewer.wait_for(GST_MESSAGE_EOS);
        EXPECT_EQ(viewer.times().size(), 10u);
        EXPECT_EQ(viewer.stat("state"), "ended");
    }
}

TEST_F(VartmlSrcFile, IsRepeatedWithTimesThatGoOn) {
    Viewer viewer(film_, "at-end=repeat");
    viewer.play();
    viewer.wait_for_frames(35);
    viewer.set_state(GST_STATE_READY);
    const auto times = viewer.times();
    for (size_t i = 1; i < times.size(); ++i)
        EXPECT_EQ(times[i] - times[i - 1], 100 * GST_MSECOND) << i;
}

TEST_F(VartmlSrcFile, ThatCannotBeReadIsAnErrorAtOnce) {
    spill(dir_ / "text.mkv",
          "no film, but enough words for a file of text to be recognised as one");
    for (const auto& [name, why] :
         {std::pair{"absent.mkv", "Resource not found"}, {"text.mkv", "no picture"}}) {
        Viewer viewer(dir_ / name);
        viewer.play();
        const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
        EXPECT_TRUE(said.starts_with("Could not read the file: " + dir_ / name)) << said;
        EXPECT_EQ(viewer.stat("state"), "failed");
    }
}

TEST_F(VartmlSrcFile, OfSoundAloneHasNoPicture) {
    const std::string sound = dir_ / "sound.mkv";
    make("audiotestsrc num-buffers=10 ! vorbisenc ! matroskamux ! filesink location=" + sound);
    Viewer viewer(sound);
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_TRUE(said.ends_with("there is no picture in it, only sound")) << said;
}

TEST_F(VartmlSrcFile, WhoseFormatsNobodyTakesIsAnErrorThatSaysWhatHelps) {
    Viewer viewer(film_, "", "video/x-raw,format=GRAY16_LE");
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_NE(said.find("put videoconvert after vartmlsrc"), std::string::npos) << said;
    Viewer converted(film_, "", "videoconvert ! video/x-raw,format=GRAY16_LE");
    converted.play();
    converted.wait_for(GST_MESSAGE_EOS);
}

TEST_F(VartmlSrcFile, OfAnHttpServerEndsAndItsCameraIsConnectedAgain) {
    gchar* python = g_find_program_in_path("python3");
    GstElementFactory* soup = gst_element_factory_find("souphttpsrc");
    if (!python || !soup) GTEST_SKIP() << "python3 or souphttpsrc is not installed";
    gst_object_unref(soup);
    const FreePort port;
    Child server;
    server.start({python, VARTML_HTTP_CAMERA, std::to_string(port.number()), film_, picture_});
    g_free(python);
    ASSERT_EQ(server.line(), "ready");
    const std::string host = "http://127.0.0.1:" + std::to_string(port.number());
    Viewer film(host + "/film");
    film.play();
    film.wait_for(GST_MESSAGE_EOS);
    EXPECT_EQ(film.times().size(), 10u);

    Viewer camera(host + "/camera");
    camera.play();
    camera.wait_for_frames(5);
    server.tell("drop");
    camera.wait_for_state("waiting");
    camera.wait_for_state("playing");
    camera.wait_for_frames(5);
    camera.expect_one_stream(2);
}

TEST_F(VartmlSrcFile, ThatRepeatsEndsWhenTheApplicationSendsEos) {
    Viewer viewer(film_, "at-end=repeat");
    viewer.play();
    viewer.wait_for_frames(25);
    EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
    viewer.wait_for(GST_MESSAGE_EOS);
}

// So often that the thread that closes a connection is there long before the last change.
void change_often(Viewer& viewer, GstState other, int times) {
    for (int i = 0; i < times; ++i) {
        viewer.set_state(other);
        viewer.set_state(GST_STATE_PAUSED);
    }
}

TEST_F(VartmlSrcFile, IsPausedAfterTheApplicationHasSentEos) {
    for (const bool stops : {false, true}) {
        Viewer viewer(film_, "at-end=repeat");
        viewer.set_state(GST_STATE_PAUSED);
        gst_element_get_state(viewer.pipeline(), nullptr, nullptr, GST_CLOCK_TIME_NONE);
        EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
        change_often(viewer, GST_STATE_PAUSED, 20000);
        if (stops) continue;
        viewer.play();
        viewer.wait_for(GST_MESSAGE_EOS);
    }
}

// What follows holds a frame, as a sink does that was paused first.
TEST_F(VartmlSrcFile, IsPausedWhileAConnectionIsClosed) {
    for (const bool is_lost : {false, true}) {
        Viewer viewer(film_, "at-end=repeat");
        // Else a sink without a frame keeps the pipeline from every change that follows.
        gst_util_set_object_arg(G_OBJECT(viewer.sink()), "async", "false");
        for (const bool stops : {true, false}) {
            viewer.play();
            viewer.wait_for_frames(3);
            {
                Holder holder(viewer);
                holder.wait_for_frame();
                if (is_lost) {
                    GstElement* const source =
                        gst_bin_get_by_name(GST_BIN(viewer.element()), "source");
                    GST_ELEMENT_ERROR(source, RESOURCE, READ, ("The disk is gone"), (nullptr));
                    gst_object_unref(source);
                } else {
                    EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
                }
                change_often(viewer, GST_STATE_PLAYING, 2000);
                holder.release();
            }
            if (stops) {
                viewer.set_state(GST_STATE_READY);
                viewer.forget_messages();
                continue;
            }
            viewer.play();
            if (is_lost) {
                const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
                EXPECT_NE(said.find("The disk is gone"), std::string::npos) << said;
            } else {
                viewer.wait_for(GST_MESSAGE_EOS);
            }
        }
    }
}

TEST(VartmlSrc, WaitsForADeviceThatIsNotThere) {
    Viewer viewer("/dev/video-none");
    viewer.play();
    EXPECT_NE(viewer.wait_for(GST_MESSAGE_WARNING).find("/dev/video-none"), std::string::npos);
}

TEST(VartmlSrc, RefusesAnAddressThatIsNone) {
    for (const auto& [uri, why] :
         {std::pair{"", "'uri' is not set"}, {"rtsp://a:secret@/x", "names no host"}}) {
        Viewer viewer(uri);
        EXPECT_EQ(viewer.set_state(GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
        EXPECT_NE(said.find(why), std::string::npos) << said;
    }
    Viewer viewer("nosuch://a:secret@host/x", "");
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_NE(said.find("no installed source takes"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

}  // namespace
