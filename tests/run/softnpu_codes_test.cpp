// SPDX-License-Identifier: Apache-2.0
// Quantised operators of the software NPU against their meaning in floats. The build runs this
// several times: with all that the processor has, and as on processors without products of 8 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string_view>

#include "kernels/conv/conv.h"
#include "lib/base/test_seams.h"
#include "lib/graph/fold.h"
#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/processor.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/support/graphs.h"
#include "tests/support/quantised.h"
#include "tests/support/reference.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

struct Case {
    const char* name;
    const char* text;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

// Scales and zero points that the rows share.
#define U8                                                                                    \
    "const %xs : f32[] = {0.02}\nconst %xz : u8[] = {117}\nconst %ys : f32[] = {0.6}\nconst " \
    "%yz : u8[] = {130}\n"
#define S8                                                                                       \
    "const %xs : f32[] = {0.02}\nconst %xz : i8[] = {-9}\nconst %ys : f32[] = {0.6}\nconst %yz " \
    ": i8[] = {4}\n"
#define SYMMETRIC                                                                               \
    "const %xs : f32[] = {0.02}\nconst %xz : i8[] = {0}\nconst %ys : f32[] = {0.6}\nconst %yz " \
    ": i8[] = {0}\n"
#define CHANNELS(n) \
    "const %ws : f32[" n "] = {0}\nconst %zeros : i8[" n "] = {0}\nconst %b : i32[" n "] = {0}\n"
#define WINDOW "{dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]}"

const Case cases[] = {
    {"Conv3x3PerChannel", U8 CHANNELS("16") R"(
        input %x : u8[1,8,17,15]
        const %w : i8[16,8,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : u8[1,16,17,15]
        output %y)"},
    // Padding must count as zero, which is not the code 0; stride; no bias; one scale.
    {"ConvSignedPerTensor", S8 R"(
        input %x : i8[2,6,9,8]
        const %w : i8[5,6,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[2,2], group=1, pads=[2,0,1,2], strides=[2,1]} : i8[2,5,4,6]
        output %y)"},
    // No zero point, the usual form of signed codes; outputs are no whole blocks of oneDNN's.
    {"ConvSymmetric", SYMMETRIC CHANNELS("8") R"(
        input %x : i8[1,4,9,8]
        const %w : i8[8,4,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : i8[1,8,9,8]
        output %y)"},
    {"ConvSymmetricOfColours", SYMMETRIC CHANNELS("32") R"(
        input %x : i8[1,3,16,16]
        const %w : i8[32,3,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[2,2]} : i8[1,32,8,8]
        output %y)"},
    {"ConvSymmetricHead", SYMMETRIC CHANNELS("85") R"(
        input %x : i8[1,40,5,5]
        const %w : i8[85,40,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : i8[1,85,5,5]
        output %y)"},
    {"ConvSymmetricGrouped", SYMMETRIC CHANNELS("12") R"(
        input %x : i8[1,6,9,9]
        const %w : i8[12,3,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : i8[1,12,9,9]
        output %y)"},
    {"ConvSymmetricOfLines", SYMMETRIC CHANNELS("6") R"(
        input %x : i8[2,5,32]
        const %w : i8[6,5,5] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1], group=1, pads=[2,2], strides=[1]} : i8[2,6,32]
        output %y)"},
    {"ConvDepthwise", U8 CHANNELS("24") R"(
        input %x : u8[1,24,14,14]
        const %w : i8[24,1,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=24, pads=[1,1,1,1], strides=[2,2]} : u8[1,24,7,7]
        output %y)"},
    // Real numbers go through an activation before they become codes.
    {"ConvActivated", U8 CHANNELS("16") R"(
        input %x : u8[1,8,17,15]
        const %w : i8[16,8,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {activation="SiLU", dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,16,17,15]
        output %y)"},
    {"ConvActivatedDepthwiseWithFactors", U8 CHANNELS("6") R"(
        input %x : u8[1,6,14,14]
        const %w : i8[6,1,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {activation="Clip", alpha=-20.0, beta=60.0, dilations=[1,1], factors=f[1.0,2.0,0.5,1.5,3.0,1.0], group=6, pads=[1,1,1,1], strides=[2,2]} : u8[1,6,7,7]
        output %y)"},
    {"ConvOfFactorsAlone", S8 R"(
        input %x : i8[2,6,9,8]
        const %w : i8[3,6,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[1,1], factors=f[1.0,2.0,0.5], group=1, pads=[1,1,1,1], strides=[1,1]} : i8[2,3,9,8]
        output %y)"},
    {"ConvGrouped", U8 CHANNELS("12") R"(
        input %x : u8[1,8,9,9]
        const %w : i8[12,4,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : u8[1,12,9,9]
        output %y)"},
    // Unsigned weights around 128 are signed ones around 0.
    {"ConvUnsignedWeights", U8 R"(
        input %x : u8[1,5,9,9]
        const %w : u8[12,5,1,1] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {128}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : u8[1,12,9,9]
        output %y)"},
    // Less 100 they do not fit int8.
    {"ConvWideWeights", U8 R"(
        input %x : u8[1,5,9,9]
        const %w : u8[12,5,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {100}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz )" WINDOW R"( : u8[1,12,9,9]
        output %y)"},
    {"MatMulWideWeights", U8 R"(
        input %x : u8[6,40]
        const %w : u8[40,9] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {100}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : u8[6,9]
        output %y)"},
    {"ConvOneAxis", U8 CHANNELS("6") R"(
        input %x : u8[2,4,32]
        const %w : i8[6,4,5] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1], group=1, pads=[2,2], strides=[1]} : u8[2,6,32]
        output %y)"},
    // Long sums of large products: 16 bits would saturate in between.
    {"ConvLargeSums", U8 R"(
        input %x : u8[1,256,6,6]
        const %w : i8[8,256,3,3] = {0}
        const %ws : f32[] = {0.05}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz )" WINDOW R"( : u8[1,8,6,6]
        output %y)"},
    {"ConvIntegerOfOneColumnWithAStride", R"(
        input %x : u8[1,7,10,2]
        const %w : i8[35,1,2,2] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=7, pads=[0,0,0,0], strides=[1,3]} : i32[1,35,9,1]
        output %y)"},
    {"ConvIntegerOfOneRowWithAStride", R"(
        input %x : u8[1,7,2,10]
        const %w : i8[35,1,2,2] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=7, pads=[0,0,0,0], strides=[3,1]} : i32[1,35,1,9]
        output %y)"},
    {"ConvIntegerOfOnePixelWithStrides", R"(
        input %x : u8[1,6,2,3]
        const %w : i8[12,1,2,3] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=6, pads=[0,0,0,0], strides=[4,5]} : i32[1,12,1,1]
        output %y)"},
    {"ConvInteger", R"(
        input %x : u8[1,7,9,8]
        const %w : i8[5,7,3,3] = {0}
        const %xz : u8[] = {101}
        %y = ConvInteger %x, %w, %xz )" WINDOW R"( : i32[1,5,9,8]
        output %y)"},
    {"PictureOfThreeChannels", U8 CHANNELS("16") R"(
        input %p : f32[1,3,20,18]
        const %w : i8[16,3,3,3] = {0}
        %x = QuantizeLinear %p, %xs, %xz {axis=0} : u8[1,3,20,18]
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : u8[1,16,20,18]
        output %y)"},
    {"ConvOfFloatsThenCodes", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[16,8,3,3] = {0}
        const %ys : f32[] = {0.01}
        const %yz : u8[] = {130}
        %c = Conv %p, %w )" WINDOW R"( : f32[1,16,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,16,17,15]
        output %y)"},
    {"ConvOfFloatsWithFactorsThenCodes", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[8,1,3,3] = {0}
        const %b : f32[8] = {0}
        const %f : f32[1,8,1,1] = {0}
        const %ys : f32[] = {0.00001}
        const %yz : u8[] = {100}
        %c = Conv+Clip+Mul %p, %w, %b, %f {Clip.max=0.15, Clip.min=-0.1, dilations=[1,1], group=8, pads=[1,1,1,1], strides=[1,1]} : f32[1,8,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,8,17,15]
        output %y)"},
    {"ConvOfFloatsWhoseSumsOthersReadToo", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[16,8,3,3] = {0}
        const %ys : f32[] = {0.01}
        const %yz : u8[] = {130}
        %c = Conv %p, %w )" WINDOW R"( : f32[1,16,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,16,17,15]
        %r = Relu %c : f32[1,16,17,15]
        %z = QuantizeLinear %r, %ys, %yz {axis=0} : u8[1,16,17,15]
        output %y
        output %z)"},
    {"MatMulWithBias", U8 CHANNELS("70") R"(
        input %x : u8[2,5,40]
        const %w : i8[40,70] = {0}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b : u8[2,5,70]
        output %y)"},
    // One row: shared by columns.
    {"MatMulOfARow", S8 CHANNELS("1000") R"(
        input %x : i8[1,512]
        const %w : i8[512,1000] = {0}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b : i8[1,1000]
        output %y)"},
    {"MatMulOfTwoComputed", U8 R"(
        input %x : u8[2,3,9,20]
        input %z : u8[3,20,7]
        %y = QLinearMatMul %x, %xs, %xz, %z, %xs, %xz, %ys, %yz : u8[2,3,9,7]
        output %y)"},
    {"MatMulInteger", R"(
        input %x : i8[6,40]
        const %w : i8[40,9] = {0}
        %y = MatMulInteger %x, %w : i32[6,9]
        output %y)"},
    {"AddOfTwoScalesAndBroadcast", U8 R"(
        input %x : u8[1,12,7,5]
        input %z : u8[1,12,1,1]
        const %zs : f32[] = {0.5}
        %a = com.microsoft::QLinearAdd %x, %xs, %xz, %z, %zs, %yz, %ys, %yz : u8[1,12,7,5]
        const %ts : f32[] = {1.3}
        %y = com.microsoft::QLinearAdd %a, %ys, %yz, %a, %ys, %yz, %ts, %xz : u8[1,12,7,5]
        output %y)"},
    {"MulByAGate", S8 R"(
        input %x : i8[1,30,7,5]
        %p = com.microsoft::QLinearGlobalAveragePool %x, %xs, %xz, %xs, %yz : i8[1,30,1,1]
        const %gs : f32[] = {0.00390625}
        const %gz : i8[] = {-128}
        %g = com.microsoft::QLinearSigmoid %p, %xs, %yz, %gs, %gz : i8[1,30,1,1]
        %y = com.microsoft::QLinearMul %x, %xs, %xz, %g, %gs, %gz, %xs, %xz : i8[1,30,7,5]
        output %y)"},
    // Rows that are not dense: each result lies beside the channels of the other.
    {"ProductsSideBySide", U8 R"(
        input %x : u8[1,8,6,5]
        input %z : u8[1,5,6,5]
        %a = com.microsoft::QLinearMul %x, %xs, %xz, %x, %xs, %xz, %ys, %yz : u8[1,8,6,5]
        %b = com.microsoft::QLinearMul %z, %xs, %xz, %z, %xs, %xz, %ys, %yz : u8[1,5,6,5]
        %y = Concat %a, %b {axis=1} : u8[1,13,6,5]
        output %y)"},
    {"ConcatOfDifferentScales", U8 R"(
        input %x : u8[1,8,6,5]
        input %z : u8[1,3,6,5]
        const %zs : f32[] = {0.05}
        %y = com.microsoft::QLinearConcat %zs, %yz, %x, %xs, %xz, %z, %zs, %yz {axis=1} : u8[1,11,6,5]
        output %y)"},
    {"LeakyReluAndClip", S8 R"(
        input %x : i8[1,8,6,5]
        const %s : f32[] = {0.011}
        %a = com.microsoft::QLinearLeakyRelu %x, %xs, %xz, %s, %yz {alpha=0.2} : i8[1,8,6,5]
        %y = Clip %a {max=90.0, min=4.0} : i8[1,8,6,5]
        output %y)"},
    {"AveragePools", S8 R"(
        input %x : i8[1,300,9,6]
        const %s : f32[] = {0.013}
        %a = com.microsoft::QLinearAveragePool %x, %xs, %xz, %s, %yz {ceil_mode=0, count_include_pad=1, dilations=[1,1], kernel_shape=[3,2], pads=[1,1,0,0], strides=[1,1]} : i8[1,300,8,6]
        %y = com.microsoft::QLinearAveragePool %a, %s, %yz, %s, %xz {ceil_mode=1, count_include_pad=0, dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], strides=[2,2]} : i8[1,300,4,3]
        output %y)"},
    // A channel shuffle, whose pieces are views and copies of codes.
    {"MovesCodes", U8 R"(
        input %x : u8[1,8,6,8]
        %a = Reshape %x {shape=[1,2,4,6,8]} : u8[1,2,4,6,8]
        %b = Transpose %a {perm=[0,2,1,3,4]} : u8[1,4,2,6,8]
        %c = Reshape %b {shape=[1,8,6,8]} : u8[1,8,6,8]
        %d, %e = Split %c {axis=1, split=[4,4]} : u8[1,4,6,8], u8[1,4,6,8]
        %f = MaxPool %e {ceil_mode=0, dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], storage_order=0, strides=[1,1]} : u8[1,4,6,8]
        %g = Concat %d, %f {axis=1} : u8[1,8,6,8]
        %y = Pad %g {mode="constant", pads=[0,0,1,1,0,0,0,2], value=117.0} : u8[1,8,7,11]
        output %y)"},
    {"QuantisesPerChannel", R"(
        input %x : f32[1,4,6,5]
        const %s : f32[4] = {0}
        const %z : u8[4] = {3, 99, 128, 255}
        %y = QuantizeLinear %x, %s, %z {axis=1} : u8[1,4,6,5]
        %d = DequantizeLinear %y, %s, %z {axis=1} : f32[1,4,6,5]
        output %y
        output %d)"},
};

TensorInfo border(const graph::Value& value) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    const TensorView cpu = make_view(value.type.data_type, Layout::GENERIC, shape, order);
    return {value.name, cpu, hw_view(cpu, Layout::GENERIC, value.type.data_type), false, {}};
}

void put(std::byte* memory, DataType type, size_t i, float number) {
    if (type == DataType::float32) {
        std::memcpy(memory + 4 * i, &number, 4);
        return;
    }
    memory[i] = static_cast<std::byte>(static_cast<int>(number));
}

float get(const std::byte* memory, DataType type, size_t i) {
    if (type == DataType::int8) return static_cast<float>(static_cast<int8_t>(memory[i]));
    if (type == DataType::uint8) return static_cast<float>(memory[i]);
    int32_t whole;
    std::memcpy(&whole, memory + 4 * i, 4);
    float number;
    std::memcpy(&number, memory + 4 * i, 4);
    return type == DataType::int32 ? static_cast<float>(whole) : number;
}

class SoftNpuCodes : public testing::TestWithParam<Case> {
protected:
    void expect_within_one_step(int most_weight);
};

TEST_P(SoftNpuCodes, AreWithinOneStep) {
    expect_within_one_step(127);
}

// 255 · 63 · 2 fits 16 bits, so this is the way of int8 on processors that saturate, too.
TEST_P(SoftNpuCodes, OfSmallWeightsAreWithinOneStepInInt8) {
    if (std::string_view(GetParam().name).find("WideWeights") != std::string_view::npos)
        GTEST_SKIP() << "of two parts, which are large";
    const bool symmetric =
        std::string_view(GetParam().name).find("Symmetric") != std::string_view::npos;
    if (symmetric && !softnpu::has_int8_products())
        GTEST_SKIP() << "oneDNN halves weights for signed codes without VNNI; it is not asked to";
    test_seams.saturating_products = true;
    expect_within_one_step(63);
    test_seams.saturating_products = false;
}

void SoftNpuCodes::expect_within_one_step(int most_weight) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(GetParam().text);
    test::randomise_quantised(program->graph, 1, most_weight);
    const graph::Graph& graph = program->graph;
    std::mt19937 random(2);
    std::vector<test::Tensor> inputs;
    std::vector<std::vector<std::byte>> memory;
    for (const auto id : graph.inputs) {
        program->inputs.push_back(border(graph.value(id)));
        const DataType type = graph.value(id).type.data_type;
        memory.emplace_back(program->inputs.back().hw->size_bytes);
        auto& numbers = inputs.emplace_back(static_cast<size_t>(graph.value(id).type.elements()));
        for (size_t i = 0; i < numbers.size(); ++i) {
            const auto code = static_cast<float>(random() % 256);
            numbers[i] = type == DataType::uint8  ? code
                         : type == DataType::int8 ? code - 128
                                                  : (code - 128) / 64;
            put(memory.back().data(), type, i, numbers[i]);
        }
    }
    for (const auto id : graph.outputs) {
        program->outputs.push_back(border(graph.value(id)));
        memory.emplace_back(program->outputs.back().hw->size_bytes, std::byte{0x55});
    }
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < memory.size(); ++i) {
        if (i < inputs.size())
            in.push_back(memory[i].data());
        else
            out.push_back(memory[i].data());
    }
    auto executable = softnpu_device().load(program, {.threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const std::string steps = (*executable)->describe();
    EXPECT_EQ(steps.find("general"), std::string::npos) << steps;
    EXPECT_EQ(steps.find("ref"), std::string::npos) << steps;
    const auto want = test::run_reference(test::in_floats(graph), inputs);
    for (int run = 0; run < 2; ++run) {  // the second run finds the arena used
        ASSERT_TRUE(test::run_once(**executable, in, out));
        for (size_t o = 0; o < want.size(); ++o) {
            const DataType type = graph.value(graph.outputs[o]).type.data_type;
            const float step = type == DataType::int8 || type == DataType::uint8 ? 1 : 0;
            std::set<float> different;
            for (size_t i = 0; i < want[o].size(); ++i) {
                const float found = get(memory[inputs.size() + o].data(), type, i);
                ASSERT_NEAR(found, want[o][i], step) << "element " << i << "\n" << steps;
                different.insert(found);
            }
            EXPECT_GT(different.size(), 8U) << "a result without variety shows nothing";
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, SoftNpuCodes, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

// The steps of a program, as a text.
std::string steps_of(const char* text, Numerics numerics) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(text);
    for (const auto id : program->graph.inputs)
        program->inputs.push_back(border(program->graph.value(id)));
    for (const auto id : program->graph.outputs)
        program->outputs.push_back(border(program->graph.value(id)));
    auto executable = softnpu_device().load(program, {.numerics = numerics, .threads = 2});
    if (!executable) ADD_FAILURE() << executable.error().message;
    return executable ? (*executable)->describe() : "";
}

constexpr const char* floats_then_codes = R"(
    input %p : f32[1,64,17,15]
    const %w : f32[64,64,1,1] = {0.5}
    const %b : f32[64] = {0.5}
    const %ys : f32[] = {0.01}
    const %yz : u8[] = {130}
    %c = Conv+Relu %p, %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,64,17,15]
    %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,64,17,15]
    output %y)";

TEST(ConvolutionsOfFloats, MakeCodesOfSumsAtOnce) {
    const std::string steps = steps_of(floats_then_codes, Numerics::f32);
    EXPECT_NE(steps.find("conv direct 1x1"), std::string::npos) << steps;
    EXPECT_EQ(steps.find("uantize"), std::string::npos) << steps;
}

TEST(ConvolutionsOfFloats, MultiplyInBf16InFrontOfCodesToo) {
    if (!kernels::has_bf16_pairs()) GTEST_SKIP() << "this processor has no products of bf16";
    const std::string steps = steps_of(floats_then_codes, Numerics::bf16);
    EXPECT_NE(steps.find("conv bf16"), std::string::npos) << steps;
}

// Weights less their zero points have nine bits.
TEST(Int8Terms, AreTwoWhereOneDoesNotHoldTheWeight) {
    using Terms = std::vector<std::vector<int8_t>>;
    EXPECT_EQ(softnpu::int8_terms({-128, 0, 127}), (Terms{{-128, 0, 127}}));
    EXPECT_EQ(softnpu::int8_terms({-256, 254, -129, 3}),
              (Terms{{-128, 127, -128, 3}, {-128, 127, -1, 0}}));
    EXPECT_EQ(softnpu::int8_terms({-257}), Terms());
    EXPECT_EQ(softnpu::int8_terms({255}), Terms());
}

TEST(Codings, HaveAFiniteScaleAboveZero) {
    for (const auto& [scale, is_one] :
         {std::pair("0.5", true), {"0", false}, {"-1", false}, {"inf", false}, {"nan", false}}) {
        const graph::Graph graph = graph::must_parse(
            "input %x : u8[4]\nconst %s : f32[] = {" + std::string(scale) +
            "}\nconst %z : u8[] = {7}\n%y = DequantizeLinear %x, %s, %z {axis=0} : f32[4]\n"
            "output %y\n");
        const auto coding = softnpu::coding_of(graph, graph.nodes[0], 0);
        ASSERT_EQ(coding.has_value(), is_one) << scale;
        if (!coding) continue;
        EXPECT_EQ(coding->scale, 0.5f);
        EXPECT_EQ(coding->zero, 7);
    }
}

// ONNX: a result is rounded, half a step to the even one, and the zero point is added to that.
// Behind an odd zero point half a step would go the other way.
TEST(Halves, AreRoundedBeforeTheZeroPointIsAdded) {
    const std::string numbers =
        "const %one : f32[] = {1}\nconst %none : u8[] = {0}\nconst %two : f32[] = {2}\nconst %odd "
        ": "
        "u8[] = {3}\nconst %nil : i8[] = {0}\n";
    const std::string operands = "%x, %one, %none, %w, %one, %nil, %two, %odd";
    const std::string window = "{dilations=[1,1], group=@, pads=[0,0,0,0], strides=[1,1]}";
    const auto conv = [&](const std::string& groups) {
        std::string text = window;
        return text.replace(text.find('@'), 1, groups);
    };
    const std::string texts[] = {
        "input %x : u8[1,1,16,16]\nconst %w : i8[1,1,1,1] = {1}\n%y = QLinearConv " + operands +
            " " + conv("1") + " : u8[1,1,16,16]\noutput %y",
        "input %x : u8[1,16,4,4]\nconst %w : i8[16,1,1,1] = {1}\n%y = QLinearConv " + operands +
            " " + conv("16") + " : u8[1,16,4,4]\noutput %y",
        "input %x : u8[256,1]\nconst %w : i8[1,1] = {1}\n%y = QLinearMatMul " + operands +
            " : u8[256,1]\noutput %y"};
    for (const std::string& text : texts) {
        SCOPED_TRACE(text);
        auto program = std::make_shared<Program>();
        program->name = "test";
        program->target = "softnpu-1";
        program->graph = graph::must_parse((numbers + text).c_str());
        const graph::Graph& graph = program->graph;
        program->inputs.push_back(border(graph.value(graph.inputs[0])));
        program->outputs.push_back(border(graph.value(graph.outputs[0])));
        std::vector<std::byte> x(program->inputs[0].hw->size_bytes),
            y(program->outputs[0].hw->size_bytes);
        ASSERT_EQ(x.size(), 256U);
        ASSERT_EQ(y.size(), 256U);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i);
        auto executable = softnpu_device().load(program, {.threads = 1});
        ASSERT_TRUE(executable) << executable.error().message;
        const std::vector<const void*> in{x.data()};
        const std::vector<void*> out{y.data()};
        ASSERT_TRUE(test::run_once(**executable, in, out));
        for (size_t i = 0; i < y.size(); ++i)
            ASSERT_EQ(std::to_integer<int>(y[i]),
                      static_cast<int>(std::nearbyint(static_cast<float>(i) / 2)) + 3)
                << "code " << i << "\n"
                << (*executable)->describe();
    }
}

// What DynamicQuantizeLinear becomes: tensors NAMEq, NAMEs and NAMEz from %NAME of this shape.
std::string dynamic_codes(const std::string& name, const std::string& shape,
                          const std::string& axes) {
    std::string text = R"(
        %@m = ReduceMax %@ {axes=[AXES], keepdims=0} : f32[]
        %@h = Max %@m, %zero : f32[]
        %@n = ReduceMin %@ {axes=[AXES], keepdims=0} : f32[]
        %@l = Min %@n, %zero : f32[]
        %@w = Sub %@h, %@l : f32[]
        %@s = Div %@w, %steps : f32[]
        %@a = Sub %zero, %@l : f32[]
        %@b = Div %@a, %@s : f32[]
        %@r = Round %@b : f32[]
        %@c = Clip %@r {max=255.0, min=0.0} : f32[]
        %@z = Cast %@c {to="u8"} : u8[]
        %@q = QuantizeLinear %@, %@s, %@z {axis=0, block_size=0} : u8[SHAPE])";
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"@", name}, {"AXES", axes}, {"SHAPE", shape}})
        for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
            text.replace(at, from.size(), to);
    return text;
}

// A convolution and a product of codes that are made while the model runs, with weights that do not
// fit int8, arithmetic between them,
// and a float product behind, for which the rest of a program is bf16 where the processor has it.
std::string dynamic_model() {
    return R"(
        input %x : f32[1,8,13,12]
        const %zero : f32[] = {0}
        const %steps : f32[] = {255}
        const %w : u8[16,8,3,3] = {0}
        const %wzero : u8[] = {120}
        const %ws : f32[] = {0.01}
        const %b : f32[1,16,1,1] = {0}
        const %m : u8[16,24] = {0}
        const %mz : u8[] = {100}
        const %k : f32[24,10] = {0})" +
           dynamic_codes("x", "1,8,13,12", "0,1,2,3") + R"(
        %i = ConvInteger %xq, %w, %xz, %wzero )" WINDOW R"( : i32[1,16,13,12]
        %f = Cast %i {to="f32"} : f32[1,16,13,12]
        %both = Mul %xs, %ws : f32[]
        %d = Mul %f, %both : f32[1,16,13,12]
        %e = Add %d, %b : f32[1,16,13,12]
        %act = HardSwish %e : f32[1,16,13,12]
        %pool = GlobalAveragePool %act : f32[1,16,1,1]
        %flat = Reshape %pool {shape=[1,16]} : f32[1,16])" +
           dynamic_codes("flat", "1,16", "0,1") + R"(
        %j = MatMulInteger %flatq, %m, %flatz, %mz : i32[1,24]
        %g = Cast %j {to="f32"} : f32[1,24]
        %o = Mul %g, %flats : f32[1,24]
        %rounded = Round %o : f32[1,24]
        %y = MatMul %rounded, %k : f32[1,10]
        output %flatq
        output %act
        output %o
        output %y)";
}

std::vector<float> floats_of(const graph::Value& value, const std::vector<std::byte>& memory) {
    std::vector<float> numbers(static_cast<size_t>(value.type.elements()));
    for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = get(memory.data(), value.type.data_type, i);
    return numbers;
}

// The numbers of all outputs by the plain loops of lib/graph, node after node.
std::vector<std::vector<float>> by_plain_loops(graph::Graph graph,
                                               const std::vector<std::byte>& input) {
    graph.value(graph.inputs[0]).constant = graph::make_constant<std::byte>(input);
    for (const graph::Node& node : graph.nodes) {
        auto made = cpu::evaluate(graph, node);
        if (!made) {
            ADD_FAILURE() << made.error().message;
            return {};
        }
        graph.value(node.outputs[0]).constant = std::move((*made)[0]);
    }
    std::vector<std::vector<float>> results;
    for (const auto id : graph.outputs) {
        const auto& bytes = graph.value(id).constant->bytes;
        results.push_back(floats_of(graph.value(id), {bytes.begin(), bytes.end()}));
    }
    return results;
}

class DynamicCodes : public testing::TestWithParam<Numerics> {};

// In both types: bf16 between the codes would make other codes.
TEST_P(DynamicCodes, AreThoseOfPlainLoopsInEitherType) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(dynamic_model());
    test::randomise_quantised(program->graph, 1);
    const graph::Graph& graph = program->graph;
    program->inputs.push_back(border(graph.value(graph.inputs[0])));
    std::mt19937 random(3);
    std::vector<std::byte> input(program->inputs[0].hw->size_bytes);
    for (size_t i = 0; i < input.size() / 4; ++i)
        put(input.data(), DataType::float32, i, static_cast<float>(random() % 2001) / 500 - 1.5F);
    std::vector<std::vector<std::byte>> memory;
    for (const auto id : graph.outputs) {
        program->outputs.push_back(border(graph.value(id)));
        memory.emplace_back(program->outputs.back().hw->size_bytes, std::byte{0x55});
    }
    auto executable = softnpu_device().load(program, {.numerics = GetParam(), .threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const void* const in[] = {input.data()};
    std::vector<void*> out;
    for (auto& bytes : memory) out.push_back(bytes.data());
    ASSERT_TRUE(test::run_once(**executable, in, out));
    const auto want = by_plain_loops(graph, input);
    ASSERT_EQ(want.size(), memory.size());
    // Codes are equal, and so is what lies between them; bf16 begins behind the last of them.
    const bool narrow = GetParam() == Numerics::bf16;
    const float tolerance[] = {0, 1e-5F, narrow ? 0.004F : 1e-5F, narrow ? 0.02F : 1e-5F};
    for (size_t o = 0; o < want.size(); ++o) {
        SCOPED_TRACE(graph.value(graph.outputs[o]).name);
        const auto found = floats_of(graph.value(graph.outputs[o]), memory[o]);
        float range = 0;
        for (const float v : want[o]) range = std::max(range, std::abs(v));
        for (size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(found[i], want[o][i], tolerance[o] * range) << "element " << i << "\n"
                                                                    << (*executable)->describe();
    }
}

// Large steps are not left to the plain loops, which run on one thread.
TEST(DynamicCodesOf, ALargePictureHaveStepsOfTheirOwn) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(dynamic_model());
    const graph::Graph& graph = program->graph;
    program->inputs.push_back(border(graph.value(graph.inputs[0])));
    for (const auto id : graph.outputs) program->outputs.push_back(border(graph.value(id)));
    auto executable = softnpu_device().load(program, {.threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const std::string steps = (*executable)->describe();
    for (const char* slow : {"QuantizeLinear general", "ConvInteger general",
                             "MatMulInteger general", "Cast general i32"})
        EXPECT_EQ(steps.find(slow), std::string::npos) << steps;
}

INSTANTIATE_TEST_SUITE_P(Numerics, DynamicCodes, testing::Values(Numerics::f32, Numerics::bf16),
                         [](const auto& info) {
                             return info.param == Numerics::bf16 ? "bf16" : "f32";
                         });

}  // namespace
}  // namespace vartml::device
