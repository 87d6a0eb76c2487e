// SPDX-License-Identifier: Apache-2.0
// The passes over quantised models as two texts each: before and after. `after` empty: the pass
// must leave the graph alone. Both are run: codes may differ by one, floats by a step.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lib/compile/pass_table.h"
#include "lib/compile/passes/passes.h"
#include "tests/support/graphs.h"
#include "tests/support/quantised.h"
#include "tests/support/reference.h"

namespace vartml::compiler {
namespace {

using graph::Graph;

struct Case {
    const char* name;
    Result<PassStats> (*pass)(Graph&);
    const char* before;
    const char* after;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

// Node lines only.
std::string structure(const Graph& graph) {
    const std::string text = graph::print(graph);
    std::string result;
    for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        if (line.starts_with("%")) result += line.substr(0, line.find(" @")) + '\n';
    }
    return result;
}

std::vector<test::Tensor> run(const Graph& graph) {
    std::mt19937 random(3);
    std::vector<test::Tensor> inputs;
    for (const auto id : graph.inputs) {
        const auto& type = graph.value(id).type;
        auto& numbers = inputs.emplace_back(static_cast<size_t>(type.elements()));
        for (float& n : numbers) {
            const auto code = static_cast<float>(random() % 256);
            n = type.data_type == DataType::uint8  ? code
                : type.data_type == DataType::int8 ? code - 128
                                                   : (code - 128) / 50;
        }
    }
    return test::run_reference(test::in_floats(graph), inputs);
}

class QuantisedPasses : public testing::TestWithParam<Case> {};

TEST_P(QuantisedPasses, GiveTheTextBehind) {
    Graph graph = graph::must_parse(GetParam().before);
    test::randomise_quantised(graph, 1);
    const std::string before = structure(graph);
    const auto expected = run(graph);
    const auto stats = GetParam().pass(graph);
    ASSERT_TRUE(stats) << stats.error().message;
    if (auto ok = graph::verify(graph); !ok)
        FAIL() << ok.error().message << "\n" << graph::print(graph);
    const bool leaves_alone = !*GetParam().after;
    EXPECT_EQ(stats->rewrites == 0, leaves_alone);
    const auto after = graph::parse(GetParam().after);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(structure(graph), leaves_alone ? before : structure(*after));
    const auto found = run(graph);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t o = 0; o < found.size(); ++o) {
        const bool codes = graph.value(graph.outputs[o]).type.data_type != DataType::float32;
        ASSERT_EQ(found[o].size(), expected[o].size());
        for (size_t i = 0; i < found[o].size(); ++i)
            ASSERT_NEAR(found[o][i], expected[o][i], codes ? 1.0 : 1e-4) << "element " << i;
    }
}

#define X "input %x : u8[1,4,8,8]\n"
#define PARAMETERS                                                                   \
    "const %s : f32[] = {0.05}\nconst %z : u8[] = {100}\nconst %t : f32[] = {0.3}\n" \
    "const %low : u8[] = {0}\n"
#define P X PARAMETERS
#define A "%a = DequantizeLinear %x, %s, %z {axis=0} : f32[1,4,8,8]\n"
#define W                                                                                  \
    "const %w : i8[6,4,3,3] = {0}\nconst %ws : f32[6] = {0}\nconst %wzero : i8[6] = {0}\n" \
    "%wr = DequantizeLinear %w, %ws, %wzero {axis=0} : f32[6,4,3,3]\n"

// Quantised products have scales of columns for matrices alone.
TEST(QuantiseOperators, LeaveAVectorBeforeScalesOfColumns) {
    Graph graph = graph::must_parse(PARAMETERS R"(
        input %x : u8[40]
        const %w : i8[40,20] = {0}
        const %ws : f32[20] = {0}
        %a = DequantizeLinear %x, %s, %z {axis=0} : f32[40]
        %b = DequantizeLinear %w, %ws {axis=1} : f32[40,20]
        %d = MatMul %a, %b : f32[20]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[20]
        output %y)");
    const auto stats = quantise_operators(graph);
    ASSERT_TRUE(stats) << stats.error().message;
    EXPECT_EQ(stats->rewrites, 0U);
}

const Case cases[] = {
    // ---- sink_dequantise
    {"SinksToTheQuantizeLinearThatUndoesIt", sink_dequantise, P A R"(
        %b = Reshape %a {shape=[1,2,2,8,8]} : f32[1,2,2,8,8]
        %c = Transpose %b {perm=[0,2,1,3,4]} : f32[1,2,2,8,8]
        %d = Reshape %c {shape=[1,4,8,8]} : f32[1,4,8,8]
        %y = QuantizeLinear %d, %s, %z {axis=0} : u8[1,4,8,8]
        output %y)",
     P R"(
        %b_quantised = Reshape %x {shape=[1,2,2,8,8]} : u8[1,2,2,8,8]
        %c_quantised = Transpose %b_quantised {perm=[0,2,1,3,4]} : u8[1,2,2,8,8]
        %y = Reshape %c_quantised {shape=[1,4,8,8]} : u8[1,4,8,8]
        output %y)"},
    {"SinksBelowAllOutputs", sink_dequantise, P A R"(
        %b, %y = Split %a {axis=1, split=[1,3]} : f32[1,1,8,8], f32[1,3,8,8]
        output %b
        output %y)",
     P R"(
        %b_quantised, %y_quantised = Split %x {axis=1, split=[1,3]} : u8[1,1,8,8], u8[1,3,8,8]
        %y = DequantizeLinear %y_quantised, %s, %z {axis=0} : f32[1,3,8,8]
        %b = DequantizeLinear %b_quantised, %s, %z {axis=0} : f32[1,1,8,8]
        output %b
        output %y)"},
    {"SinksBelowConcatOfEqualParameters", sink_dequantise, P A R"(
        %b = Concat %a, %a {axis=1} : f32[1,8,8,8]
        %y = Relu %b : f32[1,8,8,8]
        output %y)",
     P R"(
        %b_quantised = Concat %x, %x {axis=1} : u8[1,8,8,8]
        %b = DequantizeLinear %b_quantised, %s, %z {axis=0} : f32[1,8,8,8]
        %y = Relu %b : f32[1,8,8,8]
        output %y)"},
    {"LeavesConcatOfOtherParametersAlone", sink_dequantise, P A R"(
        %b = DequantizeLinear %x, %t, %z {axis=0} : f32[1,4,8,8]
        %y = Concat %a, %b {axis=1} : f32[1,8,8,8]
        output %y)",
     ""},
    // Zero is the code 100.
    {"PadsWithTheCodeOfZero", sink_dequantise, P A R"(
        %y = Pad %a {mode="constant", pads=[0,0,1,1,0,0,0,0], value=0.0} : f32[1,4,9,9]
        output %y)",
     P R"(
        %y_quantised = Pad %x {mode="constant", pads=[0,0,1,1,0,0,0,0], value=100.0} : u8[1,4,9,9]
        %y = DequantizeLinear %y_quantised, %s, %z {axis=0} : f32[1,4,9,9]
        output %y)"},
    {"LeavesPadWithoutACodeAlone", sink_dequantise, P A R"(
        %y = Pad %a {mode="constant", pads=[0,0,1,1,0,0,0,0], value=0.03} : f32[1,4,9,9]
        output %y)",
     ""},
    {"QuantisesBeforeMoving", sink_dequantise, R"(
        input %x : f32[1,4,8,8]
        const %s : f32[] = {0.05}
        const %z : u8[] = {100}
        %a = Relu %x : f32[1,4,8,8]
        %b = Transpose %a {perm=[0,2,3,1]} : f32[1,8,8,4]
        %y = QuantizeLinear %b, %s, %z {axis=0} : u8[1,8,8,4]
        output %y)",
     R"(
        input %x : f32[1,4,8,8]
        const %s : f32[] = {0.05}
        const %z : u8[] = {100}
        %a = Relu %x : f32[1,4,8,8]
        %a_quantised = QuantizeLinear %a, %s, %z {axis=0} : u8[1,4,8,8]
        %y = Transpose %a_quantised {perm=[0,2,3,1]} : u8[1,8,8,4]
        output %y)"},
    {"LeavesScalesPerChannelAlone", sink_dequantise, X R"(
        const %s : f32[4] = {0.1, 0.2, 0.3, 0.4}
        %a = DequantizeLinear %x, %s {axis=1} : f32[1,4,8,8]
        %y = Reshape %a {shape=[4,64]} : f32[4,64]
        output %y)",
     ""},
    {"LeavesOtherParametersAlone", sink_dequantise, P A R"(
        %y = QuantizeLinear %a, %t, %z {axis=0} : u8[1,4,8,8]
        output %y)",
     ""},

    // ---- quantise_operators
    // The lowest code stands for zero, so that Relu is implied.
    // What changes the real numbers before they become codes is part of the operator.
    {"MakesAConvolutionWithItsActivation", quantise_operators, P A W R"(
        const %f : f32[6,1,1] = {1.0,2.0,0.5,1.0,1.0,4.0}
        %c = Conv %a, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        %d = vartml::SiLU %c : f32[1,6,8,8]
        %e = Mul %d, %f : f32[1,6,8,8]
        %y = QuantizeLinear %e, %t, %z {axis=0} : u8[1,6,8,8]
        output %y)",
     P R"(
        const %w : i8[6,4,3,3] = {0}
        const %w.scale : f32[6] = {0}
        const %w.zero : i8[6] = {0}
        %y = QLinearConv %x, %s, %z, %w, %w.scale, %w.zero, %t, %z {activation="SiLU", dilations=[1,1], factors=f[1.0,2.0,0.5,1.0,1.0,4.0], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,6,8,8]
        output %y)"},
    {"LeavesAnActivationThatSomebodyElseReadsAlone", quantise_operators, P A W R"(
        %c = Conv %a, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        %d = vartml::SiLU %c : f32[1,6,8,8]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[1,6,8,8]
        output %y
        output %d)",
     ""},
    {"MakesQLinearConv", quantise_operators, P A W R"(
        %c = Conv %a, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        %d = Relu %c : f32[1,6,8,8]
        %y = QuantizeLinear %d, %t, %low {axis=0} : u8[1,6,8,8]
        output %y)",
     P R"(
        const %w : i8[6,4,3,3] = {0}
        const %w.scale : f32[6] = {0}
        const %w.zero : i8[6] = {0}
        %y = QLinearConv %x, %s, %z, %w, %w.scale, %w.zero, %t, %low {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,6,8,8]
        output %y)"},
    {"ClipsCodesWhereReluIsNotImplied", quantise_operators, P A W R"(
        %c = Conv %a, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        %d = Relu %c : f32[1,6,8,8]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[1,6,8,8]
        output %y)",
     P R"(
        const %w : i8[6,4,3,3] = {0}
        const %w.scale : f32[6] = {0}
        const %w.zero : i8[6] = {0}
        %y_unbounded = QLinearConv %x, %s, %z, %w, %w.scale, %w.zero, %t, %z {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,6,8,8]
        %y = Clip %y_unbounded {max=255.0, min=100.0} : u8[1,6,8,8]
        output %y)"},
    {"RoundsAFloatBias", quantise_operators, P A W R"(
        const %bias : f32[6] = {1, -2, 3, 0.5, 0.25, -9}
        %c = Conv %a, %wr, %bias {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        %y = QuantizeLinear %c, %t, %z {axis=0} : u8[1,6,8,8]
        output %y)",
     P R"(
        const %w : i8[6,4,3,3] = {0}
        const %w.scale : f32[6] = {0}
        const %w.zero : i8[6] = {0}
        const %bias.codes : i32[6] = {0}
        %y = QLinearConv %x, %s, %z, %w, %w.scale, %w.zero, %t, %z, %bias.codes {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,6,8,8]
        output %y)"},
    {"TransposesTheWeightsOfGemm", quantise_operators, PARAMETERS R"(
        input %x : u8[3,40]
        const %w : i8[20,40] = {0}
        const %ws : f32[20] = {0}
        const %bias : i32[20] = {0}
        const %bs : f32[20] = {0.001}
        %a = DequantizeLinear %x, %s, %z {axis=0} : f32[3,40]
        %b = DequantizeLinear %w, %ws {axis=0} : f32[20,40]
        %c = DequantizeLinear %bias, %bs {axis=0} : f32[20]
        %d = Gemm %a, %b, %c {alpha=1.0, beta=1.0, transA=0, transB=1} : f32[3,20]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[3,20]
        output %y)",
     PARAMETERS R"(
        input %x : u8[3,40]
        const %w_transposed : i8[40,20] = {0}
        const %w_transposed.scale : f32[20] = {0}
        const %w_transposed.zero : i8[20] = {0}
        const %c.codes : i32[20] = {0}
        %y = QLinearMatMul %x, %s, %z, %w_transposed, %w_transposed.scale, %w_transposed.zero, %t, %z, %c.codes : u8[3,20]
        output %y)"},
    // Before its weights are transposed: a node put in front would be met again without end.
    {"LeavesAGemmWhoseBiasNoWholeNumberHolds", quantise_operators, PARAMETERS R"(
        input %x : u8[3,40]
        const %w : i8[20,40] = {0}
        const %ws : f32[20] = {0.000001}
        const %c : f32[20] = {1000000000000.0}
        %a = DequantizeLinear %x, %s, %z {axis=0} : f32[3,40]
        %b = DequantizeLinear %w, %ws {axis=0} : f32[20,40]
        %d = Gemm %a, %b, %c {alpha=1.0, beta=1.0, transA=0, transB=1} : f32[3,20]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[3,20]
        output %y)",
     ""},
    {"TakesTheRowBehindAMatMul", quantise_operators, PARAMETERS R"(
        input %x : u8[2,3,40]
        const %w : i8[40,20] = {0}
        const %ws : f32[] = {0.01}
        const %row : f32[20] = {0}
        %a = DequantizeLinear %x, %s, %z {axis=0} : f32[2,3,40]
        %b = DequantizeLinear %w, %ws {axis=0} : f32[40,20]
        %c = MatMul %a, %b : f32[2,3,20]
        %d = Add %row, %c : f32[2,3,20]
        %y = QuantizeLinear %d, %t, %z {axis=0} : u8[2,3,20]
        output %y)",
     PARAMETERS R"(
        input %x : u8[2,3,40]
        const %w : i8[40,20] = {0}
        const %w.scale : f32[] = {0.01}
        const %w.zero : i8[] = {0}
        const %row.codes : i32[20] = {0}
        %y = QLinearMatMul %x, %s, %z, %w, %w.scale, %w.zero, %t, %z, %row.codes : u8[2,3,20]
        output %y)"},
    {"MakesQLinearAddAndMul", quantise_operators, P A R"(
        %b = Add %a, %a : f32[1,4,8,8]
        %c = QuantizeLinear %b, %t, %z {axis=0} : u8[1,4,8,8]
        %d = DequantizeLinear %c, %t, %z {axis=0} : f32[1,4,8,8]
        %e = Mul %d, %a : f32[1,4,8,8]
        %y = QuantizeLinear %e, %t, %z {axis=0} : u8[1,4,8,8]
        output %y)",
     P R"(
        %c = com.microsoft::QLinearAdd %x, %s, %z, %x, %s, %z, %t, %z : u8[1,4,8,8]
        %y = com.microsoft::QLinearMul %c, %t, %z, %x, %s, %z, %t, %z : u8[1,4,8,8]
        output %y)"},
    {"MakesQLinearConcat", quantise_operators, P A R"(
        %b = DequantizeLinear %x, %t, %z {axis=0} : f32[1,4,8,8]
        %c = Concat %a, %b {axis=1} : f32[1,8,8,8]
        %y = QuantizeLinear %c, %t, %low {axis=0} : u8[1,8,8,8]
        output %y)",
     P R"(
        %y = com.microsoft::QLinearConcat %t, %low, %x, %s, %z, %x, %t, %z {axis=1} : u8[1,8,8,8]
        output %y)"},
    {"MakesPools", quantise_operators, P A R"(
        %b = AveragePool %a {kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]} : f32[1,4,4,4]
        %c = QuantizeLinear %b, %s, %z {axis=0} : u8[1,4,4,4]
        %d = DequantizeLinear %c, %s, %z {axis=0} : f32[1,4,4,4]
        %e = ReduceMean %d {axes=[2,3], keepdims=1} : f32[1,4,1,1]
        %y = QuantizeLinear %e, %s, %z {axis=0} : u8[1,4,1,1]
        output %y)",
     P R"(
        %c = com.microsoft::QLinearAveragePool %x, %s, %z, %s, %z {kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]} : u8[1,4,4,4]
        %y = com.microsoft::QLinearGlobalAveragePool %c, %s, %z, %s, %z : u8[1,4,1,1]
        output %y)"},
    {"ChangesParametersByAConcatOfOne", quantise_operators, P A R"(
        %y = QuantizeLinear %a, %t, %z {axis=0} : u8[1,4,8,8]
        output %y)",
     P R"(
        %y = com.microsoft::QLinearConcat %t, %z, %x, %s, %z {axis=0} : u8[1,4,8,8]
        output %y)"},
    {"LeavesAResultThatSomebodyElseReadsAlone", quantise_operators, P A R"(
        %b = Add %a, %a : f32[1,4,8,8]
        %y = QuantizeLinear %b, %t, %z {axis=0} : u8[1,4,8,8]
        output %y
        output %b)",
     ""},
    {"LeavesFloatOperandsAlone", quantise_operators, P A R"(
        const %c : f32[] = {1.5}
        %b = Mul %a, %c : f32[1,4,8,8]
        %y = QuantizeLinear %b, %t, %z {axis=0} : u8[1,4,8,8]
        output %y)",
     ""},
    {"LeavesWeightsWithAScalePerInputAlone", quantise_operators, P A R"(
        const %w : i8[6,4,1,1] = {0}
        const %ws : f32[4] = {0}
        %b = DequantizeLinear %w, %ws {axis=1} : f32[6,4,1,1]
        %c = Conv %a, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,6,8,8]
        %y = QuantizeLinear %c, %t, %z {axis=0} : u8[1,6,8,8]
        output %y)",
     ""},

    // ---- fold_dequantise
    {"FoldsWeightsOfFloatOperators", fold_dequantise, W R"(
        input %x : f32[1,4,8,8]
        %y = Conv %x, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        output %y)",
     R"(
        input %x : f32[1,4,8,8]
        const %wr : f32[6,4,3,3] = {0}
        %y = Conv %x, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
        output %y)"},
    {"LeavesVariablesAlone", fold_dequantise,
     P "%y = DequantizeLinear %x, %s, %z {axis=0} : "
       "f32[1,4,8,8]\noutput %y",
     ""},
};

INSTANTIATE_TEST_SUITE_P(Table, QuantisedPasses, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

// Blocks of two along the first axis, then of three along the last.
TEST(FoldDequantise, ReadsBlocks) {
    Graph graph = graph::must_parse(R"(
        const %w : i8[4,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
        const %s : f32[2,3] = {1, 10, 100, 2, 20, 200}
        const %v : i8[2,3] = {1, 2, 3, 4, 5, 6}
        const %t : f32[2,1] = {2, 3}
        const %z : i8[2,1] = {1, -1}
        %y = DequantizeLinear %w, %s {axis=0, block_size=2} : f32[4,3]
        %u = DequantizeLinear %v, %t, %z {axis=1, block_size=3} : f32[2,3]
        %a = Identity %y : f32[4,3]
        %b = Identity %u : f32[2,3]
        output %a
        output %b)");
    ASSERT_TRUE(fold_dequantise(graph));
    ASSERT_EQ(graph.nodes.size(), 2u);  // no constant is an output
    const auto y = graph.value(graph.nodes[0].inputs[0]).constant->as<float>();
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()),
              (std::vector<float>{1, 20, 300, 4, 50, 600, 14, 160, 1800, 20, 220, 2400}));
    const auto u = graph.value(graph.nodes[1].inputs[0]).constant->as<float>();
    EXPECT_EQ(std::vector<float>(u.begin(), u.end()), (std::vector<float>{0, 2, 4, 15, 18, 21}));
}

// int8 results are the same at every level: so are the quantised operators.
TEST(QuantisedLevels, GiveTheSameOperators) {
    std::string first;
    for (const int level : {0, 1, 2, 3, 4}) {
        Graph graph = graph::must_parse(P A W R"(
            %c = Conv %a, %wr {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,6,8,8]
            %d = Relu %c : f32[1,6,8,8]
            %e = MaxPool %d {kernel_shape=[2,2], pads=[0,0,0,0], strides=[2,2]} : f32[1,6,4,4]
            %f = QuantizeLinear %e, %t, %low {axis=0} : u8[1,6,4,4]
            %g = DequantizeLinear %f, %t, %low {axis=0} : f32[1,6,4,4]
            %h = ReduceMean %g {axes=[2,3], keepdims=0} : f32[1,6]
            %y = QuantizeLinear %h, %t, %low {axis=0} : u8[1,6]
            output %y)");
        ASSERT_TRUE(run_passes(graph, {.level = level, .verify = true}));
        if (first.empty()) first = structure(graph);
        EXPECT_EQ(structure(graph), first) << "level " << level;
    }
    EXPECT_NE(first.find("QLinearConv"), std::string::npos) << first;
    EXPECT_EQ(first.find("DequantizeLinear"), std::string::npos) << first;
}

}  // namespace
}  // namespace vartml::compiler
