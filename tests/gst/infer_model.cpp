// SPDX-License-Identifier: Apache-2.0
// The plugin as installed, on a real compiled model: compile, cache, tensors equal to the runner's
// own, errors of the compiler.
#include <dlfcn.h>
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gst/vartml/inference.h>
#include <gst/video/video.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <vartml/preprocess.h>
#include <vartml/tensor.h>
#include <vart/vart_runner_factory.hpp>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

using vartml::test::TempDir;
using vartml::test::TinyOnnx;

constexpr int model_size = 8, width = 20, height = 14;

std::string make_model(const TempDir& dir) {
    const std::string path = dir / "tiny.onnx";
    TinyOnnx m;
    m.input("images", {1, 3, model_size, model_size}).weights("w", {4, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}});
    m.node("Sigmoid", {"c"}, {"y"}).output("y", {1, 4, model_size, model_size}).save(path);
    return path;
}

struct Frame {
    std::vector<guint8> pixels;
    GstTensorDataType type;
    std::vector<gsize> dims;
    std::vector<guint8> tensor;
    std::string status;
    guint64 pre_us = 0, wait_us = 0, run_us = 0, total_us = 0;
};

struct Outcome {
    std::vector<Frame> frames;
    std::string error_id, error_text;
    std::map<std::string, unsigned> messages;  // element messages by name
    bool cache_hit = false;
};

using GetStructure = GstStructure* (*)(GstBuffer*, guint);

// From the plugin, as an application in Python gets it.
GetStructure get_structure() {
    GstPlugin* plugin = gst_registry_find_plugin(gst_registry_get(), "vartml");
    void* library =
        plugin ? dlopen(gst_plugin_get_filename(plugin), RTLD_NOW | RTLD_NOLOAD) : nullptr;
    gst_clear_object(&plugin);
    return library ? reinterpret_cast<GetStructure>(
                         dlsym(library, "gst_vartml_inference_get_structure"))
                   : nullptr;
}

void on_frame(GstElement*, GstBuffer* buffer, GstPad*, gpointer outcome) {
    Frame frame;
    GstMapInfo map;
    // Without what a row is padded with.
    const GstVideoMeta* video = gst_buffer_get_video_meta(buffer);
    const gsize row = gsize(width) * 4, stride = video ? gsize(video->stride[0]) : row;
    gst_buffer_map(buffer, &map, GST_MAP_READ);
    for (gsize y = 0; y < gsize(height); ++y)
        frame.pixels.insert(frame.pixels.end(), map.data + y * stride, map.data + y * stride + row);
    gst_buffer_unmap(buffer, &map);
    if (auto* meta = reinterpret_cast<GstTensorMeta*>(
            gst_buffer_get_meta(buffer, GST_TENSOR_META_API_TYPE))) {
        const GstTensor* tensor = meta->tensors[0];
        frame.type = tensor->data_type;
        frame.dims.assign(tensor->dims, tensor->dims + tensor->num_dims);
        gst_buffer_map(tensor->data, &map, GST_MAP_READ);
        frame.tensor.assign(map.data, map.data + map.size);
        gst_buffer_unmap(tensor->data, &map);
    }
    if (GstStructure* s = get_structure()(buffer, 0)) {
        frame.status = gst_structure_get_string(s, "status");
        gst_structure_get(s, "t_pre_us", G_TYPE_UINT64, &frame.pre_us, "t_wait_us", G_TYPE_UINT64,
                          &frame.wait_us, "t_run_us", G_TYPE_UINT64, &frame.run_us, "t_total_us",
                          G_TYPE_UINT64, &frame.total_us, nullptr);
        gst_structure_free(s);
    }
    static_cast<Outcome*>(outcome)->frames.push_back(std::move(frame));
}

// Runs videotestsrc through the element until the end or an error.
Outcome run(const std::string& properties, unsigned frames = 3) {
    Outcome outcome;
    const std::string line = "videotestsrc pattern=snow num-buffers=" + std::to_string(frames) +
                             " ! video/x-raw,format=RGBx,width=" + std::to_string(width) +
                             ",height=" + std::to_string(height) + " ! vartmlinfer " + properties +
                             " ! fakesink name=sink signal-handoffs=true";
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    if (!pipeline) {
        ADD_FAILURE() << error->message;
        return outcome;
    }
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    g_signal_connect(sink, "handoff", G_CALLBACK(on_frame), &outcome);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    for (bool running = true; running;) {
        GstMessage* message = gst_bus_timed_pop_filtered(
            bus, GST_CLOCK_TIME_NONE,
            GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_ELEMENT));
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT) {
            const GstStructure* s = gst_message_get_structure(message);
            ++outcome.messages[gst_structure_get_name(s)];
            gboolean hit = FALSE;
            if (gst_structure_get_boolean(s, "cache-hit", &hit) && hit) outcome.cache_hit = true;
        } else {
            running = false;
        }
        const GstStructure* details = nullptr;
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            gst_message_parse_error(message, &error, nullptr);
            outcome.error_text = error->message;
            g_error_free(error);
            gst_message_parse_error_details(message, &details);
            if (details && gst_structure_has_field(details, "id")) {
                outcome.error_id = gst_structure_get_string(details, "id");
            }
        }
        gst_message_unref(message);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
    return outcome;
}

class InferModel : public testing::Test {
protected:
    std::string properties(const std::string& model) const {
        return "model=" + model + " cache-dir=" + dir_ / "cache";
    }
    // The one compiled model in the cache.
    std::string compiled() const {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / "cache")) {
            if (entry.path().filename() == "vaiml_par_0")
                return entry.path().parent_path().string();
        }
        return {};
    }
    TempDir dir_;
};

TEST_F(InferModel, CompilesAnOnnxFileOnceAndThenFindsIt) {
    const std::string model = make_model(dir_);
    const Outcome first = run(properties(model));
    ASSERT_EQ(first.error_id, "") << first.error_text;
    EXPECT_EQ(first.frames.size(), 3u);
    EXPECT_GE(first.messages.at("vartml-compile"), 1u);
    EXPECT_EQ(first.messages.at("vartml-model-loaded"), 1u);
    EXPECT_FALSE(first.cache_hit);
    for (const Frame& frame : first.frames) EXPECT_EQ(frame.status, "inferred");
    const Outcome second = run(properties(model));
    EXPECT_EQ(second.error_id, "") << second.error_text;
    EXPECT_TRUE(second.cache_hit);
    ASSERT_EQ(second.frames.size(), 3u);
    const Outcome by_folder = run("model=" + compiled());
    EXPECT_EQ(by_folder.error_id, "") << by_folder.error_text;
    EXPECT_FALSE(by_folder.messages.contains("vartml-compile"));
}

// Also of the first one, before which the element measures how long pre-processing takes.
TEST_F(InferModel, TheStagesOfAFrameAreWithinItsTotal) {
    const Outcome got = run(properties(make_model(dir_)));
    ASSERT_EQ(got.frames.size(), 3u) << got.error_text;
    for (const Frame& frame : got.frames) {
        EXPECT_GT(frame.total_us, 0u);
        EXPECT_LE(frame.pre_us + frame.wait_us + frame.run_us, frame.total_us);
    }
}

// What the runner gives for the same pixels, in one of the views.
std::vector<guint8> reference(const std::string& model, const std::vector<guint8>& pixels,
                              vart::TensorType type, std::vector<gsize>& dims) {
    const char* name = type == vart::TensorType::HW ? "HW" : "CPU";
    auto runner = vart::RunnerFactory::create_runner(
        vart::RunnerType::VAIML, model,
        {{"input_tensor_type", std::string("CPU")}, {"output_tensor_type", std::string(name)}});
    const auto& in_info =
        runner->get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::CPU)[0];
    const auto& out_info = runner->get_tensors_info(vart::TensorDirection::OUTPUT, type)[0];
    const auto view = vartml::make_view(vartml::DataType::float32, vartml::Layout::NCHW,
                                        {1, 3, model_size, model_size});
    vartml::PictureInfo picture;
    picture.format = vartml::PixelFormat::RGBx;
    picture.width = width;
    picture.height = height;
    const auto preprocessor =
        vartml::Preprocessor::create(picture, {}, view, view, {.scale = {0.01f, 0.01f, 0.01f}});
    EXPECT_TRUE(preprocessor);
    std::vector<std::vector<vart::NpuTensor>> in(1), out(1);
    in[0].push_back(runner->allocate_npu_tensor(in_info));
    out[0].push_back(runner->allocate_npu_tensor(out_info));
    vartml::Picture planes;
    planes.planes[0] = pixels.data();
    planes.stride_bytes[0] = width * 4;
    preprocessor->run(planes, in[0][0].get_virtual_address());
    EXPECT_EQ(runner->execute(in, out), vart::StatusCode::SUCCESS);
    dims.assign(out_info.shape.begin(), out_info.shape.end());
    const auto* bytes = static_cast<const guint8*>(out[0][0].get_virtual_address());
    return {bytes, bytes + out_info.size_in_bytes};
}

TEST_F(InferModel, AttachesTheTensorsOfTheRunnerInBothViews) {
    const std::string model = make_model(dir_);
    const std::string common = properties(model) + " preprocess=\"scale=0.01\" output-tensor-type=";
    for (const bool hw : {false, true}) {
        SCOPED_TRACE(hw ? "hw" : "cpu");
        const Outcome got = run(common + (hw ? "hw" : "cpu"));
        ASSERT_EQ(got.error_id, "") << got.error_text;
        ASSERT_EQ(got.frames.size(), 3u);
        for (const Frame& frame : got.frames) {
            std::vector<gsize> dims;
            const auto want = reference(compiled(), frame.pixels,
                                        hw ? vart::TensorType::HW : vart::TensorType::CPU, dims);
            EXPECT_EQ(frame.dims, dims);
            EXPECT_EQ(frame.tensor, want);
        }
        EXPECT_NE(got.frames[0].tensor, got.frames[1].tensor) << "snow changes from frame to frame";
    }
}

TEST_F(InferModel, UnpacksATarIntoTheCacheAndRunsItLikeTheOthers) {
    const std::string tar = dir_ / "net.tar.gz";
    const char* program = std::getenv("VARTML_COMPILER");
    ASSERT_TRUE(program);
    const std::string command =
        std::string(program) + " compile -q '" + make_model(dir_) + "' -o '" + tar + '\'';
    ASSERT_EQ(std::system(command.c_str()), 0);
    const std::string line = properties(tar) + " preprocess=\"scale=0.01\" output-tensor-type=cpu";
    const Outcome got = run(line);
    ASSERT_EQ(got.error_id, "") << got.error_text;
    ASSERT_EQ(got.frames.size(), 3u);
    const std::string folder = compiled();
    EXPECT_TRUE(folder.ends_with(".unpacked")) << folder;
    for (const Frame& frame : got.frames) {
        std::vector<gsize> dims;
        EXPECT_EQ(frame.tensor, reference(folder, frame.pixels, vart::TensorType::CPU, dims));
    }
    const auto made = std::filesystem::last_write_time(folder);
    EXPECT_EQ(run(line).error_id, "");
    EXPECT_EQ(std::filesystem::last_write_time(folder), made);
}

TEST_F(InferModel, TheCompilersFailureNamesTheReason) {
    const std::string model = make_model(dir_);
    const std::string broken = dir_ / "broken.onnx";
    std::ofstream(broken) << "no model at all";
    std::ofstream(dir_ / "file") << "x";

    Outcome got = run(properties(broken));
    EXPECT_EQ(got.error_id, "infer-compile") << got.error_text;
    EXPECT_NE(got.error_text.find("broken.onnx"), std::string::npos) << got.error_text;

    got = run("model=" + model + " cache-dir=" + (dir_ / "file/cache"));
    EXPECT_EQ(got.error_id, "infer-cache") << got.error_text;

    const char* old = std::getenv("VARTML_COMPILER");
    const std::string kept = old ? old : "";
    setenv("VARTML_COMPILER", "/no/such/program", 1);
    got = run(properties(model));
    EXPECT_EQ(got.error_id, "infer-no-compiler") << got.error_text;
    EXPECT_NE(got.error_text.find("/no/such/program"), std::string::npos) << got.error_text;
    if (old)
        setenv("VARTML_COMPILER", kept.c_str(), 1);
    else
        unsetenv("VARTML_COMPILER");
}

TEST_F(InferModel, ADamagedModelIsRefusedByName) {
    const std::string model = make_model(dir_);
    ASSERT_EQ(run(properties(model)).error_id, "");
    const std::string folder = compiled();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.path().parent_path().filename() != "vaiml_par_0")
            continue;
        std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
        break;
    }
    const Outcome got = run("model=" + folder);
    EXPECT_EQ(got.error_id, "infer-model-bad") << got.error_text;
}

}  // namespace
