// SPDX-License-Identifier: Apache-2.0
// The plugin as it is built on AMD's VART-ML, with a stand-in of that runtime: the same elements
// run its models, and what that runtime lacks is said in one sentence.
#include <dlfcn.h>
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gst/vartml/inference.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace {

using vartml::test::spill;
using vartml::test::TempDir;

// Pixels 100, 60, 200 times a quarter are 25, 15, 50 in steps of the model's scale.
constexpr char sidecar[] =
    "[modelinfo]\nversion=1.0\n\n[images]\ndir=input\nx-vartml-mean=0\nx-vartml-scale=0.25\n";
constexpr char picture[] =
    "videotestsrc num-buffers=5 pattern=solid-color foreground-color=0xff643cc8 ! "
    "video/x-raw,format=RGB,width=32,height=24 ! ";

struct Outcome {
    std::vector<std::vector<guint8>> tensors;  // first tensor of each frame
    std::vector<GstTensorDataType> types;
    std::vector<std::string> statuses, models;
    std::string error_id, error;
};

using GetStructure = GstStructure* (*)(GstBuffer*, guint);

// From the plugin, so that it is known which one was loaded.
GetStructure get_structure() {
    GstPlugin* plugin = gst_registry_find_plugin(gst_registry_get(), "vartml");
    if (!plugin) return nullptr;
    void* library = dlopen(gst_plugin_get_filename(plugin), RTLD_NOW);
    gst_object_unref(plugin);
    return library ? GetStructure(dlsym(library, "gst_vartml_inference_get_structure")) : nullptr;
}

void read_frame(GstBuffer* buffer, Outcome& outcome) {
    if (GstStructure* record = get_structure()(buffer, 0)) {
        outcome.statuses.emplace_back(gst_structure_get_string(record, "status"));
        outcome.models.emplace_back(gst_structure_get_string(record, "model"));
        gst_structure_free(record);
    }
    const auto* meta = gst_buffer_get_tensor_meta(buffer);
    if (!meta) return;
    const GstTensor* tensor = gst_tensor_meta_get(const_cast<GstTensorMeta*>(meta), 0);
    GstMapInfo map;
    ASSERT_TRUE(gst_buffer_map(tensor->data, &map, GST_MAP_READ));
    outcome.tensors.emplace_back(map.data, map.data + map.size);
    outcome.types.push_back(tensor->data_type);
    gst_buffer_unmap(tensor->data, &map);
}

GstPadProbeReturn on_buffer(GstPad*, GstPadProbeInfo* info, gpointer user) {
    read_frame(GST_PAD_PROBE_INFO_BUFFER(info), *static_cast<Outcome*>(user));
    return GST_PAD_PROBE_OK;
}

Outcome run(const std::string& properties) {
    Outcome outcome;
    const std::string line =
        std::string(picture) + "vartmlinfer name=infer " + properties + " ! fakesink";
    GstElement* pipeline = gst_parse_launch(line.c_str(), nullptr);
    EXPECT_TRUE(pipeline) << line;
    GstElement* infer = gst_bin_get_by_name(GST_BIN(pipeline), "infer");
    GstPad* src = gst_element_get_static_pad(infer, "src");
    gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, on_buffer, &outcome, nullptr);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError* error = nullptr;
        const GstStructure* details = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        gst_message_parse_error_details(message, &details);
        outcome.error = error->message;
        if (details) outcome.error_id = gst_structure_get_string(details, "id");
        g_error_free(error);
    }
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(src);
    gst_object_unref(infer);
    gst_object_unref(pipeline);
    return outcome;
}

// A compiled model as that runtime takes it, with its sidecar inside.
std::string model(const TempDir& dir, const std::string& extent) {
    spill(dir / "means/vaiml_par_0/extent", extent);
    spill(dir / "means/modelinfo", sidecar);
    return "model=" + (dir / "means");
}

TEST(VartMl, RunsAModelOfThatRuntime) {
    const TempDir dir;
    const Outcome o = run(model(dir, "12 16"));
    EXPECT_EQ(o.error, "");
    EXPECT_EQ(o.statuses, std::vector<std::string>(5, "inferred"));
    EXPECT_EQ(o.models, std::vector<std::string>(5, "means"));
    ASSERT_EQ(o.tensors.size(), 5u);
    const float means[] = {25, 15, 50};
    for (const auto& tensor : o.tensors) {
        ASSERT_EQ(tensor.size(), sizeof(means));
        EXPECT_EQ(memcmp(tensor.data(), means, sizeof(means)), 0);
    }
    EXPECT_EQ(o.types[0], GST_TENSOR_DATA_TYPE_FLOAT32);
}

TEST(VartMl, AttachesTheViewThatTheDeviceWrote) {
    const TempDir dir;
    const Outcome o = run(model(dir, "12 16") + " output-tensor-type=hw");
    EXPECT_EQ(o.error, "");
    ASSERT_EQ(o.tensors.size(), 5u);
    EXPECT_EQ(o.tensors[4], (std::vector<guint8>{50, 30, 100}));
    EXPECT_EQ(o.types[4], GST_TENSOR_DATA_TYPE_INT8);
}

TEST(VartMl, RunsAModelWithoutHardwareViews) {
    const TempDir dir;
    const Outcome o = run(model(dir, "12 16 cpu"));
    EXPECT_EQ(o.error, "");
    ASSERT_EQ(o.tensors.size(), 5u);
    const float means[] = {25, 15, 50};
    ASSERT_EQ(o.tensors[0].size(), sizeof(means));
    EXPECT_EQ(memcmp(o.tensors[0].data(), means, sizeof(means)), 0);
}

TEST(VartMl, PassesOptionsOfThatRuntimeOn) {
    const TempDir dir;
    EXPECT_EQ(run(model(dir, "12 16") + " runner-options=\"o,start_column=(uint)4\"").error, "");
    const Outcome wrong = run(model(dir, "12 16") + " runner-options=\"o,start_column=four\"");
    EXPECT_EQ(wrong.error_id, "infer-option");
    EXPECT_NE(wrong.error.find("type of option start_column"), std::string::npos) << wrong.error;
}

TEST(VartMl, SaysInASentenceWhatThatRuntimeLacks) {
    const TempDir dir;
    const std::string good = model(dir, "12 16");
    spill(dir / "m.onnx", "");
    spill(dir / "m.tar.gz", "");
    spill(dir / "empty/file", "");
    const struct {
        std::string properties, id;
        std::vector<std::string> says;
    } rows[] = {
        {"model=" + (dir / "m.onnx"),
         "infer-model-bad",
         {"m.onnx' is an ONNX file", "compile it with Vitis AI", ".rai file"}},
        {"model=" + (dir / "m.tar.gz"), "infer-model-bad", {"m.tar.gz' is a .tar.gz archive"}},
        {good + " device=softnpu",
         "infer-device-missing",
         {"device 'softnpu' is not there", "leave property 'device' at auto"}},
        {good + " runner-options=\"o,vartml_numerics=f32\"",
         "infer-option",
         {"sets 'vartml_numerics'", "does not have"}},
        {"model=" + (dir / "empty"),
         "infer-model-bad",
         {"empty': no compiled model with vaiml_par_0"}},
        {"model=" + (dir / "nowhere"), "infer-model-missing", {"nowhere': No such file"}},
    };
    for (const auto& row : rows) {
        const Outcome o = run(row.properties);
        EXPECT_EQ(o.error_id, row.id) << o.error;
        for (const std::string& text : row.says)
            EXPECT_NE(o.error.find(text), std::string::npos) << text << " in " << o.error;
        EXPECT_TRUE(o.tensors.empty());
    }
}

// Our runtime is not in the process, and every symbol of vart is the stand-in's.
TEST(VartMl, LinksThatRuntimeAlone) {
    ASSERT_TRUE(get_structure());
    EXPECT_EQ(dlopen("libvartml-runtime.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr);
    EXPECT_NE(dlopen("libvart-ml.so", RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
