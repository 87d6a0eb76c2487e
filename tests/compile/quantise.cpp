// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lib/graph/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/interpreter.h"

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
    Ranges ranges;
    graph::Graph probe = graph;
    for (const graph::ValueId id : values_to_quantise(graph))
        if (graph.value(id).name != "x") probe.outputs.push_back(id);
    const auto measured = graph::interpret(probe);
    ASSERT_TRUE(measured) << measured.error().message;
    for (size_t i = 0; i < probe.outputs.size(); ++i) {
        const std::vector<float> values((*measured)[i].begin(), (*measured)[i].end());
        widen(ranges[probe.value(probe.outputs[i]).name], values);
    }
    ranges["x"] = {-4, 4};  // what the interpreter feeds
    const auto count = quantise(graph, ranges);
    ASSERT_TRUE(count) << count.error().message;
    EXPECT_EQ(*count, 4u);
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

TEST(Quantise, NeedsARangeForEach) {
    graph::Graph graph = graph::must_parse(text);
    const auto done = quantise(graph, {{"x", {-1, 1}}});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message,
              "--quantize: tensor 'r' has no range; the calibration ended early");
}

TEST(Quantise, LeavesOutliersOut) {
    std::vector<float> values(1'000'000);
    std::iota(values.begin(), values.end(), 0.0F);
    for (float& v : values) v /= 1'000'000;
    values[0] = -1e9F;
    values[1] = 1e9F;
    Range range;
    widen(range, values);
    EXPECT_NEAR(range.low, 0, 0.001);
    EXPECT_NEAR(range.high, 1, 0.001);
    widen(range, std::vector<float>{-2});
    EXPECT_EQ(range.low, -2);
}

}  // namespace
}  // namespace vartml::compiler
