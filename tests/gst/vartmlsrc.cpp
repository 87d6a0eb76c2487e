// SPDX-License-Identifier: Apache-2.0
// vartmlsrc and real cameras: RTSP servers in processes of their own that go and come.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/gst/viewer.h"
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
    Viewer viewer(camera.uri(), "timeout=1000", "identity name=slow sleep-time=4000000");
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

}  // namespace
