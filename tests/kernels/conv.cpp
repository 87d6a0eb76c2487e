// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

struct Case {
    const char* why;
    uint32_t in_channels, out_channels, height, width, kernel, stride, dilation;
    int32_t pad;
    bool depthwise = false;
    uint32_t extra = 0;  // elements between a pixel's last channel and the next pixel
};

const Case cases[] = {
    {"one pixel", 1, 1, 1, 1, 1, 1, 1, 0},
    {"pointwise, whole vectors", 32, 32, 9, 7, 1, 1, 1, 0},
    {"pointwise, channels beyond whole vectors", 7, 37, 5, 6, 1, 1, 1, 0},
    {"pointwise on a slice of channels", 16, 24, 13, 13, 1, 1, 1, 0, false, 5},
    {"pointwise with stride", 8, 16, 9, 9, 1, 2, 1, 0},
    {"a detection head of 85", 64, 85, 4, 4, 1, 1, 1, 0},
    {"winograd, one vector", 12, 16, 20, 31, 3, 1, 1, 1},
    {"3x3, stride 2, odd size", 3, 16, 17, 15, 3, 2, 1, 1},
    {"6x6, stride 2, three channels", 3, 16, 32, 36, 6, 2, 1, 2},
    {"dilated", 5, 6, 12, 12, 3, 1, 2, 2},
    {"kernel larger than the picture", 4, 8, 2, 3, 5, 1, 1, 2},
    {"3x3, too few tiles", 12, 16, 11, 12, 3, 1, 1, 1},
    {"rows of five pixels", 70, 12, 4, 5, 3, 1, 1, 1},
    {"rows of six pixels on a slice", 9, 40, 7, 6, 5, 1, 1, 2, false, 3},
    {"no padding", 4, 8, 9, 40, 3, 1, 1, 0},
    {"depthwise 3x3", 24, 24, 14, 17, 3, 1, 1, 1, true},
    {"depthwise 5x5, stride 2", 33, 33, 15, 16, 5, 2, 1, 2, true},
    {"depthwise on a slice", 16, 16, 13, 13, 3, 1, 1, 1, true, 9},
    {"winograd, whole tiles", 32, 32, 16, 16, 3, 1, 1, 1},
    {"winograd, cut tiles, channels beyond vectors", 19, 37, 18, 23, 3, 1, 1, 1},
    {"winograd without padding on a slice", 64, 70, 21, 30, 3, 1, 1, 0, false, 7},
    {"winograd, more padding than the kernel's", 24, 16, 15, 14, 3, 1, 1, 2},
    {"winograd, many channels", 200, 130, 17, 16, 3, 1, 1, 1},
};

Epilogue epilogue_of(size_t i) {
    static constexpr Epilogue epilogues[] = {
        {Activation::none, 0, 0, false},       {Activation::relu, 0, 0, true},
        {Activation::silu, 0, 0, false},       {Activation::clip, 0, 6, true},
        {Activation::sigmoid, 0, 0, false},    {Activation::leaky, 0.1F, 0, false},
        {Activation::hard_swish, 0, 0, false}, {Activation::hard_sigmoid, 0.2F, 0.5F, true},
        {Activation::tanh, 0, 0, false},       {Activation::exp, 0, 0, false}};
    return epilogues[i % std::size(epilogues)];
}

class Conv : public OnEachTarget {};

TEST_P(Conv, EqualsPlainLoops) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](size_t n) {
        std::vector<float> v(n);
        for (float& x : v) x = uniform(random);
        return v;
    };
    for (size_t i = 0; i < std::size(cases) * 2; ++i) {
        const Case& c = cases[i / 2];
        const bool with_residual = i % 2 == 1;
        SCOPED_TRACE(c.why);
        const int64_t reach = (c.kernel - 1) * c.dilation + 1;
        const auto out = [&](uint32_t in) {
            return static_cast<uint32_t>((in + 2 * c.pad - reach) / c.stride + 1);
        };
        const ConvShape s{c.height,       c.width,    c.in_channels, out(c.height), out(c.width),
                          c.out_channels, c.kernel,   c.kernel,      c.stride,      c.stride,
                          c.dilation,     c.dilation, c.pad,         c.pad,         c.depthwise};
        const size_t in_pixel = c.in_channels + c.extra, out_pixel = c.out_channels + c.extra;
        const size_t in_row = in_pixel * c.width + (c.extra ? 3 : 0),
                     out_row = out_pixel * s.out_width + (c.extra ? 2 : 0);
        const auto src = fill(in_row * c.height), residual = fill(out_row * s.out_height);
        const auto weights = fill(static_cast<size_t>(c.out_channels) *
                                  (c.depthwise ? 1 : c.in_channels) * c.kernel * c.kernel);
        const auto bias = fill(c.out_channels);
        std::vector<float> packed(packed_conv_size(s)), got(out_row * s.out_height, 77), want = got;
        pack_conv(s, weights.data(), i % 3 == 0 ? nullptr : bias.data(), packed.data());
        const SrcPicture from{src.data(), in_row, in_pixel};
        const SrcPicture add{with_residual ? residual.data() : nullptr, out_row, out_pixel};
        conv_ref(s, from, weights.data(), i % 3 == 0 ? nullptr : bias.data(), epilogue_of(i), add,
                 {want.data(), out_row, out_pixel});
        // In two parts, as two threads would; nothing is written behind the scratch memory.
        const size_t units = conv_units(s), half = units / 2, floats = conv_scratch_size(s);
        const bool is_winograd = conv_method(s) == ConvMethod::winograd;
        ASSERT_EQ(is_winograd, std::string_view(c.why).starts_with("winograd"));
        std::vector<float> scratch(floats + 1, 55);
        const DstPicture to{got.data(), out_row, out_pixel};
        conv(s, from, packed.data(), epilogue_of(i), add, to, scratch.data(), 0, half);
        conv(s, from, packed.data(), epilogue_of(i), add, to, scratch.data(), half, units);
        ASSERT_EQ(scratch[floats], 55);
        // The contract's bound; products of two numbers in [-1, 1] are 1/4 on average.
        const double bound = is_winograd ? 3e-6 * 9 * c.in_channels / 4 : 2e-5;
        for (size_t k = 0; k < got.size(); ++k) {
            ASSERT_NEAR(got[k], want[k], bound * (1 + std::abs(want[k]))) << "element " << k;
        }
    }
}

// A bf16 source is the same numbers, wherever its channels lie.
TEST_P(Conv, ReadsBf16AsItsNumbers) {
    struct Source {
        const char* why;
        uint32_t channels, kernel, stride;
        size_t pixel;  // elements
        int32_t pad;
    };
    const Source sources[] = {{"one channel", 1, 5, 1, 1, 2},
                              {"three channels of four", 3, 3, 2, 4, 1},
                              {"three channels, dense", 3, 3, 1, 3, 0},
                              {"a point", 8, 1, 1, 8, 0},
                              {"more rows than a copy holds", 8, 7, 1, 8, 3}};
    std::mt19937 random(11);
    std::uniform_int_distribution<int> small(-64, 64);
    for (const Source& c : sources) {
        SCOPED_TRACE(c.why);
        const uint32_t height = 71, width = 90, outputs = 9;
        const auto out = [&](uint32_t in) {
            return (in + 2 * static_cast<uint32_t>(c.pad) - c.kernel) / c.stride + 1;
        };
        ConvShape s{height,   width,    c.channels, out(height), out(width), outputs, c.kernel,
                    c.kernel, c.stride, c.stride,   1,           1,          c.pad,   c.pad};
        // Numbers and sums that bf16 and fp32 hold exactly; NaN where nothing may be read.
        const size_t row = c.pixel * width;
        std::vector<float> src(row * height, NAN),
            weights(size_t{outputs} * c.channels * c.kernel * c.kernel);
        std::vector<bf16> halves(src.size());
        for (size_t i = 0; i < src.size(); ++i) {
            if (i % c.pixel < c.channels) src[i] = static_cast<float>(small(random));
            halves[i].bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(src[i]) >> 16);
        }
        for (float& w : weights) w = static_cast<float>(small(random));
        std::vector<float> got(size_t{outputs} * s.out_height * s.out_width), want = got;
        const size_t out_row = size_t{outputs} * s.out_width;
        conv_ref(s, {src.data(), row, c.pixel}, weights.data(), nullptr, {}, {nullptr, 0, 0},
                 {want.data(), out_row, outputs});
        s.bf16_source = true;
        std::vector<float> packed(packed_conv_size(s)), scratch(conv_scratch_size(s) + 1, 55);
        pack_conv(s, weights.data(), nullptr, packed.data());
        const size_t units = conv_units(s), third = units / 3;
        for (const auto& [first, last] : {std::pair{size_t{0}, third}, std::pair{third, units}})
            conv(s, Bf16Picture{halves.data(), row, c.pixel}, packed.data(), {}, {nullptr, 0, 0},
                 {got.data(), out_row, outputs}, scratch.data(), first, last);
        ASSERT_EQ(scratch.back(), 55);
        ASSERT_EQ(got, want);
    }
}

TEST_P(Conv, ActivatesWithinTheBoundOfTheContract) {
    std::vector<float> x;
    for (float v = -100; v < 100; v += 0.0137F) x.push_back(v);
    for (const float v : {0.0F, -0.0F, 1e-30F, -1e-30F, 3.4e38F, -3.4e38F}) x.push_back(v);
    std::vector<float> got(x.size()), want(x.size());
    for (size_t i = 0; i < 10; ++i) {
        const Epilogue e = epilogue_of(i);
        activate_row(e, x.data(), nullptr, got.data(), x.size());
        activate_row_ref(e, x.data(), nullptr, want.data(), x.size());
        for (size_t k = 0; k < x.size(); ++k) {
            const bool hard =
                e.activation == Activation::hard_sigmoid || e.activation == Activation::hard_swish;
            const double range = hard ? 1 + std::abs(x[k]) : std::abs(want[k]);
            if (got[k] == want[k]) continue;  // infinities too
            ASSERT_NEAR(got[k], want[k], std::max((1e-6 + 1e-7 * std::abs(x[k])) * range, 1e-35))
                << "activation " << static_cast<int>(e.activation) << " of " << x[k];
        }
    }
}

VARTML_ON_EACH_TARGET(Conv);

}  // namespace
}  // namespace vartml::kernels
