// SPDX-License-Identifier: Apache-2.0
// Convolutions of codes against plain loops in whole numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/instruction_sets.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

struct Case {
    const char* why;
    uint32_t in_channels, out_channels, height, width, kernel, stride, dilation;
    int32_t pad;
    bool depthwise = false;
    uint32_t extra = 0;  // codes between a pixel's last channel and the next pixel
};

const Case cases[] = {
    {"one pixel", 1, 1, 1, 1, 1, 1, 1, 0},
    {"pointwise, whole vectors", 32, 32, 9, 7, 1, 1, 1, 0},
    {"pointwise, channels beyond whole words and vectors", 7, 37, 5, 6, 1, 1, 1, 0},
    {"pointwise on a slice of channels", 18, 24, 13, 13, 1, 1, 1, 0, false, 5},
    {"pointwise with stride", 8, 16, 9, 9, 1, 2, 1, 0},
    {"many channels: several pieces of the line", 512, 130, 10, 10, 1, 1, 1, 0},
    {"three channels, stride 2", 3, 16, 17, 15, 3, 2, 1, 1},
    {"three channels in the place of four", 3, 16, 17, 15, 3, 2, 1, 1, false, 1},
    {"enough tiles for minimal filtering", 32, 32, 16, 16, 3, 1, 1, 1},
    {"odd channels, tiles over the edge", 37, 50, 13, 17, 3, 1, 1, 1},
    {"no padding, many channels", 96, 20, 10, 12, 3, 1, 1, 0},
    {"dilated, odd channels", 5, 6, 12, 12, 3, 1, 2, 2},
    {"kernel larger than the picture", 4, 8, 2, 3, 5, 1, 1, 2},
    {"rows of five pixels", 70, 12, 4, 5, 3, 1, 1, 1},
    {"no padding, a slice", 8, 20, 9, 20, 3, 1, 1, 0, false, 4},
    {"no padding, a slice of half a long word", 4, 20, 9, 20, 3, 1, 1, 0, false, 4},
    {"no padding, odd channels", 6, 20, 9, 20, 3, 1, 1, 0},
    {"depthwise 3x3", 24, 24, 14, 17, 3, 1, 1, 1, true},
    {"depthwise 5x5, stride 2", 33, 33, 15, 16, 5, 2, 1, 2, true},
    {"depthwise on a slice", 16, 16, 13, 13, 3, 1, 1, 1, true, 9},
    {"depthwise 3x3, stride 2, few pixels", 40, 40, 9, 9, 3, 2, 1, 1, true},
    {"depthwise 5x5", 12, 12, 10, 31, 5, 1, 1, 2, true},
    {"depthwise 2x2, no padding", 16, 16, 8, 8, 2, 2, 1, 0, true},
    {"depthwise 7x7, several lines", 20, 20, 9, 200, 7, 1, 1, 3, true},
    {"depthwise, dilated", 17, 17, 12, 19, 3, 1, 3, 3, true},
    {"depthwise 11x11", 5, 5, 12, 12, 11, 1, 1, 5, true},
};

constexpr Activation activations[] = {Activation::none,    Activation::relu,
                                      Activation::silu,    Activation::clip,
                                      Activation::sigmoid, Activation::hard_swish};

// Runs cases, each with numbers of its own.
class Runs {
public:
    // The result of each case with an activation, held against plain loops.
    std::vector<uint8_t> run(size_t i);

private:
    template <typename T>
    std::vector<T> numbers(size_t count, int low, int high) {
        std::uniform_int_distribution<int> uniform(low, high);
        std::vector<T> result(count);
        for (T& x : result) x = static_cast<T>(uniform(random_));
        return result;
    }
    // Only the ends of the range, where 16 bits would overflow first.
    template <typename T>
    std::vector<T> ends(size_t count, int low, int high) {
        std::vector<T> result(count);
        for (T& x : result) x = static_cast<T>(random_() % 2 ? low : high);
        return result;
    }
    std::mt19937 random_;
};
constexpr size_t num_runs = std::size(cases) * std::size(activations);

int sum_at(const ConvShape& s, const uint8_t* src, size_t row, size_t pixel, const float* weights,
           size_t y, size_t x, size_t o) {
    int sum = 0;
    const size_t inputs = s.depthwise ? 1 : s.in_channels;
    for (size_t c = 0; c < inputs; ++c) {
        for (uint32_t ky = 0; ky < s.kernel_height; ++ky) {
            for (uint32_t kx = 0; kx < s.kernel_width; ++kx, ++weights) {
                const auto at = [](size_t out, uint32_t stride, uint32_t k, uint32_t dilation,
                                   int32_t pad) {
                    return static_cast<int64_t>(out * stride + k * dilation) - pad;
                };
                const int64_t iy = at(y, s.stride_height, ky, s.dilation_height, s.pad_top);
                const int64_t ix = at(x, s.stride_width, kx, s.dilation_width, s.pad_left);
                if (iy < 0 || iy >= s.in_height || ix < 0 || ix >= s.in_width) continue;
                const uint8_t code = src[static_cast<size_t>(iy) * row +
                                         static_cast<size_t>(ix) * pixel + (s.depthwise ? o : c)];
                sum += (code - s.source_zero) * static_cast<int>(*weights);
            }
        }
    }
    return sum;
}

std::vector<uint8_t> Runs::run(size_t i) {
    const Case& c = cases[i / std::size(activations)];
    SCOPED_TRACE(c.why);
    random_.seed(static_cast<unsigned>(i));
    const auto out = [&](uint32_t in) {
        return static_cast<uint32_t>((in + 2 * c.pad - (c.kernel - 1) * c.dilation - 1) / c.stride +
                                     1);
    };
    ConvShape s{c.height,       c.width,    c.in_channels, out(c.height), out(c.width),
                c.out_channels, c.kernel,   c.kernel,      c.stride,      c.stride,
                c.dilation,     c.dilation, c.pad,         c.pad,         c.depthwise};
    s.source = s.result = s.factors = Element::u8;
    const bool at_ends = i % 2 == 1;
    s.source_zero = static_cast<uint8_t>(at_ends ? i % 4 / 2 * 255 : i * 37);
    const size_t filter = (c.depthwise ? 1 : c.in_channels) * c.kernel * c.kernel;
    const size_t in_pixel = c.in_channels + c.extra, out_pixel = c.out_channels + c.extra;
    const size_t in_row = in_pixel * c.width, out_row = out_pixel * s.out_width;
    const auto some = [&]<typename T>(T, size_t count, int low, int high) {
        return at_ends ? ends<T>(count, low, high) : numbers<T>(count, low, high);
    };
    const auto src = some(uint8_t{}, in_row * c.height, 0, 255);
    const auto weights = some(float{}, filter * c.out_channels, -128, 127);
    const auto biases = numbers<float>(c.out_channels, -100'000, 100'000);
    const float* const bias = i % 3 == 0 ? nullptr : biases.data();
    Epilogue epilogue{activations[i % std::size(activations)], -1, 1.5F};
    std::vector<float> scales, factors;
    for (size_t o = 0; o < c.out_channels; ++o) {
        scales.push_back(3.0F / (5000.0F * static_cast<float>(filter + o)));
        factors.push_back(epilogue.activation == Activation::none ? 1
                                                                  : 40 + static_cast<float>(o % 7));
    }
    epilogue.codes = {scales.data(), factors.data(), static_cast<uint8_t>(i * 11)};

    std::vector<std::byte> packed(packed_conv_size(s));
    pack_conv(s, weights.data(), bias, packed.data());
    const size_t units = conv_units(s), half = units / 2, size = conv_scratch_size(s);
    std::vector<std::byte> scratch(size + 1, std::byte{55});
    std::vector<uint8_t> got(out_row * s.out_height, 77);
    for (const auto& [first, last] : {std::pair{size_t{0}, half}, std::pair{half, units}})
        conv(s, {src.data(), in_row, in_pixel}, packed.data(), epilogue, {nullptr, 0, 0},
             {got.data(), out_row, out_pixel}, scratch.data(), first, last);
    EXPECT_EQ(scratch[size], std::byte{55});

    for (size_t y = 0; y < s.out_height; ++y) {
        for (size_t x = 0; x < s.out_width; ++x) {
            for (size_t o = 0; o < out_pixel; ++o) {
                const int code = got[y * out_row + x * out_pixel + o];
                if (o >= c.out_channels) {
                    EXPECT_EQ(code, 77) << "written behind the channels";
                    continue;
                }
                const int sum =
                    sum_at(s, src.data(), in_row, in_pixel, weights.data() + o * filter, y, x, o) +
                    (bias ? static_cast<int>(bias[o]) : 0);
                const float real = static_cast<float>(sum) * scales[o];
                float activated;
                activate_row_ref(epilogue, &real, nullptr, &activated, 1);
                const float steps = activated * factors[o];
                const float want =
                    std::clamp(std::nearbyint(steps) + epilogue.codes.zero, 0.0F, 255.0F);
                // What lies in the middle may go either way where an activation has an error.
                const bool is_middle =
                    std::abs(steps - std::floor(steps) - 0.5F) < 4e-4F * (1 + std::abs(steps));
                const bool may_differ = epilogue.activation != Activation::none && is_middle;
                EXPECT_NEAR(code, want, may_differ ? 1 : 0) << y << ' ' << x << ' ' << o;
                if (testing::Test::HasFailure()) return got;
            }
        }
    }
    return got;
}

class ConvCodes : public OnEachTarget {};

TEST_P(ConvCodes, EqualPlainLoops) {
    if (!has_code_products()) GTEST_SKIP() << "no products of codes";
    for (size_t i = 0; i < num_runs && !HasFailure(); ++i) Runs().run(i);
}
VARTML_ON_EACH_TARGET(ConvCodes);

// AVX-VNNI and Arm's dot product are no targets of Highway's.
TEST(ConvCodesOfDotProducts, AreTheSameWithAndWithoutThem) {
    if (!has_dot_products()) GTEST_SKIP() << "the processor has neither AVX-VNNI nor FEAT_DotProd";
    for (size_t i = 0; i < num_runs && !HasFailure(); ++i) {
        limit_instruction_sets(InstructionSet::avx2_vnni);
        EXPECT_FALSE(has_matrix_products());
        const auto with = Runs().run(i);
        limit_instruction_sets(InstructionSet::avx2);
        EXPECT_FALSE(has_dot_products());
        EXPECT_EQ(Runs().run(i), with) << i;
    }
    limit_instruction_sets(InstructionSet::all);
}

TEST(ConvCodesOfMatrixProducts, AreTheSameWithAndWithoutThem) {
    if (!has_matrix_products()) GTEST_SKIP() << "the processor has no FEAT_I8MM";
    for (size_t i = 0; i < num_runs && !HasFailure(); ++i) {
        const auto with = Runs().run(i);
        limit_instruction_sets(InstructionSet::avx2_vnni);
        EXPECT_EQ(Runs().run(i), with) << i;
        limit_instruction_sets(InstructionSet::all);
    }
}

// What was packed for one set must not meet another.
TEST(InstructionSets, StayLimitedWhenTheyAreAskedFor) {
    ConvShape one_output{8, 8, 64, 8, 8, 1};
    limit_instruction_sets(InstructionSet::sse4);
    const size_t size = packed_conv_size(one_output);
    const int64_t sets = instruction_sets();
    EXPECT_EQ(packed_conv_size(one_output), size);
    limit_instruction_sets(InstructionSet::all);
    EXPECT_EQ(sets & ~instruction_sets(), 0);
}

}  // namespace
}  // namespace vartml::kernels
