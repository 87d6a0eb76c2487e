// SPDX-License-Identifier: Apache-2.0
// pipelines/four-cameras.sh on cameras of the kernel, as a user runs it who is not root: one Ctrl-C
// ends it with a whole file, and it starts again at once.
#include <fcntl.h>
#include <grp.h>
#include <gst/video/video.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "tests/support/gst_main.h"
#include "tests/vm/cameras.h"

namespace {

using namespace vartml::test;
namespace fs = std::filesystem;

constexpr uid_t user = 1000;
constexpr gid_t video_group = 44;  // whose the cameras are in Debian
constexpr int patience_ms = 60'000;
constexpr unsigned width = 320, height = 240;  // of the whole picture

// The cameras show plain colours, so that their tiles can be told from each other.
struct Colour {
    int pattern;  // of vivid
    std::array<int, 3> rgb;
};
constexpr Colour colours[] = {
    {6, {255, 255, 255}}, {7, {255, 0, 0}}, {8, {0, 255, 0}}, {9, {0, 0, 255}}};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// From root to a user in the group of the cameras. The user reads every file: who cloned the
// project may have done so for his eyes alone (umask 077), and the guest cannot change that.
bool become_user() {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    sets[0].effective = sets[0].permitted = sets[0].inheritable = 1u << CAP_DAC_READ_SEARCH;
    return setgroups(1, &video_group) == 0 && prctl(PR_SET_KEEPCAPS, 1) == 0 && setgid(user) == 0 &&
           setuid(user) == 0 && syscall(SYS_capset, &header, sets) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0;
}

// A program in a process group of its own, as a terminal starts it.
class Program {
public:
    Program(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
        pid_ = fork();
        if (pid_ == 0) {
            setpgid(0, 0);
            dup2(ends[1], STDERR_FILENO);
            if (!become_user()) _exit(126);
            std::vector<char*> arguments;
            for (const std::string& word : words)
                arguments.push_back(const_cast<char*>(word.c_str()));
            arguments.push_back(nullptr);
            for (const std::string& one : variables) putenv(const_cast<char*>(one.c_str()));
            execvp(arguments[0], arguments.data());
            _exit(127);
        }
        setpgid(pid_, pid_);
        close(ends[1]);
        errors_fd_ = ends[0];
    }
    ~Program() {
        if (pid_ > 0) kill(-pid_, SIGKILL), waitpid(pid_, nullptr, 0);
        close(errors_fd_);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Until so many lines of its errors have both words. False: they ended before.
    bool wait_for(const std::string& first, const std::string& second, int times) {
        for (size_t at = 0; times > 0;) {
            const size_t end = errors_.find('\n', at);
            if (end == std::string::npos) {
                if (!read_more()) return false;
                continue;
            }
            const std::string_view line(errors_.data() + at, end - at);
            times -= line.find(first) != line.npos && line.find(second) != line.npos;
            at = end + 1;
        }
        return true;
    }
    // One Ctrl-C.
    void interrupt() const { kill(-pid_, SIGINT); }
    // The exit status; -1: it was ended by a signal.
    int finish() {
        while (read_more()) {
        }
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    const std::string& errors() const { return errors_; }

private:
    bool read_more() {
        pollfd wait = {errors_fd_, POLLIN, 0};
        if (poll(&wait, 1, patience_ms) <= 0) {
            ADD_FAILURE() << "no end\n"
                          << errors_.substr(errors_.size() -
                                            std::min<size_t>(errors_.size(), 4000));
            kill(-pid_, SIGKILL);
            return false;
        }
        char bytes[4096];
        const ssize_t length = read(errors_fd_, bytes, sizeof bytes);
        if (length > 0) errors_.append(bytes, size_t(length));
        return length > 0;
    }

    pid_t pid_ = -1;
    int errors_fd_ = -1;
    std::string errors_;
};

// The pictures of a video, RGB without padding.
using Picture = std::vector<guint8>;
struct Video {
    std::vector<Picture> pictures;
    std::string fault;
};

void on_picture(GstElement*, GstBuffer* buffer, GstPad*, gpointer video) {
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_READ);
    static_cast<Video*>(video)->pictures.emplace_back(map.data, map.data + map.size);
    gst_buffer_unmap(buffer, &map);
}

Video read_video(const std::string& path) {
    Video video;
    const std::string line = "filesrc location=" + path +
                             " ! qtdemux ! h264parse ! openh264dec ! videoconvert ! "
                             "video/x-raw,format=RGB ! fakesink name=sink signal-handoffs=true";
    GError* error = nullptr;
    GstElement* const pipeline = gst_parse_launch(line.c_str(), &error);
    if (error) return {{}, error->message};
    GstElement* const sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    g_signal_connect(sink, "handoff", G_CALLBACK(on_picture), &video);
    gst_object_unref(sink);
    GstBus* const bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage* const message = gst_bus_timed_pop_filtered(
        bus, patience_ms * GST_MSECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    if (!message) video.fault = "the video does not end";
    if (message && GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, nullptr);
        video.fault = error->message;
    }
    if (message) gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    return video;
}

class FourCameras : public testing::Test {
protected:
    void SetUp() override {
        if (!in_guest()) GTEST_SKIP() << "changes the owner of cameras";
        webcams_ = find_webcams();
        ASSERT_GE(webcams_.size(), 4u);
        const auto other = find_camera_of_every_size();
        ASSERT_TRUE(other);
        tensors_ = *other;
        for (size_t i = 0; i < 4; ++i) {
            ASSERT_TRUE(set_control(webcams_[i], "Test Pattern", colours[i].pattern));
            ASSERT_TRUE(set_control(webcams_[i], "OSD Text Mode", 2));  // none
            allow(webcams_[i]);
        }
        allow(tensors_);
        fs::create_directories(folder_);
        // What root's programs know of the plugins; the file of the user is the user's own.
        fs::copy_file(variable("GST_REGISTRY"), folder_ + "/registry.bin",
                      fs::copy_options::overwrite_existing);
        for (const std::string& path : {folder_, folder_ + "/registry.bin"})
            ASSERT_EQ(chown(path.c_str(), user, user), 0);
    }
    void TearDown() override {
        for (size_t i = 0; i < std::min<size_t>(webcams_.size(), 4); ++i) {
            set_control(webcams_[i], "Test Pattern", 0);
            set_control(webcams_[i], "OSD Text Mode", 0);
        }
    }
    // As udev does where it runs.
    static void allow(const std::string& device) {
        EXPECT_EQ(chown(device.c_str(), 0, video_group), 0);
        EXPECT_EQ(chmod(device.c_str(), 0660), 0);
    }
    Program start(const std::string& out, const std::vector<std::string>& cameras) const {
        std::vector<std::string> words = {"sh", variable("VARTML_PIPELINES") + "/four-cameras.sh",
                                          variable("VARTML_VM_MODELS") + "/boxes.rai"};
        words.insert(words.end(), cameras.begin(), cameras.end());
        const std::vector<std::string> variables = {
            "OUT=" + out,
            "SIZE=" + std::to_string(width) + "x" + std::to_string(height),
            std::string("RATE=5"),
            std::string("CAPS=width=320,height=180,framerate=5/1"),
            "HOME=" + folder_,
            "XDG_CACHE_HOME=" + folder_,
            "XDG_RUNTIME_DIR=" + folder_,
            "GST_REGISTRY=" + folder_ + "/registry.bin",
            "GST_DEBUG=vartml*:2,vartmloverlay:6"};
        return Program(words, variables);
    }
    // How far a pixel is from a colour.
    static int distance(const Picture& picture, unsigned x, unsigned y,
                        const std::array<int, 3>& colour) {
        int most = 0;
        for (unsigned c = 0; c < 3; ++c)
            most = std::max(most, std::abs(picture[(y * width + x) * 3 + c] - colour[c]));
        return most;
    }
    // Whether a tile has its camera's colour, and a box in it.
    static bool shows_camera(const Picture& picture, unsigned camera) {
        const auto& colour = colours[camera].rgb;
        const unsigned left = camera % 2 * width / 2,
                       middle_y = camera / 2 * height / 2 + height / 4;
        if (distance(picture, left + 8, middle_y, colour) > 60 ||
            distance(picture, left + width / 4, middle_y, colour) > 60)
            return false;
        int edge = 0;
        for (unsigned x = left + width / 8 - 4; x < left + width / 8 + 4; ++x)
            edge = std::max(edge, distance(picture, x, middle_y, colour));
        return edge > 30;
    }
    static void expect_cameras(const Video& video, unsigned count) {
        for (unsigned camera = 0; camera < count; ++camera)
            EXPECT_TRUE(std::ranges::any_of(video.pictures,
                                            [&](const Picture& picture) {
                                                return picture.size() == width * height * 3 &&
                                                       shows_camera(picture, camera);
                                            }))
                << "camera " << camera << " with a box is in none of " << video.pictures.size()
                << " pictures";
    }

    std::vector<std::string> webcams_;
    std::string tensors_;
    const std::string folder_ = "/tmp/four-cameras";
};

TEST_F(FourCameras, EndWithOneInterruptAndStartAgain) {
    // In the second run the first camera has a tensor of its own, which another device gives.
    const std::vector<std::string> runs[] = {{webcams_.begin(), webcams_.begin() + 4},
                                             {tensors_ + "=" + webcams_[0], webcams_[1]}};
    std::vector<std::string> files;
    for (const auto& cameras : runs) {
        files.push_back(folder_ + "/" + std::to_string(files.size()) + ".mp4");
        Program script = start(files.back(), cameras);
        for (size_t i = 0; i < cameras.size(); ++i)
            ASSERT_TRUE(script.wait_for("<vartmloverlay" + std::to_string(i) + ">", "drawn", 3))
                << script.errors();
        script.interrupt();
        EXPECT_EQ(script.finish(), 0) << script.errors();
        EXPECT_EQ(script.errors().find("ERROR: "), std::string::npos) << script.errors();
    }
    for (size_t run = 0; run < files.size(); ++run) {
        const std::string& path = files[run];
        SCOPED_TRACE(path);
        const Video video = read_video(path);
        ASSERT_EQ(video.fault, "");
        expect_cameras(video, unsigned(runs[run].size()));
        struct stat status;
        ASSERT_EQ(stat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, user);
    }
}

}  // namespace
