// SPDX-License-Identifier: Apache-2.0
// A model with an operator that ONNX Runtime computes, in pipelines: the plugin as installed and
// the program vartml-onnxruntime.
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

using vartml::test::TempDir;
using vartml::test::TinyOnnx;

constexpr int size = 8, pixels = size * size;
constexpr float threshold = 100.5f;

// 1 where a byte of the picture is above the threshold, by an operator of classical learning.
void make_model(const std::string& path) {
    TinyOnnx m(17);
    m.opset("ai.onnx.ml", 3).input("images", {1, 3, size, size});
    m.floats("w", {3, 3, 1, 1}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
    m.node("Conv", {"images", "w"}, {"copy"});
    m.node("Binarizer", {"copy"}, {"y"}, {{"threshold", threshold}}, "ai.onnx.ml");
    m.output("y", {1, 3, size, size}).save(path);
}

// Processes that this one started and that run.
std::vector<pid_t> children() {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "stat");
        std::string text;
        if (!std::getline(file, text)) continue;
        char state = 0;
        int parent = 0;
        if (std::sscanf(text.c_str() + text.rfind(')') + 1, " %c %d", &state, &parent) == 2 &&
            parent == getpid() && state != 'Z')
            found.push_back(std::atoi(entry.path().filename().c_str()));
    }
    return found;
}

// What came out of all sinks.
struct Seen {
    std::atomic<unsigned> frames{0}, with_result{0}, wrong{0};
    unsigned kill_after = 0;  // frames; 0: never
};

void on_frame(GstElement*, GstBuffer* buffer, GstPad*, gpointer user) {
    auto& seen = *static_cast<Seen*>(user);
    const unsigned number = ++seen.frames;
    if (auto* meta = reinterpret_cast<GstTensorMeta*>(
            gst_buffer_get_meta(buffer, GST_TENSOR_META_API_TYPE))) {
        ++seen.with_result;
        GstVideoInfo info;
        gst_video_info_set_format(&info, GST_VIDEO_FORMAT_RGB, size, size);
        GstVideoFrame picture;  // its rows may be padded
        gst_video_frame_map(&picture, &info, buffer, GST_MAP_READ);
        GstMapInfo tensor;
        gst_buffer_map(meta->tensors[0]->data, &tensor, GST_MAP_READ);
        const auto* values = reinterpret_cast<const float*>(tensor.data);
        for (int i = 0; i < 3 * pixels; ++i) {
            const int channel = i / pixels, y = i % pixels / size, x = i % size;
            const auto* row = static_cast<const guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&picture, 0)) +
                              y * GST_VIDEO_FRAME_PLANE_STRIDE(&picture, 0);
            const float byte = row[x * 3 + channel];
            if (values[i] != (byte > threshold ? 1.f : 0.f)) ++seen.wrong;
        }
        gst_buffer_unmap(meta->tensors[0]->data, &tensor);
        gst_video_frame_unmap(&picture);
    }
    if (number == seen.kill_after)
        for (const pid_t child : children()) kill(child, SIGKILL);
}

struct Outcome {
    bool ended = false;
    std::vector<std::string> errors, warnings;  // their ids and sentences
};

std::string text_of(GstMessage* message) {
    GError* error = nullptr;
    const GstStructure* details = nullptr;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, nullptr);
        gst_message_parse_error_details(message, &details);
    } else {
        gst_message_parse_warning(message, &error, nullptr);
        gst_message_parse_warning_details(message, &details);
    }
    const char* id = details ? gst_structure_get_string(details, "id") : nullptr;
    const std::string text = std::string(id ? id : "-") + ": " + error->message;
    g_error_free(error);
    return text;
}

class InferOnnxRuntime : public testing::Test {
protected:
    void SetUp() override {
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without the headers of ONNX Runtime (libonnxruntime-dev)";
        make_model(dir_ / "m.onnx");
        Seen seen;
        const Outcome first = run(1, 1, seen);  // compiles it for all
        if (!first.errors.empty() &&
            first.errors[0].find("needs ONNX Runtime, which is not here") != std::string::npos)
            GTEST_SKIP() << first.errors[0];
        ASSERT_TRUE(first.errors.empty()) << first.errors[0];
    }

    // Until the end of all streams or an error, and a minute at most.
    Outcome run(unsigned streams, int frames, Seen& seen) {
        std::string line;
        for (unsigned i = 0; i < streams; ++i)
            line += " videotestsrc pattern=snow num-buffers=" + std::to_string(frames) +
                    " ! video/x-raw,format=RGB,width=8,height=8 ! vartmlinfer model=" +
                    dir_ / "m.onnx cache-dir=" +
                    dir_ / "cache model-instance-id=one on-fallback=allow " +
                    "copy-policy=allow preprocess=\"channels=rgb mean=0 scale=1\" " +
                    "! fakesink async=false signal-handoffs=true name=sink" + std::to_string(i);
        Outcome outcome;
        GError* error = nullptr;
        GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
        if (!pipeline) {
            ADD_FAILURE() << error->message;
            return outcome;
        }
        for (unsigned i = 0; i < streams; ++i) {
            GstElement* sink =
                gst_bin_get_by_name(GST_BIN(pipeline), ("sink" + std::to_string(i)).c_str());
            g_signal_connect(sink, "handoff", G_CALLBACK(on_frame), &seen);
            gst_object_unref(sink);
        }
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        GstBus* bus = gst_element_get_bus(pipeline);
        const auto kinds =
            GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
        for (bool going = true; going;) {
            GstMessage* message = gst_bus_timed_pop_filtered(bus, 60 * GST_SECOND, kinds);
            if (!message) break;
            going = take(message, outcome);
        }
        gst_element_set_state(pipeline, GST_STATE_NULL);
        while (GstMessage* message = gst_bus_pop_filtered(bus, kinds)) take(message, outcome);
        gst_object_unref(bus);
        gst_object_unref(pipeline);
        return outcome;
    }

private:
    // Whether more may come.
    static bool take(GstMessage* message, Outcome& outcome) {
        const GstMessageType type = GST_MESSAGE_TYPE(message);
        if (type == GST_MESSAGE_ERROR) outcome.errors.push_back(text_of(message));
        if (type == GST_MESSAGE_WARNING) outcome.warnings.push_back(text_of(message));
        gst_message_unref(message);
        outcome.ended = outcome.ended || type != GST_MESSAGE_WARNING;
        return type == GST_MESSAGE_WARNING;
    }
    TempDir dir_;
};

TEST_F(InferOnnxRuntime, GivesEveryFrameOfEveryStreamItsResult) {
    Seen seen;
    const Outcome outcome = run(3, 20, seen);
    EXPECT_TRUE(outcome.ended);
    EXPECT_TRUE(outcome.errors.empty()) << outcome.errors[0];
    EXPECT_TRUE(outcome.warnings.empty()) << outcome.warnings[0];
    EXPECT_EQ(seen.frames, 60u);
    EXPECT_EQ(seen.with_result, 60u);
    EXPECT_EQ(seen.wrong, 0u);
}

TEST_F(InferOnnxRuntime, LeavesNoProcessBehind) {
    Seen seen;
    (void)run(2, 5, seen);
    EXPECT_TRUE(children().empty());
}

TEST_F(InferOnnxRuntime, EndsWithOneErrorWhenItsProcessDies) {
    Seen seen;
    seen.kill_after = 5;
    const Outcome outcome = run(1, 100000, seen);
    ASSERT_TRUE(outcome.ended) << "neither an error nor an end";
    ASSERT_EQ(outcome.errors.size(), 1u);
    for (const std::string& said : {outcome.errors[0], outcome.warnings.at(0)}) {
        EXPECT_NE(said.find("the process of ONNX Runtime was killed by signal 9; load the model "
                            "again"),
                  std::string::npos)
            << said;
    }
    EXPECT_EQ(outcome.warnings.size(), 2u);  // as for any run that fails, the third is the error
    EXPECT_EQ(seen.wrong, 0u);
    EXPECT_TRUE(children().empty());
}

}  // namespace
