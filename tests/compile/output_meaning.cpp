// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/output_meaning.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

struct EndCase {
    const char* why;
    const char* nodes;  // from %x : f32[1,8] to %y
    const char* ends_in;
};
const EndCase ends[] = {
    {"scores", "%y = Softmax %x {axis=-1} : f32[1,8]", "softmax"},
    {"their logarithms", "%y = LogSoftmax %x {axis=-1} : f32[1,8]", "log-softmax"},
    {"scores of labels that may hold together", "%y = Sigmoid %x : f32[1,8]", "sigmoid"},
    {"logits", "const %w : f32[8,8] =weights64\n%y = MatMul %x, %w : f32[1,8]", "linear"},
    {"logits with a bias",
     "const %w : f32[8,8] =weights64\nconst %b : f32[8] =weights8\n%m = MatMul %x, %w : f32[1,8]\n"
     "%y = Add %m, %b : f32[1,8]",
     "linear"},
    {"a product with nothing behind it",
     "const %w : f32[8,8] =weights64\n%y = Gemm %x, %w : f32[1,8]", "product"},
    {"products of several levels",
     "const %w : f32[8,8] =weights64\n%m = Gemm %x, %w : f32[1,8]\n"
     "%r = Reshape %m {shape=[1,4,2]} : f32[1,4,2]\n%n = Gemm %x, %w : f32[1,8]\n"
     "%s = Reshape %n {shape=[1,4,2]} : f32[1,4,2]\n"
     "%y = Concat %r, %s {axis=1} : f32[1,8,2]",
     "product"},
    {"corners of several levels, which sums of products are made into",
     "const %w : f32[8,8] =weights64\n%m = Gemm %x, %w : f32[1,8]\n"
     "%a = Add %m, %x : f32[1,8]\n%b = Sub %m, %x : f32[1,8]\n"
     "%y = Concat %a, %b {axis=1} : f32[1,16]",
     "linear"},
    {"what is left of products above 0",
     "const %w : f32[8,8] =weights64\n%m = Gemm %x, %w : f32[1,8]\n%y = Relu %m : f32[1,8]",
     "relu"},
    {"something else", "%y = Tanh %x : f32[1,8]", ""},
    {"what only moves is looked through",
     "%s = Softmax %x {axis=-1} : f32[1,8]\n%y = Reshape %s {shape=[1,8,1,1]} : f32[1,8,1,1]",
     "softmax"},
    {"softmax written out",
     "%e = Exp %x : f32[1,8]\n%s = ReduceSum %e {axes=[1], keepdims=1} : f32[1,1]\n"
     "%y = Div %e, %s : f32[1,8]",
     "softmax"},
    {"divided by the length",
     "%s = ReduceL2 %x {axes=[1], keepdims=1} : f32[1,1]\n%y = Div %x, %s : f32[1,8]",
     "unit-length"},
    {"an activation that multiplies", "%s = Sigmoid %x : f32[1,8]\n%y = Mul %x, %s : f32[1,8]", ""},
    {"a sum of products that is scaled",
     "const %w : f32[8,8] =weights64\nconst %c : f32[8] =weights8\n%m = MatMul %x, %w : f32[1,8]\n"
     "%s = Mul %m, %c : f32[1,8]\n%y = Mul %s, %c : f32[1,8]",
     "linear"},
    {"scores that are multiplied",
     "%s = Sigmoid %x : f32[1,8]\n"
     "%a = Slice %s {axes=[1], ends=[4], starts=[0], steps=[1]} : f32[1,4]\n"
     "%b = Slice %s {axes=[1], ends=[8], starts=[4], steps=[1]} : f32[1,4]\n"
     "%y = Mul %a, %b : f32[1,4]",
     ""},
    {"logits of several heads, joined twice",
     "const %w : f32[8,8] =weights64\n%m = MatMul %x, %w : f32[1,8]\n"
     "%n = MatMul %m, %w : f32[1,8]\n%j = Concat %m, %n {axis=1} : f32[1,16]\n"
     "%y = Concat %j, %m {axis=1} : f32[1,24]",
     "linear"},
    {"the mean of two softmaxes",
     "const %c : f32[8] =weights8\n%s = Softmax %x {axis=-1} : f32[1,8]\n%n = Neg %x : f32[1,8]\n"
     "%t = Softmax %n {axis=-1} : f32[1,8]\n%a = Add %s, %t : f32[1,8]\n"
     "%y = Mul %a, %c : f32[1,8]",
     ""},
    {"the mean of several softmaxes, joined",
     "%s = Softmax %x {axis=-1} : f32[1,8]\n%j = Concat %s, %s {axis=0} : f32[2,8]\n"
     "%y = ReduceMean %j {axes=[0], keepdims=1} : f32[1,8]",
     ""},
    {"a softmax and a constant",
     "const %c : f32[8] =weights8\n%s = Softmax %x {axis=-1} : f32[1,8]\n%y = Add %s, %c : "
     "f32[1,8]",
     ""},
    {"the mean of two sigmoids",
     "const %c : f32[8] =weights8\n%s = Sigmoid %x : f32[1,8]\n%n = Neg %x : f32[1,8]\n"
     "%t = Sigmoid %n : f32[1,8]\n%a = Add %s, %t : f32[1,8]\n%y = Mul %a, %c : f32[1,8]",
     ""},
    {"the mean of several sigmoids, joined",
     "%s = Sigmoid %x : f32[1,8]\n%j = Concat %s, %s {axis=0} : f32[2,8]\n"
     "%y = ReduceMean %j {axes=[0], keepdims=1} : f32[1,8]",
     ""},
    {"what a sigmoid leaves of a constant",
     "const %c : f32[8] =weights8\n%s = Sigmoid %x : f32[1,8]\n%y = Sub %c, %s : f32[1,8]", ""},
    {"a softmax that weights a product",
     "const %w : f32[8,8] =weights64\n%s = Softmax %x {axis=-1} : f32[1,8]\n"
     "%m = MatMul %s, %w : f32[1,8]\n%y = Add %m, %x : f32[1,8]",
     "linear"},
    {"numbers of classes as floats",
     "%a = ArgMax %x {axis=1, keepdims=1, select_last_index=0} : i64[1,1]\n"
     "%y = Cast %a {to=\"f32\"} : f32[1,1]",
     "argmax"},
    {"boxes and scores, joined",
     "const %w : f32[8,8] =weights64\n%m = MatMul %x, %w : f32[1,8]\n%s = Sigmoid %m : f32[1,8]\n"
     "%y = Concat %m, %s {axis=1} : f32[1,16]",
     ""},
};
TEST(OutputMeaning, IsWhatTheGraphEndsIn) {
    for (const EndCase& c : ends) {
        std::string nodes = c.nodes;
        for (const int count : {64, 8}) {  // constants of any value
            const std::string name = "=weights" + std::to_string(count);
            std::string values = "= {0.5";
            for (int i = 1; i < count; ++i) values += ", 0.5";
            if (const size_t at = nodes.find(name); at != nodes.npos)
                nodes.replace(at, name.size(), values + "}");
        }
        const graph::Graph graph =
            graph::must_parse("graph g\ninput %x : f32[1,8]\n" + nodes + "\noutput %y\n");
        const auto meanings = output_meanings(graph);
        ASSERT_EQ(meanings.size(), 1u);
        EXPECT_EQ(meanings[0].name, "y");
        EXPECT_EQ(meanings[0].ends_in, c.ends_in) << c.why;
        EXPECT_FALSE(meanings[0].quant_scale);
    }
}

struct CountCase {
    const char* why;
    const char* nodes;                       // from %x : i64[1,8] and %s : f32[1,8,80] to %y
    unsigned classes;                        // 0 = does not show
    const char* beside = "%b : f32[1,8,4]";  // another output
};
const CountCase counts[] = {
    {"rest of a division", "const %c : i64[] = {80}\n%y = Mod %x, %c {fmod=0} : i64[1,8]", 80},
    {"the same written out",
     "const %c : i64[] = {91}\n%d = Div %x, %c : i64[1,8]\n%m = Mul %d, %c : i64[1,8]\n"
     "%y = Sub %x, %m : i64[1,8]",
     91},
    {"of another number",
     "const %c : i64[] = {91}\nconst %e : i64[] = {90}\n%d = Div %x, %c : i64[1,8]\n"
     "%m = Mul %d, %e : i64[1,8]\n%y = Sub %x, %m : i64[1,8]",
     0},
    {"the greatest", "%y = ArgMax %s {axis=2, keepdims=0, select_last_index=0} : i64[1,8]", 80},
    {"the place of the greatest in a map of each point",
     "%y = ArgMax %s {axis=2, keepdims=0, select_last_index=0} : i64[1,8]", 0, "%b : f32[1,8,2]"},
    {"integers", "%y = Add %x, %x : i64[1,8]", 0},
};
TEST(ClassCount, IsWhatTheGraphMakesIntegersSmallerThan) {
    for (const CountCase& c : counts) {
        const graph::Graph graph =
            graph::must_parse("graph g\ninput %x : i64[1,8]\ninput %s : f32[1,8,80]\ninput " +
                              std::string(c.beside) + "\n" + c.nodes + "\noutput %y\noutput %b\n");
        EXPECT_EQ(class_count(graph).value_or(0), c.classes) << c.why;
    }
}

// The nearest of several classes is one of them, and the mean is none.
TEST(OutputMeaning, OfAMapOfClassesThatIsResizedIsThatOfTheNearest) {
    for (const bool nearest : {true, false}) {
        const graph::Graph graph = graph::must_parse(
            std::string(R"(graph g
input %x : f32[1,3,4,4]
%a = ArgMax %x {axis=1, keepdims=1, select_last_index=0} : i64[1,1,4,4]
%c = Cast %a {to="f32"} : f32[1,1,4,4]
%y = Resize %c {antialias=0, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=")") +
            (nearest ? "nearest" : "linear") +
            R"(", nearest_mode="round_prefer_floor", scales=f[1.0,1.0,2.0,2.0], sizes=[1,1,8,8]} : f32[1,1,8,8]
output %y
)");
        EXPECT_EQ(output_meanings(graph).at(0).ends_in, nearest ? "argmax" : "");
    }
}

TEST(OutputMeaning, OfCodesIsTheirScale) {
    const graph::Graph graph = graph::must_parse(R"(graph g
input %x : f32[1,4]
const %s : f32[] = {0.5}
const %z : u8[] = {128}
%p = Softmax %x {axis=-1} : f32[1,4]
%q = QuantizeLinear %p, %s, %z {axis=0, block_size=0} : u8[1,4]
%y = Reshape %q {shape=[4]} : u8[4]
output %y
)");
    const auto meanings = output_meanings(graph);
    ASSERT_EQ(meanings.size(), 1u);
    EXPECT_EQ(meanings[0].quant_scale, 0.5);
    EXPECT_EQ(meanings[0].zero_point, 128);
    EXPECT_EQ(meanings[0].ends_in, "softmax");
}

}  // namespace
}  // namespace vartml::compiler
