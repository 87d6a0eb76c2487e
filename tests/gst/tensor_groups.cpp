// SPDX-License-Identifier: Apache-2.0
// Tensors in caps: what the outputs of a model are called there, and which of GStreamer's decoders
// take that. Their pad templates, as they were published, are the oracle.
#include "gst/support/tensor_groups.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;
using vartml::DataType;
using vartml::Layout;

#define NEEDS_TENSORS_IN_CAPS()                                                   \
    if (!has_tensor_groups)                                                       \
    GTEST_SKIP() << "GStreamer " << GST_VERSION_MAJOR << '.' << GST_VERSION_MINOR \
                 << " has no tensors in caps; they come with 1.28"

// GStreamer 1.28, gst/tensordecoders.
constexpr const char* yolo =
    "video/x-raw,tensors=(structure)[tensorgroups,yolo-v8-out=(/uniquelist){(GstCaps)[tensor/"
    "strided,tensor-id=(string)yolo-v8-out,dims=<(int)1,(int)[1,max],(int)[1,max]>,dims-order="
    "(string)col-major,type=(string)float32]}]";
constexpr const char* yolo_seg =
    "video/x-raw,tensors=(structure)[tensorgroups,yolo-v8-segmentation-out=(/uniquelist){(GstCaps)["
    "tensor/strided,tensor-id=yolo-v8-segmentation-out-detections,dims=(int)<1,[1,max],[1,max]>,"
    "dims-order=(string)col-major,type=(string)float32],(GstCaps)[tensor/strided,tensor-id=yolo-v8-"
    "segmentation-out-protos,dims=(int)<1,[1,max],[1,max],[1,max]>,dims-order=(string)col-major,"
    "type=(string)float32]}]";
constexpr const char* ssd =
    "video/x-raw,tensors=(structure)[tensorgroups,ssd-mobilenet-v1-variant-1-out=(/uniquelist){("
    "GstCaps)[tensor/strided,tensor-id=generic-variant-1-out-count,dims=(int)<[0,max]>,dims-order=("
    "string)row-major,type=(string)float32;],(GstCaps)[tensor/strided,tensor-id=ssd-mobilenet-v1-"
    "variant-1-out-scores,dims=(int)<[0,max],0>,dims-order=(string)row-major,type=(string)float32;]"
    ","
    "(GstCaps)[tensor/"
    "strided,tensor-id=ssd-mobilenet-v1-variant-1-out-boxes,dims=(int)<[0,max],0,4>,"
    "dims-order=(string)row-major,type=(string)float32;],(GstCaps)[tensor/strided,tensor-id=ssd-"
    "mobilenet-v1-variant-1-out-classes,dims=(int)<[0,max],0>,dims-order=(string)row-major,type=("
    "string)float32;]}];";
constexpr const char* faces =
    "video/x-raw,tensors=(structure)[tensorgroups,ultra-lightweight-face-detection-rfb-320-v1-"
    "variant-1-out=(/uniquelist){(GstCaps)[tensor/strided,tensor-id=ssd-mobilenet-v1-variant-1-out-"
    "boxes,dims=<(int)1,(int)[1,max],(int)4>,dims-order=(string)row-major,type=(string)float32;],("
    "GstCaps)[tensor/strided,tensor-id=ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-"
    "scores,dims=<(int)1,(int)[1,max],(int)2>,dims-order=(string)row-major,type=(string)float32;]}]"
    ";";
constexpr const char* softmaxed =
    "video/x-raw,tensors=(structure)[tensorgroups,classification-generic-softmaxed-out=(/"
    "uniquelist)"
    "{(GstCaps)[tensor/"
    "strided,tensor-id=classification-generic-softmaxed-out,dims=<(int)[0,1],(int)"
    "[1,max]>,dims-order=(string)row-major,type={float32,uint8};tensor/strided,tensor-id="
    "classification-generic-softmaxed-out,dims=<(int)[1,max]>,dims-order=(string)row-major,type={"
    "float32,uint8};]}]";
constexpr const char* logits =
    "video/x-raw,tensors=(structure)[tensorgroups,classification-generic-out=(/"
    "uniquelist){(GstCaps)"
    "[tensor/"
    "strided,tensor-id=classification-generic-out,dims=<(int)[0,1],(int)[1,max]>,dims-order="
    "(string)row-major,type={float32,uint8};tensor/"
    "strided,tensor-id=classification-generic-out,dims"
    "=<(int)[1,max]>,dims-order=(string)row-major,type={float32,uint8};]}]";
constexpr const char* all_templates[] = {yolo, yolo_seg, ssd, faces, softmaxed, logits};

struct Output {
    const char* name;
    std::vector<uint32_t> shape;
    const char* id = "";  // of the sidecar
    DataType type = DataType::float32;
    const char* ends_in = "";
    bool column_major = false;
};

InferenceRecord record_of(const std::vector<Output>& outputs, const char* group_id = "") {
    InferenceRecord record;
    record.model_info.group_id = group_id;
    for (const Output& output : outputs) {
        std::vector<uint32_t> order(output.shape.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        vartml::TensorInfo info;
        info.name = output.name;
        info.cpu = vartml::make_view(output.type, Layout::GENERIC, output.shape, order);
        record.views.push_back(info.cpu);
        record.outputs.push_back(info);
        record.tensor_ids.emplace_back(*output.id ? output.id : output.name);
        vartml::ModelInfo::Output said{.name = output.name, .id = output.id, .role = ""};
        said.ends_in = output.ends_in;
        said.column_major = output.column_major;
        record.model_info.outputs.push_back(said);
    }
    return record;
}

std::vector<std::string> ids_of(const std::vector<TensorGroup>& groups) {
    std::vector<std::string> ids;
    for (const TensorGroup& group : groups) ids.push_back(group.id);
    return ids;
}

// Which of the published templates take these tensors, by their group.
std::vector<std::string> taken_by_upstream(const TensorGroup& group) {
    GstCaps* caps = add_group(gst_caps_from_string("video/x-raw,format=RGB,width=8,height=8,"
                                                   "framerate=30/1"),
                              group);
    EXPECT_TRUE(gst_caps_is_fixed(caps));
    std::vector<std::string> takers;
    for (const char* text : all_templates) {
        GstCaps* published = gst_caps_from_string(text);
        EXPECT_NE(published, nullptr) << text;
        const GstStructure* s = gst_caps_get_structure(published, 0);
        const bool taken = gst_caps_is_subset(caps, published);
        EXPECT_EQ(takes_group(s, group), taken) << text;
        if (taken) takers.push_back(group_names(s));
        gst_caps_unref(published);
    }
    GstCaps* own = own_group_caps();
    EXPECT_EQ(gst_caps_is_subset(caps, own), group.id == own_group);
    if (group.id == own_group) takers.push_back(own_group);
    gst_caps_unref(own);
    gst_caps_unref(caps);
    return takers;
}

using Names = std::vector<std::string>;
constexpr const char* ultraface = "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out";
constexpr const char* mobilenet = "ssd-mobilenet-v1-variant-1-out";

struct Case {
    const char* why;
    std::vector<Output> outputs;
    const char* family;
    const char* group_id;
    Names groups;
};
const Case cases[] = {
    {"a YOLO v8 that nobody described",
     {{"output0", {1, 84, 8400}}},
     "yolo-v8",
     "",
     {own_group, "yolo-v8-out"}},
    {"one with upstream's ids",
     {{"output0", {1, 84, 8400}, "yolo-v8-out", DataType::float32, "", true}},
     "yolo-v8",
     "yolo-v8-out",
     {"yolo-v8-out", own_group}},
    {"upstream's id without a group",
     {{"output0", {1, 84, 8400}, "yolo-v8-out"}},
     "yolo-v8",
     "",
     {"yolo-v8-out", own_group}},
    {"masks",
     {{"output0", {1, 116, 8400}}, {"output1", {1, 32, 160, 160}}},
     "yolo-v8-seg",
     "",
     {own_group, "yolo-v8-segmentation-out"}},
    {"half precision",
     {{"output0", {1, 84, 8400}, "", DataType::fp16}},
     "yolo-v8",
     "",
     {own_group}},
    {"another family of the same shape", {{"output0", {1, 84, 8400}}}, "yolox", "", {own_group}},
    {"a classifier that ends in softmax",
     {{"prob", {1, 1000}, "", DataType::float32, "softmax"}},
     "classify",
     "",
     {own_group, "classification-generic-softmaxed-out"}},
    {"a classifier of logits",
     {{"prob", {1, 1000}, "", DataType::float32, "linear"}},
     "classify",
     "",
     {own_group, "classification-generic-out"}},
    {"a classifier whose end nobody knows", {{"prob", {1, 1000}}}, "classify", "", {own_group}},
    {"faces whose boxes may be relative to priors",
     {{"scores", {1, 4420, 2}}, {"boxes", {1, 4420, 4}}},
     "ultraface",
     "",
     {own_group}},
    {"faces with upstream's ids",
     {{"scores", {1, 4420, 2}, "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores"},
      {"boxes", {1, 4420, 4}, "ssd-mobilenet-v1-variant-1-out-boxes"}},
     "ultraface",
     ultraface,
     {ultraface, own_group}},
    {"an SSD with upstream's ids",
     {{"b", {1, 100, 4}, "ssd-mobilenet-v1-variant-1-out-boxes"},
      {"c", {1, 100}, "ssd-mobilenet-v1-variant-1-out-classes"},
      {"s", {1, 100}, "ssd-mobilenet-v1-variant-1-out-scores"},
      {"n", {1}, "generic-variant-1-out-count"}},
     "ssd",
     mobilenet,
     {mobilenet, own_group}},
    {"a group of one's own",
     {{"x", {3, 4}, "my-id"}, {"y", {}}},
     "",
     "my-out",
     {"my-out", own_group}},
    {"upstream's group over tensors of another shape",
     {{"x", {3, 4}, "yolo-v8-out"}},
     "",
     "yolo-v8-out",
     {own_group}},
    {"whole numbers of all sizes",
     {{"a", {1}, "", DataType::int8},
      {"b", {1}, "", DataType::uint16},
      {"c", {1}, "", DataType::int64},
      {"d", {1}, "", DataType::boolean},
      {"e", {1}, "", DataType::bf16}},
     "",
     "",
     {own_group}},
};

TEST(TensorGroups, FollowTheSidecarThenTheFamily) {
    NEEDS_TENSORS_IN_CAPS();
    for (const Case& c : cases)
        EXPECT_EQ(ids_of(tensor_groups(record_of(c.outputs, c.group_id), c.family)), c.groups)
            << c.why;
}

TEST(TensorGroups, AreTakenByTheDecodersOfTheirNameAlone) {
    NEEDS_TENSORS_IN_CAPS();
    for (const Case& c : cases) {
        for (const TensorGroup& group : tensor_groups(record_of(c.outputs, c.group_id), c.family)) {
            const Names expected = group.id == "my-out" ? Names() : Names{group.id};
            EXPECT_EQ(taken_by_upstream(group), expected) << c.why;
        }
    }
}

TEST(TensorGroups, NameTensorsAsTheSidecarDoes) {
    NEEDS_TENSORS_IN_CAPS();
    const InferenceRecord record =
        record_of({{"x", {3, 4}, "my-id", DataType::float32, "", true}, {"y", {2}}}, "my-out");
    for (const TensorGroup& group : tensor_groups(record, "")) {
        ASSERT_EQ(group.tensors.size(), 2u);
        EXPECT_EQ(group.tensors[0].id, "my-id");
        EXPECT_EQ(group.tensors[0].order, GST_TENSOR_DIM_ORDER_COL_MAJOR);
        EXPECT_EQ(group.tensors[1].id, "y");
        EXPECT_EQ(group.tensors[1].order, GST_TENSOR_DIM_ORDER_ROW_MAJOR);
    }
}

TEST(TensorGroups, OfADeviceAreOursAlone) {
    NEEDS_TENSORS_IN_CAPS();
    InferenceRecord record = record_of({{"output0", {1, 84, 80, 80}}}, "");
    record.hw = true;
    record.views[0] = vartml::hw_view(
        vartml::make_view(DataType::float32, Layout::NCHW, {1, 84, 80, 80}, {0, 1, 2, 3}),
        Layout::HCWNC4, DataType::int8);
    const auto groups = tensor_groups(record, "yolo-v8");
    ASSERT_EQ(ids_of(groups), Names{own_group});
    EXPECT_EQ(groups[0].tensors[0].type, "int8");
    EXPECT_EQ(groups[0].tensors[0].layout, "HCWNC4");
    EXPECT_EQ(groups[0].tensors[0].dims, (std::vector<uint32_t>{1, 84, 80, 80}));
    EXPECT_EQ(taken_by_upstream(groups[0]), Names{own_group});
}

TEST(TensorGroups, StandBesideThoseThatAreThere) {
    NEEDS_TENSORS_IN_CAPS();
    const auto first = tensor_groups(record_of({{"a", {1, 4}}}), "");
    const auto second = tensor_groups(record_of({{"b", {1, 6}}}), "");
    const auto other = tensor_groups(record_of({{"output0", {1, 84, 8400}}}), "yolo-v8");
    GstCaps* caps = add_group(gst_caps_from_string("video/x-raw"), first[0]);
    caps = add_group(caps, second[0]);
    caps = add_group(caps, other[1]);
    EXPECT_EQ(group_names(gst_caps_get_structure(caps, 0)), "vartml-out, yolo-v8-out");
    const std::vector<GQuark> both = group_tensors(caps, own_group);
    EXPECT_EQ(both, (std::vector<GQuark>{g_quark_from_string("a"), g_quark_from_string("b")}));
    EXPECT_TRUE(have_groups(caps));
    GstCaps* own = own_group_caps();
    EXPECT_TRUE(gst_caps_is_subset(caps, own));
    gst_caps_unref(own);
    caps = without_groups(caps);
    EXPECT_FALSE(have_groups(caps));
    EXPECT_TRUE(group_tensors(caps, own_group).empty());
    gst_caps_unref(caps);
}

// As the registry stores pad templates.
TEST(TensorGroups, OfOursAreReadAsTheyWereWritten) {
    NEEDS_TENSORS_IN_CAPS();
    GstCaps* own = own_group_caps();
    gchar* text = gst_caps_to_string(own);
    GstCaps* again = gst_caps_from_string(text);
    ASSERT_NE(again, nullptr) << text;
    EXPECT_TRUE(gst_caps_is_equal(own, again)) << text;
    g_free(text);
    gst_caps_unref(own);
    gst_caps_unref(again);
}

TEST(TensorGroups, AreTheNamesOfTheRecordWhereCapsHaveNone) {
    if (has_tensor_groups) GTEST_SKIP() << "this GStreamer has tensors in caps";
    const InferenceRecord record = record_of(
        {{"output0", {1, 84, 8400}, "yolo-v8-out", DataType::float32, "", true}}, "yolo-v8-out");
    const auto groups = tensor_groups(record, "yolo-v8");
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].tensors[0].id, "yolo-v8-out");
    EXPECT_EQ(groups[0].tensors[0].order, GST_TENSOR_DIM_ORDER_ROW_MAJOR);
    GstCaps* caps = gst_caps_from_string("video/x-raw");
    EXPECT_EQ(add_group(caps, groups[0]), caps);
    EXPECT_FALSE(gst_structure_has_field(gst_caps_get_structure(caps, 0), "tensors"));
    gst_caps_unref(caps);
}

TEST(TensorGroups, OfTheRegistryLieInTheOrderOfTheirDimensions) {
    for (const char* id :
         {"yolo-v8-out", "yolo-v8-segmentation-out-detections", "yolo-v8-segmentation-out-protos"})
        EXPECT_TRUE(is_row_major(id)) << id;
    for (const char* id : {"output0", "", "yolo-v8-out-2"}) EXPECT_FALSE(is_row_major(id)) << id;
}

}  // namespace
