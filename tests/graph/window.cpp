// SPDX-License-Identifier: Apache-2.0
// Windows, products and recurrent operators where the node tests of ONNX do not go: other element
// types and ranks, empty tensors, data that is rejected.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "lib/graph/fold.h"
#include "lib/graph/numbers.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

// "1, 2.5"; "600 x 599" for many equal ones.
std::string listed(const Value& value) {
    const auto numbers = read_numbers<double>(value);
    const auto one = uniform_number(value);
    std::ostringstream text;
    if (numbers.size() > 16 && one) {
        text << *one << " x " << numbers.size();
        return text.str();
    }
    for (const double number : numbers) text << (text.str().empty() ? "" : ", ") << number;
    return text.str();
}

// The elements of the last node's outputs, or the error.
std::string computed(const char* text) {
    Graph graph = must_parse(text);
    if (graph.nodes.empty()) return {};
    const auto folded = cpu::fold_node(graph, graph.nodes.back());
    if (!folded) return folded.error().message;
    if (!*folded) return "not folded";
    std::string lists;
    for (const ValueId id : graph.nodes.back().outputs)
        if (id != none) lists += (lists.empty() ? "" : "; ") + listed(graph.value(id));
    return lists;
}

struct Case {
    const char* name;
    const char* text;
    const char* y;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

class WindowKernel : public testing::TestWithParam<Case> {};
TEST_P(WindowKernel, Computes) {
    EXPECT_EQ(computed(GetParam().text), GetParam().y);
}

const Case windows[] = {
    {"ConvOfF16",
     "const %x : f16[1,1,3] = {1, 2, 3}\nconst %w : f16[1,1,2] = {0.5, 1}\n"
     "%y = Conv %x, %w : f16[1,1,2]",
     "2.5, 4"},
    {"ConvOfBf16PadsAndDilates",
     "const %x : bf16[1,1,3] = {1, 2, 4}\nconst %w : bf16[1,1,2] = {1, 10}\n"
     "const %b : bf16[1] = {0.5}\n"
     "%y = Conv %x, %w, %b {dilations=[2], group=1, pads=[2,1], strides=[2]} : bf16[1,1,2]",
     "10.5, 41.5"},
    {"ConvOfF64InThreeDimensions",
     "const %x : f64[1,1,2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\nconst %w : f64[1,1,2,1,2] = {1}\n"
     "%y = Conv %x, %w : f64[1,1,1,2,1]",
     "14, 22"},
    {"ConvInFourDimensionsWithStrides",
     "const %x : f32[1,1,1,3,1,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
     "const %w : f32[2,1,1,1,1,1] = {1, 2}\n"
     "%y = Conv %x, %w {strides=[1,2,1,2]} : f32[1,2,1,2,1,2]",
     "1, 3, 7, 9, 2, 6, 14, 18"},
    {"ConvOfManyChannels",  // more than one block of the product, in rows and in columns
     "const %x : f32[1,300,600] = {1}\nconst %w : f32[1,300,2] = {1}\n"
     "%t = Conv %x, %w : f32[1,1,599]",
     "600 x 599"},
    {"ConvOfNoPicture",
     "const %x : f32[0,1,3] = {}\nconst %w : f32[1,1,2] = {1}\n%y = Conv %x, %w : f32[0,1,2]", ""},
    {"ConvOfNoChannelsIsItsBias",
     "const %x : f32[1,0,2] = {}\nconst %w : f32[2,0,1] = {}\nconst %b : f32[2] = {3, 4}\n"
     "%y = Conv %x, %w, %b : f32[1,2,2]",
     "3, 3, 4, 4"},
    {"ConvTransposeOfGroups",
     "const %x : bf16[1,2,2] = {1, 2, 3, 4}\nconst %w : bf16[2,1,2] = {1, 10, 1, 100}\n"
     "%y = ConvTranspose %x, %w {group=2, output_padding=[1], strides=[2]} : bf16[1,2,5]",
     "1, 10, 2, 20, 0, 3, 300, 4, 400, 0"},
    {"ConvIntegerPadsWithItsZeroPoint",
     "const %x : u8[1,1,2] = {5, 7}\nconst %w : i8[2,1,2] = {1, -2, 3, 4}\nconst %z : u8[] = {5}\n"
     "const %v : i8[2] = {0, 1}\n%y = ConvInteger %x, %w, %z, %v {pads=[1,1]} : i32[1,2,3]",
     "0, -4, 2, 0, 6, 4"},
    {"QLinearConvRoundsToEvenAndSaturates",
     "const %x : i8[1,1,2] = {1, 100}\nconst %s : f32[] = {0.5}\nconst %z : i8[] = {0}\n"
     "const %w : i8[2,1,1] = {1, 3}\nconst %t : f32[2] = {1, 1}\nconst %v : i8[2] = {0}\n"
     "const %u : f32[] = {1}\nconst %o : i8[] = {1}\nconst %b : i32[2] = {2, 0}\n"
     "%y = QLinearConv %x, %s, %z, %w, %t, %v, %u, %o, %b : i8[1,2,2]",
     "3, 52, 3, 127"},
    {"QLinearConvActivatesBeforeItRounds",
     "const %x : i8[1,1,2] = {-8, 100}\nconst %s : f32[] = {0.5}\nconst %z : i8[] = {0}\n"
     "const %w : i8[2,1,1] = {1, 3}\nconst %t : f32[2] = {1, 1}\nconst %v : i8[2] = {0}\n"
     "const %u : f32[] = {1}\nconst %o : i8[] = {1}\n"
     "%y = QLinearConv %x, %s, %z, %w, %t, %v, %u, %o {activation=\"LeakyRelu\", alpha=0.25, "
     "factors=f[2.0,0.5]} : i8[1,2,2]",
     "-1, 101, -1, 76"},
    {"DeformConvBetweenElementsAndOutside",
     "const %x : f32[1,1,3] = {1, 2, 3}\nconst %w : f32[1,1,1] = {2}\n"
     "const %o : f32[1,1,3] = {0.5, nan, 0.5}\nconst %m : f32[1,1,3] = {1, 1, 0.5}\n"
     "%y = DeformConv %x, %w, %o, _, %m : f32[1,1,3]",
     "3, 0, 1.5"},
    {"DeformConvOfTwoImages",
     "const %x : f32[2,2,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
     "const %w : f32[1,2,1] = {1, 10}\nconst %o : f32[2,1,3] = {0, 0, 0, 0.5, 0, -1}\n"
     "%y = DeformConv %x, %w, %o : f32[2,1,3]",
     "41, 52, 63, 112.5, 118, 118"},
    {"MaxPoolTakesTheFirstOfEqualsAndNan",
     "const %x : f32[1,1,5] = {3, 3, 1, nan, 9}\n"
     "%y, %i = MaxPool %x {kernel_shape=[2]} : f32[1,1,4], i64[1,1,4]",
     "3, 3, nan, nan; 0, 1, 3, 3"},
    {"MaxPoolOfPaddingOnly",
     "const %x : f16[1,1,1] = {-2}\n"
     "%y, %i = MaxPool %x {kernel_shape=[1], pads=[1,1]} : f16[1,1,3], i64[1,1,3]",
     "-inf, -2, -inf; -1, 0, -1"},
    {"MaxPoolCountsByColumns",
     "const %x : i8[1,2,2,3] = {-1, -2, -3, -4, -5, 6, 7, 8, 9, 1, 2, 3}\n"
     "%y, %i = MaxPool %x {kernel_shape=[2,2], storage_order=1} : i8[1,2,1,2], i64[1,2,1,2]",
     "-1, 6, 8, 9; 0, 5, 8, 10"},
    {"AveragePoolDoesNotCountBehindThePadding",
     "const %x : f32[1,1,5] = {1, 2, 3, 4, 5}\n%y = AveragePool %x {ceil_mode=1, "
     "count_include_pad=1, kernel_shape=[2], strides=[2]} : f32[1,1,3]",
     "1.5, 3.5, 5"},
    {"LpPoolOfOddPower",
     "const %x : f64[1,1,3] = {-3, 4, 5}\n%y = LpPool %x {kernel_shape=[3], p=3} : f64[1,1,1]",
     "6"},
    {"GlobalPoolOfNoAxes", "const %x : bf16[1,2] = {1, 2}\n%y = GlobalMaxPool %x : bf16[1,2]",
     "1, 2"},
    {"GlobalAverageInThreeDimensions",
     "const %x : f16[1,1,1,2,2] = {1, 2, 3, 4}\n%y = GlobalAveragePool %x : f16[1,1,1,1,1]", "2.5"},
    {"MaxUnpoolRejectsAnIndex",
     "const %x : f32[1,1,2] = {1, 2}\nconst %i : i64[1,1,2] = {0, 4}\n"
     "%y = MaxUnpool %x, %i {kernel_shape=[2], strides=[2]} : f32[1,1,4]",
     "node 'y' (MaxUnpool) puts an element at 4 of 4"},
};
INSTANTIATE_TEST_SUITE_P(Windows, WindowKernel, testing::ValuesIn(windows),
                         [](const auto& info) { return info.param.name; });

const Case products[] = {
    {"MatMulOfU64Wraps",
     "const %a : u64[1,2] = {9223372036854775807, 3}\nconst %b : u64[2,1] = {4, 5}\n"
     "%y = MatMul %a, %b : u64[1,1]",
     "11"},
    {"MatMulOfVectors",
     "const %a : i32[9] = {1}\nconst %b : i32[9] = {-2}\n%y = MatMul %a, %b : i32[]", "-18"},
    {"MatMulOfARowAndAStack",
     "const %a : f16[2] = {1, 2}\nconst %b : f16[2,2,1] = {1, 2, 3, 4}\n"
     "%y = MatMul %a, %b : f16[2,1]",
     "5, 11"},
    {"MatMulBroadcastsBothSides",
     "const %a : f32[2,1,1,2] = {1, 2, 3, 4}\nconst %b : f32[2,2,1] = {1, 1, 0, 1}\n"
     "%y = MatMul %a, %b : f32[2,2,1,1]",
     "3, 2, 7, 4"},
    {"MatMulOfLongRows",
     "const %a : f32[2,1000] = {0.5}\nconst %b : f32[1000,5] = {2}\nconst %c : f32[5] = {1}\n"
     "%y = MatMul %a, %b, %c : f32[2,5]",
     "1001, 1001, 1001, 1001, 1001, 1001, 1001, 1001, 1001, 1001"},
    {"MatMulOfNoDepth",
     "const %a : bf16[1,0] = {}\nconst %b : bf16[0,2] = {}\n%y = MatMul %a, %b : bf16[1,2]",
     "0, 0"},
    {"GemmOfIntegers",
     "const %a : i32[2,1] = {3, -5}\nconst %b : i32[1,2] = {1, 1}\nconst %c : i32[2,1] = {10, 20}\n"
     "%y = Gemm %a, %b, %c {alpha=0.5, beta=2.0, transA=0, transB=0} : i32[2,2]",
     "21, 21, 38, 38"},
    {"GemmOfOneRow",
     "const %a : f64[2,1] = {1, 2}\nconst %b : f64[3,2] = {1, 2, 3, 4, 5, 6}\n"
     "%y = Gemm %a, %b {transA=1, transB=1} : f64[1,3]",
     "5, 11, 17"},
    {"MatMulIntegerByRowAndColumn",
     "const %a : u8[2,1] = {1, 2}\nconst %b : i8[1,2] = {3, 4}\nconst %z : u8[2] = {1, 0}\n"
     "const %v : i8[2] = {0, 1}\n%y = MatMulInteger %a, %b, %z, %v : i32[2,2]",
     "0, 0, 6, 6"},
    {"QLinearMatMulSaturates",
     "const %a : i8[1,1] = {-100}\nconst %b : i8[1,2] = {100, 1}\nconst %s : f32[] = {1}\n"
     "const %z : i8[] = {0}\nconst %t : f32[] = {40}\n"
     "%y = QLinearMatMul %a, %s, %z, %b, %s, %z, %t, %z : i8[1,2]",
     "-128, -2"},
    {"DetOfNothingIsOne", "const %x : f32[2,0,0] = {}\n%y = Det %x : f32[2]", "1, 1"},
    {"DetSwapsRows", "const %x : f16[2,2] = {0, 2, 3, 4}\n%y = Det %x : f16[]", "-6"},
    {"EinsumOfThree",
     "const %a : i64[2,2] = {1, 2, 3, 4}\nconst %b : i64[2] = {1, 10}\nconst %c : i64[2] = {1, 2}\n"
     "%y = Einsum %a, %b, %c {equation=\"ij,j,i->\"} : i64[]",
     "107"},
    {"EinsumOfADiagonal",
     "const %a : i8[2,2] = {100, 2, 3, 100}\n%y = Einsum %a {equation=\"ii\"} : i8[]", "-56"},
    {"EinsumOfDiagonalsInAStack",
     "const %a : f64[2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n"
     "%y = Einsum %a {equation=\"...ii->...i\"} : f64[2,2]",
     "1, 4, 5, 8"},
    {"EinsumTransposes",
     "const %a : u8[2,3] = {1, 2, 3, 4, 5, 6}\n%y = Einsum %a {equation=\"ij->ji\"} : u8[3,2]",
     "1, 4, 2, 5, 3, 6"},
    {"EinsumBroadcastsItsEllipsis",
     "const %a : f16[2,1,2] = {1, 2, 3, 4}\nconst %b : f16[2,2] = {1, 0, 0, 1}\n"
     "%y = Einsum %a, %b {equation=\"...k, ...k -> ...\"} : f16[2,2]",
     "1, 2, 3, 4"},
    {"EinsumSumsWhatOneTermHas",
     "const %a : f32[2,2] = {1, 2, 3, 4}\nconst %b : f32[3,1] = {1, 2, 3}\n"
     "%y = Einsum %a, %b {equation=\"ab,cd->ca\"} : f32[3,2]",
     "3, 7, 6, 14, 9, 21"},
    // q, k and v are x itself: softmax(0, 1) times (0, 1) in the second row.
    {"AttentionLooksBackOnly",
     "const %x : f32[1,2,1] = {0, 1}\nconst %w : f32[1,3] = {1}\n"
     "%y = com.microsoft::Attention %x, %w {num_heads=1, unidirectional=1} : f32[1,2,1]",
     "0, 0.731059"},
    {"AttentionHidesBehindTheEnd",
     "const %x : f16[1,2,2] = {0, 3, 1, 5}\nconst %w : f16[2,6] = {1, 0, 1, 0, 1, 0, 0, 1, 0, 1, "
     "0, "
     "1}\nconst %m : i32[1] = {1}\n"
     "%y = com.microsoft::Attention %x, %w, _, %m {num_heads=2} : f16[1,2,2]",
     "0, 3, 0, 3"},
};
INSTANTIATE_TEST_SUITE_P(Products, WindowKernel, testing::ValuesIn(products),
                         [](const auto& info) { return info.param.name; });

// Affine with its defaults passes numbers through, so that the results can be had by hand.
#define ONE_UNIT "const %x : f32[3,1,1] = {1, 2, 3}\nconst %w : f32[1,1,1] = {1}\n"
const Case recurrent[] = {
    {"RnnBackwardsWithinTheLength",
     ONE_UNIT "const %n : i32[1] = {2}\n%y, %h = RNN %x, %w, %w, _, %n {activations=s[\"Affine\"], "
              "direction=\"reverse\"} : f32[3,1,1,1], f32[1,1,1]",
     "3, 2, 0; 3"},
    {"RnnOfTheLastStateOnly",
     ONE_UNIT "_, %h = RNN %x, %w, %w {activation_alpha=f[2.0], activation_beta=f[1.0], "
              "activations=s[\"Affine\"]} : _, f32[1,1,1]",
     "29"},
    {"RnnRejectsALength",
     ONE_UNIT "const %n : i32[1] = {4}\n%y = RNN %x, %w, %w, _, %n : f32[3,1,1,1]",
     "node 'y' (RNN) has a sequence of 4 steps, expected 0 to 3"},
    {"RnnWantsAnActivationPerDirection",
     ONE_UNIT "%y = RNN %x, %w, %w {activations=s[\"Relu\", \"Relu\"]} : f32[3,1,1,1]",
     "node 'y' (RNN) has 2 activations, expected 1"},
    {"GruResetsBefore",
     "const %x : f64[1,1,1] = {0}\nconst %w : f64[1,3,1] = {0}\nconst %r : f64[1,3,1] = {0, 2, 3}\n"
     "const %b : f64[1,6] = {0, 0, 0, 0, 0, 1}\nconst %h : f64[1,1,1] = {1}\n%y = GRU %x, %w, %r, "
     "%b, _, %h {activations=s[\"Affine\", \"Affine\"]} : f64[1,1,1,1]",
     "7"},
    {"GruResetsBehind",
     "const %x : f64[1,1,1] = {0}\nconst %w : f64[1,3,1] = {0}\nconst %r : f64[1,3,1] = {0, 2, 3}\n"
     "const %b : f64[1,6] = {0, 0, 0, 0, 0, 1}\nconst %h : f64[1,1,1] = {1}\n%y = GRU %x, %w, %r, "
     "%b, _, %h {activations=s[\"Affine\", \"Affine\"], linear_before_reset=1} : f64[1,1,1,1]",
     "8"},
    // Input gate 0.25, forget gate 0.75; the output gate sees the new cell through its peephole.
    {"LstmCouplesAndClips",
     "const %x : f16[1,1,1] = {1}\nconst %w : f16[1,4,1] = {0.25, 1, 9, 2}\n"
     "const %r : f16[1,4,1] = {0}\nconst %c : f16[1,1,1] = {4}\nconst %p : f16[1,3] = {0, 1, 0}\n"
     "%y, %h, %d = LSTM %x, %w, %r, _, _, _, %c, %p {activations=s[\"Affine\", \"Affine\", "
     "\"Affine\"], clip=2.0, input_forget=1} : f16[1,1,1,1], f16[1,1,1], f16[1,1,1]",
     "4; 4; 3.5"},
};
INSTANTIATE_TEST_SUITE_P(Recurrent, WindowKernel, testing::ValuesIn(recurrent),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::graph
