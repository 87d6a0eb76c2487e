// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/verify.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

struct Broken {
    const char* text;
    const char* message;
};
class Verify : public testing::TestWithParam<Broken> {};
TEST_P(Verify, NamesWhatIsWrong) {
    const auto graph = parse(GetParam().text);
    ASSERT_TRUE(graph) << graph.error().message;
    const auto ok = verify(*graph);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().message, GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Graph, Verify,
    testing::Values(
        Broken{"input %x : f32[1,3]\n%y = Relu %x : f32[1,4]\n",
               "node 'y' (Relu) writes 'y' as f32[1,3], but the value is f32[1,4]"},
        Broken{"input %x : f32[1,3]\n%y = Relu %x, %x : f32[1,3]\n",
               "node 'y' (Relu) has 2 inputs, expected 1"},
        Broken{"input %x : f32[1,3]\n%y = Relu %x {alpha=1.0} : f32[1,3]\n",
               "node 'y' (Relu) has the attribute 'alpha', which Relu does not have"},
        Broken{"input %x : f32[1,3]\n%y = Elu %x {alpha=1} : f32[1,3]\n",
               "node 'y' (Elu) attribute 'alpha' is of kind i, expected f"},
        Broken{"input %x : f32[1,3]\n%y = Transpose %x : f32[3,1]\n",
               "node 'y' (Transpose) lacks the attribute 'perm'"},
        Broken{"input %x : f32[1,3]\n%y = Frobnicate %x : f32[3,1]\n",
               "node 'y' uses Frobnicate, an operator that the compiler does not know"},
        Broken{"input %x : f32[1,3]\n%y = Conv+Concat %x, %x, _ : f32[1,3]\n",
               "node 'y' (Conv+Concat) part 'Concat' cannot follow another operator"},
        Broken{"input %x : f32[4]\n%y = NonZero %x : i64[1,4]\n",
               "node 'y' (NonZero) writes 'y', whose shape depends on the data, but the value does "
               "not say so"},
        Broken{"input %x : i8[1,3]\nconst %c : f32[] = {1}\n%y = Sub %x, %c : i8[1,3]\n",
               "node 'y' (Sub) has inputs i8[1,3] and f32[], expected one type; put a Cast in "
               "front of one of them"},
        Broken{"input %x : i8[1,3]\nconst %c : f32[2] = {1}\n%y = Less %x, %c : bool[1,3]\n",
               "node 'y' (Less) has inputs i8[1,3] and f32[2], expected one type; put a Cast in "
               "front of one of them"},
        Broken{"input %x : f32[4]\nconst %c : f32[3] = {1}\n%y = Sub %x, %c : f32[4]\n",
               "node 'y' (Sub) has inputs f32[4] and f32[3], which do not broadcast"},
        Broken{"input %x : f32[4]\n%y = Relu %x : f32[4] @n\n%z = Relu %x : f32[4] @n\n",
               "node 'n' (Relu) has the name of another node"},
        Broken{"input %x : f32[1,3,4]\nconst %s : f32[2] = {1}\n%y = QuantizeLinear %x, %s : "
               "u8[1,3,4]\n",
               "node 'y' (QuantizeLinear) has scales f32[2] for f32[1,3,4], expected one, one per "
               "element of axis 1, or one per block of it with block_size"},
        Broken{"input %x : u8[1,3,4]\nconst %s : f32[3] = {1}\nconst %z : u8[] = {1}\n"
               "%y = DequantizeLinear %x, %s, %z : f32[1,3,4]\n",
               "node 'y' (DequantizeLinear) has zero points u8[] beside scales f32[3], expected as "
               "many"},
        Broken{"input %x : f32[1,8,4,4]\nconst %w : f32[4,8,3,3] = {0}\n"
               "%y = Conv+Relu %x, %w : f32[1,4,2,2]\n",
               "node 'y' (Conv+Relu) has 2 leading inputs, expected 3"},
        Broken{"input %x : f32[1,8,4,4]\nconst %w : f32[4,8,3,3] = {0}\n"
               "%y = Conv+Add %x, %w, _, %x : f32[1,4,2,2]\n",
               "node 'y' (Conv+Add) fused operand 'x' is f32[1,8,4,4], which does not broadcast to "
               "f32[1,4,2,2]"},
        Broken{"input %x : f32[1,1,1,1,1,1,1,1,4]\n%y = Relu %x : f32[1,1,1,1,1,1,1,1,4]\n",
               "value 'x' is f32[1,1,1,1,1,1,1,1,4], which has 9 dimensions, expected at most 8; "
               "join some of them with a Reshape"},
        Broken{"input %x : f32[1,1,1,1,1,1,1,4]\n"
               "%y = Unsqueeze %x {axes=[0]} : f32[1,1,1,1,1,1,1,1,4]\n",
               "value 'y' is f32[1,1,1,1,1,1,1,1,4], which has 9 dimensions, expected at most 8; "
               "join some of them with a Reshape"},
        Broken{"input %x : f32[]\n%y = Softmax %x {axis=-1} : f32[]\n",
               "node 'y' (Softmax) has a single number as its input, expected rank 1 or more"},
        Broken{"input %x : f32[1,2,4]\nconst %w : f32[4,8] = {0}\n"
               "%y = com.microsoft::Attention %x, %w {num_heads=1, qkv_hidden_sizes=[4,4,0]} : "
               "f32[1,2,4]\n",
               "node 'y' (Attention) splits the weight f32[4,8] into [4,4,0] and 1 "
               "heads, which do not go together"},
        Broken{"input %x : f32[1,2,4]\nconst %w : f32[4,8] = {0}\n"
               "%y = com.microsoft::Attention %x, %w {num_heads=1, qkv_hidden_sizes=[2,4,2]} : "
               "f32[1,2,2]\n",
               "node 'y' (Attention) splits the weight f32[4,8] into [2,4,2] and 1 "
               "heads, which do not go together"},
        Broken{"input %x : f32[1,2,4]\nconst %w : f32[4,12] = {0}\n"
               "%y = com.microsoft::Attention %x, %w {num_heads=3} : f32[1,2,4]\n",
               "node 'y' (Attention) splits the weight f32[4,12] into [4,4,4] and 3 "
               "heads, which do not go together"}));

TEST(VerifyGraph, SeesValuesUsedBeforeTheyAreComputed) {
    Graph graph =
        must_parse("input %x : f32[1]\n%y = Relu %x : f32[1]\n%z = Relu %y : f32[1]\noutput %z\n");
    std::swap(graph.nodes[0], graph.nodes[1]);
    EXPECT_EQ(verify(graph).error().message, "node 'z' (Relu) reads 'y' before it is computed");
}

TEST(VerifyGraph, RefusesSizesThatOverflow) {
    const char* texts[] = {
        "input %x : f32[1,1099511627776,1]\nconst %w : f32[1,1,1] = {0}\n%y = ConvTranspose %x, %w "
        ": "
        "f32[1]",
        "input %x : f32[1,4,274877906944]\nconst %w : f32[4,1,1] = {0}\n"
        "%y = ConvTranspose %x, %w {strides=[2147483647]} : f32[1]",
        "input %x : f32[1048576]\n%y = Tile %x {repeats=[1099511627776]} : f32[1]",
        "input %x : f32[8]\n%y = Tile %x {repeats=[9223372036854775807]} : f32[1]",
        "input %x : f32[8]\n%y = Reshape %x {shape=[1099511627776,1099511627776,1099511627776]} : "
        "f32[1]",
        "input %x : f32[1,4,4]\nconst %w : f32[0,4,1] = {}\n"
        "%y = Conv %x, %w {group=9223372036854775807} : f32[1]",
        "input %x : f32[8]\n%y = Pad %x {pads=[9223372036854775807,1]} : f32[1]",
    };
    for (const char* text : texts) {
        const auto graph = parse(text);
        ASSERT_TRUE(graph) << graph.error().message;
        EXPECT_FALSE(verify(*graph)) << text;
    }
}

TEST(VerifyGraph, SeesIdsOutOfRange) {
    Graph graph = must_parse("input %x : f32[1]\n%y = Relu %x : f32[1]\noutput %y\n");
    graph.nodes[0].inputs[0] = 99;
    EXPECT_EQ(verify(graph).error().message,
              "node 'y' (Relu) reads value number 99, which does not exist");
}

TEST(VerifyGraph, SeesConstantsOfTheWrongSize) {
    Graph graph = must_parse("const %c : f32[2] = {1, 2}\noutput %c\n");
    graph.values[0].type.shape = {3};
    EXPECT_EQ(verify(graph).error().message,
              "value 'c' is a constant of 8 bytes, expected 12 for f32[3]");
}

TEST(RemoveDead, KeepsWhatOutputsNeed) {
    Graph graph = must_parse(R"(
        input %x : f32[1,4]
        input %unused : f32[1]
        const %w : f32[4] = {1}
        const %dead_w : f32[4] = {1}
        %a = Add %x, %w : f32[1,4]
        %b = Add %x, %dead_w : f32[1,4]
        %c = Relu %b : f32[1,4]
        %v, %i = TopK %a {k=1} : f32[1,1], i64[1,1]
        output %i
    )");
    EXPECT_EQ(remove_dead(graph), 2U);
    EXPECT_EQ(print(graph), normal_form(R"(
        input %x : f32[1,4]
        input %unused : f32[1]
        const %w : f32[4] = {1}
        %a = Add %x, %w : f32[1,4]
        %v, %i = TopK %a {k=1} : f32[1,1], i64[1,1]
        output %i
    )")
                                .replace(0, 8, "graph \"\""));
}

TEST(FindUses, CountsANodeOncePerInput) {
    const Graph graph = must_parse("input %x : f32[1]\n%y = Add %x, %x : f32[1]\noutput %y\n");
    const Uses uses = find_uses(graph);
    EXPECT_EQ(uses.consumers[0], (std::vector<int32_t>{0, 0}));
    EXPECT_EQ(uses.producer[1], 0);
    EXPECT_TRUE(uses.is_output[1]);
    EXPECT_FALSE(uses.is_output[0]);
}

}  // namespace
}  // namespace vartml::graph
