// SPDX-License-Identifier: Apache-2.0
// The public report of ResNet-18, reproduced from a model of the same shape.
#include <gtest/gtest.h>

#include <sstream>

#include "lib/compile/compile.h"
#include "lib/compile/onnx/import.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::compiler {
namespace {

using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

// Convolutional networks whose weights are all the same number, so that the file stays small.
class Network {
public:
    TinyOnnx model{17};

    void constant(const std::string& name, const Ints& shape) {
        model.ints(name + "_shape", {static_cast<int64_t>(shape.size())}, shape);
        model.node("ConstantOfShape", {name + "_shape"}, {name},
                   {{"value", test::float_tensor("", {1}, {0.01f})}});
    }
    std::string conv(const std::string& x, int64_t in, int64_t out, int64_t kernel,
                     int64_t stride) {
        const std::string y = next("conv");
        constant(y + ".weight", {out, in, kernel, kernel});
        constant(y + ".bias", {out});
        const int64_t pad = kernel / 2;
        model.node("Conv", {x, y + ".weight", y + ".bias"}, {y},
                   {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}});
        return y;
    }
    std::string op(
        const std::string& kind, const std::vector<std::string>& inputs,
        const std::vector<std::pair<std::string, TinyOnnx::Attribute>>& attributes = {}) {
        const std::string y = next(kind);
        model.node(kind, inputs, {y}, attributes);
        return y;
    }

private:
    std::string next(const std::string& stem) { return stem + '_' + std::to_string(count_++); }
    int count_ = 0;
};

// 49 operators: 20 convolutions with folded batch norm, 17 activations, 8 residuals, 2 pools,
// Flatten, Gemm.
TinyOnnx resnet18() {
    Network n;
    n.model.input("input", {1, 3, 224, 224});
    std::string x = n.op("Relu", {n.conv("input", 3, 64, 7, 2)});
    x = n.op("MaxPool", {x},
             {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
    int64_t channels = 64;
    for (const int64_t width : {64, 128, 256, 512})
        for (const int block : {0, 1}) {
            const int64_t stride = block == 0 && width != 64 ? 2 : 1;
            std::string y = n.op("Relu", {n.conv(x, channels, width, 3, stride)});
            y = n.conv(y, width, width, 3, 1);
            const std::string shortcut =
                channels == width ? x : n.conv(x, channels, width, 1, stride);
            x = n.op("Relu", {n.op("Add", {y, shortcut})});
            channels = width;
        }
    x = n.op("Flatten", {n.op("GlobalAveragePool", {x})});
    n.constant("fc.weight", {1000, 512});
    n.constant("fc.bias", {1000});
    n.model.node("Gemm", {x, "fc.weight", "fc.bias"}, {"output"}, {{"transB", int64_t{1}}})
        .output("output");
    return n.model;
}

// AMD's published report, its device replaced by ours; lines that name commit, path and signature,
// and those with counts of operations, are compared apart.
const std::vector<std::string> published = {
    "--------- Final Summary of VAIML Pass ----------",
    "OS: Linux X64",
    "",
    "",
    "",
    "Device: softnpu",
    "Model data type: float32",
    "Device data type: bfloat16",
    "Number of operators in the model: 49",
    "",
    "Number of operators supported by VAIML: 49 (100.000%)",
    "",
    "Number of subgraphs supported by VAIML: 1",
    "Number of operators offloaded by VAIML: 49 (100.000%)",
    "",
    "Number of subgraphs offloaded by VAIML: 1",
    "Number of subgraphs with compilation errors (fall back to CPU): 0",
    "Number of subgraphs below 20% GOPs threshold (fall back to CPU): 0",
    "Number of subgraphs above max number of subgraphs allowed(7): 0 (fall back to CPU)",
    "Stats for offloaded subgraphs",
    "Subgraph vaiml_par_0 stats:",
    "    Type: npu",
    "    Operators: 49 (100.000%)",
    "",
};
constexpr double published_ops = 3643881552;

TEST(Golden, ReportsResNet18AsPublished) {
    test::TempDir dir;
    resnet18().save(dir / "resnet18.onnx");
    CompileRequest request;
    request.model = dir / "resnet18.onnx";
    const auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_NEAR(static_cast<double>(model->summary.total.ops), published_ops, published_ops / 100);
    EXPECT_EQ(model->summary.offloaded.ops, model->summary.total.ops);

    const std::string* text = model->find_file("final-vaiml-pass-summary.txt");
    ASSERT_TRUE(text);
    std::istringstream stream(*text);
    std::string line;
    for (size_t i = 0; i < published.size(); ++i) {
        ASSERT_TRUE(std::getline(stream, line));
#if defined(__aarch64__)
        if (i == 1) continue;
#endif
        if (!published[i].empty()) {
            EXPECT_EQ(line, published[i]) << "line " << i + 1;
        }
    }
    EXPECT_TRUE(line.starts_with("    GOPs : 3.6")) << line;
    EXPECT_NE(line.find("  OPs: 3,6"), std::string::npos) << line;
}

TEST(Golden, KeepsTheCountsAtEveryOptimisationLevel) {
    test::TempDir dir;
    resnet18().save(dir / "resnet18.onnx");
    CompileRequest request;
    request.model = dir / "resnet18.onnx";
    uint64_t ops = 0;
    for (const int level : {0, 1, 2, 3, 4}) {
        request.optimize_level = level;
        const auto model = compile_in_memory(request, nullptr, nullptr);
        ASSERT_TRUE(model) << model.error().message;
        EXPECT_EQ(model->summary.total.operators, 49u);
        if (ops != 0) {
            EXPECT_EQ(model->summary.total.ops, ops);
        }
        ops = model->summary.total.ops;
        EXPECT_EQ(model->outputs[0].hw->data_type, DataType::bf16) << "level " << level;
    }
}

}  // namespace
}  // namespace vartml::compiler
