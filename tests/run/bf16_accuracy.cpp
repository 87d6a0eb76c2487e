// SPDX-License-Identifier: Apache-2.0
// Where bf16 keeps the precision of f32: early convolutions, and the mean of what rounded weights
// give.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>

#include "lib/run/softnpu/early_convs.h"
#include "lib/run/softnpu/lower_conv.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/model/models.h"
#include "tests/support/graphs.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

// A convolution of 16 x 16 pixels to as many, as a line of a graph.
std::string conv(const std::string& out, const std::string& in, const std::string& weights,
                 int channels, const std::string& biases = "") {
    return "%" + out + " = Conv %" + in + ", %" + weights + biases +
           " {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1," +
           std::to_string(channels) + ",16,16]\n";
}

struct EarlyCase {
    const char* why;
    std::string text;
    std::vector<bool> want;
};

// Multiply-adds per pixel are the numbers of weights.
const EarlyCase early_cases[] = {
    {"those behind the convolution of the input, as many as are little work",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %a : f32[2,4,1,1] = {0}\n"
     "const %b : f32[2,2,1,1] = {0}\nconst %c : f32[2,2,1,1] = {0}\n"
     "const %d : f32[92,2,1,1] = {0}\nconst %e : f32[1,92,1,1] = {0}\n" +
         conv("1", "x", "a", 2) + conv("2", "1", "b", 2) + conv("3", "2", "c", 2) +
         conv("4", "3", "d", 92) + conv("y", "4", "e", 1) + "output %y\n",
     {false, true, true, false, false}},
    {"none where the second is much work",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %a : f32[8,4,1,1] = {0}\n"
     "const %b : f32[8,8,1,1] = {0}\nconst %c : f32[1,8,1,1] = {0}\n" +
         conv("1", "x", "a", 8) + conv("2", "1", "b", 8) + conv("y", "2", "c", 1) + "output %y\n",
     {false, false, false}},
    {"none of several that read the input",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %a : f32[1,4,1,1] = {0}\n"
     "const %b : f32[99,4,1,1] = {0}\n" +
         conv("y", "x", "a", 1) + conv("z", "x", "b", 99) + "output %y\noutput %z\n",
     {false, false}},
    {"those of codes among them count and are none",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %a : f32[2,4,1,1] = {0}\n"
     "const %k : i8[2,2,1,1] = {0}\nconst %ks : f32[] = {0.1}\nconst %kz : i8[] = {0}\n"
     "const %s : f32[] = {0.1}\nconst %z : u8[] = {0}\n"
     "const %b : f32[2,2,1,1] = {0}\nconst %c : f32[2,2,1,1] = {0}\n"
     "const %d : f32[64,2,1,1] = {0}\n" +
         conv("1", "x", "a", 2) +
         "%2 = QuantizeLinear %1, %s, %z {axis=0} : u8[1,2,16,16]\n"
         "%3 = QLinearConv %2, %s, %z, %k, %ks, %kz, %s, %z {dilations=[1,1], group=1, "
         "pads=[0,0,0,0], strides=[1,1]} : u8[1,2,16,16]\n"
         "%4 = DequantizeLinear %3, %s, %z {axis=0} : f32[1,2,16,16]\n" +
         conv("5", "4", "b", 2) + conv("6", "5", "c", 2) + conv("y", "6", "d", 64) + "output %y\n",
     {false, false, false, false, true, true, false}},
    {"not a matrix product",
     "graph g\ninput %x : f32[1,1,16,16]\nconst %a : f32[99,1,1,1] = {0}\n"
     "const %b : f32[16,1] = {0}\n" +
         conv("1", "x", "a", 99) + "%y = MatMul %1, %b : f32[1,99,16,1]\noutput %y\n",
     {false, false}},
};

TEST(EarlyConvolutions, AreTheFirstBehindTheInputsUpToATenthOfTheWork) {
    for (const EarlyCase& c : early_cases) {
        SCOPED_TRACE(c.why);
        EXPECT_EQ(softnpu::find_early_convs(graph::must_parse(c.text)), c.want);
    }
}

// The first output of a graph in bf16 whose constants hold what `constant` gives for their names
// and whose inputs are `input` everywhere.
std::vector<float> run_bf16(
    const std::string& text, float input,
    const std::function<std::vector<float>(const graph::Value&)>& constant) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(text);
    for (graph::Value& value : program->graph.values)
        if (value.constant) value.constant = graph::make_constant<float>(constant(value));
    for (auto [ids, infos] : {std::pair(&program->graph.inputs, &program->inputs),
                              std::pair(&program->graph.outputs, &program->outputs)})
        for (const graph::ValueId id : *ids) {
            infos->push_back(test::border_tensor(program->graph, id));
            infos->back().hw = infos->back().cpu;
        }
    std::vector<float> x(program->inputs[0].cpu.size, input), y(program->outputs[0].cpu.size);
    std::vector<std::vector<float>> others;
    std::vector<void*> out = {y.data()};
    for (size_t i = 1; i < program->outputs.size(); ++i)
        out.push_back(others.emplace_back(program->outputs[i].cpu.size).data());
    auto executable = softnpu_device().load(program, {.numerics = Numerics::bf16, .threads = 2});
    if (!executable) ADD_FAILURE() << executable.error().message;
    const void* const in[] = {x.data()};
    if (executable) {
        EXPECT_TRUE(test::run_once(**executable, in, out));
    }
    return y;
}

TEST(EarlyConvolutions, KeepASmallDifferenceOfLargeNumbers) {
    const std::string text =
        "graph g\ninput %x : f32[1,1,16,16]\nconst %a : f32[2,1,1,1] = {0}\n"
        "const %bias : f32[2] = {0}\nconst %b : f32[1,2,1,1] = {0}\n"
        "const %c : f32[99,1,1,1] = {0}\n" +
        conv("1", "x", "a", 2, ", %bias") + conv("2", "1", "b", 1) + conv("y", "2", "c", 99) +
        "output %y\n";
    const auto y = run_bf16(text, 0.5F, [](const graph::Value& value) -> std::vector<float> {
        if (value.name == "a") return {1, 0};
        if (value.name == "bias") return {256, 256};
        if (value.name == "b") return {1, -1};
        return std::vector<float>(99, 1);
    });
    for (const float v : y) ASSERT_NEAR(v, 0.5, 0.01);  // 256.5 would be 256
}

// Numbers in [low, high), the same each time.
std::vector<float> numbers(size_t count, float low, float high) {
    std::minstd_rand random(7);  // NOLINT: the same numbers each time are the point
    std::vector<float> result(count);
    for (float& v : result)
        v = low + (high - low) * static_cast<float>(random() % 65536) / 65536.0F;
    return result;
}

float nearest_bf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7FFFU + (bits >> 16 & 1)) & 0xFFFF0000U);
}

double sum_of_errors(std::span<const float> rounded, std::span<const float> exact) {
    double sum = 0;
    for (size_t i = 0; i < exact.size(); ++i)
        sum += static_cast<double>(rounded[i]) - static_cast<double>(exact[i]);
    return sum;
}

struct Errors {
    double of_sums = 0, of_weights = 0;  // mean squares
};

Errors errors_of(const std::vector<float>& rounded, const std::vector<float>& exact, size_t size) {
    Errors errors;
    const size_t filters = exact.size() / size;
    for (size_t i = 0; i < filters; ++i) {
        const auto part = [&](const std::vector<float>& all) {
            return std::span(all).subspan(i * size, size);
        };
        errors.of_sums += std::pow(sum_of_errors(part(rounded), part(exact)), 2);
        for (size_t k = 0; k < size; ++k)
            errors.of_weights += std::pow(part(rounded)[k] - part(exact)[k], 2);
    }
    errors.of_sums /= static_cast<double>(filters);
    errors.of_weights /= static_cast<double>(filters);
    return errors;
}

// Small filters, such as those of depthwise convolutions, have few weights to turn.
TEST(RoundedWeights, ErrByLittleTogetherAndNotMuchMoreEach) {
    struct Case {
        size_t size;
        double most_of_sums, most_of_weights;  // of those rounded to the nearest
    };
    for (const Case& c : {Case{9, 0.35, 1.4}, {32, 0.1, 1.1}, {288, 0.01, 1.02}}) {
        SCOPED_TRACE(c.size);
        const std::vector<float> weights = numbers(500 * c.size, -0.1F, 0.1F);
        const std::vector<float> rounded = softnpu::round_filters(weights, 500);
        std::vector<float> nearest(weights);
        for (float& w : nearest) w = nearest_bf16(w);
        for (const float w : rounded) ASSERT_EQ(w, nearest_bf16(w)) << "no number of bf16";
        const Errors ours = errors_of(rounded, weights, c.size);
        const Errors theirs = errors_of(nearest, weights, c.size);
        EXPECT_LT(ours.of_sums, c.most_of_sums * theirs.of_sums);
        EXPECT_LT(ours.of_weights, c.most_of_weights * theirs.of_weights);
        EXPECT_LT(2 * ours.of_sums + ours.of_weights, 2 * theirs.of_sums + theirs.of_weights);
    }
}

TEST(RoundedWeights, AreLeftAloneWhereBf16HasThem) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> exact = {0, -0.0F, 1, -2.5F, 0.0078125F, infinity, -infinity, 1e38F};
    std::vector<float> want = exact;
    want.back() = nearest_bf16(1e38F);
    EXPECT_EQ(softnpu::round_filters(exact, 2), want);
}

// A run on something that only looked like the input would tell other means, and shift by them.
TEST(RoundedWeights, GiveNothingForNothing) {
    for (const float size : {0.001F, 1.0F}) {
        SCOPED_TRACE(size);
        const std::string text =
            "graph g\ninput %x : f32[1,64,16,16]\nconst %w : f32[20,64,1,1] = {0}\n" +
            conv("y", "x", "w", 20) + "output %y\n";
        const auto y = run_bf16(
            text, 0, [&](const graph::Value&) { return numbers(size_t{20} * 64, -size, size); });
        for (const float v : y) ASSERT_EQ(v, 0);
    }
}

struct Filters {
    const char* why;
    std::string text;
    size_t num_weights, in_filter;
};
const Filters filters_cases[] = {
    {"1x1",
     "graph g\ninput %x : f32[1,256,16,16]\nconst %w : f32[32,256,1,1] = {0}\n" +
         conv("y", "x", "w", 32) + "output %y\n",
     size_t{32} * 256, 256},
    {"of a group",
     "graph g\ninput %x : f32[1,128,16,16]\nconst %w : f32[8,64,3,3] = {0}\n"
     "%y = Conv %x, %w {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : "
     "f32[1,8,16,16]\noutput %y\n",
     size_t{8} * 64 * 9, 576},
};

TEST(RoundedWeights, ShiftTheMeanOfNoFilter) {
    for (const Filters& c : filters_cases) {
        SCOPED_TRACE(c.why);
        const std::vector<float> weights = numbers(c.num_weights, 0.25F, 1);
        const auto y = run_bf16(c.text, 0.5F, [&](const graph::Value&) { return weights; });
        const size_t filters = c.num_weights / c.in_filter;
        double ours = 0, nearest = 0;
        for (size_t f = 0; f < filters; ++f) {
            double want = 0, theirs = 0;
            for (size_t i = 0; i < c.in_filter; ++i) {
                const float w = weights[f * c.in_filter + i];
                want += 0.5 * static_cast<double>(w);
                theirs += 0.5 * static_cast<double>(nearest_bf16(w));
            }
            const auto got = static_cast<double>(y[f * 256 + 8 * 16 + 8]);  // not at the border
            ours += std::pow(got - want, 2);
            nearest += std::pow(theirs - want, 2);
        }
        EXPECT_LT(std::sqrt(ours), std::sqrt(nearest) / 3);
    }
}

// Pixels of a row of 256, 0.3 to the right of each: eight bits have 255 and 256, and nothing
// between.
TEST(Coordinates, KeepTheirFractionBeforeAConvolution) {
    const std::string text =
        "graph g\ninput %x : f32[1,1,4,256]\nconst %a : f32[1,1,1,1] = {0}\n"
        "const %grid : f32[1,1,1,256] = {0}\nconst %b : f32[64,1,1,1] = {0}\n"
        "%1 = Conv %x, %a {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
        "f32[1,1,4,256]\n"
        "%2 = Add %1, %grid : f32[1,1,4,256]\n"
        "%y = Sub %2, %grid : f32[1,1,4,256]\n"
        "%z = Conv %2, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
        "f32[1,64,4,256]\noutput %y\noutput %z\n";
    const auto y = run_bf16(text, 0.3F, [](const graph::Value& value) {
        std::vector<float> numbers(static_cast<size_t>(value.type.elements()), 1.0F);
        for (size_t i = 0; value.name == "grid" && i < numbers.size(); ++i)
            numbers[i] = static_cast<float>(i);
        return numbers;
    });
    for (const float v : y) ASSERT_NEAR(v, 0.3, 0.002);
}

}  // namespace
}  // namespace vartml::device
