// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

TEST(Ops, TableHasEachKindOnce) {
    for (size_t i = 1; i < all_ops().size(); ++i)
        EXPECT_LT(all_ops()[i - 1].kind, all_ops()[i].kind);
}

TEST(Ops, FindsEachRowAndNothingElse) {
    for (const OpInfo& op : all_ops()) EXPECT_EQ(find_op(op.kind), &op);
    EXPECT_EQ(find_op("Conv+Relu"), nullptr);
    EXPECT_EQ(find_op(""), nullptr);
}

TEST(Ops, EveryRowCanBeRead) {
    constexpr std::string_view kinds[] = {"i", "f", "s", "is", "fs", "ss"};
    for (const OpInfo& op : all_ops()) {
        SCOPED_TRACE(op.kind);
        EXPECT_TRUE(op.infer && op.count);
        std::string names;
        for (const AttributeRule& rule : attribute_rules(op)) {
            SCOPED_TRACE(rule.name);
            EXPECT_NE(std::ranges::find(kinds, rule.kind), std::end(kinds));
            EXPECT_EQ(names.find(' ' + std::string(rule.name) + ' '), std::string::npos);
            names += ' ' + std::string(rule.name) + ' ';
            EXPECT_TRUE(rule.input == -1 || (rule.input > 0 && rule.input < 10));
            EXPECT_TRUE(rule.is_canonical || rule.fallback.empty());
            if (rule.fallback.empty() || rule.kind == "s") continue;
            EXPECT_TRUE(rule.kind == "i" || rule.kind == "f");
            EXPECT_EQ(rule.fallback.find_first_not_of("-.0123456789e"), std::string::npos);
        }
    }
}

TEST(Ops, ReadsAllThatARowSaysOfAnAttribute) {
    const auto rules = attribute_rules(
        {"X", 1, 4, 1, 1, "axes:is*-@3 mode:s@1=linear|nearest/bilinear k:i=-1 layout:s|A|B",
         infer_same, count_none, nullptr});
    ASSERT_EQ(rules.size(), 4u);
    EXPECT_TRUE(rules[0].name == "axes" && rules[0].kind == "is" && rules[0].is_required &&
                !rules[0].is_canonical && rules[0].input == 3 && rules[0].fallback.empty());
    EXPECT_TRUE(rules[1].input == 1 && rules[1].fallback == "linear" &&
                rules[1].choices == "linear|nearest" && rules[1].rewritten == "bilinear");
    EXPECT_TRUE(rules[2].fallback == "-1" && rules[2].is_canonical && !rules[2].is_required);
    EXPECT_TRUE(rules[3].choices == "A|B" && rules[3].fallback.empty());
}

TEST(Ops, HaveTheTraitsOfTheirRows) {
    EXPECT_TRUE(has_trait("Relu", Trait::activation | Trait::product));
    EXPECT_FALSE(has_trait("Relu", Trait::product));
    EXPECT_FALSE(has_trait("Frobnicate", Trait::product));
    EXPECT_TRUE(has_trait("Upsample", Trait::keeps_rank));  // the form of ONNX alone
    EXPECT_EQ(find_op("Upsample"), nullptr);
    Node node;
    node.kind = "Mod";
    EXPECT_TRUE(has_input_trait(node, Trait::exact_0, 1));
    EXPECT_FALSE(has_input_trait(node, Trait::exact_0, 2));
    EXPECT_FALSE(has_input_trait(node, Trait::exact_0, 3));
    node.kind = "Unique";  // what is rounded may be one
    EXPECT_TRUE(has_input_trait(node, Trait::exact_0, 0));
    node.kind = "DeformConv";
    EXPECT_TRUE(has_input_trait(node, Trait::exact_0, 2));
    EXPECT_FALSE(has_input_trait(node, Trait::exact_0, 0));
}

// Operators of the compiled format that no importer decomposes or folds away.
TEST(Ops, KnowsWhatTheFormatDocumentLists) {
    const char* kinds[] = {"Abs",
                           "Add",
                           "And",
                           "Attention",
                           "AveragePool",
                           "BatchNormalization",
                           "BitwiseAnd",
                           "BitwiseNot",
                           "BitwiseOr",
                           "BitwiseXor",
                           "Cast",
                           "Ceil",
                           "Clip",
                           "Concat",
                           "ConstantOfShape",
                           "ConvTranspose",
                           "Cos",
                           "CumSum",
                           "DepthToSpace",
                           "Div",
                           "Einsum",
                           "Elu",
                           "Equal",
                           "Erf",
                           "Exp",
                           "Expand",
                           "Flatten",
                           "Floor",
                           "Gather",
                           "Gelu",
                           "GlobalAveragePool",
                           "Greater",
                           "GreaterOrEqual",
                           "GridSample",
                           "HardSigmoid",
                           "HardSwish",
                           "Identity",
                           "InstanceNormalization",
                           "LayerNormalization",
                           "LeakyRelu",
                           "Less",
                           "LessOrEqual",
                           "Log",
                           "LogSoftmax",
                           "Max",
                           "MaxPool",
                           "Min",
                           "Mish",
                           "Mul",
                           "Neg",
                           "Not",
                           "Or",
                           "PRelu",
                           "Pad",
                           "Pow",
                           "QuickGelu",
                           "RMSNormalization",
                           "Range",
                           "Reciprocal",
                           "ReduceL1",
                           "ReduceL2",
                           "ReduceLogSum",
                           "ReduceLogSumExp",
                           "ReduceMax",
                           "ReduceMean",
                           "ReduceMin",
                           "ReduceSum",
                           "ReduceSumSquare",
                           "Relu",
                           "Reshape",
                           "Resize",
                           "Round",
                           "ScatterND",
                           "Selu",
                           "Shape",
                           "SiLU",
                           "Sigmoid",
                           "Sign",
                           "Sin",
                           "Celu",
                           "Conv",
                           "ConvInteger",
                           "DequantizeLinear",
                           "Gemm",
                           "GlobalMaxPool",
                           "GroupNormalization",
                           "LRN",
                           "LpNormalization",
                           "MatMul",
                           "MatMulInteger",
                           "Mean",
                           "Mod",
                           "QLinearConv",
                           "QLinearMatMul",
                           "QuantizeLinear",
                           "ReduceProd",
                           "Slice",
                           "Softmax",
                           "Softplus",
                           "Softsign",
                           "SpaceToDepth",
                           "Split",
                           "Sqrt",
                           "Squeeze",
                           "Sub",
                           "Sum",
                           "Tan",
                           "Tanh",
                           "ThresholdedRelu",
                           "Tile",
                           "Transpose",
                           "Unsqueeze",
                           "Where",
                           "Xor",
                           "QLinearAdd",
                           "QLinearAveragePool",
                           "QLinearConcat",
                           "QLinearGlobalAveragePool",
                           "QLinearLeakyRelu",
                           "QLinearMul",
                           "QLinearSigmoid",
                           "QLinearSoftmax",
                           "Acos",
                           "Acosh",
                           "AffineGrid",
                           "ArgMax",
                           "ArgMin",
                           "Asin",
                           "Asinh",
                           "Atan",
                           "Atanh",
                           "BitShift",
                           "Col2Im",
                           "Compress",
                           "Cosh",
                           "DeformConv",
                           "Det",
                           "EyeLike",
                           "GatherElements",
                           "GatherND",
                           "GlobalLpPool",
                           "GRU",
                           "Hardmax",
                           "IsInf",
                           "IsNaN",
                           "LpPool",
                           "LSTM",
                           "MaxRoiPool",
                           "MaxUnpool",
                           "MeanVarianceNormalization",
                           "NonMaxSuppression",
                           "NonZero",
                           "OneHot",
                           "ReverseSequence",
                           "RNN",
                           "RoiAlign",
                           "ScatterElements",
                           "Shrink",
                           "Sinh",
                           "Size",
                           "TopK",
                           "Trilu",
                           "Unique"};
    for (const char* kind : kinds) EXPECT_NE(find_op(kind), nullptr) << kind;
}

struct Count {
    const char* text;  // a graph whose last node counts
    uint64_t ops;
};
class CountOps : public testing::TestWithParam<Count> {};
TEST_P(CountOps, FollowsTheTable) {
    const Graph graph = must_parse(GetParam().text);
    ASSERT_FALSE(graph.nodes.empty());
    EXPECT_EQ(count_ops(graph, graph.nodes.back()), GetParam().ops);
}
INSTANTIATE_TEST_SUITE_P(
    Graph, CountOps,
    testing::Values(
        // 2 * 3*3*3 for each of 2*6*6 outputs, and one for the bias
        Count{"input %x : f32[1,3,8,8]\nconst %w : f32[2,3,3,3] = {0}\nconst %b : f32[2] = {0}\n"
              "%y = Conv %x, %w, %b : f32[1,2,6,6]\n",
              72 * 54 + 72},
        // the same without bias, with two parts of one operation per element
        Count{"input %x : f32[1,3,8,8]\nconst %w : f32[2,3,3,3] = {0}\ninput %r : f32[1,2,6,6]\n"
              "%y = Conv+Add+Relu %x, %w, _, %r : f32[1,2,6,6]\n",
              72 * 54 + 144},
        // depthwise: one channel per filter
        Count{"input %x : f32[1,4,8,8]\nconst %w : f32[4,1,3,3] = {0}\n"
              "%y = Conv %x, %w {group=4} : f32[1,4,6,6]\n",
              144 * 18},
        // each input element times each element of its filter
        Count{"input %x : f32[1,3,4,4]\nconst %w : f32[3,2,2,2] = {0}\n"
              "%y = ConvTranspose %x, %w {strides=[2,2]} : f32[1,2,8,8]\n",
              2 * 48 * 8},
        Count{"input %a : f32[2,5]\ninput %b : f32[7,5]\ninput %c : f32[7]\n"
              "%y = Gemm %a, %b, %c {transB=1} : f32[2,7]\n",
              2 * 14 * 5 + 14},
        Count{"input %a : f32[3,2,5]\ninput %b : f32[5,7]\n%y = MatMul %a, %b : f32[3,2,7]\n",
              2 * 42 * 5},
        Count{"input %a : f32[3,2,5]\ninput %b : f32[3,5,7]\n"
              "%y = Einsum %a, %b {equation=\"bij, bjk -> bik\"} : f32[3,2,7]\n",
              2 * 42 * 5},
        Count{"input %x : f32[1,3,8,8]\n%y = MaxPool %x {kernel_shape=[2,2], strides=[2,2]} : "
              "f32[1,3,4,4]\n",
              48 * 4},
        Count{"input %x : f32[1,3,8,8]\n%y = GlobalAveragePool %x : f32[1,3,1,1]\n", 192},
        Count{"input %x : f32[1,3,8,8]\n%y = Cast %x {to=\"i8\"} : i8[1,3,8,8]\n", 192},
        Count{"input %x : f32[1,3,8,8]\n%y = ReduceMax %x {axes=[1]} : f32[1,1,8,8]\n", 192},
        Count{"input %x : f32[1,3,8,8]\n%y = Softmax %x : f32[1,3,8,8]\n", 5 * 192},
        Count{"input %x : f32[1,3,8,8]\n%y = LRN %x {size=3} : f32[1,3,8,8]\n", 4 * 192},
        Count{"input %x : f32[1,3,8,8]\n%y = Resize %x {mode=\"nearest\", sizes=[1,3,16,16]} : "
              "f32[1,3,16,16]\n",
              0},
        Count{"input %x : f32[1,3,8,8]\n%y = Resize %x {mode=\"linear\", sizes=[1,3,16,16]} : "
              "f32[1,3,16,16]\n",
              7 * 768},
        Count{"input %x : f32[1,3,8,8]\n%y = Resize %x {mode=\"cubic\", sizes=[1,3,16,16]} : "
              "f32[1,3,16,16]\n",
              31 * 768},
        Count{"input %x : f32[7,2,3]\nconst %w : f32[2,20,3] = {0}\nconst %r : f32[2,20,5] = {0}\n"
              "%y = LSTM %x, %w, %r {hidden_size=5, direction=\"bidirectional\"} : f32[7,2,2,5]\n",
              2 * 7 * 2 * 2 * 20 * (3 + 5) + 7 * 2 * 2 * 20},
        Count{"input %x : f32[1,3,8,8]\n%y = Transpose %x {perm=[0,2,3,1]} : f32[1,8,8,3]\n", 0}));

struct Shape {
    const char* name;
    const char* text;  // must verify: the types written are right
};
void PrintTo(const Shape& shape, std::ostream* os) {
    *os << shape.name;
}
class InferTypes : public testing::TestWithParam<Shape> {};
TEST_P(InferTypes, AgreesWithTheTextOfTheOnnxSpecification) {
    must_parse(GetParam().text);
}
INSTANTIATE_TEST_SUITE_P(
    Graph, InferTypes,
    testing::Values(
        Shape{"MatMulOfVectors",
              "input %a : f32[5]\ninput %b : f32[5]\n%y = MatMul %a, %b : f32[]"},
        Shape{"MatMulOfVectorAndStack",
              "input %a : f32[5]\ninput %b : f32[4,5,6]\n%y = MatMul %a, %b : f32[4,6]"},
        Shape{"EinsumWithEllipsis",
              "input %a : f32[2,3,4,5]\ninput %b : f32[5,6]\n"
              "%y = Einsum %a, %b {equation=\"...k,kn->...n\"} : f32[2,3,4,6]"},
        Shape{"EinsumWithoutArrow",
              "input %a : f32[2,3]\ninput %b : f32[3,4]\n"
              "%y = Einsum %a, %b {equation=\"zk,ka\"} : f32[4,2]"},
        Shape{"GatherPutsIndicesInPlaceOfTheAxis",
              "input %a : f32[2,3,4]\ninput %i : i64[5,6]\n%y = Gather %a, %i {axis=1} : "
              "f32[2,5,6,4]"},
        Shape{"GatherND",
              "input %a : f32[2,3,4]\ninput %i : i64[2,7,1]\n"
              "%y = GatherND %a, %i {batch_dims=1} : f32[2,7,4]"},
        Shape{"GridSample",
              "input %a : f32[2,3,8,8]\ninput %g : f32[2,5,6,2]\n%y = GridSample %a, %g : "
              "f32[2,3,5,6]"},
        Shape{"NonMaxSuppressionIsBounded",
              "input %b : f32[1,100,4]\ninput %s : f32[1,3,100]\n"
              "%y = NonMaxSuppression %b, %s {max_output_boxes_per_class=10} : i64[30,3]?"},
        Shape{"QLinearConvTakesTheTypeOfItsZeroPoint",
              "input %x : u8[1,3,8,8]\nconst %s : f32[] = {1}\nconst %z : u8[] = {0}\nconst %w : "
              "i8[2,3,1,1] = {1}\n"
              "const %wz : i8[] = {0}\nconst %yz : i8[] = {0}\n"
              "%y = QLinearConv %x, %s, %z, %w, %s, %wz, %s, %yz : i8[1,2,8,8]"},
        Shape{
            "QLinearConcat",
            "input %x : u8[1,3]\nconst %s : f32[] = {1}\nconst %z : u8[] = {0}\n"
            "%y = com.microsoft::QLinearConcat %s, %z, %x, %s, %z, %x, %s, %z {axis=1} : u8[1,6]"},
        Shape{"LstmHasThreeOutputs",
              "input %x : f32[7,2,3]\nconst %w : f32[2,20,3] = {0}\nconst %r : f32[2,20,5] = {0}\n"
              "%y, %h, %c = LSTM %x, %w, %r {direction=\"bidirectional\", hidden_size=5} : "
              "f32[7,2,2,5], f32[2,2,5], f32[2,2,5]"},
        Shape{"FusedKindsKeepTheShapeOfTheirBase",
              "input %x : f32[1,3,8,8]\nconst %w : f32[4,3,1,1] = {0}\ninput %r : f32[1,4,8,8]\n"
              "%y = Conv+Add+HardSigmoid %x, %w, _, %r {HardSigmoid.alpha=0.1} : f32[1,4,8,8]"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::graph
