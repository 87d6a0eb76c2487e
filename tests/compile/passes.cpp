// SPDX-License-Identifier: Apache-2.0
// Each pass as two texts: before and after. `after` empty: it must leave the graph alone.
#include "lib/compile/passes/passes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/compile/pass_table.h"
#include "tests/support/graphs.h"
#include "tests/support/interpreter.h"

namespace vartml::compiler {
namespace {

using graph::Graph;

struct Case {
    const char* name;
    Result<PassStats> (*pass)(Graph&);
    const char* before;
    const char* after;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

// Node lines only: constants and sources do not count here, the numbers are compared by running
// both graphs.
std::string structure(const Graph& graph) {
    std::string text, result;
    text = graph::print(graph);
    for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        if (line.starts_with("graph ") || line.starts_with("const ") || line.starts_with("input "))
            continue;
        result += line.substr(0, line.find(" @")) + '\n';
    }
    return result;
}

// Ones of three rows make three of the one row that a run may have.
TEST(RemoveIdentity, KeepsOnesBesideWhatIsSmallerInARun) {
    for (const bool whole : {true, false}) {
        Graph graph = graph::must_parse(
            std::string("input %x : f32[3,4]\ninput %c : bool[3]\n") +
            (whole ? "const %o : f32[3,1] = {1, 1, 1}\n" : "const %o : f32[1,1] = {1}\n") +
            "%a = Compress %x, %c {axis=0} : f32[3,4]?\n%y = Mul %a, %o : f32[3,4]?\n"
            "%r = Relu %y : f32[3,4]?\noutput %r");
        const auto stats = remove_identity(graph);
        ASSERT_TRUE(stats) << stats.error().message;
        EXPECT_EQ(stats->rewrites, whole ? 0U : 1U);
    }
}

class Passes : public testing::TestWithParam<Case> {};
TEST_P(Passes, GiveTheTextBehind) {
    Graph graph = graph::must_parse(GetParam().before);
    graph::randomise_constants(graph);
    const std::string before = structure(graph);
    const auto expected = graph::interpret(graph);
    ASSERT_TRUE(expected) << expected.error().message;

    const auto stats = GetParam().pass(graph);
    ASSERT_TRUE(stats) << stats.error().message;
    if (auto ok = graph::verify(graph); !ok)
        FAIL() << ok.error().message << "\n" << graph::print(graph);
    const bool leaves_alone = !*GetParam().after;
    EXPECT_EQ(stats->rewrites == 0, leaves_alone);
    // Names of new constants are not of interest: `after` gives those that the pass makes.
    const auto after = graph::parse(GetParam().after);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(structure(graph), leaves_alone ? before : structure(*after));

    const auto found = graph::interpret(graph);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), expected->size());
    for (size_t output = 0; output < found->size(); ++output) {
        const auto &a = (*found)[output], &b = (*expected)[output];
        ASSERT_EQ(a.size(), b.size());
        double range = 0;
        for (const double v : b) range = std::max(range, std::fabs(v));
        EXPECT_GT(range, 0) << "an output of zeros shows nothing";
        for (size_t i = 0; i < a.size(); ++i)
            ASSERT_NEAR(a[i], b[i], 2e-6 * range) << "element " << i;
    }
}

#define X "input %x : f32[1,4,8,8]\n"
#define W "const %w : f32[6,4,3,3] = {0}\nconst %b : f32[6] = {0}\n"
const Case cases[] = {
    // ---- fold_constants
    {"FoldsChains", fold_constants, X R"(
        const %c : f32[1,4,1,1] = {1, 2, 3, 4}
        const %d : f32[] = {2}
        %e = Mul %c, %d : f32[1,4,1,1]
        %f = Sqrt %e : f32[1,4,1,1]
        %y = Add %x, %f : f32[1,4,8,8]
        output %y)",
     X "const %f : f32[1,4,1,1] = {1}\n%y = Add %x, %f : f32[1,4,8,8]\noutput %y"},
    // A program has no place for an output that is a constant.
    {"LeavesWhatMakesAnOutputAlone", fold_constants,
     "const %c : f32[2] = {1, 2}\n%y = Exp %c : f32[2]\noutput %y", ""},
    {"TakesNewConstantsAsParameters", fold_constants, X R"(
        const %low : f32[] = {-2}
        %high = Neg %low : f32[]
        %y = Clip %x, %low, %high : f32[1,4,8,8]
        output %y)",
     X "%y = Clip %x {max=2.0, min=-2.0} : f32[1,4,8,8]\noutput %y"},
    {"LeavesVariablesAlone", fold_constants,
     X "const %c : f32[] = {2}\n%y = Add %x, %c : f32[1,4,8,8]\noutput %y", ""},

    // ---- remove_identity
    {"RemovesIdentities", remove_identity, X R"(
        const %zero : f32[] = {-0.0}
        const %one : f32[1,4,1,1] = {1}
        %a = Identity %x : f32[1,4,8,8]
        %b = Cast %a {to="f32"} : f32[1,4,8,8]
        %c = Pad %b {mode="reflect", pads=[0,0,0,0,0,0,0,0]} : f32[1,4,8,8]
        %d = Slice %c {axes=[1], ends=[4], starts=[0], steps=[1]} : f32[1,4,8,8]
        %e = Mul %d, %one : f32[1,4,8,8]
        %f = Resize %e {mode="linear", scales=f[1.0,1.0,1.0,1.0], sizes=[1,4,8,8]} : f32[1,4,8,8]
        %g = Concat %f {axis=1} : f32[1,4,8,8]
        %h = Transpose %g {perm=[0,1,2,3]} : f32[1,4,8,8]
        %y = Relu %h : f32[1,4,8,8]
        output %y)",
     X "%y = Relu %x : f32[1,4,8,8]\noutput %y"},
    {"KeepsTheNameOfAnOutput", remove_identity,
     X "%a = Relu %x : f32[1,4,8,8]\n%y = Identity %a : f32[1,4,8,8]\n%z = Exp %a : "
       "f32[1,4,8,8]\noutput %y\noutput %z",
     X "%y = Relu %x : f32[1,4,8,8]\n%z = Exp %y : f32[1,4,8,8]\noutput %y\noutput %z"},
    {"KeepsIdentityBetweenInputAndOutput", remove_identity,
     X "%y = Identity %x : f32[1,4,8,8]\noutput %y", ""},
    {"KeepsIdentityBetweenTwoOutputs", remove_identity,
     X "%a = Relu %x : f32[1,4,8,8]\n%y = Identity %a : f32[1,4,8,8]\noutput %a\noutput %y", ""},
    {"JoinsReshapes", remove_identity,
     X "%a = Reshape %x {shape=[4,64]} : f32[4,64]\n%y = Reshape %a {shape=[1,256]} : "
       "f32[1,256]\noutput %y",
     X "%y = Reshape %x {shape=[1,256]} : f32[1,256]\noutput %y"},
    {"JoinsReshapesToNothing", remove_identity,
     X "%a = Reshape %x {shape=[4,64]} : f32[4,64]\n%b = Reshape %a {shape=[1,4,8,8]} : "
       "f32[1,4,8,8]\n%y = Relu %b : f32[1,4,8,8]\noutput %y",
     X "%y = Relu %x : f32[1,4,8,8]\noutput %y"},
    {"JoinsTransposes", remove_identity,
     X "%a = Transpose %x {perm=[0,2,3,1]} : f32[1,8,8,4]\n%y = Transpose %a {perm=[3,1,2,0]} : "
       "f32[4,8,8,1]\noutput %y",
     X "%y = Transpose %x {perm=[1,2,3,0]} : f32[4,8,8,1]\noutput %y"},
    {"CancelsTransposes", remove_identity,
     X "%a = Transpose %x {perm=[0,2,3,1]} : f32[1,8,8,4]\n%b = Transpose %a {perm=[0,3,1,2]} : "
       "f32[1,4,8,8]\n%y = Exp %b : f32[1,4,8,8]\noutput %y",
     X "%y = Exp %x : f32[1,4,8,8]\noutput %y"},
    {"JoinsClips", remove_identity,
     X "%a = Relu %x : f32[1,4,8,8]\n%b = Clip %a {max=3.0, min=-1.0} : f32[1,4,8,8]\n%y = Relu %b "
       ": f32[1,4,8,8]\noutput %y",
     X "%y = Clip %x {max=3.0, min=0.0} : f32[1,4,8,8]\noutput %y"},
    {"MakesAProductOfTheSecondPower", remove_identity,
     X "const %two : f32[] = {2}\n%y = Pow %x, %two : f32[1,4,8,8]\noutput %y",
     X "%y = Mul %x, %x : f32[1,4,8,8]\noutput %y"},
    {"KeepsOtherPowers", remove_identity,
     X "const %p : f32[] = {3}\n%y = Pow %x, %p : f32[1,4,8,8]\noutput %y", ""},
    {"KeepsAPowerThatIsTwo", remove_identity,
     X "const %two : f32[] = {2}\n%y = Pow %two, %x : f32[1,4,8,8]\noutput %y", ""},
    {"KeepsBroadcastingByAddingZero", remove_identity,
     "input %x : f32[1,4,1,1]\nconst %zeros : f32[1,4,2,2] = {-0.0}\n%y = Add %x, %zeros : "
     "f32[1,4,2,2]\noutput %y",
     ""},

    // ---- fold_batch_norm
    {"FoldsBatchNormIntoConv", fold_batch_norm, X W R"(
        const %s : f32[6] = {1, 2, 3, -4, 5, 6}
        const %m : f32[6] = {1, 0.5, 0.25, 2, 0, -1}
        const %v : f32[6] = {1, 2, 0.5, 1, 0.1, 3}
        %a = Conv %x, %w {pads=[1,1,1,1]} : f32[1,6,8,8]
        %y = BatchNormalization %a, %s, %b, %m, %v {epsilon=0.001} : f32[1,6,8,8]
        output %y)",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Conv %x, %w_1, %a.bias "
       "{pads=[1,1,1,1]} : f32[1,6,8,8]\noutput %y"},
    {"FoldsBatchNormIntoConvTranspose", fold_batch_norm, X R"(
        const %w : f32[4,3,2,2] = {0}
        const %b : f32[6] = {0}
        const %s : f32[6] = {1, 2, 3, -4, 5, 6}
        const %v : f32[6] = {1, 2, 0.5, 1, 0.1, 3}
        %a = ConvTranspose %x, %w, %b {group=2, strides=[2,2]} : f32[1,6,16,16]
        %y = BatchNormalization %a, %s, %b, %s, %v : f32[1,6,16,16]
        output %y)",
     X "const %w_1 : f32[4,3,2,2] = {0}\nconst %a.bias : f32[6] = {0}\n%y = ConvTranspose %x, "
       "%w_1, %a.bias {group=2, strides=[2,2]} : f32[1,6,16,16]\noutput %y"},
    {"FoldsBatchNormIntoGemm", fold_batch_norm, R"(
        input %x : f32[2,5]
        const %w : f32[6,5] = {0}
        const %c : f32[1,6] = {0}
        const %s : f32[6] = {1, 2, 3, -4, 5, 6}
        const %v : f32[6] = {1, 2, 0.5, 1, 0.1, 3}
        %a = Gemm %x, %w, %c {alpha=0.5, beta=2.0, transB=1} : f32[2,6]
        %y = BatchNormalization %a, %s, %v, %s, %v : f32[2,6]
        output %y)",
     "input %x : f32[2,5]\nconst %w_1 : f32[6,5] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Gemm "
     "%x, %w_1, %a.bias {alpha=0.5, beta=1.0, transB=1} : f32[2,6]\noutput %y"},
    {"FoldsBatchNormIntoTheConvBehind", fold_batch_norm, X R"(
        const %w : f32[6,2,3,3] = {0}
        const %s : f32[4] = {1, 2, 3, -4}
        const %v : f32[4] = {1, 2, 0.5, 1}
        %a = Relu %x : f32[1,4,8,8]
        %n = BatchNormalization %a, %s, %v, %s, %v : f32[1,4,8,8]
        %y = Conv %n, %w {group=2} : f32[1,6,6,6]
        output %y)",
     X "const %w_1 : f32[6,2,3,3] = {0}\nconst %y.bias : f32[6] = {0}\n%a = Relu %x : "
       "f32[1,4,8,8]\n%y = Conv %a, %w_1, %y.bias {group=2} : f32[1,6,6,6]\noutput %y"},
    {"SplitsBatchNormInFrontOfPadding", fold_batch_norm, X W R"(
        const %s : f32[4] = {1, 2, 3, -4}
        const %v : f32[4] = {1, 2, 0.5, 1}
        %n = BatchNormalization %x, %s, %v, %s, %v : f32[1,4,8,8]
        %y = Conv %n, %w, %b {pads=[1,1,1,1]} : f32[1,6,8,8]
        output %y)",
     X W "const %n.scale : f32[4,1,1] = {0}\nconst %n.shift : f32[4,1,1] = {0}\n%n.scaled = Mul "
         "%x, %n.scale : f32[1,4,8,8]\n%n = Add %n.scaled, %n.shift : f32[1,4,8,8]\n%y = Conv %n, "
         "%w, %b {pads=[1,1,1,1]} : f32[1,6,8,8]\noutput %y"},
    // The channels are rows of this product, its weights differ by column; there are as many.
    {"SplitsBatchNormOfTheRowsOfAProduct", fold_batch_norm, R"(
        input %x : f32[2,4,5]
        const %w : f32[5,4] = {0}
        const %s : f32[4] = {1, 2, 3, -4}
        const %v : f32[4] = {1, 2, 0.5, 1}
        %a = MatMul %x, %w : f32[2,4,4]
        %y = BatchNormalization %a, %s, %v, %s, %v : f32[2,4,4]
        output %y)",
     "input %x : f32[2,4,5]\nconst %w : f32[5,4] = {0}\nconst %y.scale : f32[4,1] = {0}\nconst "
     "%y.shift : f32[4,1] = {0}\n%a = MatMul %x, %w : f32[2,4,4]\n%y.scaled = Mul %a, %y.scale : "
     "f32[2,4,4]\n%y = Add %y.scaled, %y.shift : f32[2,4,4]\noutput %y"},
    // 256 * 500 is no fp16.
    {"SplitsHalfBatchNormThatWeightsDoNotHold", fold_batch_norm, R"(
        input %x : f16[1,1,4,4]
        const %t : f16[] = {0.0005}
        const %w : f16[2,1,1,1] = {500}
        const %s : f16[2] = {256}
        const %v : f16[2] = {1}
        %b = Mul %x, %t : f16[1,1,4,4]
        %a = Conv %b, %w : f16[1,2,4,4]
        %y = BatchNormalization %a, %s, %v, %v, %v {epsilon=0.0} : f16[1,2,4,4]
        output %y)",
     R"(
        input %x : f16[1,1,4,4]
        const %t : f16[] = {0}
        const %w : f16[2,1,1,1] = {0}
        const %y.scale : f16[2,1,1] = {0}
        const %y.shift : f16[2,1,1] = {0}
        %b = Mul %x, %t : f16[1,1,4,4]
        %a = Conv %b, %w : f16[1,2,4,4]
        %y.scaled = Mul %a, %y.scale : f16[1,2,4,4]
        %y = Add %y.scaled, %y.shift : f16[1,2,4,4]
        output %y)"},
    {"SplitsHalfBatchNormOfASmallMean", fold_batch_norm, R"(
        input %x : f16[1,2,4,4]
        const %s : f16[2] = {2}
        const %v : f16[2] = {1}
        %y = BatchNormalization %x, %s, %v, %v, %v {epsilon=0.0} : f16[1,2,4,4]
        output %y)",
     R"(
        input %x : f16[1,2,4,4]
        const %y.scale : f16[2,1,1] = {0}
        const %y.shift : f16[2,1,1] = {0}
        %y.scaled = Mul %x, %y.scale : f16[1,2,4,4]
        %y = Add %y.scaled, %y.shift : f16[1,2,4,4]
        output %y)"},
    // The shift would be -90000; beside one of -4500 the last digits would be gone.
    {"LeavesHalfBatchNormOfALargeMeanAlone", fold_batch_norm, R"(
        input %x : f16[1,2,4,4]
        const %s : f16[2] = {10}
        const %m : f16[2] = {9000}
        const %v : f16[2] = {1}
        %y = BatchNormalization %x, %s, %v, %m, %v : f16[1,2,4,4]
        output %y)",
     ""},
    {"LeavesHalfBatchNormThatWouldCancelAlone", fold_batch_norm, R"(
        input %x : f16[1,2,4,4]
        const %s : f16[2] = {5}
        const %m : f16[2] = {900}
        const %v : f16[2] = {1}
        %y = BatchNormalization %x, %s, %v, %m, %v : f16[1,2,4,4]
        output %y)",
     ""},
    {"LeavesBatchNormOfVariablesAlone", fold_batch_norm,
     X "input %s : f32[4]\nconst %v : f32[4] = {1}\n%y = BatchNormalization %x, %s, %v, %v, %v : "
       "f32[1,4,8,8]\noutput %y",
     ""},

    // ---- recognise_patterns
    {"SiLU", recognise_patterns,
     X "%s = Sigmoid %x : f32[1,4,8,8]\n%y = Mul %s, %x : f32[1,4,8,8]\noutput %y",
     X "%y = vartml::SiLU %x : f32[1,4,8,8]\noutput %y"},
    {"HardSwishFromHardSigmoid", recognise_patterns,
     X "%s = HardSigmoid %x {alpha=0.16666667, beta=0.5} : f32[1,4,8,8]\n%y = Mul %x, %s : "
       "f32[1,4,8,8]\noutput %y",
     X "%y = HardSwish %x : f32[1,4,8,8]\noutput %y"},
    {"HardSwishAsPaddleExportsIt", recognise_patterns, X R"(
        const %three : f32[1] = {3}
        const %six : f32[1] = {6}
        %a = Add %x, %three : f32[1,4,8,8]
        %c = Clip %a {max=6.0, min=0.0} : f32[1,4,8,8]
        %m = Mul %x, %c : f32[1,4,8,8]
        %y = Div %m, %six : f32[1,4,8,8]
        output %y)",
     X "%y = HardSwish %x : f32[1,4,8,8]\noutput %y"},
    {"HardSwishAsTensorFlowExportsIt", recognise_patterns, X R"(
        const %three : f32[1,1,1,1] = {3}
        const %sixth : f32[] = {0.16666667}
        %a = Add %x, %three : f32[1,4,8,8]
        %c = Clip %a {max=6.0, min=0.0} : f32[1,4,8,8]
        %m = Mul %sixth, %c : f32[1,4,8,8]
        %y = Mul %x, %m : f32[1,4,8,8]
        output %y)",
     X "%y = HardSwish %x : f32[1,4,8,8]\noutput %y"},
    {"HardSigmoidAlone", recognise_patterns, X R"(
        const %three : f32[] = {3}
        const %six : f32[] = {6}
        %a = Add %x, %three : f32[1,4,8,8]
        %c = Clip %a {max=6.0, min=0.0} : f32[1,4,8,8]
        %y = Div %c, %six : f32[1,4,8,8]
        output %y)",
     X "%y = HardSigmoid %x {alpha=0.16666667, beta=0.5} : f32[1,4,8,8]\noutput %y"},
    {"GeluByErf", recognise_patterns, X R"(
        const %root : f32[] = {1.4142135}
        const %one : f32[] = {1}
        const %half : f32[] = {0.5}
        %a = Div %x, %root : f32[1,4,8,8]
        %e = Erf %a : f32[1,4,8,8]
        %p = Add %e, %one : f32[1,4,8,8]
        %m = Mul %x, %p : f32[1,4,8,8]
        %y = Mul %m, %half : f32[1,4,8,8]
        output %y)",
     X "%y = Gelu %x {approximate=\"none\"} : f32[1,4,8,8]\noutput %y"},
    {"Mish", recognise_patterns, X R"(
        %s = Softplus %x : f32[1,4,8,8]
        %t = Tanh %s : f32[1,4,8,8]
        %y = Mul %x, %t : f32[1,4,8,8]
        output %y)",
     X "%y = Mish %x : f32[1,4,8,8]\noutput %y"},
    {"MishSpelledOut", recognise_patterns, X R"(
        const %one : f32[] = {1}
        %e = Exp %x : f32[1,4,8,8]
        %p = Add %one, %e : f32[1,4,8,8]
        %s = Log %p : f32[1,4,8,8]
        %t = Tanh %s : f32[1,4,8,8]
        %y = Mul %x, %t : f32[1,4,8,8]
        output %y)",
     X "%y = Mish %x : f32[1,4,8,8]\noutput %y"},
    {"GlobalAveragePoolOfReduceMean", recognise_patterns,
     X "%y = ReduceMean %x {axes=[2,3], keepdims=1} : f32[1,4,1,1]\noutput %y",
     X "%y = GlobalAveragePool %x : f32[1,4,1,1]\noutput %y"},
    {"GlobalAveragePoolWithoutAxes", recognise_patterns,
     X "%y = ReduceMean %x {axes=[2,3], keepdims=0} : f32[1,4]\noutput %y",
     X "%y.pool = GlobalAveragePool %x : f32[1,4,1,1]\n%y = Reshape %y.pool {shape=[1,4]} : "
       "f32[1,4]\noutput %y"},
    {"GlobalAveragePoolOfAveragePool", recognise_patterns,
     X "%y = AveragePool %x {kernel_shape=[8,8]} : f32[1,4,1,1]\noutput %y",
     X "%y = GlobalAveragePool %x : f32[1,4,1,1]\noutput %y"},
    {"LeavesAGateOfAnotherTensorAlone", recognise_patterns,
     X "input %z : f32[1,4,8,8]\n%s = Sigmoid %z : f32[1,4,8,8]\n%y = Mul %x, %s : "
       "f32[1,4,8,8]\noutput %y",
     ""},
    {"LeavesASharedGateAlone", recognise_patterns,
     X "%s = Sigmoid %x : f32[1,4,8,8]\n%y = Mul %x, %s : f32[1,4,8,8]\noutput %y\noutput %s", ""},
    {"LeavesAMeanOverChannelsAlone", recognise_patterns,
     X "%y = ReduceMean %x {axes=[1], keepdims=1} : f32[1,1,8,8]\noutput %y", ""},
    {"LeavesAMeanOverFeaturesAlone", recognise_patterns,
     "input %x : f32[1,4,8]\n%y = ReduceMean %x {axes=[2], keepdims=1} : f32[1,4,1]\noutput %y",
     ""},
    {"LeavesAClampOfSmallNumbersAlone", recognise_patterns, R"(
        input %x : f32[1,4,8,8]
        const %two : f32[] = {2}
        const %million : f32[] = {1000000}
        %a = Mul %x, %two : f32[1,4,8,8]
        %c = Clip %a {max=0.000005, min=0.0} : f32[1,4,8,8]
        %y = Mul %c, %million : f32[1,4,8,8]
        output %y)",
     ""},
    {"LeavesAClampThatEndsBehindOneAlone", recognise_patterns,
     X "const %two : f32[] = {2}\n%a = Mul %x, %two : f32[1,4,8,8]\n%y = Clip %a {max=1.00001, "
       "min=0.0} : f32[1,4,8,8]\noutput %y",
     ""},
    {"LeavesAClampOfIntegersAlone", recognise_patterns,
     "input %x : i32[9]\nconst %two : i32[] = {2}\n%a = Mul %x, %two : i32[9]\n%y = Clip %a "
     "{max=1.0, min=0.0} : i32[9]\noutput %y",
     ""},
    {"LeavesAGateOfIntegersAlone", recognise_patterns, R"(
        input %x : i32[9]
        const %three : i32[] = {3}
        const %six : i32[] = {6}
        %a = Add %x, %three : i32[9]
        %c = Clip %a {max=6.0, min=0.0} : i32[9]
        %m = Mul %x, %c : i32[9]
        %y = Div %m, %six : i32[9]
        output %y)",
     ""},
    {"LeavesReluSixAlone", recognise_patterns,
     X "%y = Clip %x {max=6.0, min=0.0} : f32[1,4,8,8]\noutput %y", ""},

    // ---- recognise_depth_to_space
    {"PixelShuffle", recognise_depth_to_space,
     "input %x : f32[1,18,4,5]\n"
     R"(
        %a = Reshape %x {shape=[1,2,3,3,4,5]} : f32[1,2,3,3,4,5]
        %b = Transpose %a {perm=[0,1,4,2,5,3]} : f32[1,2,4,3,5,3]
        %y = Reshape %b {shape=[1,2,12,15]} : f32[1,2,12,15]
        output %y)",
     "input %x : f32[1,18,4,5]\n%y = DepthToSpace %x {blocksize=3, mode=\"CRD\"} : "
     "f32[1,2,12,15]\noutput %y"},
    {"PixelShuffleDepthFirst", recognise_depth_to_space,
     "input %x : f32[1,8,4,5]\n"
     R"(
        %a = Reshape %x {shape=[1,2,2,2,4,5]} : f32[1,2,2,2,4,5]
        %b = Transpose %a {perm=[0,3,4,1,5,2]} : f32[1,2,4,2,5,2]
        %y = Reshape %b {shape=[1,2,8,10]} : f32[1,2,8,10]
        output %y)",
     "input %x : f32[1,8,4,5]\n%y = DepthToSpace %x {blocksize=2, mode=\"DCR\"} : "
     "f32[1,2,8,10]\noutput %y"},
    {"PixelUnshuffle", recognise_depth_to_space,
     "input %x : f32[1,3,4,6]\n"
     R"(
        %a = Reshape %x {shape=[1,3,2,2,3,2]} : f32[1,3,2,2,3,2]
        %b = Transpose %a {perm=[0,3,5,1,2,4]} : f32[1,2,2,3,2,3]
        %y = Reshape %b {shape=[1,12,2,3]} : f32[1,12,2,3]
        output %y)",
     "input %x : f32[1,3,4,6]\n%y = SpaceToDepth %x {blocksize=2} : f32[1,12,2,3]\noutput %y"},
    {"LeavesChannelShuffleAlone", recognise_depth_to_space,
     "input %x : f32[1,6,4,4]\n"
     R"(
        %a = Reshape %x {shape=[1,2,3,4,4]} : f32[1,2,3,4,4]
        %b = Transpose %a {perm=[0,2,1,3,4]} : f32[1,3,2,4,4]
        %y = Reshape %b {shape=[1,6,4,4]} : f32[1,6,4,4]
        output %y)",
     ""},
    {"LeavesAShuffleToAnotherShapeAlone", recognise_depth_to_space,
     "input %x : f32[1,18,4,5]\n"
     R"(
        %a = Reshape %x {shape=[1,2,3,3,4,5]} : f32[1,2,3,3,4,5]
        %b = Transpose %a {perm=[0,1,4,2,5,3]} : f32[1,2,4,3,5,3]
        %y = Reshape %b {shape=[1,2,15,12]} : f32[1,2,15,12]
        output %y)",
     ""},

    // ---- fold_scale_bias
    {"FoldsScaleAndBiasIntoConv", fold_scale_bias, X W R"(
        const %s : f32[6,1,1] = {1, 2, 3, -4, 5, 6}
        const %t : f32[] = {0.5}
        const %u : f32[1,6,1,1] = {1, 2, 3, 4, 5, 6}
        %a = Conv %x, %w, %b : f32[1,6,6,6]
        %c = Mul %a, %s : f32[1,6,6,6]
        %d = Sub %t, %c : f32[1,6,6,6]
        %e = Div %d, %u : f32[1,6,6,6]
        %y = Add %u, %e : f32[1,6,6,6]
        output %y)",
     X "const %w_1_1_1_1 : f32[6,4,3,3] = {0}\nconst %a.bias_3 : f32[6] = {0}\n%y = Conv %x, "
       "%w_1_1_1_1, %a.bias_3 : f32[1,6,6,6]\noutput %y"},
    {"FoldsBiasIntoMatMul", fold_scale_bias,
     "input %x : f32[3,2,5]\nconst %w : f32[5,4] = {0}\nconst %b : f32[1,4] = {1, 2, 3, 4}\n%a = "
     "MatMul %x, %w : f32[3,2,4]\n%y = Add %a, %b : f32[3,2,4]\noutput %y",
     "input %x : f32[3,2,5]\nconst %w_1 : f32[5,4] = {0}\nconst %a.bias : f32[4] = {0}\n%y = "
     "MatMul %x, %w_1, %a.bias : f32[3,2,4]\noutput %y"},
    {"FoldsScaleIntoThePaddedConvBehind", fold_scale_bias,
     X W "const %s : f32[4,1,1] = {1, 2, 3, 4}\n%a = Mul %x, %s : f32[1,4,8,8]\n%y = Conv %a, %w, "
         "%b {pads=[1,1,1,1]} : f32[1,6,8,8]\noutput %y",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %y.bias : f32[6] = {0}\n%y = Conv %x, %w_1, %y.bias "
       "{pads=[1,1,1,1]} : f32[1,6,8,8]\noutput %y"},
    {"FoldsScaleIntoAFusedConvBehind", fold_scale_bias,
     X W "input %z : f32[1,6,6,6]\nconst %s : f32[4,1,1] = {1, 2, 3, 4}\n%a = Mul %x, %s : "
         "f32[1,4,8,8]\n%y = Conv+Add+Relu %a, %w, %b, %z : f32[1,6,6,6]\noutput %y",
     X "input %z : f32[1,6,6,6]\nconst %w_1 : f32[6,4,3,3] = {0}\nconst %y.bias : f32[6] = {0}\n%y "
       "= Conv+Add+Relu %x, %w_1, %y.bias, %z : f32[1,6,6,6]\noutput %y"},
    {"LeavesShiftInFrontOfPaddingAlone", fold_scale_bias,
     X W "const %s : f32[4,1,1] = {1, 2, 3, 4}\n%a = Add %x, %s : f32[1,4,8,8]\n%y = Conv %a, %w, "
         "%b {pads=[1,1,1,1]} : f32[1,6,8,8]\noutput %y",
     ""},
    {"LeavesConstantsPerRowAlone", fold_scale_bias,
     X W "const %s : f32[6,1] = {1, 2, 3, 4, 5, 6}\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Mul "
         "%a, %s : f32[1,6,6,6]\noutput %y",
     ""},
    {"LeavesAResultWithTwoReadersAlone", fold_scale_bias,
     X W "const %s : f32[] = {2}\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Mul %a, %s : "
         "f32[1,6,6,6]\n%z = Relu %a : f32[1,6,6,6]\noutput %y\noutput %z",
     ""},
    {"LeavesDivisionOfAConstantAlone", fold_scale_bias,
     X W "const %s : f32[] = {2}\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Div %s, %a : "
         "f32[1,6,6,6]\noutput %y",
     ""},

    {"LeavesWeightsThatWouldLoseTheirDigitsAlone", fold_scale_bias, R"(
        input %x : f16[1,4,4,4]
        const %w : f16[2,4,1,1] = {0.01}
        const %s : f16[] = {0.000002}
        %a = Conv %x, %w : f16[1,2,4,4]
        %y = Mul %a, %s : f16[1,2,4,4]
        output %y)",
     ""},
    // A channel that training gave up.
    {"LeavesWeightsThatAreNothingBesideOtherChannelsAlone", fold_scale_bias, R"(
        input %x : f16[1,4,4,4]
        const %w : f16[2,4,1,1] = {0.5}
        const %s : f16[2,1,1] = {1, 0.000001}
        %a = Conv %x, %w : f16[1,2,4,4]
        %y = Mul %a, %s : f16[1,2,4,4]
        output %y)",
     ""},
    {"FoldsWeightsThatAreNothingBesideTheirBias", fold_batch_norm, R"(
        input %x : f16[1,4,4,4]
        const %w : f16[2,4,1,1] = {0.5}
        const %s : f16[2] = {0, 0.000001}
        const %b : f16[2] = {1, 0.25}
        const %m : f16[2] = {0, 0}
        const %v : f16[2] = {1, 1}
        %a = Conv %x, %w : f16[1,2,4,4]
        %y = BatchNormalization %a, %s, %b, %m, %v : f16[1,2,4,4]
        output %y)",
     R"(
        input %x : f16[1,4,4,4]
        const %w_1 : f16[2,4,1,1] = {0}
        const %a.bias : f16[2] = {0}
        %y = Conv %x, %w_1, %a.bias : f16[1,2,4,4]
        output %y)"},
    {"LeavesAHalfShiftInFrontOfAConvAlone", fold_scale_bias, R"(
        input %x : f16[1,4,4,4]
        const %w : f16[2,4,1,1] = {0}
        const %m : f16[] = {900}
        %a = Sub %x, %m : f16[1,4,4,4]
        %y = Conv %a, %w : f16[1,2,4,4]
        output %y)",
     ""},

    {"FoldsPositiveFactorsThroughRelu", fold_scale_bias,
     X W "const %s : f32[1] = {0.25}\n%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%y = Mul %s, %a : "
         "f32[1,6,6,6]\noutput %y",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Conv+Relu %x, %w_1, "
       "%a.bias : f32[1,6,6,6]\noutput %y"},
    {"TurnsTheBoundOfReluWithANegativeFactor", fold_scale_bias,
     X W "const %s : f32[] = {-0.25}\n%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%y = Mul %s, %a : "
         "f32[1,6,6,6]\noutput %y",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Conv+Clip %x, %w_1, "
       "%a.bias {Clip.max=0.0} : f32[1,6,6,6]\noutput %y"},
    {"MovesTheBoundOfReluByAShift", fold_scale_bias,
     X W "const %s : f32[] = {0.25}\n%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%y = Add %s, %a : "
         "f32[1,6,6,6]\noutput %y",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Conv+Clip %x, %w_1, "
       "%a.bias {Clip.min=0.25} : f32[1,6,6,6]\noutput %y"},
    {"MovesBothBoundsOfClip", fold_scale_bias,
     X W "const %s : f32[] = {-2}\n%a = Conv+Clip %x, %w, %b {Clip.max=6.0, Clip.min=-1.0} : "
         "f32[1,6,6,6]\n%y = Mul %s, %a : f32[1,6,6,6]\noutput %y",
     X "const %w_1 : f32[6,4,3,3] = {0}\nconst %a.bias : f32[6] = {0}\n%y = Conv+Clip %x, %w_1, "
       "%a.bias {Clip.max=2.0, Clip.min=-12.0} : f32[1,6,6,6]\noutput %y"},
    {"LeavesShiftsPerChannelBehindReluAlone", fold_scale_bias,
     X W "const %s : f32[6,1,1] = {1, 2, 3, 4, 5, 6}\n%a = Conv+Relu %x, %w, %b : "
         "f32[1,6,6,6]\n%y = Add %s, %a : f32[1,6,6,6]\noutput %y",
     ""},

    // ---- hoist_activation
    {"ActivationInFrontOfViews", hoist_activation,
     X W
     "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%t = Transpose %a {perm=[0,2,3,1]} : f32[1,6,6,6]\n%r = "
     "Reshape %t {shape=[36,6]} : f32[36,6]\n%y = Clip %r {max=1.0} : f32[36,6]\noutput %y",
     X W
     "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%t = Clip %a {max=1.0} : f32[1,6,6,6]\n%r = Transpose "
     "%t {perm=[0,2,3,1]} : f32[1,6,6,6]\n%y = Reshape %r {shape=[36,6]} : f32[36,6]\noutput %y"},
    {"LeavesViewsOfOtherOperatorsAlone", hoist_activation,
     X "%a = Sqrt %x : f32[1,4,8,8]\n%b = Exp %x : f32[1,4,8,8]\n%r = Reshape %b {shape=[4,64]} : "
       "f32[4,64]\n%y = Relu %r : f32[4,64]\noutput %y",
     ""},
    {"LeavesActivatedResultsAlone", hoist_activation,
     X W "%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%r = Reshape %a {shape=[36,6]} : f32[36,6]\n%y "
         "= Sigmoid %r : f32[36,6]\noutput %y",
     ""},
    {"LeavesViewsWithAnotherReaderAlone", hoist_activation,
     X W "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%r = Reshape %a {shape=[36,6]} : f32[36,6]\n%y = "
         "Sigmoid %r : f32[36,6]\noutput %y\noutput %r",
     ""},

    // ---- fuse_scale_bias
    {"ShiftBehindAnActivation", fuse_scale_bias,
     X W "const %s : f32[1] = {0.25}\n%a = Conv+SiLU %x, %w, %b : f32[1,6,6,6]\n%y = Add %s, %a : "
         "f32[1,6,6,6]\noutput %y",
     X W "const %s_1 : f32[1,6,1,1] = {0}\n%y = Conv+SiLU+Add %x, %w, %b, %s_1 : "
         "f32[1,6,6,6]\noutput %y"},
    {"LeavesConstantsPerRowBehindAlone", fuse_scale_bias,
     X W "const %s : f32[6,1] = {0.25}\n%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%y = Add %s, %a "
         ": f32[1,6,6,6]\noutput %y",
     ""},

    // ---- space_to_depth_conv
    {"FocusOfYolox", space_to_depth_conv, R"(
        input %x : f32[1,3,8,8]
        const %w : f32[5,12,3,3] = {0}
        %r0 = Slice %x {axes=[2], ends=[8], starts=[0], steps=[2]} : f32[1,3,4,8]
        %p0 = Slice %r0 {axes=[3], ends=[8], starts=[0], steps=[2]} : f32[1,3,4,4]
        %r1 = Slice %x {axes=[2], ends=[8], starts=[1], steps=[2]} : f32[1,3,4,8]
        %p1 = Slice %r1 {axes=[3], ends=[8], starts=[0], steps=[2]} : f32[1,3,4,4]
        %p2 = Slice %x {axes=[2,3], ends=[8,8], starts=[0,1], steps=[2,2]} : f32[1,3,4,4]
        %p3 = Slice %r1 {axes=[3], ends=[8], starts=[1], steps=[2]} : f32[1,3,4,4]
        %c = Concat %p0, %p1, %p2, %p3 {axis=1} : f32[1,12,4,4]
        %y = Conv %c, %w {pads=[1,1,1,1]} : f32[1,5,4,4]
        output %y)",
     "input %x : f32[1,3,8,8]\nconst %w_1 : f32[5,3,6,6] = {0}\n%y = Conv %x, %w_1 "
     "{pads=[2,2,2,2], strides=[2,2]} : f32[1,5,4,4]\noutput %y"},
    {"SpaceToDepthInFrontOfAStridedConv", space_to_depth_conv, R"(
        input %x : f32[1,2,12,12]
        const %w : f32[5,18,2,2] = {0}
        const %b : f32[5] = {1, 2, 3, 4, 5}
        %c = SpaceToDepth %x {blocksize=3} : f32[1,18,4,4]
        %y = Conv+Relu %c, %w, %b {pads=[0,1,1,0], strides=[2,1]} : f32[1,5,2,4]
        output %y)",
     "input %x : f32[1,2,12,12]\nconst %w_1 : f32[5,2,6,6] = {0}\nconst %b : f32[5] = {0}\n%y = "
     "Conv+Relu %x, %w_1, %b {pads=[0,3,3,0], strides=[6,3]} : f32[1,5,2,4]\noutput %y"},
    {"LeavesPiecesWithAnotherReaderAlone", space_to_depth_conv, R"(
        input %x : f32[1,2,4,4]
        const %w : f32[5,8,1,1] = {0}
        %c = SpaceToDepth %x {blocksize=2} : f32[1,8,2,2]
        %y = Conv %c, %w : f32[1,5,2,2]
        output %y
        output %c)",
     ""},
    {"LeavesAConcatOfTheSamePieceAlone", space_to_depth_conv, R"(
        input %x : f32[1,2,4,4]
        const %w : f32[5,8,1,1] = {0}
        %a = Slice %x {axes=[2,3], ends=[4,4], starts=[0,0], steps=[2,2]} : f32[1,2,2,2]
        %b = Slice %x {axes=[2,3], ends=[4,4], starts=[0,1], steps=[2,2]} : f32[1,2,2,2]
        %c = Slice %x {axes=[2,3], ends=[4,4], starts=[1,0], steps=[2,2]} : f32[1,2,2,2]
        %d = Slice %x {axes=[2,3], ends=[4,4], starts=[1,0], steps=[2,2]} : f32[1,2,2,2]
        %e = Concat %a, %b, %c, %d {axis=1} : f32[1,8,2,2]
        %y = Conv %e, %w : f32[1,5,2,2]
        output %y)",
     ""},

    // ---- fuse_pad
    {"PadsInTheConv", fuse_pad,
     X W "%a = Pad %x {mode=\"constant\", pads=[0,0,1,2,0,0,3,4]} : f32[1,4,12,14]\n%y = Conv %a, "
         "%w, %b {pads=[1,0,0,0], strides=[2,2]} : f32[1,6,6,6]\noutput %y",
     X W "%y = Conv %x, %w, %b {pads=[2,2,3,4], strides=[2,2]} : f32[1,6,6,6]\noutput %y"},
    {"PadsInTheAveragePool", fuse_pad,
     X "%a = Pad %x {pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y = AveragePool %a "
       "{kernel_shape=[3,3]} : f32[1,4,8,8]\noutput %y",
     X "%y = AveragePool %x {count_include_pad=1, kernel_shape=[3,3], pads=[1,1,1,1]} : "
       "f32[1,4,8,8]\noutput %y"},
    {"PadsInTheMaxPoolOfWhatIsNotNegative", fuse_pad,
     X "%r = Relu %x : f32[1,4,8,8]\n%a = Pad %r {pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y = "
       "MaxPool %a {kernel_shape=[3,3]} : f32[1,4,8,8]\noutput %y",
     X "%r = Relu %x : f32[1,4,8,8]\n%y = MaxPool %r {kernel_shape=[3,3], pads=[1,1,1,1]} : "
       "f32[1,4,8,8]\noutput %y"},
    {"LeavesMaxPoolOfNegativesAlone", fuse_pad,
     X "%a = Pad %x {pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y = MaxPool %a "
       "{kernel_shape=[3,3]} : f32[1,4,8,8]\noutput %y",
     ""},
    // The absolute value of the least one is itself.
    {"LeavesMaxPoolOfWholeNumbersAlone", fuse_pad,
     "input %x : i8[1,4,8,8]\n%r = Abs %x : i8[1,4,8,8]\n%a = Pad %r {pads=[0,0,1,1,0,0,1,1]} : "
     "i8[1,4,10,10]\n%y = MaxPool %a {kernel_shape=[3,3]} : i8[1,4,8,8]\noutput %y",
     ""},
    {"LeavesWindowsThatWouldHaveNoElementAlone", fuse_pad,
     X "%r = Relu %x : f32[1,4,8,8]\n%a = Pad %r {pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y = "
       "MaxPool %a {kernel_shape=[2,2], pads=[0,1,0,0]} : f32[1,4,9,10]\noutput %y",
     ""},
    {"LeavesWindowsWithGapsAlone", fuse_pad,
     "input %x : f32[1,4,2,8]\n%r = Relu %x : f32[1,4,2,8]\n%a = Pad %r "
     "{pads=[0,0,1,0,0,0,1,0]} : f32[1,4,4,8]\n%y = MaxPool %a {dilations=[2,1], "
     "kernel_shape=[2,2]} : f32[1,4,2,7]\noutput %y",
     ""},
    // They count the elements of the padded picture.
    {"LeavesMaxPoolWithIndicesAlone", fuse_pad,
     X "%r = Relu %x : f32[1,4,8,8]\n%a = Pad %r {pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y, %i "
       "= MaxPool %a {kernel_shape=[3,3]} : f32[1,4,8,8], i64[1,4,8,8]\noutput %y\noutput %i",
     ""},
    {"LeavesPaddedChannelsAlone", fuse_pad,
     "input %x : f32[1,3,8,8]\n" W "%a = Pad %x {pads=[0,0,0,0,0,1,0,0]} : f32[1,4,8,8]\n%y = Conv "
     "%a, %w, %b : f32[1,6,6,6]\noutput %y",
     ""},
    {"LeavesReflectionAlone", fuse_pad,
     X W "%a = Pad %x {mode=\"reflect\", pads=[0,0,1,1,0,0,1,1]} : f32[1,4,10,10]\n%y = Conv %a, "
         "%w, %b : f32[1,6,8,8]\noutput %y",
     ""},
    {"LeavesOtherValuesAlone", fuse_pad,
     X W "%a = Pad %x {pads=[0,0,1,1,0,0,1,1], value=1.0} : f32[1,4,10,10]\n%y = Conv %a, %w, %b : "
         "f32[1,6,8,8]\noutput %y",
     ""},

    // ---- gemm_from_matmul
    {"BiasOfAProductOfVariables", gemm_from_matmul,
     "input %x : f32[3,2,5]\ninput %z : f32[3,5,4]\nconst %b : f32[1,4] = {1, 2, 3, 4}\n%a = "
     "MatMul %x, %z : f32[3,2,4]\n%y = Add %b, %a : f32[3,2,4]\noutput %y",
     "input %x : f32[3,2,5]\ninput %z : f32[3,5,4]\nconst %b_1 : f32[4] = {0}\n%y = MatMul %x, %z, "
     "%b_1 : f32[3,2,4]\noutput %y"},
    {"BiasOfOneColumn", gemm_from_matmul,
     "input %x : f32[4,8]\ninput %z : f32[8,1]\nconst %b : f32[] = {0.5}\n%a = MatMul %x, %z : "
     "f32[4,1]\n%y = Add %a, %b : f32[4,1]\noutput %y",
     "input %x : f32[4,8]\ninput %z : f32[8,1]\nconst %b_1 : f32[1] = {0}\n%y = MatMul %x, %z, "
     "%b_1 : f32[4,1]\noutput %y"},
    {"LeavesAColumnAlone", gemm_from_matmul,
     "input %x : f32[4,5]\ninput %z : f32[5,4]\nconst %b : f32[4,1] = {1, 2, 3, 4}\n%a = MatMul "
     "%x, %z : f32[4,4]\n%y = Add %b, %a : f32[4,4]\noutput %y",
     ""},

    // ---- fuse_residual
    {"ResidualOfAnInput", fuse_residual,
     "input %x : f32[1,4,8,8]\nconst %w : f32[4,4,3,3] = {0}\n%a = Conv %x, %w {pads=[1,1,1,1]} : "
     "f32[1,4,8,8]\n%y = Add %x, %a : f32[1,4,8,8]\noutput %y",
     "input %x : f32[1,4,8,8]\nconst %w : f32[4,4,3,3] = {0}\n%y = Conv+Add %x, %w, _, %x "
     "{pads=[1,1,1,1]} : f32[1,4,8,8]\noutput %y"},
    // Both are convolutions: the later one takes the other.
    {"ResidualOfTheLaterConv", fuse_residual,
     X W "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%c = Conv %x, %w : f32[1,6,6,6]\n%y = Add %c, %a : "
         "f32[1,6,6,6]\noutput %y",
     X W
     "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Conv+Add %x, %w, _, %a : f32[1,6,6,6]\noutput %y"},
    // The other operand comes after the convolution, which moves behind it.
    {"ResidualOfALaterTensor", fuse_residual,
     "input %x : f32[1,6,8,8]\nconst %w : f32[6,6,3,3] = {0}\n%a = Conv %x, %w : f32[1,6,6,6]\n%c "
     "= AveragePool %x {kernel_shape=[3,3]} : f32[1,6,6,6]\n%y = Add %a, %c : f32[1,6,6,6]\noutput "
     "%y",
     "input %x : f32[1,6,8,8]\nconst %w : f32[6,6,3,3] = {0}\n%c = AveragePool %x "
     "{kernel_shape=[3,3]} : f32[1,6,6,6]\n%y = Conv+Add %x, %w, _, %c : f32[1,6,6,6]\noutput %y"},
    {"ResidualBehindAnActivation", fuse_residual,
     X W "input %z : f32[1,6,6,6]\n%a = Conv+SiLU %x, %w, %b : f32[1,6,6,6]\n%y = Add %a, %z : "
         "f32[1,6,6,6]\noutput %y",
     X W "input %z : f32[1,6,6,6]\n%y = Conv+SiLU+Add %x, %w, %b, %z : f32[1,6,6,6]\noutput %y"},
    {"LeavesBroadcastsAlone", fuse_residual,
     X W "input %z : f32[1,6,1,1]\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Add %a, %z : "
         "f32[1,6,6,6]\noutput %y",
     ""},
    {"LeavesSharedResultsAlone", fuse_residual,
     X W "input %z : f32[1,6,6,6]\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Add %a, %z : "
         "f32[1,6,6,6]\noutput %y\noutput %a",
     ""},
    {"LeavesDoublingAlone", fuse_residual,
     X W "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Add %a, %a : f32[1,6,6,6]\noutput %y", ""},

    // ---- fuse_activation
    {"ActivationIntoConv", fuse_activation,
     X W "%a = Conv %x, %w, %b {pads=[1,1,1,1]} : f32[1,6,8,8]\n%y = Clip %a {max=6.0, min=0.0} : "
         "f32[1,6,8,8]\noutput %y",
     X W "%y = Conv+Clip %x, %w, %b {Clip.max=6.0, Clip.min=0.0, pads=[1,1,1,1]} : "
         "f32[1,6,8,8]\noutput %y"},
    {"ActivationBehindAResidual", fuse_activation,
     X W "input %z : f32[1,6,6,6]\n%a = Conv+Add %x, %w, %b, %z : f32[1,6,6,6]\n%y = LeakyRelu %a "
         "{alpha=0.1} : f32[1,6,6,6]\noutput %y",
     X W "input %z : f32[1,6,6,6]\n%y = Conv+Add+LeakyRelu %x, %w, %b, %z {LeakyRelu.alpha=0.1} : "
         "f32[1,6,6,6]\noutput %y"},
    {"ActivationIntoGemm", fuse_activation,
     "input %x : f32[2,5]\nconst %w : f32[5,6] = {0}\n%a = Gemm %x, %w : f32[2,6]\n%y = Sigmoid %a "
     ": f32[2,6]\noutput %y",
     "input %x : f32[2,5]\nconst %w : f32[5,6] = {0}\n%y = Gemm+Sigmoid %x, %w, _ : "
     "f32[2,6]\noutput %y"},
    {"LeavesAnOutputAlone", fuse_activation,
     X W "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Relu %a : f32[1,6,6,6]\noutput %a\noutput %y",
     ""},
    {"LeavesClipByVariablesAlone", fuse_activation,
     X W "input %h : f32[]\n%a = Conv %x, %w, %b : f32[1,6,6,6]\n%y = Clip %a, _, %h : "
         "f32[1,6,6,6]\noutput %y",
     ""},
    {"LeavesASecondActivationAlone", fuse_activation,
     X W "%a = Conv+Relu %x, %w, %b : f32[1,6,6,6]\n%y = Sigmoid %a : f32[1,6,6,6]\noutput %y", ""},
};
INSTANTIATE_TEST_SUITE_P(Compiler, Passes, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::compiler
