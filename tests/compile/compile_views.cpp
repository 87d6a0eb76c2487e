// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/compile/hw_views.h"
#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

struct LayoutCase {
    std::string shape;
    Layout cpu, hw;
    std::vector<uint32_t> hw_shape;
};
// Which views tensors get, and examples worked by hand.
const LayoutCase layout_cases[] = {
    {"[1,3,224,224]", Layout::NCHW, Layout::HCWNC4, {224, 1, 224, 1, 4}},
    {"[1,224,224,3]", Layout::NHWC, Layout::HCWNC4, {224, 1, 224, 1, 4}},
    {"[1,85,52,52]", Layout::NCHW, Layout::HCWNC8, {52, 11, 52, 1, 8}},
    {"[1,1,28,28]", Layout::NCHW, Layout::NHWC, {1, 28, 28, 1}},  // one channel: no blocks
    {"[1,28,28,1]", Layout::NHWC, Layout::NHWC, {1, 28, 28, 1}},
    {"[2,3,8,8]", Layout::NCHW, Layout::NHWC, {2, 8, 8, 3}},  // a model batch
    {"[1,3,4,4]",
     Layout::NCHW,
     Layout::HCWNC4,
     {4, 1, 4, 1, 4}},  // both ends look like channels: the second wins
    {"[1,8400,85]", Layout::NHW, Layout::NHW, {1, 8400, 88}},  // padded to 8
    {"[1,1000]", Layout::GENERIC, Layout::GENERIC, {1, 1000}},
    {"[2,3,4,5,6]", Layout::GENERIC, Layout::GENERIC, {2, 3, 4, 5, 6}},
};
class BorderLayout : public testing::TestWithParam<LayoutCase> {};
TEST_P(BorderLayout, FollowsShape) {
    const LayoutCase& c = GetParam();
    const auto graph = graph::must_parse("graph g\ninput %x : f32" + c.shape +
                                         "\n%y = Exp %x : f32" + c.shape + "\noutput %y\n");
    const BorderViews views = make_border_views(graph, {});
    ASSERT_EQ(views.inputs.size(), 1u);
    EXPECT_EQ(views.inputs[0].cpu.layout, c.cpu);
    EXPECT_EQ(views.inputs[0].hw->layout, c.hw);
    EXPECT_EQ(views.inputs[0].hw->shape, c.hw_shape);
    EXPECT_EQ(views.inputs[0].hw->data_type, DataType::bf16);
    EXPECT_EQ(views.outputs[0].hw->data_type, DataType::float32);
}
INSTANTIATE_TEST_SUITE_P(Table, BorderLayout, testing::ValuesIn(layout_cases));

TEST(BorderViews, OutputsFollowTheFirstPictureInput) {
    const auto graph = graph::must_parse(
        "graph g\ninput %x : f32[1,8,8,3]\n%y = Concat %x, %x {axis=3} : f32[1,8,8,6]\noutput "
        "%y\n");
    EXPECT_EQ(make_border_views(graph, {}).outputs[0].cpu.layout, Layout::NHWC);
    const BorderViews forced = make_border_views(graph, {.layouts = {{"y", Layout::NCHW}}});
    EXPECT_EQ(forced.outputs[0].cpu.layout, Layout::NCHW);
    EXPECT_EQ(forced.inputs[0].cpu.layout, Layout::NHWC);
}

// In bf16 they would be rounded twice, and the codes would not be those of the model.
TEST(BorderViews, FloatsThatAreQuantisedFirstStayFloats) {
    const auto graph = graph::must_parse(R"(
        input %x : f32[1,3,8,8]
        input %z : f32[1,3,8,8]
        input %d : f32[1,3,8,8]
        const %s : f32[] = {0.5}
        %y = QuantizeLinear %x, %s : u8[1,3,8,8]
        %a = QuantizeLinear %z, %s : u8[1,3,8,8]
        %b = Exp %z : f32[1,3,8,8]
        %m = ReduceMax %d {axes=[0,1,2,3], keepdims=0} : f32[]
        %e = QuantizeLinear %d, %m : u8[1,3,8,8]
        output %y
        output %a
        output %b
        output %e)");
    const BorderViews views = make_border_views(graph, {});
    EXPECT_EQ(views.inputs[0].hw->data_type, DataType::float32);
    EXPECT_EQ(views.inputs[1].hw->data_type, DataType::bf16);
    EXPECT_EQ(views.inputs[2].hw->data_type, DataType::float32) << "by its own range";
}

TEST(BorderViews, InputsThatLeadToCoordinatesStayFloats) {
    const auto graph =
        graph::must_parse("graph g\ninput %x : f32[8]\n%y = Exp %x : f32[8]\noutput %y\n");
    EXPECT_EQ(make_border_views(graph, {}).inputs[0].hw->data_type, DataType::bf16);
    EXPECT_EQ(make_border_views(graph, {.exact = {"x"}}).inputs[0].hw->data_type,
              DataType::float32);
}

TEST(BorderViews, IntegersScalarsAndHalvesKeepTheirType) {
    const auto graph = graph::must_parse(
        "graph g\ninput %i : i64[2]\ninput %h : f16[2]\ninput %s : f32[]\n%a = Neg %i : i64[2]\n%b "
        "= Neg %h : f16[2]\n"
        "%c = Neg %s : f32[]\noutput %a\noutput %b\noutput %c\n");
    const BorderViews views = make_border_views(graph, {});
    EXPECT_EQ(views.inputs[0].hw->data_type, DataType::int64);
    EXPECT_EQ(views.inputs[1].hw->data_type, DataType::fp16);
    EXPECT_EQ(views.inputs[2].hw->data_type, DataType::bf16);
    EXPECT_EQ(views.inputs[2].cpu.shape, std::vector<uint32_t>{1});
    EXPECT_EQ(make_border_views(graph, {.convert_floats = false}).inputs[2].hw->data_type,
              DataType::float32);
}

struct TypeCase {
    const char* what;
    std::string nodes;  // from %x f32[1,4,8,8] to %y
    bool bf16;
};
const std::string conv =
    "%c = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,4,8,8]\n";
const TypeCase type_cases[] = {
    {"conv",
     "%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,4,8,8]\n",
     true},
    {"fused_relu",
     "%y = Conv+Relu %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[1,4,8,8]\n",
     true},
    {"fused_sigmoid",
     "%y = Conv+Sigmoid %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[1,4,8,8]\n",
     false},
    {"relu_reshape",
     conv + "%r = Relu %c : f32[1,4,8,8]\n%y = Reshape %r {shape=[1,256]} : f32[1,256]\n", true},
    {"bias", conv + "%y = Add %c, %b : f32[1,4,8,8]\n", true},
    {"two_relus",
     conv + "%r = Relu %c : f32[1,4,8,8]\n%y = LeakyRelu %r {alpha=0.1} : f32[1,4,8,8]\n", false},
    {"sigmoid", conv + "%y = Sigmoid %c : f32[1,4,8,8]\n", false},
    {"concat", conv + "%y = Concat %c, %c {axis=1} : f32[1,8,8,8]\n", false},
    {"residual", conv + "%y = Add %c, %x : f32[1,4,8,8]\n", false},
    {"input_only", "%y = Relu %x : f32[1,4,8,8]\n", false},
};
class OutputType : public testing::TestWithParam<TypeCase> {};
TEST_P(OutputType, IsBf16OnlyStraightAfterMatrixWork) {
    const auto graph = graph::must_parse(
        "graph g\ninput %x : f32[1,4,8,8]\nconst %w : f32[4,4,1,1] = {1.0}\nconst %b : f32[4,1,1] "
        "= {1.0}\n" +
        GetParam().nodes + "output %y\n");
    ASSERT_EQ(graph.outputs.size(), 1u);
    EXPECT_EQ(is_straight_after_matrix_work(graph, graph.outputs[0]), GetParam().bf16);
}
INSTANTIATE_TEST_SUITE_P(Trails, OutputType, testing::ValuesIn(type_cases),
                         [](const auto& row) { return row.param.what; });

}  // namespace
}  // namespace vartml::compiler
