// SPDX-License-Identifier: Apache-2.0
// Every operator of the software NPU against plain loops, in f32 and in bf16, with HW views of
// several layouts and types at the border; each also as a model of fp16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lib/graph/numbers.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/run/softnpu_cases.h"
#include "tests/support/reference.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

using test::graphs_of_floats;

// The HW view that the compiler would choose, in `type`.
TensorInfo border(const graph::Value& value, DataType type) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    const size_t rank = shape.size();
    const Layout cpu_layout = rank == 4 ? Layout::NCHW : rank == 3 ? Layout::NHW : Layout::GENERIC;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; cpu_layout == Layout::GENERIC && i < rank; ++i) order.push_back(i);
    const TensorView cpu = make_view(value.type.data_type, cpu_layout, shape, order);
    Layout hw = cpu_layout;
    if (rank == 4) {
        hw = shape[0] > 1 || shape[1] == 1 ? Layout::NHWC
             : shape[1] <= 4               ? Layout::HCWNC4
                                           : Layout::HCWNC8;
    }
    return {value.name, cpu, hw_view(cpu, hw, type), false, {}};
}

// Element of the HW view where CPU element `index` (row-major) lies; given: "Address rule".
size_t hw_index(const TensorInfo& info, size_t index) {
    const auto& s = info.cpu.shape;
    std::vector<size_t> at(s.size());
    for (size_t d = s.size(); d-- > 0; index /= s[d]) at[d] = index % s[d];
    const TensorView& hw = *info.hw;
    if (hw.layout == Layout::HCWNC4 || hw.layout == Layout::HCWNC8) {
        const size_t block = hw.shape[4], groups = hw.shape[1];
        return (((at[2] * groups + at[1] / block) * s[3] + at[3]) * s[0] + at[0]) * block +
               at[1] % block;
    }
    if (hw.layout == Layout::NHWC) return ((at[0] * s[2] + at[2]) * s[3] + at[3]) * s[1] + at[1];
    size_t result = 0;
    for (size_t d = 0; d < s.size(); ++d) result += at[d] * hw.strides[d];
    return result;
}

float to_float(const std::byte* p, DataType type) {
    float value = 0;
    graph::with_type(type, [&]<typename T>(T element) {
        std::memcpy(&element, p, sizeof element);
        value = graph::convert<float>(element);
    });
    return value;
}
void from_float(float value, DataType type, std::byte* p) {
    graph::with_type(type, [&]<typename T>(T element) {
        element = graph::convert<T>(value);
        std::memcpy(p, &element, sizeof element);
    });
}

// Values that bf16 and fp16 hold exactly, so that inputs and weights are the same in all types.
float exact(std::mt19937& random) {
    return static_cast<float>(static_cast<int>(random() % 255) - 127) / 64;
}

void randomise_constants(graph::Graph& graph, std::mt19937& random) {
    for (graph::Value& v : graph.values) {
        if (!v.constant) continue;
        std::vector<float> values(static_cast<size_t>(v.type.elements()));
        for (float& x : values) x = exact(random);
        v.constant = graph::make_constant<float>(values);
    }
}

// The same graph with tensors of another float type.
std::string with_floats_of(DataType type, std::string text) {
    const std::string other = std::string(graph::short_name(type)) + '[';
    for (size_t at = 0; (at = text.find("f32[", at)) != text.npos; at += other.size())
        text.replace(at, 4, other);
    return text;
}
graph::Graph with_exact_floats(graph::Graph graph) {
    for (graph::Value& v : graph.values) v.type.data_type = DataType::float32;
    return graph;
}
void convert_constants(graph::Graph& graph) {
    for (graph::Value& v : graph.values) {
        if (!v.constant || v.type.data_type == DataType::float32) continue;
        const auto floats = v.constant->as<float>();
        std::vector<std::byte> bytes(floats.size() * size_bytes(v.type.data_type));
        for (size_t i = 0; i < floats.size(); ++i)
            from_float(floats[i], v.type.data_type, &bytes[i * size_bytes(v.type.data_type)]);
        v.constant = graph::make_constant<std::byte>(bytes);
    }
}

// What the results may differ by, of the largest: half a step of the coarsest type on the way.
float tolerance(DataType compute, DataType border) {
    if (compute == DataType::bf16) return 0.03F;
    if (border == DataType::bf16) return 0.005F;
    return border == DataType::fp16 ? 0.001F : 1e-5F;
}

struct Types {
    DataType model, compute, border;
};
class SoftNpu : public testing::TestWithParam<std::tuple<size_t, Types>> {};

TEST_P(SoftNpu, EqualsPlainLoops) {
    const auto& [index, types] = GetParam();
    const auto [model, compute, border_type] = types;
    SCOPED_TRACE(graphs_of_floats[index].why);
    auto parsed = graph::parse(with_floats_of(model, graphs_of_floats[index].text));
    ASSERT_TRUE(parsed) << parsed.error().message;
    if (const auto ok = graph::verify(*parsed); !ok) FAIL() << ok.error().message;
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = std::move(*parsed);
    std::mt19937 random(static_cast<unsigned>(index) + 1);
    randomise_constants(program->graph, random);
    const graph::Graph exact_graph = with_exact_floats(program->graph);
    convert_constants(program->graph);
    for (const auto id : program->graph.inputs)
        program->inputs.push_back(border(program->graph.value(id), border_type));
    for (const auto id : program->graph.outputs)
        program->outputs.push_back(border(program->graph.value(id), border_type));

    std::vector<test::Tensor> inputs;
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < program->inputs.size(); ++i) {
        const TensorInfo& info = program->inputs[i];
        test::Tensor values(info.cpu.size);
        // Padding holds finite rubbish: it must not matter.
        memory.emplace_back(info.hw->size_bytes, std::byte{0x3F});
        for (size_t k = 0; k < values.size(); ++k) {
            values[k] = exact(random);
            from_float(values[k], border_type,
                       memory.back().data() + hw_index(info, k) * size_bytes(border_type));
        }
        inputs.push_back(std::move(values));
    }
    for (const TensorInfo& info : program->outputs)
        memory.emplace_back(info.hw->size_bytes, std::byte{0xFF});
    for (size_t i = 0; i < memory.size(); ++i) {
        if (i < program->inputs.size())
            in.push_back(memory[i].data());
        else
            out.push_back(memory[i].data());
    }
    const Numerics numerics = compute == DataType::bf16 ? Numerics::bf16 : Numerics::f32;
    auto executable = softnpu_device().load(program, {.numerics = numerics, .threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const auto want = test::run_reference(exact_graph, inputs);
    for (int run = 0; run < 2; ++run) {  // the second run finds the arena used
        ASSERT_TRUE(test::run_once(**executable, in, out));
        for (size_t o = 0; o < want.size(); ++o) {
            const TensorInfo& info = program->outputs[o];
            const std::byte* bytes = memory[program->inputs.size() + o].data();
            const size_t width = size_bytes(border_type);
            float range = 1e-3F, worst = 0;
            for (const float v : want[o]) range = std::max(range, std::abs(v));
            for (size_t k = 0; k < want[o].size(); ++k) {
                const float got = to_float(bytes + hw_index(info, k) * width, border_type);
                worst = std::max(worst, std::isfinite(got) ? std::abs(got - want[o][k]) : 1e30F);
            }
            // A step that goes the general way rounds what it makes to the model's type.
            const bool rounds = (*executable)->describe().find("general") != std::string::npos;
            const float allowed =
                std::max(tolerance(compute, border_type), rounds ? tolerance(compute, model) : 0);
            EXPECT_LE(worst, allowed * range) << "output " << o << " run " << run << "\n"
                                              << (*executable)->describe();
            std::vector<bool> used(info.hw->size);
            for (size_t k = 0; k < want[o].size(); ++k) used[hw_index(info, k)] = true;
            for (size_t k = 0; k < used.size(); ++k) {
                if (used[k]) continue;
                ASSERT_EQ(to_float(bytes + k * width, border_type), 0) << "padding element " << k;
            }
        }
    }
}

std::string name(const testing::TestParamInfo<SoftNpu::ParamType>& info) {
    std::string text = graphs_of_floats[std::get<0>(info.param)].why;
    for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    const auto [model, compute, border] = std::get<1>(info.param);
    text += "_" + std::string(to_string(compute)) + "_border_" + std::string(to_string(border));
    return model == DataType::float32 ? text : text + "_model_" + std::string(to_string(model));
}

// A border of fp16 belongs to a model of fp16, whose other borders are those that a user may ask
// for.
constexpr DataType f32 = DataType::float32, bf16 = DataType::bf16, fp16 = DataType::fp16;
constexpr Types combinations[] = {
    {f32, f32, f32},   {f32, f32, bf16},  {f32, bf16, f32},   {f32, bf16, bf16},
    {f32, f32, fp16},  {fp16, f32, fp16}, {fp16, bf16, fp16}, {fp16, f32, f32},
    {fp16, bf16, f32}, {fp16, f32, bf16}, {fp16, bf16, bf16}, {bf16, f32, bf16},
};
INSTANTIATE_TEST_SUITE_P(Operators, SoftNpu,
                         testing::Combine(testing::Range<size_t>(0, std::size(graphs_of_floats)),
                                          testing::ValuesIn(combinations)),
                         name);

// What the compiler places before a product is computed in bf16, whatever oneDNN has in bf16.
constexpr const char* before_a_product[] = {
    "%b = Abs %a",
    "%b = Clip %a {max=0.75, min=0.25}",
    "%b = Elu %a {alpha=0.5}",
    "%b = Exp %a",
    "%b = Gelu %a {approximate=\"none\"}",
    "%b = HardSigmoid %a {alpha=0.2, beta=0.5}",
    "%b = HardSwish %a",
    "%b = LeakyRelu %a {alpha=0.1}",
    "%b = Log %a",
    "%b = Mish %a",
    "%b = Neg %a",
    "%b = Pow %a, %a",
    "%b = Reciprocal %a",
    "%b = Relu %a",
    "%b = Round %a",
    "%b = SiLU %a",
    "%b = Softmax %a {axis=1}",
    "%b = Softplus %a",
    "%b = Sqrt %a",
    "%b = Tanh %a",
};

class BeforeAProduct : public testing::TestWithParam<std::tuple<size_t, DataType>> {};
TEST_P(BeforeAProduct, EveryOperatorLoadsAndComputes) {
    const auto [index, model] = GetParam();
    const std::string text =
        "graph g\ninput %x : f32[4,6]\nconst %w : f32[6,5] = {0}\n%a = Sigmoid %x : f32[4,6]\n" +
        std::string(before_a_product[index]) + " : f32[4,6]\n%y = MatMul %b, %w : f32[4,5]\n" +
        "output %y\n";
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    auto parsed = graph::parse(with_floats_of(model, text));
    ASSERT_TRUE(parsed) << parsed.error().message;
    program->graph = std::move(*parsed);
    std::mt19937 random(5);
    randomise_constants(program->graph, random);
    const graph::Graph exact_graph = with_exact_floats(program->graph);
    convert_constants(program->graph);
    program->inputs.push_back(border(program->graph.value(program->graph.inputs[0]), model));
    program->outputs.push_back(border(program->graph.value(program->graph.outputs[0]), f32));
    test::Tensor values(24);
    std::vector<std::byte> input(24 * size_bytes(model)), output(20 * sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = exact(random);
        from_float(values[i], model, &input[i * size_bytes(model)]);
    }
    auto executable = softnpu_device().load(program, {.numerics = Numerics::bf16, .threads = 1});
    ASSERT_TRUE(executable) << executable.error().message;
    const void* const in[] = {input.data()};
    void* const out[] = {output.data()};
    ASSERT_TRUE(test::run_once(**executable, in, out));
    const auto want = test::run_reference(exact_graph, {values})[0];
    float range = 1e-3F;
    for (const float v : want) range = std::max(range, std::abs(v));
    for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(to_float(&output[i * sizeof(float)], f32), want[i], 0.03F * range)
            << (*executable)->describe();
}
INSTANTIATE_TEST_SUITE_P(Operators, BeforeAProduct,
                         testing::Combine(testing::Range<size_t>(0, std::size(before_a_product)),
                                          testing::Values(f32, fp16)));

// Batches of 1 beside, in and around others, as one head of several pictures is, and operands that
// the other one is repeated for.
class Batches : public testing::TestWithParam<unsigned> {};
TEST_P(Batches, OfProductsMayBeOneAnywhere) {
    constexpr int64_t sides[][3] = {{4, 4, 4}, {1, 5, 3}, {3, 1, 5}, {5, 3, 1}, {40, 8, 36}};
    const auto batch = [](unsigned bits, std::array<int64_t, 3> sizes) {
        for (unsigned d = 0; d < 3; ++d)
            if ((bits >> d & 1) == 0) sizes[d] = 1;
        return sizes;
    };
    const auto type = [](const std::array<int64_t, 3>& batch, int64_t rows, int64_t columns) {
        return graph::to_string(graph::Type{f32, {batch[0], batch[1], batch[2], rows, columns}});
    };
    std::mt19937 random(1);
    for (const auto& [m, k, n] : sides) {
        for (unsigned both = 0; both < 64; ++both) {
            const auto a = batch(both % 8, {2, 3, 2}), b = batch(both / 8, {2, 3, 2});
            const auto y = batch(both % 8 | both / 8, {2, 3, 2});
            const std::string text = "graph g\ninput %a : " + type(a, m, k) +
                                     "\ninput %b : " + type(b, k, n) +
                                     "\n%y = MatMul %a, %b : " + type(y, m, n) + "\noutput %y\n";
            SCOPED_TRACE(text);
            auto program = std::make_shared<Program>();
            program->name = "test";
            program->target = "softnpu-1";
            auto parsed = graph::parse(text);
            ASSERT_TRUE(parsed) << parsed.error().message;
            program->graph = std::move(*parsed);
            std::vector<test::Tensor> values;
            for (const auto id : program->graph.inputs) {
                program->inputs.push_back(border(program->graph.value(id), f32));
                values.emplace_back(program->inputs.back().cpu.size);
                for (float& value : values.back()) value = exact(random);
            }
            program->outputs.push_back(
                border(program->graph.value(program->graph.outputs[0]), f32));
            const auto want = test::run_reference(program->graph, values)[0];
            auto executable =
                softnpu_device().load(program, {.numerics = Numerics::f32, .threads = GetParam()});
            ASSERT_TRUE(executable) << executable.error().message;
            test::Tensor got(want.size());
            const void* const in[] = {values[0].data(), values[1].data()};
            void* const out[] = {got.data()};
            ASSERT_TRUE(test::run_once(**executable, in, out));
            for (size_t i = 0; i < want.size(); ++i)
                ASSERT_NEAR(got[i], want[i], 1e-4F * float(k)) << i << (*executable)->describe();
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Threads, Batches, testing::Values(1U, 2U, 4U));

}  // namespace
}  // namespace vartml::device
