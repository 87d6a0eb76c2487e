// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/conv/max_pool.h"
#include "kernels/ops/softmax.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

std::vector<float> numbers(size_t n, float range) {
    static std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-range, range);
    std::vector<float> v(n);
    std::ranges::generate(v, [&] { return uniform(random); });
    return v;
}

float to_float(bf16 x) {
    return std::bit_cast<float>(uint32_t{x.bits} << 16);
}

struct PoolCase {
    const char* why;
    uint32_t channels, height, width, kernel, stride;
    int32_t pad;
    uint32_t extra = 0;  // elements between a pixel's last channel and the next pixel
};

const PoolCase pool_cases[] = {
    {"one pixel", 1, 1, 1, 1, 1, 0},
    {"2x2, stride 2, fewer channels than a vector", 8, 28, 28, 2, 2, 0},
    {"3x3, stride 2, odd size", 16, 15, 17, 3, 2, 1},
    {"5x5, windows beyond all sides", 33, 7, 6, 5, 1, 2},
    {"13x13 on 13x13", 20, 13, 13, 13, 1, 6},
    {"2x2, stride 1, one long row", 16, 9, 10, 2, 1, 0},
    {"3x3, stride 1, edges on both sides of a long row", 24, 8, 12, 3, 1, 1},
    {"no window lies wholly on the picture", 16, 4, 4, 7, 1, 3},
    {"a slice of channels", 16, 9, 9, 3, 1, 1, 5},
    {"stride larger than the window", 4, 11, 11, 2, 3, 0},
};

class MaxPool : public OnEachTarget {};

TEST_P(MaxPool, EqualsPlainLoops) {
    for (const PoolCase& c : pool_cases) {
        SCOPED_TRACE(c.why);
        const auto out = [&](uint32_t in) {
            return static_cast<uint32_t>((in + 2 * c.pad - c.kernel) / c.stride + 1);
        };
        const PoolShape s{c.height, c.width,  out(c.height), out(c.width), c.channels, c.kernel,
                          c.kernel, c.stride, c.stride,      c.pad,        c.pad};
        const size_t pixel = c.channels + c.extra, in_row = pixel * c.width + c.extra,
                     out_row = pixel * s.out_width + c.extra;
        std::vector<bf16> src16, got16;
        std::vector<float> src;
        for (const float x : numbers(in_row * c.height, 3)) {
            src16.push_back({static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)});
            src.push_back(to_float(src16.back()));
        }
        std::vector<float> got(out_row * s.out_height, 77), want = got;
        got16.resize(got.size(), {static_cast<uint16_t>(std::bit_cast<uint32_t>(77.0F) >> 16)});
        max_pool_ref(s, {src.data(), in_row, pixel}, {want.data(), out_row, pixel});
        const auto run = [&](Element element, const void* from, void* to) {
            PoolShape own = s;
            own.element = element;
            const size_t half = s.out_height / 2, size = max_pool_scratch_size(own);
            std::vector<std::byte> scratch(size + 1, std::byte{55});
            for (const auto& [first, last] : {std::pair(size_t{0}, half), {half, s.out_height}})
                max_pool_rows(own, {from, in_row, pixel}, {to, out_row, pixel}, scratch.data(),
                              first, last);
            EXPECT_EQ(scratch[size], std::byte{55});
        };
        run(Element::f32, src.data(), got.data());
        EXPECT_EQ(got, want);  // bytes between pixels too
        run(Element::bf16, src16.data(), got16.data());
        std::ranges::transform(got16, got.begin(), to_float);
        EXPECT_EQ(got, want);
        std::vector<uint8_t> src8, got8(got.size(), 77);
        for (float& x : src) {
            src8.push_back(static_cast<uint8_t>(128 + 40 * x));
            x = src8.back();
        }
        max_pool_ref(s, {src.data(), in_row, pixel}, {want.data(), out_row, pixel});
        run(Element::u8, src8.data(), got8.data());
        EXPECT_EQ(std::vector<float>(got8.begin(), got8.end()), want);
    }
}
VARTML_ON_EACH_TARGET(MaxPool);

class Softmax : public OnEachTarget {};

TEST_P(Softmax, IsWithinTheBoundOfTheContract) {
    for (const size_t count : {1, 2, 3, 4, 7, 16, 21, 33, 1000}) {
        for (const float range : {1.0F, 20.0F, 3e4F}) {
            const size_t rows = count < 100 ? 37 : 3;
            const auto src = numbers(rows * count, range);
            std::vector<float> got(src.size() + 1, 77), want(src.size());
            softmax_rows(src.data(), got.data(), rows, count);
            softmax_rows_ref(src.data(), want.data(), rows, count);
            for (size_t i = 0; i < want.size(); ++i) {
                const auto row = src.begin() + static_cast<ptrdiff_t>(i / count * count);
                const double below =
                    *std::max_element(row, row + static_cast<ptrdiff_t>(count)) - src[i];
                ASSERT_NEAR(got[i], want[i],
                            std::max((2e-6 + 2e-7 * below) * static_cast<double>(want[i]), 1e-35))
                    << count << " in a row, element " << i;
            }
            EXPECT_EQ(got.back(), 77);
        }
    }
}

TEST_P(Softmax, GivesNothingToWhatIsMaskedOut) {
    constexpr float out = -std::numeric_limits<float>::infinity();
    std::vector<float> row{1, out, 1, out, out};
    softmax_rows(row.data(), row.data(), 1, row.size());
    EXPECT_FLOAT_EQ(row[0], 0.5F);
    EXPECT_FLOAT_EQ(row[2], 0.5F);
    for (const size_t i : {1, 3, 4}) EXPECT_LT(row[i], 1e-35F);
}

// Wherever it is, in few classes and many.
TEST_P(Softmax, IsNanWhereARowHasOne) {
    for (const size_t count : {3, 21, 100}) {
        for (const size_t at : {size_t{0}, count / 2, count - 1}) {
            for (const uint32_t bits : {0x7FC00000u, 0x7FC00001u, 0xFFFFFFFFu}) {
                std::vector<float> rows = numbers(3 * count, 5);
                rows[count + at] = std::bit_cast<float>(bits);
                softmax_rows(rows.data(), rows.data(), 3, count);
                for (size_t i = 0; i < rows.size(); ++i)
                    ASSERT_EQ(std::isnan(rows[i]), i / count == 1) << count << ", NaN at " << at;
            }
        }
    }
}
VARTML_ON_EACH_TARGET(Softmax);

}  // namespace
}  // namespace vartml::kernels
