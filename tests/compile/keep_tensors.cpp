// SPDX-License-Identifier: Apache-2.0
// Which tensors of a compiled model are those of the ONNX model.
#include "lib/compile/connect.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/compile/compile.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::compiler {
namespace {

using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

struct Kept {
    std::vector<std::string> names, outputs;
    size_t in_onnx = 0;
};

Kept keep(const TinyOnnx& onnx, bool npu = true) {
    const test::TempDir folder;
    onnx.save(folder / "m.onnx");
    CompileRequest request;
    request.model = folder / "m.onnx";
    request.npu = npu;
    std::string ignored;
    auto model = compile_in_memory(request, &ignored, nullptr);
    EXPECT_TRUE(model) << model.error().message;
    auto kept = keep_tensors(std::move(*model), request.model);
    EXPECT_TRUE(kept) << kept.error().message;
    Kept result;
    for (const KeptTensor& t : kept->tensors) result.names.push_back(t.name);
    for (const TensorInfo& t : kept->model.outputs) result.outputs.push_back(t.name);
    result.in_onnx = kept->in_onnx;
    // What is kept can be written and read: sizes, places and edges fit.
    EXPECT_TRUE(artifact::write_rai(kept->model, folder / "kept.rai"));
    const auto again = artifact::read(folder / "kept.rai");
    EXPECT_TRUE(again) << again.error().message;
    return result;
}

using Names = std::vector<std::string>;

TEST(KeepTensors, LeavesOutWhatIsFused) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {4, 3, 1, 1})
        .node("Conv", {"x", "w"}, {"c"})
        .node("Relu", {"c"}, {"r"})
        .node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", Ints{2, 2}}})
        .node("Relu", {"p"}, {"y"})
        .output("y");
    const Kept kept = keep(m);
    EXPECT_EQ(kept.in_onnx, 4u);
    EXPECT_EQ(kept.outputs[0], "y");  // the model's own come first
    EXPECT_EQ(std::ranges::count(kept.names, "c"), 0);
    EXPECT_EQ(std::ranges::count(kept.names, "r"), 1);
    EXPECT_EQ(std::ranges::count(kept.names, "y"), 1);
}

// The Sigmoid joins the convolution in front of Transpose and Reshape: what they hold is not what
// they hold in the ONNX model.
TEST(KeepTensors, LeavesOutWhatAnOperatorWasMovedPast) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {4, 3, 1, 1})
        .ints("rows", {3}, {1, -1, 4})
        .node("Conv", {"x", "w"}, {"c"})
        .node("Transpose", {"c"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
        .node("Reshape", {"t", "rows"}, {"r"})
        .node("Sigmoid", {"r"}, {"y"})
        .output("y");
    const Kept kept = keep(m);
    for (const char* moved : {"c", "t", "r"})
        EXPECT_EQ(std::ranges::count(kept.names, moved), 0) << moved;
    EXPECT_EQ(kept.names, Names{"y"});
}

TEST(KeepTensors, CrossesPartitions) {
    TinyOnnx m;
    m.input("x", {1, 4, 8, 8})
        .weights("w", {4, 4, 3, 3})
        .ints("k", {1}, {1})
        .node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}})
        .node("TopK", {"a", "k"}, {"v", "i"})
        .node("Cast", {"i"}, {"f"}, {{"to", int64_t{TinyOnnx::float32}}})
        .node("Add", {"v", "f"}, {"y"})
        .output("y");
    for (const bool npu : {true, false}) {
        const Kept kept = keep(m, npu);
        for (const char* name : {"a", "v", "i", "y"})
            EXPECT_EQ(std::ranges::count(kept.outputs, name), 1) << name;
    }
}

TEST(KeepTensors, KnowsAFloatModelThatWasMadeInt8) {
    const test::TempDir folder;
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {4, 3, 1, 1})
        .node("Conv", {"x", "w"}, {"c"})
        .node("Relu", {"c"}, {"r"})
        .weights("v", {4, 4, 1, 1})
        .node("Conv", {"r", "v"}, {"y"})
        .output("y")
        .save(folder / "m.onnx");
    CompileRequest request;
    request.model = folder / "m.onnx";
    std::string ignored;
    const auto plain = compile_in_memory(request, &ignored, nullptr);
    ASSERT_TRUE(plain);
    EXPECT_FALSE(*was_quantised(*plain, request.model));
    request.quantise.set = "set";
    request.quantise.measure = [](const artifact::CompiledModel& probe, size_t) {
        Statistics statistics;
        for (const auto* tensors : {&probe.inputs, &probe.outputs})
            for (const TensorInfo& t : *tensors)
                statistics[t.name].add(std::vector<float>{-1, 1}, 0, 0);
        return Result<Statistics>(statistics);
    };
    const auto int8 = compile_in_memory(request, &ignored, nullptr);
    ASSERT_TRUE(int8) << int8.error().message;
    EXPECT_TRUE(*was_quantised(*int8, request.model));
}

}  // namespace
}  // namespace vartml::compiler
