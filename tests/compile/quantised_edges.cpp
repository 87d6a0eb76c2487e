// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/passes/passes.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

// A quantised operator between two float borders.
constexpr const char* text = R"(graph g
input %x : f32[1,4]
const %s : f32[] = {0.5}
const %z : u8[] = {128}
const %t : f32[] = {0.25}
%q = QuantizeLinear %x, %s, %z {axis=0, block_size=0} : u8[1,4]
%m = QLinearLeakyRelu %q, %s, %z, %t, %z {alpha=0.5} : u8[1,4]
%y = DequantizeLinear %m, %t, %z {axis=0, block_size=0} : f32[1,4]
output %y
)";

TEST(QuantisedEdges, AreTheCodesThemselves) {
    graph::Graph graph = graph::must_parse(text);
    const QuantisedEdges edges = quantise_edges(graph, true, true, {});
    EXPECT_EQ(graph::print(graph), graph::normal_form(R"(graph g
input %x : u8[1,4]
const %s : f32[] = {0.5}
const %z : u8[] = {128}
const %t : f32[] = {0.25}
%y = QLinearLeakyRelu %x, %s, %z, %t, %z {alpha=0.5} : u8[1,4] @m
output %y
)"));
    ASSERT_EQ(edges.size(), 2u);
    EXPECT_EQ(edges.at("x").real, DataType::float32);
    EXPECT_EQ(edges.at("x").quantisation, (Quantisation{0.5, 128}));
    EXPECT_EQ(edges.at("y").quantisation, (Quantisation{0.25, 128}));
}

TEST(QuantisedEdges, AreThoseThatWereAskedFor) {
    graph::Graph inputs = graph::must_parse(text);
    EXPECT_EQ(quantise_edges(inputs, true, false, {}).size(), 1u);
    EXPECT_EQ(inputs.nodes.size(), 2u);
    graph::Graph kept = graph::must_parse(text);
    EXPECT_TRUE(quantise_edges(kept, true, true, {"x", "y"}).empty());
    EXPECT_EQ(graph::print(kept), graph::normal_form(text));
}

// What somebody reads as a float stays one.
TEST(QuantisedEdges, LeaveFloatsThatAreReadAsSuch) {
    const char* rows[] = {
        // the input beside its QuantizeLinear
        "%q = QuantizeLinear %x, %s, %z {axis=0, block_size=0} : u8[1,4]\n"
        "%r = Relu %x : f32[1,4]\noutput %q\noutput %r\n",
        // two readers with two scales
        "%q = QuantizeLinear %x, %s, %z {axis=0, block_size=0} : u8[1,4]\n"
        "%r = QuantizeLinear %x, %t, %z {axis=0, block_size=0} : u8[1,4]\n"
        "%a = Identity %q : u8[1,4]\n%b = Identity %r : u8[1,4]\noutput %a\noutput %b\n",
        // the output that another operator reads
        "%q = QuantizeLinear %x, %s, %z {axis=0, block_size=0} : u8[1,4]\n"
        "%r = Relu %x : f32[1,4]\n%i = Identity %q : u8[1,4]\n"
        "%y = DequantizeLinear %i, %s, %z {axis=0, block_size=0} : f32[1,4]\n"
        "%w = Add %y, %r : f32[1,4]\noutput %y\noutput %w\n",
    };
    for (const char* row : rows) {
        const std::string whole =
            "graph g\ninput %x : f32[1,4]\nconst %s : f32[] = {0.5}\nconst %z : u8[] = {128}\n"
            "const %t : f32[] = {0.25}\n" +
            std::string(row);
        graph::Graph graph = graph::must_parse(whole);
        EXPECT_TRUE(quantise_edges(graph, true, true, {}).empty()) << row;
        EXPECT_EQ(graph::print(graph), graph::normal_form(whole));
    }
}

}  // namespace
}  // namespace vartml::compiler
