// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/patches.h"

#include <gtest/gtest.h>

#include "lib/graph/numbers.h"
#include "tests/support/graphs.h"
#include "tests/support/interpreter.h"

namespace vartml::compiler {
namespace {

struct Case {
    const char* name;
    const char* text;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}
const Case cases[] = {
    {"Pointwise", R"(input %x : f32[1,3,4,5]
const %w : f32[2,3,1,1] = {0.0}
%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,5]
)"},
    {"PadsStridesAndGaps", R"(input %x : f32[2,3,9,8]
const %w : f32[4,3,3,2] = {0.0}
%y = Conv %x, %w {dilations=[2,1], group=1, pads=[2,1,1,0], strides=[1,2]} : f32[2,4,8,4]
)"},
    {"Depthwise", R"(input %x : f32[1,4,6,6]
const %w : f32[4,1,3,3] = {0.0}
%y = Conv %x, %w {dilations=[1,1], group=4, pads=[1,1,1,1], strides=[2,2]} : f32[1,4,3,3]
)"},
    {"GroupsOfTwo", R"(input %x : f32[1,4,5,5]
const %w : f32[6,2,3,3] = {0.0}
%y = Conv %x, %w {dilations=[1,1], group=2, pads=[0,0,0,0], strides=[1,1]} : f32[1,6,3,3]
)"},
    {"OneDimension", R"(input %x : f32[1,3,9]
const %w : f32[2,3,3] = {0.0}
%y = Conv %x, %w {dilations=[1], group=1, pads=[1,1], strides=[2]} : f32[1,2,5]
)"},
    {"Matrix", R"(input %x : f32[4,3]
const %w : f32[3,5] = {0.0}
%y = MatMul %x, %w : f32[4,5]
)"},
    {"MatrixTheOtherWay", R"(input %x : f32[4,3]
const %w : f32[5,3] = {0.0}
%y = Gemm %x, %w {transB=1} : f32[4,5]
)"},
};

class PatchesOf : public testing::TestWithParam<Case> {};

// All patches, in the order of the result.
TEST_P(PatchesOf, TimesRowsAreTheResult) {
    graph::Graph graph =
        graph::must_parse("graph net\n" + std::string(GetParam().text) + "output %y\n");
    graph::randomise_constants(graph);
    const auto y = graph::interpret(graph);
    ASSERT_TRUE(y) << y.error().message;
    graph.outputs = {graph.inputs[0]};
    const auto x = graph::interpret(graph);
    ASSERT_TRUE(x) << x.error().message;
    const auto patches = Patches::create(graph, graph.nodes[0]);
    ASSERT_TRUE(patches);
    const auto weights = graph::read_numbers<float>(graph.value(graph.nodes[0].inputs[1]));
    const std::vector<float> rows = patches->rows_of(weights);
    EXPECT_EQ(patches->weights_of<float>(rows), weights);
    EXPECT_TRUE(patches->weights_of<int8_t>({}).empty());
    const std::vector<float> input((*x)[0].begin(), (*x)[0].end());
    const std::vector<float> read = patches->read(input, 1000, 0);
    const size_t size = patches->size(), length = patches->groups() * size;
    const size_t outputs = patches->outputs(), count = read.size() / length;
    ASSERT_EQ(count * outputs, (*y)[0].size());
    const auto& shape = graph.value(graph.nodes[0].outputs[0]).type.shape;
    const bool is_matrix = shape.size() == 2;
    const size_t plane = is_matrix ? 1 : count / static_cast<size_t>(shape[0]);
    for (size_t n = 0; n < count; ++n)
        for (size_t o = 0; o < outputs; ++o) {
            const size_t group = o / (outputs / patches->groups());
            double sum = 0;
            for (size_t i = 0; i < size; ++i)
                sum += static_cast<double>(read[n * length + group * size + i]) *
                       static_cast<double>(rows[o * size + i]);
            const size_t at = (n / plane * outputs + o) * plane + n % plane;
            EXPECT_NEAR(sum, (*y)[0][at], 1e-4) << n << ' ' << o;
        }
}

INSTANTIATE_TEST_SUITE_P(Products, PatchesOf, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Patches, AreSpreadOverTheInputAndDifferFromSampleToSample) {
    const graph::Graph graph = graph::must_parse(R"(graph net
input %x : f32[1,1,1,100]
const %w : f32[1,1,1,1] = {1.0}
%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,1,1,100]
output %y
)");
    const auto patches = Patches::create(graph, graph.nodes[0]);
    ASSERT_TRUE(patches);
    std::vector<float> input(100);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
    EXPECT_EQ(patches->read(input, 4, 0), (std::vector<float>{0, 25, 50, 75}));
    EXPECT_NE(patches->read(input, 4, 1), patches->read(input, 4, 0));
}

}  // namespace
}  // namespace vartml::compiler
