// SPDX-License-Identifier: Apache-2.0
// What the node tests of ONNX leave out of element-wise operators, reductions, normalisation and
// quantisation: other types, ranks, empty tensors, NaNs, broken data.
#include <gtest/gtest.h>

#include "lib/graph/fold.h"
#include "lib/graph/kernel.h"
#include "lib/graph/typed.h"
#include "tests/support/graphs.h"

namespace vartml::cpu {
namespace {

using graph::Graph;

struct Case {
    const char* name;
    const char* text;  // constants and nodes; the last node's first output is `y`
    const char* y;     // its printed line behind "const %y : "
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

// Evaluates every node; the printed constant of the last one's first output, or the error.
std::string computed(const char* text) {
    Graph graph = graph::must_parse(text);
    for (const graph::Node& node : graph.nodes) {
        auto constants = evaluate(graph, node);
        if (!constants) return constants.error().message;
        for (size_t i = 0; i < node.outputs.size(); ++i)
            if (node.outputs[i] != graph::none)
                graph.value(node.outputs[i]).constant = (*constants)[i];
    }
    Graph only;
    const graph::Value& y = graph.value(graph.nodes.back().outputs[0]);
    only.add_constant("y", y.type, *y.constant);
    const std::string printed = print(only), start = "const %y : ";
    const size_t at = printed.find(start);
    return at == printed.npos
               ? printed
               : printed.substr(at + start.size(), printed.find('\n', at) - at - start.size());
}

class Kernels : public testing::TestWithParam<Case> {};
TEST_P(Kernels, GiveTheNumbersOfTheDefinition) {
    EXPECT_EQ(computed(GetParam().text), GetParam().y);
}

const Case elementwise[] = {
    {"AddWrapsInEachType",
     "const %a : u8[2] = {250, 5}\nconst %b : u8[1] = {10}\n%y = Add %a, %b : u8[2]",
     "u8[2] = {4, 15}"},
    {"MulOfU16IsNoSignedOverflow", "const %a : u16[1] = {65535}\n%y = Mul %a, %a : u16[1]",
     "u16[1] = {1}"},
    {"CompareOfU64IsUnsigned",
     "const %a : i64[1] = {-1}\n%b = Cast %a {to=\"u64\"} : u64[1]\nconst %c : u64[1] = {1}\n%y = "
     "Greater %b, %c : bool[1]",
     "bool[1] = {1}"},
    {"DivByZeroAndOfTheLeastInteger",
     "const %a : i8[3] = {-128, 7, -7}\nconst %b : i8[3] = {-1, 0, 2}\n%y = Div %a, %b : i8[3]",
     "i8[3] = {-128, 0, -3}"},
    {"ModOfTheLeastInteger",
     "const %a : i32[2] = {-2147483648, 5}\nconst %b : i32[2] = {-1, 0}\n%y = Mod %a, %b : i32[2]",
     "i32[2] = {0, 0}"},
    // 1 + 2^-8 lies between two bf16; the sum of three is rounded once, or it would stay 1.
    {"SumOfHalvesRoundsOnce",
     "const %a : bf16[1] = {1}\nconst %b : bf16[1] = {0.00390625}\n%y = Sum %a, %b, %b : bf16[1]",
     "bf16[1] = {1.0078125}"},
    {"MeanOfF16", "const %a : f16[2] = {1, 2}\nconst %b : f16[1] = {4}\n%y = Mean %a, %b : f16[2]",
     "f16[2] = {2.5, 3.0}"},
    {"MaxOfOneInput", "const %a : i8[2] = {1, -2}\n%y = Max %a : i8[2]", "i8[2] = {1, -2}"},
    {"MaxAndMinKeepNans",
     "const %a : f32[2] = {nan, 1}\nconst %b : f32[2] = {1, nan}\n%m = Max %a, %b : f32[2]\n"
     "%y = IsNaN %m : bool[2]",
     "bool[2] = {1, 1}"},
    {"BroadcastOfBothOverEightAxes",
     "const %a : f32[2,1,1,2,1,1,1,1] = {1, 2, 3, 4}\nconst %b : f32[1,1,2,1,1,1,1,2] = {10, 20, "
     "30, 40}\n%y = Add %a, %b : f32[2,1,2,2,1,1,1,2]",
     "f32[2,1,2,2,1,1,1,2] = {11.0, 21.0, 12.0, 22.0, 31.0, 41.0, 32.0, 42.0, 13.0, 23.0, 14.0, "
     "24.0, 33.0, 43.0, 34.0, 44.0}"},
    {"ScalarsOfRankZero", "const %a : f64[] = {3}\n%y = Mul %a, %a : f64[]", "f64[] = {9.0}"},
    {"NothingBroadcasts",
     "const %a : f32[0,3] = {}\nconst %b : f32[3] = {1, 2, 3}\n%y = Mul %a, %b : f32[0,3]",
     "f32[0,3] = {}"},
    {"PowOfIntegersIsExact",
     "const %a : i64[3] = {3, -1, 2}\nconst %b : i8[3] = {39, -3, -1}\n%y = Pow %a, %b : i64[3]",
     "i64[3] = {4052555153018976267, -1, 0}"},
    {"PowByAHalf", "const %a : f16[1] = {9}\nconst %b : bf16[] = {0.5}\n%y = Pow %a, %b : f16[1]",
     "f16[1] = {3.0}"},
    {"ShiftsByTheWidthOfTheTypeAndMore",
     "const %a : u8[3] = {255, 255, 255}\nconst %b : u8[3] = {4, 8, 200}\n"
     "%y = BitShift %a, %b {direction=\"LEFT\"} : u8[3]",
     "u8[3] = {240, 0, 0}"},
    {"AbsWraps", "const %a : i8[2] = {-128, -1}\n%y = Abs %a : i8[2]", "i8[2] = {-128, 1}"},
    {"WhereOfHalves",
     "const %c : bool[2] = {1, 0}\nconst %a : f16[] = {1}\nconst %b : f16[2] = {5, 6}\n"
     "%y = Where %c, %a, %b : f16[2]",
     "f16[2] = {1.0, 6.0}"},
    {"ClipOfIntegersByInputs",
     "const %x : i64[3] = {-9007199254740993, 0, 9007199254740995}\nconst %l : i64[] = {-5}\n"
     "const %h : i64[] = {9007199254740993}\n%y = Clip %x, %l, %h : i64[3]",
     "i64[3] = {-5, 0, 9007199254740993}"},
    {"ClipWithCrossedBounds",
     "const %x : f32[2] = {0, 9}\n%y = Clip %x {max=1.0, min=3.0} : f32[2]", "f32[2] = {1.0, 1.0}"},
    {"CastOfANanToBool", "const %x : f16[2] = {nan, 0}\n%y = Cast %x {to=\"bool\"} : bool[2]",
     "bool[2] = {1, 0}"},
    {"CastOfBoolToBf16", "const %x : bool[2] = {1, 0}\n%y = Cast %x {to=\"bf16\"} : bf16[2]",
     "bf16[2] = {1.0, 0.0}"},
    {"CastOfU64Wraps", "const %x : u64[1] = {4294967298}\n%y = Cast %x {to=\"u8\"} : u8[1]",
     "u8[1] = {2}"},
    {"SigmoidOfLargeNumbers", "const %x : f32[3] = {-3e38, 0, 3e38}\n%y = Sigmoid %x : f32[3]",
     "f32[3] = {0.0, 0.5, 1.0}"},
    {"RunsOfManyElements",
     "const %x : bf16[3,1,5000] = {1}\nconst %c : bf16[3,1,1] = {1, 2, 3}\n"
     "%s = Mul %x, %c : bf16[3,1,5000]\n%y = ReduceSum %s {axes=[1,2], keepdims=0} : bf16[3]",
     "bf16[3] = {4992.0, 9984.0, 14976.0}"},
};
INSTANTIATE_TEST_SUITE_P(Elementwise, Kernels, testing::ValuesIn(elementwise),
                         [](const auto& info) { return info.param.name; });

const Case reductions[] = {
    {"OuterAndInnerAxis",
     "const %x : i32[2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n%y = ReduceSum %x {axes=[0,2]} : "
     "i32[1,2,1]",
     "i32[1,2,1] = {14, 22}"},
    {"SumOfManySmallNumbers",
     "const %x : f32[1000000] = {0.1}\n%y = ReduceSum %x {axes=[0], keepdims=0} : f32[]",
     "f32[] = {1e+05}"},
    {"MeanOfIntegersDoesNotWrap",
     "const %x : i8[3] = {127, 127, 127}\n%y = ReduceMean %x {axes=[0]} : i8[1]", "i8[1] = {127}"},
    {"OfNothing", "const %x : f32[0,2] = {}\n%y = ReduceMax %x {axes=[0], keepdims=0} : f32[2]",
     "f32[2] = {-inf, -inf}"},
    {"MinOfBools", "const %x : bool[3] = {1, 0, 1}\n%y = ReduceMin %x {axes=[0]} : bool[1]",
     "bool[1] = {0}"},
    {"LogSumExpOfInfinities",
     "const %x : f32[2,2] = {-inf, -inf, inf, 1}\n%y = ReduceLogSumExp %x {axes=[1], keepdims=0} : "
     "f32[2]",
     "f32[2] = {-inf, inf}"},
    {"ArgMaxTakesTheFirstNan",
     "const %x : f32[4] = {1, nan, 3, nan}\n%y = ArgMax %x {axis=0} : i64[1]", "i64[1] = {1}"},
    {"ArgMaxTakesTheLastOfTies",
     "const %x : u8[2,3] = {5, 5, 1, 2, 7, 7}\n%y = ArgMax %x {axis=1, keepdims=0, "
     "select_last_index=1} : i64[2]",
     "i64[2] = {1, 2}"},
    {"ArgMinAlongAnOuterAxis",
     "const %x : f16[2,2] = {1, 4, 2, 3}\n%y = ArgMin %x {axis=0, keepdims=0} : i64[2]",
     "i64[2] = {0, 1}"},
    {"ArgMaxOfNothing", "const %x : f32[0,2] = {}\n%y = ArgMax %x {axis=0} : i64[1,2]",
     "node 'y' (ArgMax) looks for an element along an axis without elements"},
    {"CumSumOfHalvesRoundsEachSumOnce",
     "const %x : bf16[3] = {256, 1, 1}\n%y = CumSum %x {axis=0} : bf16[3]",
     "bf16[3] = {256.0, 256.0, 258.0}"},
    {"CumSumBackwardsWithoutItself",
     "const %x : i32[2,3] = {1, 2, 3, 4, 5, 6}\n%y = CumSum %x {axis=1, exclusive=1, reverse=1} : "
     "i32[2,3]",
     "i32[2,3] = {5, 3, 0, 11, 6, 0}"},
    {"CumSumAlongAnAxisThatDataName",
     "const %x : i32[2] = {1, 2}\nconst %a : i64[] = {1}\n%y = CumSum %x, %a : i32[2]",
     "node 'y' (CumSum) sums along axis 1 of 1"},
};
INSTANTIATE_TEST_SUITE_P(Reductions, Kernels, testing::ValuesIn(reductions),
                         [](const auto& info) { return info.param.name; });

const Case normalisations[] = {
    {"SoftmaxOfLargeHalves",
     "const %x : f16[2,2] = {60000, 60000, 0, -60000}\n%y = Softmax %x {axis=1} : f16[2,2]",
     "f16[2,2] = {0.5, 0.5, 1.0, 0.0}"},
    {"HardmaxTakesTheFirstOfTies",
     "const %x : f32[3,1] = {1, 2, 2}\n%y = Hardmax %x {axis=0} : f32[3,1]",
     "f32[3,1] = {0.0, 1.0, 0.0}"},
    {"SoftmaxOfNothing", "const %x : f32[2,0] = {}\n%y = Softmax %x {axis=1} : f32[2,0]",
     "f32[2,0] = {}"},
    {"LpNormKeepsZeros",
     "const %x : f32[2,2] = {0, 0, 3, -1}\n%y = LpNormalization %x {axis=1, p=1} : f32[2,2]",
     "f32[2,2] = {0.0, 0.0, 0.75, -0.25}"},
    {"LayerNormWithAScaleOfOneElement",
     "const %x : f32[2,2] = {1, 3, 5, 9}\nconst %s : f32[1] = {2}\nconst %b : f32[2] = {0, 10}\n"
     "%y = LayerNormalization %x, %s, %b {axis=1, epsilon=0.0} : f32[2,2]",
     "f32[2,2] = {-2.0, 12.0, -2.0, 12.0}"},
    {"LayerNormWithAScalePerRow",
     "const %x : f32[2,2] = {1, 3, 5, 9}\nconst %s : f32[2,1] = {2, 4}\n"
     "%y = LayerNormalization %x, %s {axis=1, epsilon=0.0} : f32[2,2]",
     "f32[2,2] = {-2.0, 2.0, -4.0, 4.0}"},
    {"RmsNorm",
     "const %x : f32[1,2] = {3, 3}\nconst %s : f32[2] = {1, 2}\n"
     "%y = RMSNormalization %x, %s {axis=1, epsilon=0.0} : f32[1,2]",
     "f32[1,2] = {1.0, 2.0}"},
    {"BatchNormOfHalvesWithFloatStatistics",
     "const %x : bf16[1,2,2] = {1, 2, 3, 4}\nconst %s : bf16[2] = {1, 2}\nconst %b : bf16[2] = {0, "
     "1}\nconst %m : f32[2] = {1, 3}\nconst %v : f32[2] = {4, 1}\n"
     "%y = BatchNormalization %x, %s, %b, %m, %v {epsilon=0.0} : bf16[1,2,2]",
     "bf16[1,2,2] = {0.0, 0.5, 1.0, 3.0}"},
};
INSTANTIATE_TEST_SUITE_P(Normalisation, Kernels, testing::ValuesIn(normalisations),
                         [](const auto& info) { return info.param.name; });

#define Q(name) "const %" name "s : f32[] = {0.5}\nconst %" name "z : u8[] = {10}\n"
const Case quantisations[] = {
    {"HalfToEvenAndClamped",
     "const %x : f32[5] = {0.5, 1.5, -2.5, 300, nan}\nconst %s : f32[] = {1}\nconst %z : i8[] = "
     "{0}\n%y = QuantizeLinear %x, %s, %z : i8[5]",
     "i8[5] = {0, 2, -2, 127, 0}"},
    {"InBlocksWithARest",
     "const %x : f32[1,3] = {2, 4, 8}\nconst %s : f32[1,2] = {1, 4}\n"
     "%y = QuantizeLinear %x, %s {axis=1, block_size=2} : u8[1,3]",
     "u8[1,3] = {2, 4, 2}"},
    {"DequantiseInt32ToHalves",
     "const %x : i32[2] = {-3, 5}\nconst %s : f16[] = {0.5}\n%y = DequantizeLinear %x, %s : f16[2]",
     "f16[2] = {-1.5, 2.5}"},
    {"DequantiseAlongTheLastAxis",
     "const %x : i16[2,2] = {1, 2, 3, 4}\nconst %s : f32[2] = {1, 10}\nconst %z : i16[2] = {0, 1}\n"
     "%y = DequantizeLinear %x, %s, %z {axis=1} : f32[2,2]",
     "f32[2,2] = {1.0, 10.0, 3.0, 30.0}"},
    // (12 - 10) * 0.5 + (14 - 10) * 0.5 = 3 = (16 - 10) * 0.5
    {"QLinearAddBroadcasts",
     "const %a : u8[2] = {12, 10}\nconst %b : u8[1] = {14}\n" Q("a") Q("b")
         Q("y") "%y = com.microsoft::QLinearAdd %a, %as, %az, %b, %bs, %bz, %ys, %yz : u8[2]",
     "u8[2] = {16, 14}"},
    {"QLinearMul",
     "const %a : u8[2] = {14, 255}\nconst %b : u8[1] = {16}\n" Q("a") Q("b")
         Q("y") "%y = com.microsoft::QLinearMul %a, %as, %az, %b, %bs, %bz, %ys, %yz : u8[2]",
     "u8[2] = {22, 255}"},
    {"QLinearSigmoid",
     "const %x : i8[2] = {0, 127}\nconst %s : f32[] = {1}\nconst %z : i8[] = {0}\nconst %t : f32[] "
     "= {0.0078125}\n"
     "%y = com.microsoft::QLinearSigmoid %x, %s, %z, %t, %z : i8[2]",
     "i8[2] = {64, 127}"},
    {"QLinearLeakyRelu",
     "const %x : u8[2] = {2, 12}\n" Q("x")
         Q("y") "%y = com.microsoft::QLinearLeakyRelu %x, %xs, %xz, %ys, %yz {alpha=0.25} : u8[2]",
     "u8[2] = {8, 12}"},
    {"QLinearSoftmax",
     "const %x : u8[1,2] = {3, 3}\nconst %s : f32[] = {1}\nconst %t : f32[] = {0.00390625}\nconst "
     "%z : u8[] = {0}\n"
     "%y = com.microsoft::QLinearSoftmax %x, %s, %z, %t, %z {axis=1} : u8[1,2]",
     "u8[1,2] = {128, 128}"},
    {"QLinearConcatMovesToOneGrid",
     "const %a : u8[2,1] = {12, 14}\nconst %b : u8[2,2] = {1, 2, 3, 200}\n" Q("a")
         Q("y") "const %s : f32[] = {2}\nconst %z : u8[] = {0}\n"
                "%y = com.microsoft::QLinearConcat %ys, %yz, %a, %as, %az, %b, %s, %z {axis=1} : "
                "u8[2,3]",
     "u8[2,3] = {12, 14, 18, 14, 22, 255}"},
    {"QLinearWithTwoScales",
     "const %x : u8[2] = {1}\nconst %s : f32[2] = {1}\nconst %z : u8[] = {0}\n"
     "%y = com.microsoft::QLinearSigmoid %x, %s, %z, %s, %z : u8[2]",
     "node 'y' (QLinearSigmoid) has no single scale at input 1"},
};
INSTANTIATE_TEST_SUITE_P(Quantised, Kernels, testing::ValuesIn(quantisations),
                         [](const auto& info) { return info.param.name; });

const Case pools[] = {
    {"QLinearGlobalAveragePool",
     "const %x : u8[1,1,2,2] = {10, 12, 14, 16}\n" Q("x")
         Q("y") "%y = com.microsoft::QLinearGlobalAveragePool %x, %xs, %xz, %ys, %yz : u8[1,1,1,1]",
     "u8[1,1,1,1] = {13}"},
    {"QLinearAveragePool",
     "const %x : u8[1,1,1,4] = {10, 12, 14, 18}\n" Q("x")
         Q("y") "%y = com.microsoft::QLinearAveragePool %x, %xs, %xz, %ys, %yz {ceil_mode=0, "
                "count_include_pad=0, dilations=[1,1], kernel_shape=[1,2], pads=[0,0,0,0], "
                "strides=[1,2]} : "
                "u8[1,1,1,2]",
     "u8[1,1,1,2] = {11, 16}"},
};
class PoolKernels : public testing::TestWithParam<Case> {};
TEST_P(PoolKernels, GiveTheNumbersOfTheDefinition) {
    EXPECT_EQ(computed(GetParam().text), GetParam().y);
}
INSTANTIATE_TEST_SUITE_P(Quantised, PoolKernels, testing::ValuesIn(pools),
                         [](const auto& info) { return info.param.name; });

TEST(FusedKernels, WorkInPlaceOnTheOutput) {
    const Graph graph = graph::must_parse(
        "input %a : bf16[2,2]\ninput %b : bf16[2]\n%y = Add+Relu+Mul %a, %b, %b : bf16[2,2]");
    Bf16 a[] = {Bf16(1), Bf16(2), Bf16(3), Bf16(4)}, b[] = {Bf16(-2), Bf16(1)}, y[4];
    const Array small{DataType::bf16, {2}, reinterpret_cast<std::byte*>(b)};
    const Array inputs[] = {
        {DataType::bf16, {2, 2}, reinterpret_cast<std::byte*>(a)}, small, small};
    Array output{DataType::bf16, {2, 2}, reinterpret_cast<std::byte*>(y)};
    const auto done = run({graph.nodes[0], inputs, {&output, 1}});
    ASSERT_TRUE(done) << done.error().message;
    const float expected[] = {0, 3, -2, 5};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float>(y[i]), expected[i]);
}

}  // namespace
}  // namespace vartml::cpu
