// SPDX-License-Identifier: Apache-2.0
// The models for ONNX Runtime inside programs: carried by every container, never trusted.
#include "lib/model/onnx_model.h"

#include <gtest/gtest.h>

#include "lib/model/compiled_model.h"
#include "lib/model/program.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

using artifact::fault_of_onnx_model;

// A field of protobuf's wire format that holds a message or bytes, below 128 bytes.
std::string field(unsigned number, const std::string& content) {
    std::string bytes;
    for (unsigned tag = number << 3 | 2; tag != 0; tag >>= 7)
        bytes += static_cast<char>(tag >= 128 ? tag | 128 : tag);
    return bytes + static_cast<char>(content.size()) + content;
}
std::string number_field(unsigned number, char value) {
    return {static_cast<char>(number << 3), value};
}

constexpr unsigned graph = 7, node = 1, initialiser = 5, attribute = 5, subgraph = 6, tensor = 5;

// A model with a tensor as initialiser of its graph.
std::string model_with(const std::string& of_tensor) {
    return number_field(1, 8) + field(graph, field(initialiser, of_tensor));
}

TEST(OnnxModel, MayLieInsideAProgram) {
    const std::string raw = field(9, "abcd");
    for (const std::string& model : {model_with(raw), model_with(number_field(14, 0) + raw)})
        EXPECT_EQ(fault_of_onnx_model(as_bytes(model)), std::nullopt);
}

TEST(OnnxModel, NamesNoOtherFile) {
    const std::string external = number_field(14, 1), location = field(13, field(1, "location"));
    const std::string in_branch =
        field(graph, field(node, field(attribute, field(subgraph, field(initialiser, external)))));
    const std::string in_attribute =
        field(graph, field(node, field(attribute, field(tensor, location))));
    for (const std::string& model :
         {model_with(external), model_with(location), in_branch, in_attribute})
        EXPECT_EQ(fault_of_onnx_model(as_bytes(model)), "takes a tensor from another file");
}

// Protobuf reads 32 bits of a tag: with more of them a field would be one here and another there.
TEST(OnnxModel, HasNoTagThatProtobufReadsOtherwise) {
    const std::string location = "\x0a\x08location";
    const std::string hidden =
        std::string("\xEA\x80\x80\x80\x10") + static_cast<char>(10) + location;
    EXPECT_EQ(fault_of_onnx_model(as_bytes(model_with(hidden))), "is damaged");
    EXPECT_EQ(fault_of_onnx_model(as_bytes(model_with(std::string("\xF0\x80\x80\x80\x10\x01")))),
              "is damaged");
}

TEST(OnnxModel, IsWhole) {
    const std::string model = model_with(field(9, "abcd"));
    EXPECT_EQ(fault_of_onnx_model({}), "is empty");
    for (size_t size = 3; size < model.size(); ++size)
        EXPECT_EQ(fault_of_onnx_model(as_bytes(model).first(size)), "is cut off") << size;
    EXPECT_EQ(fault_of_onnx_model(as_bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
              "is damaged");
    std::string deep;
    for (int i = 0; i < 8; ++i) deep = field(graph, field(node, field(attribute, deep)));
    EXPECT_EQ(fault_of_onnx_model(as_bytes(deep)), std::nullopt);
}

const std::string good_model = model_with(field(9, "abcd"));

TEST(OnnxModel, IsCarriedByEveryContainer) {
    const test::TempDir dir;
    const auto model =
        test::one_node_model("OnnxRuntime", artifact::onnxruntime_target, good_model);
    ASSERT_TRUE(artifact::write_directory(model, dir / "d"));
    ASSERT_TRUE(artifact::write_rai(model, dir / "m.rai"));
    ASSERT_TRUE(artifact::write_tar(model, dir / "m.tar.gz"));
    for (const char* name : {"d", "m.rai", "m.tar.gz"}) {
        const auto read = artifact::read(dir / name);
        ASSERT_TRUE(read) << read.error().message;
        const artifact::Partition& p = read->partitions.at(0);
        EXPECT_EQ(p.target, artifact::onnxruntime_target);
        const graph::Node& n = p.graph.nodes.at(0);
        EXPECT_EQ(as_text(p.graph.value(n.inputs[0]).constant->bytes), good_model);
    }
}

TEST(OnnxModel, IsCheckedByTheReader) {
    struct Row {
        artifact::CompiledModel model;
        const char* fault;
    };
    const Row rows[] = {
        {test::one_node_model("OnnxRuntime", artifact::cpu_target, good_model),
         "has node 'n' (OnnxRuntime) in a program for cpu-1"},
        {test::one_node_model("Relu", artifact::onnxruntime_target),
         "has node 'n' (Relu) in a program for onnxruntime-1"},
        {test::one_node_model("OnnxRuntime", artifact::onnxruntime_target,
                              model_with(number_field(14, 1))),
         "node 'n' has a model for ONNX Runtime that takes a tensor from another file"},
    };
    const test::TempDir dir;
    for (const Row& row : rows) {
        ASSERT_TRUE(artifact::write_rai(row.model, dir / "m.rai"));
        const auto read = artifact::read(dir / "m.rai");
        ASSERT_FALSE(read) << row.fault;
        EXPECT_EQ(read.error().code, ErrorCode::bad_model);
        EXPECT_NE(read.error().message.find(row.fault), std::string::npos) << read.error().message;
    }
}

}  // namespace
}  // namespace vartml
