// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/bf16_point.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace vartml::kernels {
namespace {

bf16 to_bf16(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
float to_float(bf16 x) {
    return std::bit_cast<float>(uint32_t{x.bits} << 16);
}
float to_float(float x) {
    return x;
}

struct Case {
    const char* why;
    uint32_t in_channels, out_channels;
    size_t pixels;
    size_t extra = 0;  // elements between a pixel's last channel and the next pixel
};

const Case cases[] = {
    {"one pixel, one output", 2, 1, 1},
    {"less than a vector", 64, 4, 30},
    {"one vector", 16, 16, 43},
    {"two vectors", 32, 32, 57},
    {"three vectors, the last cut", 6, 41, 19},
    {"four vectors", 64, 64, 169},
    {"blocks of three and two vectors", 64, 80, 29},
    {"a detection head of 85", 64, 85, 16},
    {"many channels: several pieces of the line", 512, 130, 100},
    {"slices of wider pictures", 24, 24, 61, 5},
};

constexpr Epilogue epilogues[] = {
    {Activation::none, 0, 0, false},       {Activation::relu, 0, 0, true},
    {Activation::silu, 0, 0, false},       {Activation::clip, 0, 6, true},
    {Activation::sigmoid, 0, 0, false},    {Activation::leaky, 0.1F, 0, false},
    {Activation::hard_swish, 0, 0, false}, {Activation::hard_sigmoid, 0.2F, 0.5F, true},
    {Activation::tanh, 0, 0, false},       {Activation::exp, 0, 0, false}};

class Bf16Point : public testing::Test {
protected:
    std::vector<float> floats(size_t n) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        std::vector<float> v(n);
        for (float& x : v) x = to_float(to_bf16(uniform(random_)));
        return v;
    }
    std::mt19937 random_{5};
};

std::vector<bf16> halves(const std::vector<float>& from) {
    std::vector<bf16> v;
    for (const float x : from) v.push_back(to_bf16(x));
    return v;
}

template <typename T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double relative) {
    for (size_t k = 0; k < got.size(); ++k) {
        const double bound = 1e-6 + relative * (std::abs(want[k]) + 1e-2);
        ASSERT_NEAR(to_float(got[k]), want[k], bound) << "element " << k;
    }
}

TEST_F(Bf16Point, EqualsPlainLoops) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        const PointShape shape{c.in_channels, c.out_channels};
        if (!has_bf16_point(shape)) GTEST_SKIP() << "no products of bf16 here";
        for (size_t i = 0; i < std::size(epilogues) * 2; ++i) {
            const Epilogue& epilogue = epilogues[i / 2];
            SCOPED_TRACE("activation " + std::to_string(static_cast<int>(epilogue.activation)));
            const bool with_residual = i % 2 == 1;
            const size_t step = c.in_channels + c.extra, out_step = c.out_channels + c.extra;
            const auto src = floats(c.pixels * step), residual = floats(c.pixels * out_step);
            const auto weights = floats(size_t{c.in_channels} * c.out_channels);
            const auto bias = floats(c.out_channels);
            // Where nothing is written 77 stays.
            std::vector<double> want(c.pixels * out_step, 77);
            for (size_t p = 0; p < c.pixels; ++p) {
                for (size_t o = 0; o < c.out_channels; ++o) {
                    double sum = bias[o];
                    for (size_t k = 0; k < c.in_channels; ++k)
                        sum += double{src[p * step + k]} * weights[o * c.in_channels + k];
                    const float add = with_residual ? residual[p * out_step + o] : 0;
                    const auto x = static_cast<float>(sum);
                    float y;
                    activate_row_ref(epilogue, &x, with_residual ? &add : nullptr, &y, 1);
                    want[p * out_step + o] = y;
                }
            }
            std::vector<std::byte> packed(packed_bf16_point_size(shape));
            pack_bf16_point(shape, weights.data(), bias.data(), packed.data());
            const auto src16 = halves(src), add16 = halves(residual);
            const Bf16Line add{with_residual ? add16.data() : nullptr, out_step};
            std::vector<bf16> rounded(want.size(), to_bf16(77));
            bf16_point(shape, {src16.data(), step}, packed.data(), epilogue, add, rounded.data(),
                       out_step, c.pixels);
            expect_near(rounded, want, 1.0 / 256 + 4e-4);
            std::vector<float> exact(want.size(), 77);
            bf16_point(shape, {src16.data(), step}, packed.data(), epilogue, add, exact.data(),
                       out_step, c.pixels);
            expect_near(exact, want, 2e-5 * std::max(1.0, c.in_channels / 64.0));
        }
    }
}

// Sums of any size: no overflow of the power, and NaN stays NaN.
TEST_F(Bf16Point, ActivationsHoldForAllSizesOfSums) {
    const PointShape shape{2, 1};
    if (!has_bf16_point(shape)) GTEST_SKIP() << "no products of bf16 here";
    const float weights[] = {1, 0};
    std::vector<std::byte> packed(packed_bf16_point_size(shape));
    pack_bf16_point(shape, weights, nullptr, packed.data());
    for (const Epilogue& epilogue : epilogues) {
        SCOPED_TRACE("activation " + std::to_string(static_cast<int>(epilogue.activation)));
        for (const float x : {-1e30F, -200.0F, -88.0F, -20.0F, -1e-3F, 0.0F, 1e-3F, 5.0F, 30.0F,
                              88.0F, 200.0F, 1e30F, NAN}) {
            const bf16 src[] = {to_bf16(x), {0}};
            const float rounded = to_float(src[0]);
            float want;
            activate_row_ref(epilogue, &rounded, nullptr, &want, 1);
            bf16 got;
            bf16_point(shape, {src, 2}, packed.data(), epilogue, {nullptr, 0}, &got, 1, 1);
            if (std::isnan(want)) {
                EXPECT_TRUE(std::isnan(to_float(got))) << x;
            } else if (std::isinf(want)) {
                EXPECT_EQ(to_float(got), want) << x;
            } else {
                EXPECT_NEAR(to_float(got), want, 1e-30 + std::abs(want) / 200) << x;
            }
        }
    }
}

TEST(Bf16PointOfOddChannels, IsNotOffered) {
    EXPECT_FALSE(has_bf16_point({3, 16}));
}

}  // namespace
}  // namespace vartml::kernels
