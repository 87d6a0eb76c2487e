// SPDX-License-Identifier: Apache-2.0
// Kernels that move, pick and resample elements: what the node tests of ONNX leave out, which are
// other element types, empty tensors, ties, NaN and indices out of range.
#include <gtest/gtest.h>

#include <sstream>

#include "lib/graph/fold.h"
#include "lib/graph/numbers.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

struct Case {
    const char* name;
    const char* text;  // constants and one node, whose first output becomes the constant
    const char* y;     // its printed type and elements, or the sentence of the error
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

// The first output of the last node, or what the kernel says.
std::string run(const char* text) {
    Graph graph = must_parse(text);
    if (graph.nodes.empty()) return "no node";
    const auto folded = cpu::fold_node(graph, graph.nodes.back());
    if (!folded) return folded.error().message;
    if (!*folded) return "not folded";
    const Value& y = graph.value(graph.nodes.back().outputs[0]);
    std::ostringstream out;
    out << to_string(y.type) << " =";
    for (const double number : read_numbers<double>(y)) out << ' ' << number;
    return out.str();
}

class MovementKernel : public testing::TestWithParam<Case> {};
TEST_P(MovementKernel, ComputesOrSaysWhyNot) {
    EXPECT_EQ(run(GetParam().text), GetParam().y);
}

#define X "const %x : i64[2,3] = {0, 1, 2, 3, 4, 5}\n"
#define HALVES "const %x : f16[2,2] = {0.5, -1.0, 2.0, 65504.0}\n"

const Case movement[] = {
    {"TransposeOfHalves", HALVES "%y = Transpose %x {perm=[1,0]} : f16[2,2]",
     "f16[2,2] = 0.5 2 -1 65504"},
    {"TransposeOfRank8",
     "const %x : u8[1,2,1,1,2,1,1,2] = {0, 1, 2, 3, 4, 5, 6, 7}\n"
     "%y = Transpose %x {perm=[7,6,5,4,3,2,1,0]} : u8[2,1,1,2,1,1,2,1]",
     "u8[2,1,1,2,1,1,2,1] = 0 4 2 6 1 5 3 7"},
    {"TransposeOfNothing", "const %x : i8[0,3] = {}\n%y = Transpose %x {perm=[1,0]} : i8[3,0]",
     "i8[3,0] ="},
    {"TransposeOfAScalar", "const %x : i8[] = {3}\n%y = Transpose %x {perm=[]} : i8[]", "i8[] = 3"},
    {"SliceBackwardsInBothAxes",
     X "%y = Slice %x {axes=[0,1], ends=[-1,0], starts=[1,2], steps=[-1,-1]} : i64[2,2]",
     "i64[2,2] = 5 4 2 1"},
    {"SliceOfNothing", X "%y = Slice %x {axes=[1], ends=[1], starts=[1]} : i64[2,0]", "i64[2,0] ="},
    // A range that is an input counts from the end; the type bounds its shape.
    {"SliceByInputs",
     X "const %s : i64[1] = {-2}\nconst %e : i64[1] = {9223372036854775807}\nconst %a : i64[1] = "
       "{-1}\n%y = Slice %x, %s, %e, %a : i64[2,3]?",
     "i64[2,2] = 1 2 4 5"},
    {"SliceByInputsThatDoNotMatch",
     X "const %s : i64[1] = {0}\nconst %e : i64[2] = {1, 1}\n%y = Slice %x, %s, %e : i64[2,3]?",
     "node 'y' (Slice) has starts, ends, axes and steps of different lengths"},
    {"SplitTakesTheFirst", X "%y, %z = Split %x {axis=1, split=[1,2]} : i64[2,1], i64[2,2]",
     "i64[2,1] = 0 3"},
    {"PadHalves",
     "const %x : bf16[1] = {2.0}\n%y = Pad %x {mode=\"constant\", pads=[1,1], value=0.5} : "
     "bf16[3]",
     "bf16[3] = 0.5 2 0.5"},
    {"PadBools",
     "const %x : bool[1] = {0}\n%y = Pad %x {mode=\"constant\", pads=[0,2], value=1.0} : bool[3]",
     "bool[3] = 0 1 1"},
    {"PadCropsAll",
     "const %x : u8[2] = {1, 2}\n%y = Pad %x {mode=\"constant\", pads=[-3,2], value=9.0} : u8[1]",
     "u8[1] = 9"},
    {"PadWrapsMoreThanOnce",
     "const %x : i8[2] = {1, 2}\n%y = Pad %x {mode=\"wrap\", pads=[3,3]} : i8[8]",
     "i8[8] = 2 1 2 1 2 1 2 1"},
    {"PadReflectsOneElement",
     "const %x : i8[1,2] = {1, 2}\n%y = Pad %x {mode=\"reflect\", pads=[1,0,1,1]} : i8[3,3]",
     "i8[3,3] = 1 2 1 1 2 1 1 2 1"},
    {"PadOfNothing", "const %x : i8[0] = {}\n%y = Pad %x {mode=\"edge\", pads=[1,0]} : i8[1]",
     "node 'y' (Pad) pads an axis without elements with its elements"},
    {"TileHalves", HALVES "%y = Tile %x {repeats=[1,2]} : f16[2,4]",
     "f16[2,4] = 0.5 -1 0.5 -1 2 65504 2 65504"},
    {"ExpandOfBools", "const %x : bool[2,1] = {1, 0}\n%y = Expand %x {shape=[2,2]} : bool[2,2]",
     "bool[2,2] = 1 1 0 0"},
    {"TriluFarAway", X "%y = Trilu %x {k=9223372036854775807, upper=0} : i64[2,3]",
     "i64[2,3] = 0 1 2 3 4 5"},
    {"TriluFarBelow",
     X "const %k : i64[] = {-9223372036854775807}\n%y = Trilu %x, %k {upper=0} : "
       "i64[2,3]",
     "i64[2,3] = 0 0 0 0 0 0"},
    {"EyeLikeOfHalves", X "%y = EyeLike %x {dtype=\"f16\", k=1} : f16[2,3]",
     "f16[2,3] = 0 1 0 0 0 1"},
    {"ReverseSequenceOfNoLength",
     X "const %l : i64[2] = {0, 3}\n%y = ReverseSequence %x, %l {batch_axis=0, time_axis=1} : "
       "i64[2,3]",
     "i64[2,3] = 0 1 2 5 4 3"},
    {"ReverseSequenceTooLong",
     X "const %l : i64[2] = {1, 4}\n%y = ReverseSequence %x, %l {batch_axis=0, time_axis=1} : "
       "i64[2,3]",
     "node 'y' (ReverseSequence) reverses 4 of 3 elements"},
};
INSTANTIATE_TEST_SUITE_P(Movement, MovementKernel, testing::ValuesIn(movement),
                         [](const auto& info) { return info.param.name; });

const Case indices[] = {
    {"GatherByInt32", X "const %i : i32[1,1] = {-1}\n%y = Gather %x, %i {axis=1} : i64[2,1,1]",
     "i64[2,1,1] = 2 5"},
    {"GatherBelow", X "const %i : i32[1] = {-4}\n%y = Gather %x, %i {axis=1} : i64[2,1]",
     "node 'y' (Gather) takes element -4 of 3"},
    {"GatherFromNothing",
     "const %x : f32[0,2] = {}\nconst %i : i64[1] = {0}\n%y = Gather %x, %i "
     "{axis=0} : f32[1,2]",
     "node 'y' (Gather) takes element 0 of 0"},
    {"GatherNothing", X "const %i : i64[0] = {}\n%y = Gather %x, %i {axis=1} : i64[2,0]",
     "i64[2,0] ="},
    {"GatherElementsOfHalves",
     HALVES "const %i : i64[2,1] = {-1, 0}\n%y = GatherElements %x, %i {axis=1} : f16[2,1]",
     "f16[2,1] = -1 2"},
    {"GatherElementsAbove",
     HALVES "const %i : i64[2,1] = {2, 0}\n%y = GatherElements %x, %i {axis=1} : f16[2,1]",
     "node 'y' (GatherElements) takes element 2 of 2"},
    {"GatherNdWholeRows",
     X "const %i : i64[2,1] = {-1, 0}\n%y = GatherND %x, %i {batch_dims=0} : i64[2,3]",
     "i64[2,3] = 3 4 5 0 1 2"},
    {"GatherNdOutside",
     X "const %i : i64[1,2] = {1, 3}\n%y = GatherND %x, %i {batch_dims=0} : i64[1]",
     "node 'y' (GatherND) takes element 3 of 3"},
    {"GatherNdOfOtherBatches",
     "const %x : f32[2,3,2] = {1}\nconst %i : i64[2,2,1] = {0}\n"
     "%y = GatherND %x, %i {batch_dims=2} : f32[2,2]",
     "node 'y' (GatherND) has indices that do not fit its data"},
    {"ScatterWraps",
     "const %x : u8[2] = {250, 1}\nconst %i : i64[2] = {0, 0}\nconst %u : u8[2] = {5, 5}\n"
     "%y = ScatterElements %x, %i, %u {axis=0, reduction=\"add\"} : u8[2]",
     "u8[2] = 4 1"},
    // 2048 + 1 is no f16; 2048 + 1 + 1 is one.
    {"ScatterRoundsOnce",
     "const %x : f16[1] = {2048.0}\nconst %i : i64[2] = {0, 0}\nconst %u : f16[2] = {1.0, 1.0}\n"
     "%y = ScatterElements %x, %i, %u {axis=0, reduction=\"add\"} : f16[1]",
     "f16[1] = 2050"},
    {"ScatterAddsBools",
     "const %x : bool[2] = {0, 1}\nconst %i : i64[2,1] = {0, 1}\nconst %u : bool[2] = {0, 1}\n"
     "%y = ScatterND %x, %i, %u {reduction=\"add\"} : bool[2]",
     "bool[2] = 0 1"},
    {"ScatterKeepsNan",
     "const %x : f32[2] = {nan, 1.0}\nconst %i : i64[2,1] = {0, 1}\nconst %u : f32[2] = {2.0, "
     "nan}\n%y = ScatterND %x, %i, %u {reduction=\"min\"} : f32[2]",
     "f32[2] = nan nan"},
    {"ScatterOutside",
     X "const %i : i64[1,1] = {2}\nconst %u : i64[1,3] = {7}\n%y = ScatterND %x, %i, %u "
       "{reduction=\"none\"} : i64[2,3]",
     "node 'y' (ScatterND) takes element 2 of 2"},
    {"OneHotOfFloatIndices",
     "const %i : f32[3] = {-1.0, 2.0, 3.0}\nconst %v : f16[2] = {0.5, 2.0}\n%y = OneHot %i, %v "
     "{axis=1, depth=3} : f16[3,3]",
     "f16[3,3] = 0.5 0.5 2 0.5 0.5 2 0.5 0.5 0.5"},
    {"NonZeroOfAScalar", "const %x : f32[] = {3.0}\n%y = NonZero %x : i64[0,1]?", "i64[0,1] ="},
    {"NonZeroTakesNan", "const %x : f16[3] = {-0.0, nan, 0.0}\n%y = NonZero %x : i64[1,3]?",
     "i64[1,1] = 1"},
    {"CompressByAShortCondition",
     X "const %c : bool[2] = {0, 1}\n%y = Compress %x, %c {axis=1} : i64[2,2]?", "i64[2,1] = 1 4"},
    {"CompressTakesNothing", X "const %c : bool[1] = {0}\n%y = Compress %x, %c : i64[1]?",
     "i64[0] ="},
    {"UniqueHasOneNan",
     "const %x : f32[4] = {nan, 1.0, nan, -1.0}\n%y = Unique %x {sorted=1} : f32[4]?",
     "f32[3] = -1 1 nan"},
    {"UniqueByFirstAppearance",
     "const %x : u64[2,3] = {9, 1, 9, 3, 2, 3}\n%y = Unique %x {axis=1, sorted=0} : u64[2,3]?",
     "u64[2,2] = 9 1 3 2"},
    {"TopKOfTies",
     "const %x : i8[4] = {2, 3, 3, 3}\n%v, %y = TopK %x {axis=0, k=2, largest=1, sorted=1} : "
     "i8[2], i64[2]",
     "i8[2] = 3 3"},
    {"TopKOfLargeNumbers",
     "const %x : u64[2] = {1, -1}\n%y = TopK %x {axis=0, k=1, largest=1, "
     "sorted=1} : u64[1]",
     "u64[1] = 1.84467e+19"},
    {"TopKTakesNanForTheLargest",
     "const %x : bf16[3] = {1.0, nan, 2.0}\n%y = TopK %x {axis=0, k=3, largest=0, sorted=1} : "
     "bf16[3]",
     "bf16[3] = 1 2 nan"},
    {"TopKOfNothing", X "%y = TopK %x {axis=1, k=0, largest=1, sorted=1} : i64[2,0]", "i64[2,0] ="},
    {"TopKByAnInput",
     X "const %k : i64[1] = {1}\n%y = TopK %x, %k {axis=1, largest=1, sorted=1} : i64[2,3]?",
     "i64[2,1] = 2 5"},
    {"TopKOfTooMany", X "const %k : i64[1] = {4}\n%y = TopK %x, %k {axis=1} : i64[2,3]?",
     "node 'y' (TopK) takes 4 of 3 elements"},
    // Three equal scores: the first box stays, the second goes for its overlap, the third stays.
    {"SuppressionOfTies",
     "const %b : f32[1,3,4] = {0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0}\n"
     "const %s : f32[1,1,3] = {0.5, 0.5, 0.5}\n%y = NonMaxSuppression %b, %s {iou_threshold=0.5, "
     "max_output_boxes_per_class=3} : i64[3,3]?",
     "i64[2,3] = 0 0 0 0 0 2"},
    {"SuppressionOfNoBoxes",
     "const %b : f32[1,0,4] = {}\nconst %s : f32[1,1,0] = {}\n%y = NonMaxSuppression %b, %s "
     "{max_output_boxes_per_class=3} : i64[0,3]?",
     "i64[0,3] ="},
};
INSTANTIATE_TEST_SUITE_P(Index, MovementKernel, testing::ValuesIn(indices),
                         [](const auto& info) { return info.param.name; });

// The second output of TopK has the lower index of equal elements.
TEST(TopK, TakesTheLowerIndexOfTies) {
    Graph graph = must_parse(
        "const %x : i8[4] = {2, 3, 3, 3}\n%v, %y = TopK %x {axis=0, k=2, largest=1, sorted=1} : "
        "i8[2], i64[2]");
    const auto all = cpu::evaluate(graph, graph.nodes[0]);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ((*all)[1].as<int64_t>()[0], 1);
    EXPECT_EQ((*all)[1].as<int64_t>()[1], 2);
}

#define PICTURE "const %x : f32[1,1,2,2] = {1.0, 2.0, 3.0, 4.0}\n"

const Case pictures[] = {
    // Weights of 0.3 and 0.7 or so must not make 9 of two tens.
    {"ResizeKeepsConstantBytes",
     "const %x : u8[3] = {10, 10, 10}\n%y = Resize %x {coordinate_transformation_mode="
     "\"half_pixel\", mode=\"cubic\", scales=f[2.3333333], sizes=[7]} : u8[7]",
     "u8[7] = 10 10 10 10 10 10 10"},
    // given: (x_resized + 0.5) / x_scale, not less half a pixel: 1 and 3 of 0 to 3.
    {"ResizeTheWayOfTensorFlow1",
     "const %x : f32[4] = {10, 11, 12, 13}\n%y = Resize %x {coordinate_transformation_mode="
     "\"tf_half_pixel_for_nn\", mode=\"nearest\", nearest_mode=\"floor\", scales=f[0.5], "
     "sizes=[2]} : f32[2]",
     "f32[2] = 11 13"},
    // 9 of 18 is exactly 7 of 14, and 9 / (18 / 14) is less than that in floating point.
    {"ResizeToWholePositions",
     "const %x : f32[14] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}\n%y = Resize %x "
     "{coordinate_transformation_mode=\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\", "
     "scales=f[1.2857143], sizes=[18]} : f32[18]",
     "f32[18] = 0 0 1 2 3 3 4 5 6 7 7 8 9 10 10 11 12 13"},
    {"ResizeToHalfPositions",
     "const %x : f32[14] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}\n%y = Resize %x "
     "{coordinate_transformation_mode=\"half_pixel\", mode=\"nearest\", "
     "nearest_mode=\"round_prefer_floor\", scales=f[1.2142857], sizes=[17]} : f32[17]",
     "f32[17] = 0 1 2 2 3 4 5 6 6 7 8 9 10 11 11 12 13"},
    // 3 / 0.6f is 5 as ONNX Runtime and PyTorch have it, and less in double.
    {"ResizeByAScaleThatWasRounded",
     "const %x : f32[7] = {0, 1, 2, 3, 4, 5, 6}\n%y = Resize %x {coordinate_transformation_mode="
     "\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\", scales=f[0.6], "
     "sizes=[4]} : f32[4]",
     "f32[4] = 0 1 3 5"},
    {"ResizeBetweenCorners",
     "const %x : f32[7] = {0, 1, 2, 3, 4, 5, 6}\n%y = Resize %x {coordinate_transformation_mode="
     "\"align_corners\", mode=\"nearest\", nearest_mode=\"floor\", scales=f[4.142857], "
     "sizes=[29]} : f32[29]",
     "f32[29] = 0 0 0 0 0 1 1 1 1 1 2 2 2 2 3 3 3 3 3 4 4 4 4 4 5 5 5 5 6"},
    {"ResizeClampsWhatCubicOvershoots",
     "const %x : u8[4] = {0, 255, 255, 0}\n%y = Resize %x {coordinate_transformation_mode="
     "\"half_pixel\", mode=\"cubic\", scales=f[2.0], sizes=[8]} : u8[8]",
     "u8[8] = 0 57 197 255 255 197 57 0"},
    {"ResizeOfHalves",
     "const %x : f16[2] = {1.0, 2.0}\n%y = Resize %x {coordinate_transformation_mode="
     "\"align_corners\", mode=\"linear\", scales=f[1.5], sizes=[3]} : f16[3]",
     "f16[3] = 1 1.5 2"},
    {"ResizeNearestOfBools",
     "const %x : bool[2] = {0, 1}\n%y = Resize %x {coordinate_transformation_mode="
     "\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\", scales=f[2.0], sizes=[4]} : "
     "bool[4]",
     "bool[4] = 0 0 1 1"},
    {"ResizeIgnoresInfinityWithoutWeight",
     "const %x : f32[3] = {1.0, inf, 3.0}\n%y = Resize %x {coordinate_transformation_mode="
     "\"align_corners\", mode=\"linear\", scales=f[0.66666669], sizes=[2]} : f32[2]",
     "f32[2] = 1 3"},
    {"ResizeExtrapolatesBytes",
     "const %x : i8[3] = {1, 2, 3}\n%y = Resize %x {coordinate_transformation_mode="
     "\"tf_crop_and_resize\", extrapolation_value=7.0, mode=\"nearest\", roi=f[0.0,2.0], "
     "scales=f[1.0], sizes=[3]} : i8[3]",
     "i8[3] = 1 3 7"},
    {"ResizeOfNothing",
     "const %x : f32[0] = {}\n%y = Resize %x {mode=\"linear\", scales=f[1.0], sizes=[2]} : f32[2]",
     "node 'y' (Resize) resizes a tensor without elements"},
    {"GridSampleOfNanIsOutside",
     PICTURE "const %g : f32[1,1,2,2] = {nan, 0.0, 3e38, inf}\n%y = GridSample %x, %g "
             "{mode=\"linear\", padding_mode=\"zeros\"} : f32[1,1,1,2]",
     "f32[1,1,1,2] = 0 0"},
    {"GridSampleReflectsFarPositions",
     PICTURE "const %g : f32[1,1,2,2] = {3e38, nan, -inf, 1e30}\n%y = GridSample %x, %g "
             "{align_corners=1, mode=\"nearest\", padding_mode=\"border\"} : f32[1,1,1,2]",
     "f32[1,1,1,2] = 2 3"},
    // given: ONNX Runtime 1.21 and PyTorch's formula
    {"GridSampleOfACubicClipsElements",
     "const %x : f32[1,1,1,4] = {1.0, 2.0, 3.0, 4.0}\nconst %g : f32[1,1,1,2] = {-1.2, 0.0}\n%y = "
     "GridSample %x, %g {mode=\"cubic\", padding_mode=\"border\"} : f32[1,1,1,1]",
     "f32[1,1,1,1] = 0.99325"},
    {"GridSampleOfBytesByHalves",
     "const %x : u8[1,1,1,2] = {10, 20}\nconst %g : f16[1,1,1,2] = {0.0, 0.0}\n%y = GridSample "
     "%x, %g {align_corners=1, mode=\"linear\", padding_mode=\"zeros\"} : u8[1,1,1,1]",
     "u8[1,1,1,1] = 15"},
    {"RoiAlignOfHalves",
     "const %x : f16[1,1,2,2] = {1.0, 2.0, 3.0, 4.0}\nconst %r : f16[1,4] = {0.0, 0.0, 1.0, "
     "1.0}\nconst %b : i64[1] = {0}\n%y = RoiAlign %x, %r, %b {coordinate_transformation_mode="
     "\"output_half_pixel\", mode=\"avg\", output_height=1, output_width=1, sampling_ratio=1} : "
     "f16[1,1,1,1]",
     "f16[1,1,1,1] = 2.5"},
    // 10^12 samples per bin, four of which are inside: nothing to wait for.
    {"RoiAlignOfAHugeRegion",
     PICTURE "const %r : f32[1,4] = {-1e6, -1e6, 1e6, 1e6}\nconst %b : i64[1] = {0}\n%y = RoiAlign "
             "%x, %r, %b {mode=\"max\"} : f32[1,1,1,1]",
     "f32[1,1,1,1] = 4"},
    {"RoiAlignOfAnotherPicture",
     PICTURE "const %r : f32[1,4] = {1.0}\nconst %b : i64[1] = {1}\n%y = RoiAlign %x, %r, %b : "
             "f32[1,1,1,1]",
     "node 'y' (RoiAlign) takes element 1 of 1"},
    {"RoiAlignOfNan",
     PICTURE "const %r : f32[1,4] = {0.0, nan, 1.0, 1.0}\nconst %b : i64[1] = {0}\n%y = RoiAlign "
             "%x, %r, %b : f32[1,1,1,1]",
     "node 'y' (RoiAlign) has a region that is not finite"},
    // Corners 1 to 5 times 0.5 round to 1 and 3: a region of 3 by 3, cut to bins of 2 by 2.
    {"MaxRoiPool",
     "const %x : f32[1,1,4,4] = {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, "
     "12.0, 13.0, 14.0, 15.0}\nconst %r : f32[1,5] = {0.0, 1.0, 1.0, 5.0, 5.0}\n%y = MaxRoiPool "
     "%x, %r {pooled_shape=[2,2], spatial_scale=0.5} : f32[1,1,2,2]",
     "f32[1,1,2,2] = 10 11 14 15"},
    {"MaxRoiPoolOutsideIsZero",
     PICTURE "const %r : f32[1,5] = {0.0, 7.0, 7.0, 9.0, 9.0}\n%y = MaxRoiPool %x, %r "
             "{pooled_shape=[1,1]} : f32[1,1,1,1]",
     "f32[1,1,1,1] = 0"},
    {"MaxRoiPoolOfAnotherPicture",
     PICTURE "const %r : f32[1,5] = {-1.0, 0.0, 0.0, 1.0, 1.0}\n%y = MaxRoiPool %x, %r "
             "{pooled_shape=[1,1]} : f32[1,1,1,1]",
     "node 'y' (MaxRoiPool) takes element -1.000000 of 1"},
    // An axis of one element is at its middle.
    {"AffineGridOfOneRow",
     "const %t : bf16[1,2,3] = {2.0, 0.0, 0.5, 0.0, 1.0, 0.0}\n%y = AffineGrid %t "
     "{align_corners=1, size=[1,1,1,2]} : bf16[1,1,2,2]",
     "bf16[1,1,2,2] = -1.5 0 2.5 0"},
    {"AffineGridOfWholeNumbers",
     "const %t : i32[1,2,3] = {2, 0, 1, 0, 1, 0}\n%y = AffineGrid %t {size=[1,1,1,2]} : "
     "i32[1,1,2,2]",
     "not folded"},
    {"Col2ImWraps",
     "const %x : u8[1,2,2] = {200, 1, 2, 100}\nconst %i : i64[1] = {3}\nconst %b : i64[1] = {2}\n"
     "%y = Col2Im %x, %i, %b : u8[1,1,3]",
     "u8[1,1,3] = 200 3 100"},
    {"Col2ImOfOtherBlocks",
     "const %x : u8[1,2,3] = {1}\nconst %i : i64[1] = {3}\nconst %b : i64[1] = {2}\n"
     "%y = Col2Im %x, %i, %b : u8[1,1,3]",
     "node 'y' (Col2Im) has columns that do not fit its picture and blocks"},
};
INSTANTIATE_TEST_SUITE_P(Picture, MovementKernel, testing::ValuesIn(pictures),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::graph
