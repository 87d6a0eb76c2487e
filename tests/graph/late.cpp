// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/late.h"

#include <gtest/gtest.h>

#include "lib/graph/canonical.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

// A node in ONNX form, the last of the text; '?' behind a type marks a shape that depends on data.
struct Row {
    const char* name;
    const char* text;
    bool late;
    std::optional<Type> declared;
    const char* bound;  // of the first output, or the error
};
void PrintTo(const Row& row, std::ostream* os) {
    *os << row.name;
}

Type f32(std::vector<int64_t> shape) {
    return {DataType::float32, std::move(shape)};
}

class Late : public testing::TestWithParam<Row> {};
TEST_P(Late, IsWhatOnlyTheRunKnows) {
    auto parsed = parse(GetParam().text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    const Graph& graph = *parsed;
    const Node& node = graph.nodes.back();
    EXPECT_EQ(must_be_late(graph, node), GetParam().late);
    const std::optional<Type> declared[] = {GetParam().declared};
    const auto types = bound_types(graph, node, declared);
    EXPECT_EQ(types ? to_string(types->front()) : types.error().message, GetParam().bound);
}

#define X "input %x : f32[2,6,4]\n"
#define DATA "input %s : f32[8]\n%n = NonZero %s : i64[1,8]?\n"
// Rows of two numbers, their sizes, and how many they are.
#define ROWS                                                                      \
    "input %s : f32[2,4]\n%n = NonZero %s : i64[2,8]?\nconst %c : i64[1] = {0}\n" \
    "%t = Transpose %n {perm=[1,0]} : i64[8,2]?\n"                                \
    "%sizes = Shape %t {end=2, start=0} : i64[2]\n%k = Gather %sizes, %c {axis=0} : i64[1]\n"
const Row rows[] = {
    {"ConstantParameter",
     X "const %s : i64[2] = {3, -1}\n%y = Reshape %x, %s : f32[]",
     false,
     {},
     "f32[3,16]"},
    {"ComputedShapeThatTheModelDeclares", X "input %s : i64[2]\n%y = Reshape %x, %s : f32[]", true,
     f32({6, 8}), "f32[6,8]"},
    {"ComputedShapeThatNothingBounds",
     X "input %s : i64[2]\n%y = Reshape %x, %s : f32[]",
     true,
     {},
     "node 'y' (Reshape) takes its shape from a tensor that depends on the input data; export the "
     "model with static shapes"},
    {"ComputedSlice",
     X "input %s : i64[1]\ninput %e : i64[1]\n%y = Slice %x, %s, %e : f32[]",
     true,
     {},
     "f32[2,6,4]"},
    {"TheSmallerBoundCounts",
     X "input %s : i64[1]\ninput %e : i64[1]\n%y = Slice %x, %s, %e : f32[]", true, f32({2, 3, 4}),
     "f32[2,3,4]"},
    {"ReductionThatKeepsAxes",
     X "input %a : i64[1]\n%y = ReduceSum %x, %a : f32[]",
     true,
     {},
     "f32[2,6,4]"},
    {"ReductionOfOneAxis",
     X "input %a : i64[1]\n%y = ReduceSum %x, %a {keepdims=0} : f32[]",
     true,
     {},
     "f32[6,6]"},
    {"ComputedRange",
     "input %a : i64[]\ninput %b : i64[]\ninput %c : i64[]\n%y = Range %a, %b, %c : i64[]", true,
     Type{DataType::int64, {7}}, "i64[7]"},
    // The last of data that may be fewer than the bound: no number of the canonical form is right.
    {"EndOfRealData",
     DATA "const %b : i64[1] = {-3}\nconst %e : i64[1] = {9223372036854775807}\n"
          "const %a : i64[1] = {1}\n%y = Slice %n, %b, %e, %a : i64[]",
     true,
     {},
     "i64[1,3]"},
    {"AColumnOfRealData",
     DATA "const %b : i64[1] = {0}\nconst %e : i64[1] = {1}\nconst %a : i64[1] = {0}\n"
          "%y = Slice %n, %b, %e, %a : i64[]",
     true,
     {},
     "i64[1,8]"},
    {"FromBehindUpToTheFront",
     DATA "const %b : i64[1] = {-7}\nconst %e : i64[1] = {4}\nconst %a : i64[1] = {-1}\n"
          "%y = Slice %n, %b, %e, %a : i64[]",
     true,
     {},
     "i64[1,4]"},
    {"BackwardsFromBehindToTheFront",
     DATA "const %b : i64[1] = {-1}\nconst %e : i64[1] = {0}\nconst %a : i64[1] = {-1}\n"
          "const %d : i64[1] = {-1}\n%y = Slice %n, %b, %e, %a, %d : i64[]",
     true,
     {},
     "i64[1,7]"},
    {"BackwardsFromTheFrontToBehind",
     DATA "const %b : i64[1] = {5}\nconst %e : i64[1] = {-3}\nconst %a : i64[1] = {-1}\n"
          "const %d : i64[1] = {-1}\n%y = Slice %n, %b, %e, %a, %d : i64[]",
     true,
     {},
     "i64[1,2]"},
    {"BackwardsOverAll",
     DATA "const %b : i64[1] = {9223372036854775807}\n"
          "const %e : i64[1] = {-9223372036854775807}\nconst %a : i64[1] = {-1}\n"
          "const %d : i64[1] = {-1}\n%y = Slice %n, %b, %e, %a, %d : i64[]",
     true,
     {},
     "i64[1,8]"},
    // As exporters write x.view(n, -1), zeros_like(x), arange(n) and their kin.
    {"SizesFromRealSizes",
     ROWS "const %m : i64[1] = {-1}\n%v = Concat %k, %m {axis=0} : i64[2]\n"
          "%y = Reshape %t, %v : i64[]",
     true,
     {},
     "i64[8,2]"},
    {"SizesThatSplitRealSizes",
     ROWS "const %m : i64[1] = {-1}\nconst %b : i64[1] = {2}\n%h = Div %k, %b : i64[1]\n"
          "%v = Concat %m, %h {axis=0} : i64[2]\n%y = Reshape %t, %v : i64[]",
     true,
     {},
     "i64[4,4]"},
    {"FilledLikeRealData", ROWS "%y = ConstantOfShape %sizes : f32[]", true, {}, "f32[8,2]"},
    {"FilledLikeRealDataFromBehind",
     ROWS "%p = Slice %sizes {axes=[0], starts=[1], steps=[-1]} : i64[2]\n"
          "%y = ConstantOfShape %p : f32[]",
     true,
     {},
     "f32[2,8]"},
    {"FilledLikePartOfRealData",
     ROWS "%p = Slice %sizes {axes=[0], starts=[1], steps=[1]} : i64[1]\n"
          "%y = ConstantOfShape %p : f32[]",
     true,
     {},
     "f32[2]"},
    {"ExpandedToRealData",
     ROWS "input %x : f32[1,2]\n%y = Expand %x, %sizes : f32[]",
     true,
     {},
     "f32[8,2]"},
    {"NumbersOfRealRows",
     ROWS "const %z : i64[] = {1}\n%r = Reshape %k {shape=[]} : i64[]\n"
          "%y = Range %z, %r, %z : i64[]",
     true,
     {},
     "i64[7]"},
    {"SizesThatNoShapeBounds",
     ROWS "const %z : i64[1] = {0}\n%f = GatherND %t, %z : i64[2]?\n"
          "%y = ConstantOfShape %f : f32[]",
     true,
     {},
     "node 'y' (ConstantOfShape) takes its shape from a tensor that depends on the input data; "
     "export the model with static shapes"},
    {"ElementWiseOfRealData", DATA "%y = Neg %n : i64[]", false, {}, "i64[1,8]"},
};
INSTANTIATE_TEST_SUITE_P(Graph, Late, testing::ValuesIn(rows),
                         [](const auto& row) { return row.param.name; });

TEST(LateNode, KeepsItsOnnxFormInText) {
    const char* text =
        "graph \"\"\ninput %x : f32[4]\ninput %s : i64[1]\ninput %e : i64[1]\n"
        "%y = Late %x, %s, %e {op=\"Slice\"} : f32[4]?\noutput %y\n";
    const auto graph = parse(text);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(print(*graph), text);
    EXPECT_TRUE(verify(*graph));
    Node node = graph->nodes[0];
    EXPECT_EQ(op_type(node), "Slice");
    settle(node);
    EXPECT_EQ(node.kind, "Slice");
    EXPECT_TRUE(node.attributes.empty());
    make_late(node);
    EXPECT_TRUE(is_late(node));
}

// Of 10 elements the last of four parts is 1, of 8 all are 2.
TEST(LateParts, MayBeLargerThanOfTheBound) {
    auto parsed = parse(
        "input %s : f32[10]\n%n = NonZero %s : i64[1,10]?\n"
        "%p, %q, %t, %y = Split %n {axis=1} : i64[], i64[], i64[], i64[]");
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto types = bound_types(*parsed, parsed->nodes.back(), {});
    ASSERT_TRUE(types) << types.error().message;
    ASSERT_EQ(types->size(), 4u);
    for (const Type& type : *types) EXPECT_EQ(to_string(type), "i64[1,3]");
}

}  // namespace
}  // namespace vartml::graph
