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
#include "tests/run/softnpu_cases.h"
#include "tests/support/graphs.h"
#include "tests/support/quantised.h"
#include "tests/support/reference.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

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

class SoftNpuCodes : public testing::TestWithParam<test::GraphCase> {
protected:
    void expect_within_one_step(int most_weight);
};

TEST_P(SoftNpuCodes, AreWithinOneStep) {
    expect_within_one_step(127);
}

// 255 · 63 · 2 fits 16 bits, so this is the way of int8 on processors that saturate, too.
TEST_P(SoftNpuCodes, OfSmallWeightsAreWithinOneStepInInt8) {
    if (std::string_view(GetParam().why).find("WideWeights") != std::string_view::npos)
        GTEST_SKIP() << "of two parts, which are large";
    const bool symmetric =
        std::string_view(GetParam().why).find("Symmetric") != std::string_view::npos;
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

INSTANTIATE_TEST_SUITE_P(Operators, SoftNpuCodes, testing::ValuesIn(test::graphs_of_codes),
                         [](const auto& info) { return std::string(info.param.why); });

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

// A bright picture of more pixels than 32 bits hold the sum of.
TEST(Averages, OfALargePictureAreWithinItsCodes) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(
        "input %x : u8[1,1,2904,2904]\nconst %s : f32[] = {1}\nconst %z : u8[] = {0}\n"
        "%y = com.microsoft::QLinearGlobalAveragePool %x, %s, %z, %s, %z : u8[1,1,1,1]\noutput %y");
    const graph::Graph& graph = program->graph;
    program->inputs.push_back(border(graph.value(graph.inputs[0])));
    program->outputs.push_back(border(graph.value(graph.outputs[0])));
    const std::vector<std::byte> x(program->inputs[0].hw->size_bytes, std::byte{255});
    std::byte y{};
    const void* const in[] = {x.data()};
    void* const out[] = {&y};
    auto executable = softnpu_device().load(program, {.threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    ASSERT_TRUE(test::run_once(**executable, in, out));
    EXPECT_EQ(y, std::byte{255});
}

TEST(IntegerProducts, OfWhatAreNoCodesAreRefused) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(
        "input %x : i32[8,16]\nconst %w : i8[16,4] = {1}\n%y = MatMulInteger %x, %w : i32[8,4]\n"
        "output %y");
    const graph::Graph& graph = program->graph;
    program->inputs.push_back(border(graph.value(graph.inputs[0])));
    program->outputs.push_back(border(graph.value(graph.outputs[0])));
    const std::vector<std::byte> x(program->inputs[0].hw->size_bytes);
    std::vector<std::byte> y(program->outputs[0].hw->size_bytes);
    const void* const in[] = {x.data()};
    void* const out[] = {y.data()};
    auto executable = softnpu_device().load(program, {.threads = 1});
    ASSERT_TRUE(executable) << executable.error().message;
    EXPECT_FALSE(test::run_once(**executable, in, out));
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
        %i = ConvInteger %xq, %w, %xz, %wzero  {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : i32[1,16,13,12]
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
