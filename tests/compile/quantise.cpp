// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"
#include "lib/graph/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/interpreter.h"
#include "tests/support/measure.h"

namespace vartml::compiler {
namespace {

// Two convolutions with a residual around the second, a pool, and a product that gives the output.
constexpr const char* text = R"(graph net
input %x : f32[1,2,6,6]
const %w : f32[2,2,1,1] = {0.5, -0.25, 1.0, 2.0}
const %v : f32[2,2,3,3] = {0.0}
const %m : f32[2,3] = {1.0, 2.0, -1.0, 0.5, 0.25, 3.0}
%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
%r = Relu %a : f32[1,2,6,6]
%b = Conv %r, %v {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,2,6,6]
%s = Add %r, %b : f32[1,2,6,6]
%g = GlobalAveragePool %s : f32[1,2,1,1]
%f = Reshape %g {shape=[1,2]} : f32[1,2]
%y = MatMul %f, %m : f32[1,3]
output %y
)";

std::vector<std::string> names(const graph::Graph& graph, const std::vector<graph::ValueId>& ids) {
    std::vector<std::string> result;
    for (const graph::ValueId id : ids) result.push_back(graph.value(id).name);
    return result;
}

TEST(Quantise, MeasuresWhatInt8OperatorsReadAndWrite) {
    const graph::Graph graph = graph::must_parse(text);
    // Not %a, which the Relu behind it cuts off; not %y, the last product stays float.
    EXPECT_EQ(names(graph, values_to_quantise(graph)),
              (std::vector<std::string>{"x", "r", "b", "s", "g"}));
}

TEST(Quantise, KeepsTheNumbersWithinItsSteps) {
    graph::Graph graph = graph::must_parse(text);
    graph::randomise_constants(graph);
    const auto exact = graph::interpret(graph);
    ASSERT_TRUE(exact);
    const auto share = quantise(graph, test::measure(graph));
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->operators, 4u);
    // All but the last product: 36 pixels of 4 and of 36 weights.
    EXPECT_EQ(share->int8_macs, 36u * (4 + 36));
    EXPECT_EQ(share->product_macs, 36u * (4 + 36) + 6);
    const auto good = graph::verify(graph);
    ASSERT_TRUE(good) << good.error().message;
    const auto found = graph::interpret(graph);
    ASSERT_TRUE(found) << found.error().message;
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR((*found)[0][i], (*exact)[0][i], 0.15);
}

struct Refused {
    const char* text;
    const char* words;
};
TEST(Quantise, RefusesWhatIsQuantisedOrOf16Bits) {
    const Refused rows[] = {
        {R"(graph qdq
input %x : f32[1,2,6,6]
const %s : f32[] = {0.5}
const %z : i8[] = {0}
const %q : i8[2,2,1,1] = {1, 2, 3, 4}
const %m : f32[2,3] = {1.0, 2.0, -1.0, 0.5, 0.25, 3.0}
%w = DequantizeLinear %q, %s, %z {axis=1} : f32[2,2,1,1]
%c = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
%g = GlobalAveragePool %c : f32[1,2,1,1]
%f = Reshape %g {shape=[1,2]} : f32[1,2]
%y = MatMul %f, %m : f32[1,3]
output %y
)",
         "is quantised already: 1 of 2 convolutions and products"},
        {R"(graph half
input %x : f16[1,2]
const %m : f16[2,3] = {1.0, 2.0, -1.0, 0.5, 0.25, 3.0}
%y = MatMul %x, %m : f16[1,3]
output %y
)",
         "computes in floats of 16 bits: 1 of 1 convolutions and products"},
    };
    for (const Refused& row : rows) {
        const auto good = check_quantisable(graph::must_parse(row.text));
        ASSERT_FALSE(good) << row.words;
        EXPECT_EQ(good.error().code, ErrorCode::invalid_argument);
        EXPECT_TRUE(good.error().message.starts_with(row.words)) << good.error().message;
        EXPECT_NE(good.error().message.find("compile this one without --quantize"),
                  std::string::npos);
    }
    EXPECT_TRUE(check_quantisable(graph::must_parse(text)));
}

TEST(Quantise, KeepsWhatItIsToldInFloats) {
    graph::Graph graph = graph::must_parse(text);
    graph::randomise_constants(graph);
    std::set<std::string> kept;
    for (const graph::Node& node : graph.nodes)
        if (node.kind == "Conv") kept.insert(node.name);
    const auto share = quantise(graph, test::measure(graph), kept);
    ASSERT_TRUE(share) << share.error().message;
    // A sum or a pool in int8 between floats would gain nothing.
    EXPECT_EQ(share->operators, 0u);
    EXPECT_EQ(share->int8_macs, 0u);
    EXPECT_EQ(products_to_quantise(graph::must_parse(text)).size(), 2u);
}

// The types of what operators of a kind read, in the order of the graph.
std::vector<std::string> readers(const graph::Graph& graph, const char* kind, size_t input) {
    std::vector<std::string> result;
    for (const graph::Node& node : graph.nodes)
        if (node.kind == kind) result.push_back(graph.value(node.inputs[input]).name);
    return result;
}

// A float convolution, then one of each that read it, and their sum.
constexpr const char* fork = R"(graph net
input %x : f32[1,2,6,6]
const %w : f32[2,2,1,1] = {0.5, -0.25, 1.0, 2.0}
%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
%b = Conv %a, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
%c = Conv %a, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
%s = Add %b, %c : f32[1,2,6,6]
%y = Conv %s, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
output %y
)";

TEST(Quantise, LeavesWhatIsMadeAndReadInFloatsAsItIs) {
    graph::Graph graph = graph::must_parse(fork);
    ASSERT_TRUE(quantise(graph, test::measure(graph), {"a", "b"}));
    EXPECT_EQ(readers(graph, "Conv", 0)[1], "a");              // in floats
    EXPECT_EQ(readers(graph, "Conv", 0)[2], "a/dequantized");  // in int8
}

TEST(Quantise, SumsInInt8WhereTwoOfThreeTensorsHaveCodes) {
    struct Row {
        std::set<std::string> kept;
        bool is_int8;
    };
    // The last convolution is a float one, so that %s has codes for the sum alone.
    for (const Row& row : {Row{{"a"}, true}, Row{{"a", "b"}, false}, Row{{"a", "b", "c"}, false}}) {
        graph::Graph graph = graph::must_parse(fork);
        const auto share = quantise(graph, test::measure(graph), row.kept);
        ASSERT_TRUE(share) << share.error().message;
        EXPECT_EQ(share->operators, 3 - row.kept.size() + (row.is_int8 ? 1 : 0));
    }
}

// What an error of the weights adds to each element is known where the mean of the input is.
TEST(Quantise, TakesTheErrorsOfWeightsFromTheBias) {
    graph::Graph graph = graph::must_parse(R"(graph net
input %x : f32[1,2,4,4]
const %w : f32[1,2,1,1] = {1.0, 0.0035}
const %v : f32[1,1,1,1] = {1.0}
%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,1,4,4]
%y = Conv %a, %v {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,1,4,4]
output %y
)");
    Statistics statistics;
    std::vector<float> values(32, 1.0F);
    std::fill_n(values.begin() + 16, 16, 100.0F);
    statistics["x"].add(values, 2, 16);
    statistics["a"].add(std::vector<float>(16, 1.35F), 1, 16);
    ASSERT_TRUE(quantise(graph, statistics));
    const auto conv = std::ranges::find(graph.nodes, "Conv", &graph::Node::kind);
    ASSERT_EQ(conv->inputs.size(), 3u);
    // 0.0035 is no step of 1/127: it becomes 0, and 100 of it are missing.
    EXPECT_NEAR(graph::read_numbers<float>(graph.value(conv->inputs[2]))[0], 0.35, 1e-4);
}

TEST(Quantise, GivesTheSameCodesToWhatElementsMoveBetween) {
    graph::Graph graph = graph::must_parse(R"(graph net
input %x : f32[1,2,4,4]
const %w : f32[2,2,1,1] = {0.5, -0.25, 1.0, 2.0}
const %v : f32[2,4,1,1] = {1.0}
%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,4]
%c = Concat %a, %x {axis=1} : f32[1,4,4,4]
%b = Conv %c, %v {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,4]
%y = Conv %b, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,4]
output %y
)");
    ASSERT_TRUE(quantise(graph, test::measure(graph)));
    ASSERT_TRUE(sink_dequantise(graph));
    ASSERT_TRUE(quantise_operators(graph));
    const auto count = [&](const char* kind) {
        return std::ranges::count(graph.nodes, kind, &graph::Node::kind);
    };
    EXPECT_EQ(count("Concat"), 1) << graph::print(graph);
    EXPECT_EQ(count("QLinearConcat"), 0) << graph::print(graph);
    EXPECT_EQ(count("QLinearConv"), 2) << graph::print(graph);
}

TEST(Quantise, NeedsARangeForEach) {
    graph::Graph graph = graph::must_parse(text);
    Statistics statistics;
    statistics["x"].add(std::vector<float>{-1, 1}, 0, 0);
    const auto done = quantise(graph, statistics);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message,
              "--quantize: tensor 'r' has no range; the calibration ended early");
}

}  // namespace
}  // namespace vartml::compiler
