// SPDX-License-Identifier: Apache-2.0
// Rows of elements: copies and arithmetic, also of rows that are shorter than a vector.
#include "kernels/ops/rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/ops/elementwise.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

struct Case {
    const char* why;
    size_t columns;
    ptrdiff_t src_row, dst_row;
};
constexpr size_t rows = 37;
const Case cases[] = {
    {"one element", 1, 3, 2},
    {"pairs, dense", 2, 2, 2},
    {"pairs out of wider rows", 2, 4, 8},
    {"pairs, one source row for all", 2, 0, 2},
    {"three", 3, 4, 5},
    {"quads beside quads", 4, 4, 8},
    {"quads from the last to the first", 4, -4, 4},
    {"six: the padding of pairs", 6, 8, 8},
    {"a vector and a half", 24, 30, 24},
    {"three, dense", 3, 3, 3},
    {"a vector, dense", 16, 16, 16},
};

class Rows : public OnEachTarget {
protected:
    // Enough for any row of a case, on either side of the first.
    static constexpr size_t middle = rows * 32, size = 2 * middle;
    std::vector<float> numbers() {
        std::uniform_real_distribution<float> uniform(0.5, 2);
        std::vector<float> v(size);
        for (float& x : v) x = uniform(random_);
        return v;
    }

private:
    std::mt19937 random_{3};
};

// Where rows begin whose elements are of either type.
const void* first_of(const std::vector<float>& floats, const std::vector<bf16>& halves, Element e,
                     size_t at) {
    return e == Element::f32 ? static_cast<const void*>(floats.data() + at) : halves.data() + at;
}

TEST_P(Rows, ComputeWhatPlainLoopsDoAndNothingBeside) {
    using enum Element;
    struct Types {
        Element a, b, dst;
    };
    constexpr Types types[] = {{f32, f32, f32},   {bf16, bf16, bf16}, {bf16, f32, bf16},
                               {f32, bf16, bf16}, {bf16, bf16, f32},  {f32, f32, bf16}};
    const auto a = numbers(), b = numbers();
    std::vector<kernels::bf16> a_halves(a.size()), b_halves(b.size());
    convert_row(a.data(), a_halves.data(), a.size());
    convert_row(b.data(), b_halves.data(), b.size());
    for (const Case& c : cases) {
        for (size_t i = 0; i < 8 * std::size(types) * 3; ++i) {
            const auto op = static_cast<Binary>(i % 8);
            const Types& t = types[i / 8 % std::size(types)];
            const size_t which = i / 8 / std::size(types);
            const size_t stride = which > 0;                    // of b: one value for a row, or not
            const ptrdiff_t next = which == 2 ? 0 : c.dst_row;  // one row for all
            SCOPED_TRACE(testing::Message() << c.why << ", operator " << i % 8 << ", types "
                                            << i / 8 % std::size(types) << ", b " << stride);
            std::vector<float> got(size, 77), want = got;
            const OperandRows left{first_of(a, a_halves, t.a, middle), c.src_row, 1, t.a};
            const OperandRows right{first_of(b, b_halves, t.b, middle), next, stride, t.b};
            binary_rows(op, left, right, {got.data(), c.dst_row, t.dst}, rows, c.columns);
            binary_rows_ref(op, left, right, {want.data(), c.dst_row, t.dst}, rows, c.columns);
            ASSERT_EQ(std::memcmp(got.data(), want.data(), size * sizeof(float)), 0);
            // The other way around.
            binary_rows(op, right, left, {got.data(), c.dst_row, t.dst}, rows, c.columns);
            binary_rows_ref(op, right, left, {want.data(), c.dst_row, t.dst}, rows, c.columns);
            ASSERT_EQ(std::memcmp(got.data(), want.data(), size * sizeof(float)), 0);
        }
    }
}

TEST_P(Rows, RoundToNearestEvenAndKeepWhatIsNoNumber) {
    using enum Element;
    constexpr float inf = std::numeric_limits<float>::infinity();
    // 1 + 2^-8 lies between two numbers of bf16, of which the first is even; 1 + 3·2^-8 likewise.
    const std::vector<float> a = {1.00390625F, 1.01171875F, std::nanf(""), inf,
                                  -inf,        0x1p-133F,   3.4e38F};
    const std::vector<float> want = {1.0F, 1.015625F, std::nanf(""), inf, -inf, 0x1p-133F, inf};
    const float zero = 0;
    for (size_t shift = 0; shift < a.size(); ++shift) {
        std::vector<float> src(37), back(37);
        std::vector<kernels::bf16> got(37);
        for (size_t i = 0; i < src.size(); ++i) src[i] = a[(i + shift) % a.size()];
        binary_rows(Binary::add, {src.data(), 0, 1}, {&zero, 0, 0}, {got.data(), 0, bf16}, 1, 37);
        convert_row(got.data(), back.data(), 37);
        for (size_t i = 0; i < src.size(); ++i) {
            const float expected = want[(i + shift) % a.size()];
            if (std::isnan(expected))
                EXPECT_TRUE(std::isnan(back[i]));
            else
                EXPECT_EQ(back[i], expected) << i;
        }
    }
}

template <typename Src, typename Dst, typename Convert>
void expect_copies(const std::vector<Src>& src, size_t middle, const Convert& convert) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        std::vector<Dst> got(src.size(), Dst{}), want = got;
        for (size_t r = 0; r < rows; ++r)
            for (size_t i = 0; i < c.columns; ++i) {
                const auto row = static_cast<ptrdiff_t>(r), at = static_cast<ptrdiff_t>(middle + i);
                want[static_cast<size_t>(row * c.dst_row) + i] =
                    convert(src[static_cast<size_t>(at + row * c.src_row)]);
            }
        copy_rows(src.data() + middle, c.src_row, got.data(), c.dst_row, rows, c.columns);
        for (size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(Dst)), 0) << "element " << i;
    }
}

TEST_P(Rows, AreCopiedAndConvertedOneByOne) {
    const auto floats = numbers();
    expect_copies<float, float>(floats, middle, [](float x) { return x; });
    std::vector<bf16> halves(size);
    for (size_t i = 0; i < size; ++i)
        halves[i].bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(floats[i]) >> 16);
    expect_copies<bf16, float>(halves, middle, [](bf16 x) {
        return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
    });
    std::vector<fp16> others(size);
    for (size_t i = 0; i < size; ++i)
        others[i].bits = std::bit_cast<uint16_t>(static_cast<_Float16>(floats[i]));
    const auto to_fp16 = [](float x) {
        return fp16{std::bit_cast<uint16_t>(static_cast<_Float16>(x))};
    };
    expect_copies<float, fp16>(floats, middle, to_fp16);
    expect_copies<bf16, fp16>(halves, middle, [&](bf16 x) {
        return to_fp16(std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16));
    });
    expect_copies<fp16, bf16>(others, middle, [](fp16 x) {
        const auto value = static_cast<float>(std::bit_cast<_Float16>(x.bits));
        const auto bits = std::bit_cast<uint32_t>(value);
        return bf16{static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
    });
}

template <typename T>
void expect_interleaved() {
    for (const size_t channels : {1, 2, 3, 4, 5}) {
        for (const size_t count : {1, 2, 7, 8, 15, 16, 31, 32, 33, 58, 100}) {
            SCOPED_TRACE(testing::Message() << channels << " x " << count);
            std::vector<T> src(channels * count), found(channels * count + 1, 77), expected(found);
            for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i * 2654435761U);
            copy_tile(src.data(), 1, static_cast<ptrdiff_t>(count), found.data(),
                      static_cast<ptrdiff_t>(channels), count, channels);
            for (size_t i = 0; i < count; ++i)
                for (size_t c = 0; c < channels; ++c)
                    expected[i * channels + c] = src[c * count + i];
            ASSERT_EQ(found, expected);
        }
    }
}

TEST_P(Rows, OfFewChannelsAreInterleaved) {
    expect_interleaved<uint8_t>();
    expect_interleaved<uint16_t>();
    expect_interleaved<uint32_t>();
    expect_interleaved<uint64_t>();
}

TEST_P(Rows, OfPixelsAreBlendedAsOneByOne) {
    const auto src = numbers();
    for (const size_t channels : {1, 2, 3, 4, 5, 7, 8, 16, 24, 37}) {
        SCOPED_TRACE(channels);
        const std::vector<int64_t> first{0, 3, 1, 9, 2}, second{1, 3, 2, 8, 0};
        const std::vector<float> weight{0, 1, 0.25F, 0.7F, 0.5F};
        std::vector<float> got(5 * channels + 1, 77), want = got;
        blend_pixels(src.data(), first.data(), second.data(), weight.data(), channels, got.data(),
                     5);
        for (size_t x = 0; x < 5; ++x)
            for (size_t c = 0; c < channels; ++c)
                want[x * channels + c] =
                    (1 - weight[x]) * src[static_cast<size_t>(first[x]) * channels + c] +
                    weight[x] * src[static_cast<size_t>(second[x]) * channels + c];
        for (size_t i = 0; i < got.size(); ++i) ASSERT_FLOAT_EQ(got[i], want[i]) << i;
    }
}

TEST_P(Rows, OfSomeElementsAreSummedByTheirWeights) {
    const auto src = numbers();
    const std::vector<float> weights{0.5F, -0.25F, 2, 1, 0.125F};
    for (const size_t count : {0, 1, 4, 5}) {
        for (const size_t columns : {1, 3, 12, 16, 37}) {
            SCOPED_TRACE(testing::Message() << count << " rows of " << columns);
            std::vector<const float*> from;
            std::vector<float> got(columns + 1, 77), want(columns + 1, 77);
            for (size_t k = 0; k < count; ++k) from.push_back(src.data() + 50 * k);
            for (size_t i = 0; i < columns; ++i) {
                want[i] = 0;
                for (size_t k = 0; k < count; ++k) want[i] += weights[k] * from[k][i];
            }
            weighted_sum(from.data(), weights.data(), count, got.data(), columns);
            for (size_t i = 0; i <= columns; ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
        }
    }
}

VARTML_ON_EACH_TARGET(Rows);

}  // namespace
}  // namespace vartml::kernels
