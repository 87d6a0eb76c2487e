// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/fold.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "lib/graph/canonical.h"
#include "lib/graph/numbers.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

// Zeros that take no memory unless they are read.
Constant zeros(size_t bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return {{static_cast<const std::byte*>(memory), bytes},
            std::shared_ptr<void>(memory, [bytes](void* p) { ::munmap(p, bytes); })};
}

TEST(FoldNode, MakesNoMoreConstantsThanMemoryHolds) {
    Graph graph = must_parse(
        "graph g\nconst %x : f32[1] = {1.0}\n%y = Expand %x {shape=[500000]} : f32[500000]\n");
    Graph full = graph;
    const auto folded = cpu::fold_node(graph, graph.nodes[0]);
    ASSERT_TRUE(folded);
    EXPECT_TRUE(*folded);
    full.add_constant("w", {DataType::uint8, {int64_t{1} << 30}}, zeros(size_t{1} << 30));
    const auto refused = cpu::fold_node(full, full.nodes[0]);
    ASSERT_TRUE(refused);
    EXPECT_FALSE(*refused);
}

struct Fold {
    const char* name;
    const char* text;  // constants and one node `y`, which becomes the constant
    const char* y;     // its printed line behind "const %y : "
};
void PrintTo(const Fold& fold, std::ostream* os) {
    *os << fold.name;
}

class Evaluate : public testing::TestWithParam<Fold> {};
TEST_P(Evaluate, GivesTheNumbersOfTheOnnxSpecification) {
    Graph graph = must_parse(GetParam().text);
    const auto folded = cpu::fold_node(graph, graph.nodes.back());
    ASSERT_TRUE(folded) << folded.error().message;
    ASSERT_TRUE(*folded);
    graph.outputs = {graph.nodes.back().outputs[0]};
    graph.nodes.clear();
    graph.inputs.clear();
    remove_dead(graph);
    EXPECT_EQ(print(graph), std::string("graph \"\"\nconst %") + graph.values[0].name + " : " +
                                GetParam().y + "\noutput %" + graph.values[0].name + "\n");
}

// 0 to 5 in two rows.
#define X "const %x : i64[2,3] = {0, 1, 2, 3, 4, 5}\n"
const Fold folds[] = {
    {"AddBroadcasts", X "const %c : i64[2,1] = {10, 20}\n%y = Add %x, %c : i64[2,3]",
     "i64[2,3] = {10, 11, 12, 23, 24, 25}"},
    {"AddWraps", "const %a : i32[1] = {2147483647}\n%y = Add %a, %a : i32[1]", "i32[1] = {-2}"},
    // Integer division drops the fraction.
    {"DivTruncates",
     "const %a : i64[2] = {-7, 7}\nconst %b : i64[] = {2}\n%y = Div %a, %b : i64[2]",
     "i64[2] = {-3, 3}"},
    {"ModFollowsTheDivisor",
     "const %a : i64[4] = {-7, 7, -7, 7}\nconst %b : i64[4] = {2, -2, -3, 3}\n%y = Mod %a, %b : "
     "i64[4]",
     "i64[4] = {1, -1, -1, 1}"},
    {"FmodFollowsTheDividend",
     "const %a : f32[2] = {-7, 7}\nconst %b : f32[] = {2}\n%y = Mod %a, %b {fmod=1} : f32[2]",
     "f32[2] = {-1.0, 1.0}"},
    {"FloorKeepsItsType", "const %a : f32[2] = {-1.5, 1.5}\n%y = Floor %a : f32[2]",
     "f32[2] = {-2.0, 1.0}"},
    // Half to even.
    {"RoundToEven", "const %a : f32[4] = {0.5, 1.5, 2.5, -2.5}\n%y = Round %a : f32[4]",
     "f32[4] = {0.0, 2.0, 2.0, -2.0}"},
    {"CastTruncates", "const %a : f32[3] = {-1.9, 1.9, 3e20}\n%y = Cast %a {to=\"i32\"} : i32[3]",
     "i32[3] = {-1, 1, 2147483647}"},
    {"CastToBool", "const %a : f32[3] = {-0.5, 0, 7}\n%y = Cast %a {to=\"bool\"} : bool[3]",
     "bool[3] = {1, 0, 1}"},
    {"CastKeepsLargeIntegers",
     "const %a : i64[1] = {9007199254740993}\n%y = Cast %a {to=\"i64\"} : i64[1]",
     "i64[1] = {9007199254740993}"},
    // 1.00390625 is half way between two bf16 and goes to the even one; the next f32 goes up.
    {"CastToBf16RoundsToEven",
     "const %a : f32[2] = {1.00390625, 1.0039064}\n%y = Cast %a {to=\"bf16\"} : bf16[2]",
     "bf16[2] = {1.0, 1.0078125}"},
    {"CastToF16", "const %a : f32[2] = {1.0004883, 70000.0}\n%y = Cast %a {to=\"f16\"} : f16[2]",
     "f16[2] = {1.0, inf}"},
    {"EqualGivesBool", X "const %c : i64[] = {4}\n%y = Equal %x, %c : bool[2,3]",
     "bool[2,3] = {0, 0, 0, 0, 1, 0}"},
    {"Where",
     "const %c : bool[2] = {1, 0}\nconst %a : i64[2,1] = {1, 2}\nconst %b : i64[] = {9}\n%y = "
     "Where %c, %a, %b : i64[2,2]",
     "i64[2,2] = {1, 9, 2, 9}"},
    {"Reshape", X "%y = Reshape %x {shape=[3,2]} : i64[3,2]", "i64[3,2] = {0, 1, 2, 3, 4, 5}"},
    {"Transpose", X "%y = Transpose %x {perm=[1,0]} : i64[3,2]", "i64[3,2] = {0, 3, 1, 4, 2, 5}"},
    {"SliceBackwards", X "%y = Slice %x {axes=[1], ends=[-1], starts=[2], steps=[-2]} : i64[2,2]",
     "i64[2,2] = {2, 0, 5, 3}"},
    {"Concat", X "const %c : i64[2,1] = {7, 8}\n%y = Concat %x, %c {axis=1} : i64[2,4]",
     "i64[2,4] = {0, 1, 2, 7, 3, 4, 5, 8}"},
    {"GatherCountsFromTheEnd",
     X "const %i : i64[2] = {-1, 0}\n%y = Gather %x, %i {axis=1} : i64[2,2]",
     "i64[2,2] = {2, 0, 5, 3}"},
    {"GatherOfAScalar", X "const %i : i64[] = {1}\n%y = Gather %x, %i {axis=0} : i64[3]",
     "i64[3] = {3, 4, 5}"},
    {"Expand", "const %x : i64[2,1] = {1, 2}\n%y = Expand %x {shape=[2,2,2]} : i64[2,2,2]",
     "i64[2,2,2] = {1, 1, 2, 2, 1, 1, 2, 2}"},
    {"Tile", "const %x : i64[1,2] = {1, 2}\n%y = Tile %x {repeats=[2,2]} : i64[2,4]",
     "i64[2,4] = {1, 2, 1, 2, 1, 2, 1, 2}"},
    {"PadReflects",
     "const %x : i64[3] = {1, 2, 3}\n%y = Pad %x {mode=\"reflect\", pads=[2,2]} : i64[7]",
     "i64[7] = {3, 2, 1, 2, 3, 2, 1}"},
    {"PadCrops", "const %x : i64[3] = {1, 2, 3}\n%y = Pad %x {pads=[-1,2], value=9.0} : i64[4]",
     "i64[4] = {2, 3, 9, 9}"},
    {"PadRepeatsTheEdge",
     "const %x : f32[2] = {1, 2}\n%y = Pad %x {mode=\"edge\", pads=[1,2]} : f32[5]",
     "f32[5] = {1.0, 1.0, 2.0, 2.0, 2.0}"},
    {"RangeDown",
     "const %a : i64[] = {5}\nconst %b : i64[] = {-1}\nconst %c : i64[] = {-2}\n%y = Range %a, %b, "
     "%c : i64[3]",
     "i64[3] = {5, 3, 1}"},
    {"RangeOfFloats",
     "const %a : f32[] = {1}\nconst %b : f32[] = {2}\nconst %c : f32[] = {0.5}\n%y = Range %a, %b, "
     "%c : f32[2]",
     "f32[2] = {1.0, 1.5}"},
    {"ConstantOfShape",
     "const %s : i64[2] = {1, 2}\nconst %v : i32[1] = {7}\n%y = ConstantOfShape %s, %v : i32[1,2]",
     "i32[1,2] = {7, 7}"},
    {"ShapeOfAnInput", "input %x : f32[1,3,8]\n%y = Shape %x {end=3, start=1} : i64[2]",
     "i64[2] = {3, 8}"},
    {"ReduceProd", X "%y = ReduceProd %x {axes=[0], keepdims=0} : i64[3]", "i64[3] = {0, 4, 10}"},
    {"ReduceMax", X "%y = ReduceMax %x {axes=[1], keepdims=1} : i64[2,1]", "i64[2,1] = {2, 5}"},
    {"MatMul",
     "const %a : f32[1,2] = {1, 2}\nconst %b : f32[2,2] = {3, 4, 5, 6}\n%y = MatMul %a, %b : "
     "f32[1,2]",
     "f32[1,2] = {13.0, 16.0}"},
    {"DepthToSpaceCrd",
     "const %x : i64[1,4,1,2] = {0, 1, 2, 3, 4, 5, 6, 7}\n%y = DepthToSpace %x {blocksize=2, "
     "mode=\"CRD\"} : i64[1,1,2,4]",
     "i64[1,1,2,4] = {0, 2, 1, 3, 4, 6, 5, 7}"},
    {"SpaceToDepth",
     "const %x : i64[1,1,2,4] = {0, 2, 1, 3, 4, 6, 5, 7}\n%y = SpaceToDepth %x {blocksize=2} : "
     "i64[1,4,1,2]",
     "i64[1,4,1,2] = {0, 1, 2, 3, 4, 5, 6, 7}"},
    {"EmptyTensors",
     "const %a : f32[0] = {}\nconst %b : f32[1] = {2}\n%y = Concat %a, %b {axis=0} : f32[1]",
     "f32[1] = {2.0}"},
};
INSTANTIATE_TEST_SUITE_P(Graph, Evaluate, testing::ValuesIn(folds),
                         [](const auto& info) { return info.param.name; });

TEST(EvaluateErrors, NameAnIndexOutOfRange) {
    Graph graph = must_parse(
        "const %x : f32[2] = {1, 2}\nconst %i : i64[1] = {2}\n%y = Gather %x, %i : f32[1]\noutput "
        "%y");
    const auto folded = cpu::fold_node(graph, graph.nodes[0]);
    ASSERT_FALSE(folded);
    EXPECT_EQ(folded.error().message, "node 'y' (Gather) takes element 2 of 2");
}

TEST(EvaluateErrors, LeaveLargeResultsToTheDevice) {
    Graph graph = must_parse(
        "const %x : f32[1] = {1}\n%y = Expand %x {shape=[100000000]} : f32[100000000]\noutput %y");
    const auto folded = cpu::fold_node(graph, graph.nodes[0]);
    ASSERT_TRUE(folded);
    EXPECT_FALSE(*folded);
}

TEST(Numbers, KeepNansOfBf16) {
    const float nan[] = {std::nanf("")};
    Graph graph;
    graph.add_constant("n", {DataType::bf16, {1}}, write_numbers<float>(DataType::bf16, nan));
    EXPECT_TRUE(std::isnan(read_numbers<float>(graph.values[0])[0]));
}

TEST(Numbers, ReadAnyByteAsBool) {
    Graph graph;
    graph.add_constant("b", {DataType::boolean, {2}}, make_constant({std::byte{0}, std::byte{7}}));
    EXPECT_EQ(read_numbers<int64_t>(graph.values[0]), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace vartml::graph
