// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/canonical.h"

#include <gtest/gtest.h>

#include "lib/graph/fold.h"
#include "lib/graph/late.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

// Appends the nodes of `onnx` (a text with the nodes as an importer builds them; their types do not
// count) to an empty graph and prints it. The last value is the output.
std::string imported(std::string_view onnx) {
    const auto given = parse(onnx);
    if (!given) return given.error().message;
    Graph graph;
    graph.values = given->values;
    graph.inputs = given->inputs;
    graph.outputs = given->outputs;
    for (const Node& node : given->nodes) {
        for (const ValueId id : node.outputs) {
            if (id != none) graph.value(id).type = {};
        }
    }
    for (const Node& node : given->nodes) {
        auto appended = cpu::append_node(graph, node);
        if (!appended) return appended.error().message;
    }
    remove_dead(graph);
    if (auto ok = verify(graph); !ok) return ok.error().message;
    return print(graph);
}

struct Form {
    const char* name;
    const char* onnx;
    const char* canonical;  // a graph, or the error
};
void PrintTo(const Form& form, std::ostream* os) {
    *os << form.name;
}

class Canonical : public testing::TestWithParam<Form> {};
TEST_P(Canonical, Form) {
    const auto expected = parse(GetParam().canonical);
    EXPECT_EQ(imported(GetParam().onnx), expected ? print(*expected) : GetParam().canonical);
}
// A node is settled again where its inputs have real shapes, all of them known. Resize and Slice
// are late there, and come in their first form.
TEST_P(Canonical, FormStaysWhenItIsMadeAgain) {
    const auto once = parse(GetParam().canonical);
    if (!once) return;
    for (const Node& node : once->nodes) {
        if (is_late(node) || node.kind == "Resize" || node.kind == "Slice") continue;
        Node again = node;
        const auto done = canonicalise(*once, again);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(again.kind, node.kind);
        EXPECT_EQ(again.inputs, node.inputs);
        EXPECT_EQ(again.attributes, node.attributes);
    }
}

// The input of most rows.
#define X "input %x : f32[1,3,8,8]\n"
const Form forms[] = {
    {"ConvDefaults", X R"(
        const %w : f32[2,3,3,3] = {0}
        %y = Conv %x, %w {kernel_shape=[3,3]} : f32[]
        output %y)",
     X R"(
        const %w : f32[2,3,3,3] = {0}
        %y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,6,6]
        output %y)"},
    // One element of padding, at the end as SAME_UPPER says.
    {"ConvSameUpper", X R"(
        const %w : f32[2,3,3,3] = {0}
        %y = Conv %x, %w {auto_pad="SAME_UPPER", strides=[2,2]} : f32[]
        output %y)",
     X R"(
        const %w : f32[2,3,3,3] = {0}
        %y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,1,1], strides=[2,2]} : f32[1,2,4,4]
        output %y)"},
    {"ConvTransposeOutputShape", X R"(
        const %w : f32[3,2,3,3] = {0}
        %y = ConvTranspose %x, %w {output_shape=[16,16], strides=[2,2]} : f32[]
        output %y)",
     X R"(
        const %w : f32[3,2,3,3] = {0}
        %y = ConvTranspose %x, %w {dilations=[1,1], group=1, output_padding=[0,0], pads=[1,1,0,0], strides=[2,2]} : f32[1,2,16,16]
        output %y)"},
    {"MaxPoolSameLowerKeepsItsKernel", X R"(
        %y = MaxPool %x {auto_pad="SAME_LOWER", kernel_shape=[2,2]} : f32[]
        output %y)",
     X R"(
        %y = MaxPool %x {ceil_mode=0, dilations=[1,1], kernel_shape=[2,2], pads=[1,1,0,0], storage_order=0, strides=[1,1]} : f32[1,3,8,8]
        output %y)"},
    // 8 elements, windows of 3 with stride 2: the fourth window starts inside.
    {"CeilModeAddsAWindow", X R"(
        %y = AveragePool %x {ceil_mode=1, kernel_shape=[3,3], strides=[2,2]} : f32[]
        output %y)",
     X R"(
        %y = AveragePool %x {ceil_mode=1, count_include_pad=0, dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], strides=[2,2]} : f32[1,3,4,4]
        output %y)"},
    {"ReshapeWithZeroAndHole", X R"(
        const %s : i64[3] = {0, -1, 4}
        %y = Reshape %x, %s : f32[]
        output %y)",
     X "%y = Reshape %x {shape=[1,48,4]} : f32[1,48,4]\noutput %y"},
    {"ReshapeToScalar",
     "input %x : f32[1]\nconst %s : i64[0] = {}\n%y = Reshape %x, %s : f32[]\noutput %y",
     "input %x : f32[1]\n%y = Reshape %x {shape=[]} : f32[]\noutput %y"},
    {"Flatten", X "%y = Flatten %x {axis=-3} : f32[]\noutput %y",
     X "%y = Reshape %x {shape=[1,192]} : f32[1,192]\noutput %y"},
    {"SqueezeWithoutAxes", "input %x : f32[1,3,1]\n%y = Squeeze %x : f32[]\noutput %y",
     "input %x : f32[1,3,1]\n%y = Reshape %x {shape=[3]} : f32[3]\noutput %y"},
    {"UnsqueezeFromInput",
     "input %x : f32[3]\nconst %a : i64[2] = {-1, 0}\n%y = Unsqueeze %x, %a : f32[]\noutput %y",
     "input %x : f32[3]\n%y = Reshape %x {shape=[1,3,1]} : f32[1,3,1]\noutput %y"},
    {"TransposeReverses", X "%y = Transpose %x : f32[]\noutput %y",
     X "%y = Transpose %x {perm=[3,2,1,0]} : f32[8,8,3,1]\noutput %y"},
    {"SliceClampsAndSorts", X R"(
        const %s : i64[2] = {-1, 1}
        const %e : i64[2] = {-9223372036854775807, 9223372036854775807}
        const %a : i64[2] = {-1, 1}
        const %p : i64[2] = {-2, 1}
        %y = Slice %x, %s, %e, %a, %p : f32[]
        output %y)",
     X "%y = Slice %x {axes=[1,3], ends=[3,-1], starts=[1,7], steps=[1,-2]} : f32[1,2,8,4]\noutput "
       "%y"},
    {"SplitEqual", X "%a, %b, %c = Split %x {axis=-1} : f32[], f32[], f32[]\noutput %a\noutput %c",
     X "%a, %b, %c = Split %x {axis=3, split=[3,3,2]} : f32[1,3,8,3], f32[1,3,8,3], "
       "f32[1,3,8,2]\noutput %a\noutput %c"},
    {"PadSomeAxes", X R"(
        const %p : i64[4] = {1, 2, 3, 4}
        const %v : f32[] = {9}
        const %a : i64[2] = {2, -1}
        %y = Pad %x, %p, %v, %a {mode="constant"} : f32[]
        output %y)",
     X R"(%y = Pad %x {mode="constant", pads=[0,0,1,2,0,0,3,4], value=9.0} : f32[1,3,12,14]
        output %y)"},
    {"ResizeByScales", X R"(
        const %r : f32[0] = {}
        const %s : f32[4] = {1, 1, 2, 2.5}
        %y = Resize %x, %r, %s {mode="linear"} : f32[]
        output %y)",
     X R"(
        %y = Resize %x {antialias=0, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="linear", nearest_mode="round_prefer_floor", scales=f[1.0,1.0,2.0,2.5], sizes=[1,3,16,20]} : f32[1,3,16,20]
        output %y)"},
    {"ResizeKeepsTheAspectRatio", X R"(
        const %s : i64[2] = {16, 12}
        %y = Resize %x, _, _, %s {axes=[2,3], keep_aspect_ratio_policy="not_larger"} : f32[]
        output %y)",
     X R"(
        %y = Resize %x {antialias=0, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="nearest", nearest_mode="round_prefer_floor", scales=f[1.0,1.0,1.5,1.5], sizes=[1,3,12,12]} : f32[1,3,12,12]
        output %y)"},
    {"UpsampleIsResize", X R"(
        %y = Upsample %x {mode="bilinear", scales=f[1.0,1.0,2.0,2.0]} : f32[]
        output %y)",
     X R"(
        %y = Resize %x {antialias=0, coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="linear", nearest_mode="floor", scales=f[1.0,1.0,2.0,2.0], sizes=[1,3,16,16]} : f32[1,3,16,16]
        output %y)"},
    {"ClipBoundsFromInputs", X "const %h : f32[] = {6}\n%y = Clip %x, _, %h : f32[]\noutput %y",
     X "%y = Clip %x {max=6.0} : f32[1,3,8,8]\noutput %y"},
    {"ClipWithoutBounds", X "%y = Clip %x {max=inf, min=-inf} : f32[]\noutput %y",
     X "%y = Clip %x : f32[1,3,8,8]\noutput %y"},
    // They bound infinite numbers, which a Softmax behind would make NaN of.
    {"ClipToTheLargestFloats",
     X "%y = Clip %x {max=3.4028235e38, min=-3.4028235e38} : f32[]\noutput %y",
     X "%y = Clip %x {max=3.4028235e38, min=-3.4028235e38} : f32[1,3,8,8]\noutput %y"},
    // ONNX: where min is greater than max, all become max.
    {"ClipWhoseBoundsAreExchanged", X "%y = Clip %x {max=1.0, min=5.0} : f32[]\noutput %y",
     X "%y = Clip %x {max=1.0, min=1.0} : f32[1,3,8,8]\noutput %y"},
    // As a float it would be 16777216.
    {"ClipBoundThatNoFloatHolds",
     "input %i : i32[2]\nconst %h : i32[] = {16777217}\n%y = Clip %i, _, %h : i32[]\noutput %y",
     "input %i : i32[2]\nconst %h : i32[] = {16777217}\n%y = Clip %i, _, %h : i32[2]\noutput %y"},
    {"ClipBoundThatIsNoConstant", X "input %h : f32[]\n%y = Clip %x, _, %h : f32[]\noutput %y",
     X "input %h : f32[]\n%y = Late %x, _, %h {op=\"Clip\"} : f32[1,3,8,8]\noutput %y"},
    {"ReduceAll", X "%y = ReduceMean %x {keepdims=0} : f32[]\noutput %y",
     X "%y = ReduceMean %x {axes=[0,1,2,3], keepdims=0} : f32[]\noutput %y"},
    {"ReduceAxesFromInput",
     X "const %a : i64[2] = {-1, -2}\n%y = ReduceMean %x, %a : f32[]\noutput %y",
     X "%y = ReduceMean %x {axes=[2,3], keepdims=1} : f32[1,3,1,1]\noutput %y"},
    {"ReduceNothingOfSquares",
     X "%y = ReduceSumSquare %x {noop_with_empty_axes=1} : f32[]\noutput %y",
     X "%y = Mul %x, %x : f32[1,3,8,8]\noutput %y"},
    {"ReduceNothingOfAbsoluteValues",
     X "%y = ReduceL2 %x {noop_with_empty_axes=1} : f32[]\noutput %y",
     X "%y = Abs %x : f32[1,3,8,8]\noutput %y"},
    {"ReduceNothingOfExponentials",
     X "%y = ReduceLogSumExp %x {noop_with_empty_axes=1} : f32[]\noutput %y",
     X "%y = Identity %x : f32[1,3,8,8]\noutput %y"},
    {"ReduceNothing", X "%y = ReduceSum %x {noop_with_empty_axes=1} : f32[]\noutput %y",
     X "%y = Identity %x : f32[1,3,8,8]\noutput %y"},
    {"CastLike", X "input %t : i8[]\n%y = CastLike %x, %t : f32[]\noutput %y",
     X "input %t : i8[]\n%y = Cast %x {to=\"i8\"} : i8[1,3,8,8]\noutput %y"},
    {"TopKFromInput", X "const %k : i64[1] = {2}\n%v, %i = TopK %x, %k : f32[], f32[]\noutput %v",
     X
     "%v, %i = TopK %x {axis=3, k=2, largest=1, sorted=1} : f32[1,3,8,2], i64[1,3,8,2]\noutput %v"},
    {"ReshapeOfNoRows",
     "input %x : f32[0,2,3]\nconst %s : i64[2] = {0, -1}\n%y = Reshape %x, %s : f32[]\noutput %y",
     "input %x : f32[0,2,3]\n%y = Reshape %x {shape=[0,6]} : f32[0,6]\noutput %y"},
    {"ReshapeOfNoRowsToEvenParts",
     "input %x : f32[0,2,3]\nconst %s : i64[3] = {0, 4, -1}\n%y = Reshape %x, %s : f32[]\n"
     "output %y",
     "node 'y' (Reshape) reshapes f32[0,2,3] to [0,4,-1], which has another number of elements"},
    {"OneHot",
     "input %x : i64[2]\nconst %d : i64[] = {5}\nconst %v : f32[2] = {0, 1}\n%y = OneHot %x, %d, "
     "%v : f32[]\noutput %y",
     "input %x : i64[2]\nconst %v : f32[2] = {0, 1}\n%y = OneHot %x, %v {axis=1, depth=5} : "
     "f32[2,5]\noutput %y"},
    // What PyTorch exports for x.view(x.size(0), -1, 4).
    {"FoldsShapeArithmetic", X R"(
        const %zero : i64[] = {0}
        const %rest : i64[2] = {-1, 4}
        %shape = Shape %x : i64[]
        %batch = Gather %shape, %zero : i64[]
        %list = Unsqueeze %batch {axes=[0]} : i64[]
        %target = Concat %list, %rest {axis=0} : i64[]
        %y = Reshape %x, %target : f32[]
        output %y)",
     X "%y = Reshape %x {shape=[1,48,4]} : f32[1,48,4]\noutput %y"},
    {"FoldsSizesOfResize", X R"(
        const %two : f32[] = {2}
        const %first : i64[1] = {0}
        const %last : i64[1] = {2}
        %shape = Shape %x : i64[]
        %head = Slice %shape, %first, %last : i64[]
        %tail = Shape %x {start=2} : i64[]
        %real = Cast %tail {to="f32"} : f32[]
        %scaled = Mul %real, %two : f32[]
        %floor = Floor %scaled : f32[]
        %ints = Cast %floor {to="i64"} : i64[]
        %sizes = Concat %head, %ints {axis=0} : i64[]
        %y = Resize %x, _, _, %sizes {coordinate_transformation_mode="asymmetric", nearest_mode="floor"} : f32[]
        output %y)",
     X R"(
        %y = Resize %x {antialias=0, coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="nearest", nearest_mode="floor", scales=f[1.0,1.0,2.0,2.0], sizes=[1,3,16,16]} : f32[1,3,16,16]
        output %y)"},
    {"DataDependentShapesSpread",
     "input %x : f32[4]\n%n = NonZero %x : i64[]\n%t = Transpose %n {perm=[1,0]} : i64[]\n%s = "
     "Squeeze %t {axes=[1]} : i64[]\noutput %s",
     "input %x : f32[4]\n%n = NonZero %x : i64[1,4]?\n%t = Transpose %n {perm=[1,0]} : "
     "i64[4,1]?\n%s = Squeeze %t {axes=[1]} : i64[4]?\noutput %s"},
    {"SliceByDataIsAnUpperBound",
     X "input %s : i64[1]\ninput %e : i64[1]\n%y = Slice %x, %s, %e : f32[]\noutput %y",
     X "input %s : i64[1]\ninput %e : i64[1]\n%y = Late %x, %s, %e {op=\"Slice\"} : "
       "f32[1,3,8,8]?\noutput %y"},
    // Errors name the node and the way out.
    {"ShapeFromData", X "input %s : i64[2]\n%y = Reshape %x, %s : f32[]\noutput %y",
     "node 'y' (Reshape) takes its shape from a tensor that depends on the input data; export the "
     "model with static shapes"},
    {"AxisOutside", X "%y = Softmax %x {axis=4} : f32[]\noutput %y",
     "node 'y' (Softmax) has the axis 4, outside of its input f32[1,3,8,8]"},
    {"KernelTooLarge", X "%y = MaxPool %x {kernel_shape=[9,9]} : f32[]\noutput %y",
     "node 'y' (MaxPool) has the padded input f32[1,3,8,8], which is smaller than its kernel "
     "[9,9]"},
    {"WrongChannels", X "const %w : f32[2,4,1,1] = {0}\n%y = Conv %x, %w : f32[]\noutput %y",
     "node 'y' (Conv) has the input f32[1,3,8,8], the weight f32[2,4,1,1] and 1 groups, whose "
     "channels do not go together"},
    {"OtherKernelThanTheWeights",
     X "const %w : f32[2,3,3,3] = {0}\n%y = Conv %x, %w {kernel_shape=[5,5]} : f32[]\noutput %y",
     "node 'y' (Conv) has the kernel_shape [5,5] and the weight f32[2,3,3,3], expected [3,3] or no "
     "kernel_shape"},
    {"ReshapeOfOtherSize", X "const %s : i64[1] = {7}\n%y = Reshape %x, %s : f32[]\noutput %y",
     "node 'y' (Reshape) reshapes f32[1,3,8,8] to [7], which has another number of elements"},
    {"ReshapeToNineDimensions",
     X "const %s : i64[9] = {1, 1, 1, 1, 1, 1, 1, 1, 192}\n%y = Reshape %x, %s : f32[]\noutput %y",
     "node 'y' (Reshape) output would be f32[1,1,1,1,1,1,1,1,192], which has 9 dimensions, "
     "expected "
     "at most 8; join some of them with a Reshape"},
    {"ScaleThatIsNoNumber",
     X "const %s : f32[4] = {1, 1, nan, 2}\n%y = Resize %x, _, %s : f32[]\noutput %y",
     "node 'y' (Resize) resizes axis 2 of f32[1,3,8,8] to nan, expected a size from 0 to 2^40"},
    {"ScaleWithoutEnd",
     X "const %s : f32[4] = {1, 1, 2, inf}\n%y = Resize %x, _, %s : f32[]\noutput %y",
     "node 'y' (Resize) resizes axis 3 of f32[1,3,8,8] to inf, expected a size from 0 to 2^40"},
    {"Training",
     X "const %c : f32[3] = {1}\n%y = BatchNormalization %x, %c, %c, %c, %c {training_mode=1} : "
       "f32[]\noutput %y",
     "node 'y' (BatchNormalization) is in training mode; export the model in inference mode"},
    {"DiagonalFarOutside",
     "input %x : f32[2,3]\nconst %k : i64[] = {9223372036854775807}\n"
     "%y = Trilu %x, %k : f32[]\n%z = EyeLike %y {k=-9223372036854775807} : f32[]\noutput %z",
     "input %x : f32[2,3]\n%y = Trilu %x {k=2147483647, upper=1} : f32[2,3]\n"
     "%z = EyeLike %y {dtype=\"f32\", k=-2147483648} : f32[2,3]\noutput %z"},
    {"NumberThatAProgramDoesNotHold",
     X "%y = LpPool %x {kernel_shape=[2,2], p=1099511627776} : f32[]\noutput %y",
     "node 'y' (LpPool) has the attribute 'p' with the number 1099511627776, expected -2147483648 "
     "to 2147483647"},
    // The form of sets before 10, of a tensor whose length only the run knows.
    {"SliceToTheEndOfWhatTheRunMakes",
     "input %x : f32[4]\n%n = NonZero %x : i64[]\n"
     "%y = Slice %n {axes=[1], ends=[9223372036854775807], starts=[1]} : i64[]\noutput %y",
     "input %x : f32[4]\n%n = NonZero %x : i64[1,4]?\n%y = Late %n {axes=[1], ends=[2147483647], "
     "op=\"Slice\", starts=[1]} : i64[1,3]?\noutput %y"},
};
INSTANTIATE_TEST_SUITE_P(Graph, Canonical, testing::ValuesIn(forms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::graph
