// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

constexpr std::string_view sample = R"(graph sample
input %x : f32[1,3,8,8]
const %w : f32[2,3,1,1] = {1.0, 2.5, -3.0, 1e-10, inf, 0.0}
const %b : f32[2] = {0.5, -0.5}
const %big : f32[1,2,8,8] = #5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
%y = Conv+Add+Clip %x, %w, %b, %big {Clip.max=6.0, Clip.min=0.0, pads=[0,0,0,0]} : f32[1,2,8,8] @conv1 from "a b", "c\"d"
%"odd name" = vartml::SiLU %y : f32[1,2,8,8]
%v, %i = TopK %"odd name" {k=3} : f32[1,2,8,3], i64[1,2,8,3]
%n = NonZero %v : i64[4,48]? @count
output %n
output %i
)";

TEST(Text, PrintsWhatItParsed) {
    const auto graph = parse(sample);
    ASSERT_TRUE(graph) << graph.error().message;
    const auto ok = verify(*graph);
    EXPECT_TRUE(ok) << ok.error().message;
    std::string expected(sample);
    // 512 zero bytes, because the hash is not known: their own hash.
    const size_t hash = expected.find('#') + 1;
    expected.replace(hash, 64, "076a27c79e5ace2a3d47f9dd2e83e4ff6ea8872b3c2218f66c92b89b55f36560");
    EXPECT_EQ(print(*graph), expected);
}

TEST(Text, ReadsEverythingItPrints) {
    const auto once = parse(sample);
    ASSERT_TRUE(once);
    const auto twice = parse(print(*once), &*once);
    ASSERT_TRUE(twice) << twice.error().message;
    EXPECT_EQ(print(*twice), print(*once));
    EXPECT_EQ(twice->nodes[0].sources, (std::vector<std::string>{"a b", "c\"d"}));
    EXPECT_EQ(twice->nodes[1].domain, "vartml");
    EXPECT_TRUE(twice->value(twice->nodes[3].outputs[0]).data_dependent);
}

TEST(Type, OfMoreElementsThanCanBeCountedHasAsManyAsCan) {
    constexpr int64_t large = int64_t{1} << 40;
    EXPECT_EQ((Type{DataType::float32, {large, 2}}).size_bytes(), size_t{1} << 43);
    EXPECT_EQ((Type{DataType::float32, {large, large}}).elements(), INT64_MAX);
    EXPECT_EQ((Type{DataType::float32, {large, large}}).size_bytes(), SIZE_MAX);
    EXPECT_EQ((Type{DataType::float32, {large, large, 0}}).elements(), 0);
}

TEST(Text, KeepsEveryKindOfAttribute) {
    Graph graph;
    Node node{};
    node.kind = "Any";
    node.name = "y";
    node.sources = {"y"};
    node.outputs = {graph.add_value("y", {DataType::float32, {}})};
    node.attributes = {{"empty_f", std::vector<float>()},
                       {"empty_i", std::vector<int64_t>()},
                       {"f", 3.0F},
                       {"fs", std::vector<float>{0.1F, -INFINITY}},
                       {"i", int64_t{-9223372036854775807}},
                       {"is", std::vector<int64_t>{1, -2}},
                       {"s", std::string("a\n\"b\\")},
                       {"ss", Strings{"", "x,y"}},
                       {"tiny", 1e-45F}};
    graph.nodes.push_back(node);
    const auto read = parse(print(graph));
    ASSERT_TRUE(read) << read.error().message << print(graph);
    EXPECT_EQ(read->nodes[0].attributes, node.attributes);
}

TEST(Text, TakesLargeConstantsFromAnotherGraphByTheirHash) {
    Graph graph;
    std::vector<float> numbers(100);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    const ValueId id = graph.add_constant("w", {DataType::float32, {100}},
                                          make_constant(std::span<const float>(numbers)));
    graph.outputs = {id};
    const auto read = parse(print(graph), &graph);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->values[0].constant->bytes.data(), graph.values[0].constant->bytes.data());
}

TEST(Text, OneNumberStandsForAllElements) {
    const Graph graph = must_parse("const %c : i8[2,10] = {7}\noutput %c\n");
    EXPECT_EQ(graph.values[0].constant->as<int8_t>()[19], 7);
}

struct BadText {
    const char* text;
    const char* message;
};
class RefusesText : public testing::TestWithParam<BadText> {};
TEST_P(RefusesText, NamingTheLine) {
    const auto graph = parse(GetParam().text);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::bad_model);
    EXPECT_EQ(graph.error().message, GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Text, RefusesText,
    testing::Values(
        BadText{"graph g\ninput %x : f31[1]\n",
                "line 2: found '[1]', expected a type such as f32[1,3] instead of 'f31'"},
        BadText{"input %\"a\x1b\" : f32[1]\ninput %\"a\x1b\" : f32[1]\n",
                "line 2: found ' : f32[1]', expected a new name instead of 'a\\x1b'"},
        BadText{"\x1b[2J\n", "line 1: found '\\x1b[2J', expected '%'"},
        BadText{"input %x f32[1]\n", "line 1: found 'f32[1]', expected ':'"},
        BadText{"%y = Relu %x : f32[1]\n",
                "line 1: found ' : f32[1]', expected a value that an earlier line names instead of "
                "'x'"},
        BadText{"input %x : f32[1]\ninput %x : f32[1]\n",
                "line 2: found ' : f32[1]', expected a new name instead of 'x'"},
        BadText{"const %x : f32[3] = {1, 2}\n",
                "line 1: found '', expected 3 numbers instead of 2"},
        BadText{"input %x : f32[-1]\n", "line 1: found ']', expected sizes from 0 to 2^40"},
        BadText{"input %\"x : f32[1]\n", "line 1: found '', expected the end of a quoted string"},
        BadText{"input %x : f32[1] and more\n",
                "line 1: found 'and more', expected the end of the line"},
        BadText{"const %x : f32[1099511627776] = #00\n",
                "line 1: found '', expected at most 1 GiB for a constant that is not known"},
        BadText{"const %x : f32[1099511627776,9] = #00\n",
                "line 1: found '= #00', expected at most 2^40 elements"}));

TEST(Text, FusedNodeIsOperationsEachWithItsAttributes) {
    Node node;
    node.kind = "Conv+Clip+Add";
    node.attributes = {{"group", int64_t{1}}, {"Clip.max", 6.0F}, {"Else.a", 1.0F}};
    const Attributes written = node.attributes;
    take_apart(node);
    EXPECT_EQ(node.kind, "Conv");
    ASSERT_EQ(node.fused.size(), 2u);
    EXPECT_EQ(node.fused[0].kind, "Clip");
    EXPECT_EQ(node.fused[0].get("max", 0.0F), 6);
    EXPECT_TRUE(node.fused[1].attributes.empty());
    EXPECT_EQ(&node.last(), &node.fused[1]);
    EXPECT_FALSE(node.has("Clip.max"));
    EXPECT_TRUE(node.has("Else.a"));  // of no operation: the verifier refuses it
    EXPECT_EQ(node.type(), "Conv+Clip+Add");
    EXPECT_EQ(written_attributes(node), written);
}

}  // namespace
}  // namespace vartml::graph
