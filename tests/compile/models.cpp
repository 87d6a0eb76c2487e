// SPDX-License-Identifier: Apache-2.0
// The real models through import and all passes: what their graphs are made of afterwards.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "lib/compile/onnx/import.h"
#include "lib/compile/pass_table.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"

namespace vartml::compiler {
namespace {

struct Model {
    const char* name;
    std::map<std::string, std::vector<int64_t>> shapes;
    std::set<std::string> gone;   // kinds that must not be left
    std::set<std::string> there;  // kinds that must be there
};
void PrintTo(const Model& model, std::ostream* os) {
    *os << model.name;
}

class Models : public testing::TestWithParam<Model> {};
TEST_P(Models, EndInTheOperatorsThatADeviceRuns) {
    const char* shared = std::getenv("VARTML_SHARED");
    const auto file =
        std::filesystem::path(shared ? shared : "") / "models" / GetParam().name / "model.onnx";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
    auto imported = onnx::import_onnx(file.string(), {.input_shapes = GetParam().shapes});
    ASSERT_TRUE(imported) << imported.error().message;
    graph::Graph& graph = imported->graph;

    // Text and graph say the same, before and after.
    const auto read = graph::parse(graph::print(graph), &graph);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(graph::print(*read), graph::print(graph));

    const auto reports = run_passes(graph, {.level = 2, .verify = true});
    ASSERT_TRUE(reports) << reports.error().message;
    const std::string text = graph::print(graph);
    const auto again = graph::parse(text, &graph);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(graph::print(*again), text);

    std::set<std::string> kinds;
    for (const graph::Node& node : graph.nodes) kinds.insert(node.type());
    for (const std::string& kind : GetParam().gone) EXPECT_FALSE(kinds.contains(kind)) << kind;
    for (const std::string& kind : GetParam().there) EXPECT_TRUE(kinds.contains(kind)) << kind;
    if (const char* folder = std::getenv("VARTML_PRINT_GRAPHS")) {
        FILE* out = std::fopen((std::string(folder) + '/' + GetParam().name + ".txt").c_str(), "w");
        std::fputs(text.c_str(), out);
        std::fclose(out);
    }
}

const Model models[] = {
    {"bodypix_s8", {{"input", {1, 353, 481, 3}}}, {"Shape", "Gather", "Clip"}, {"Conv+Clip"}},
    {"deimv2_femto_coco", {}, {"Shape", "Relu"}, {"Conv+Relu"}},
    {"hand_landmark", {}, {"Clip"}, {"Conv+Clip"}},
    {"lightperson", {}, {"Slice", "Sigmoid", "Mul"}, {"Conv+SiLU"}},
    // CNTK adds the bias as an operator of its own.
    {"mnist_cntk", {}, {"Add", "Relu"}, {"Conv+Relu", "MatMul"}},
    {"nanodet_m_320", {}, {"LeakyRelu"}, {"Conv+LeakyRelu"}},
    {"person_reid_0287", {}, {"BatchNormalization"}, {"GlobalAveragePool"}},
    {"ppocr_cls",
     {{"x", {1, 3, 48, 192}}},
     {"BatchNormalization", "Div", "Shape"},
     {"Conv+HardSwish"}},
    {"road_seg_adas", {}, {"Pad", "Shape"}, {"Conv+Add+Relu"}},
    {"selfie_landscape", {}, {"Clip"}, {"Conv+HardSwish", "Conv+Sigmoid"}},
    {"shufflenet_v2_int8", {}, {"Shape"}, {"QLinearConv"}},
    {"super_resolution_10", {}, {"Reshape", "Transpose"}, {"DepthToSpace"}},
    {"ultraface_rfb_320",
     {},
     {"Shape", "Gather", "Unsqueeze", "BatchNormalization"},
     {"Conv+Relu"}},
    {"yolox_nano_416",
     {},
     {"Slice", "Sigmoid", "Mul", "Add"},
     {"Conv+SiLU", "Conv+SiLU+Add", "Conv+Sigmoid"}},
    {"yunet_n_320", {}, {"Relu"}, {"Conv+Relu"}},
};
INSTANTIATE_TEST_SUITE_P(Compiler, Models, testing::ValuesIn(models),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::compiler
