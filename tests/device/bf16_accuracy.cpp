// SPDX-License-Identifier: Apache-2.0
// Where bf16 keeps the precision of f32: early convolutions, and the mean of what rounded weights
// give.
#include <gtest/gtest.h>

#include <functional>

#include "lib/device/softnpu/early_convs.h"
#include "lib/device/softnpu/softnpu.h"
#include "tests/artifact/models.h"
#include "tests/support/graphs.h"

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
    auto executable = softnpu_device().load(program, {.numerics = Numerics::bf16, .threads = 2});
    if (!executable) ADD_FAILURE() << executable.error().message;
    const void* const in[] = {x.data()};
    void* const out[] = {y.data()};
    if (executable) {
        EXPECT_TRUE((*executable)->run(in, out));
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

struct Rounded {
    const char* why;
    float weight, input;
};
// All weights lie a quarter above what bf16 has of them.
constexpr float quarter = 1.0F / 512;
constexpr Rounded rounded[] = {
    {"an input of numbers from 0 to 1", 1 + quarter, 0.5F},
    {"an input of pixels", (1 + quarter) / 128, 127.5F},
};

TEST(RoundedWeights, DoNotShiftTheMeanOfTheOutput) {
    for (const Rounded& c : rounded) {
        SCOPED_TRACE(c.why);
        const std::string text =
            "graph g\ninput %x : f32[1,64,16,16]\nconst %w : f32[20,64,1,1] = {0}\n" +
            conv("y", "x", "w", 20) + "output %y\n";
        const auto y = run_bf16(text, c.input, [&](const graph::Value&) {
            return std::vector<float>(size_t{20} * 64, c.weight);
        });
        const float want = 64 * c.weight * c.input, shift = want - want / (1 + quarter);
        for (const float v : y) ASSERT_NEAR(v, want, shift / 10);
    }
}

TEST(RoundedWeights, DoNotShiftTheMeanOfAGroup) {
    const std::string text =
        "graph g\ninput %x : f32[1,6,16,16]\nconst %w : f32[4,3,1,1] = {0}\n"
        "%y = Conv %x, %w {dilations=[1,1], group=2, pads=[0,0,0,0], strides=[1,1]} : "
        "f32[1,4,16,16]\noutput %y\n";
    const auto y = run_bf16(text, 0.5F, [](const graph::Value&) {
        std::vector<float> weights(12, 1);
        std::fill(weights.begin() + 6, weights.end(), 1 + quarter);  // of the second group
        return weights;
    });
    for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], i < y.size() / 2 ? 1.5F : 1.5F * (1 + quarter), 1.5F * quarter / 10);
}

}  // namespace
}  // namespace vartml::device
