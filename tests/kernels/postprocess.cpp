// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/postprocess/masks.h"
#include "kernels/postprocess/overlap.h"
#include "kernels/postprocess/pixels.h"
#include "kernels/postprocess/scores.h"
#include "tests/kernels/targets.h"

using namespace vartml::kernels;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

struct Shape {
    size_t positions, classes;
};
// Around a vector, around the block of positions that the kernel keeps in cache, and the shape of a
// real head.
const Shape shapes[] = {{0, 1},     {1, 1},     {7, 1},     {16, 1},  {17, 3},
                        {64, 2},    {33, 80},   {31, 81},   {100, 4}, {2047, 5},
                        {2048, 16}, {2049, 17}, {2500, 21}, {4096, 1}};
constexpr StoredType types[] = {StoredType::f32, StoredType::bf16, StoredType::f16, StoredType::i8,
                                StoredType::u8,  StoredType::i16,  StoredType::u16};

// Random bit patterns: every value of a type occurs, NaN and infinities included.
std::vector<uint8_t> random_bytes(size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
}

class Postprocess : public OnEachTarget {};

std::vector<uint32_t> run(size_t (*kernel)(const Scores&, float, uint32_t*), const Scores& scores,
                          float threshold) {
    std::vector<uint32_t> found(scores.positions + 1, 0xdeadbeef);
    const size_t count = kernel(scores, threshold, found.data());
    EXPECT_EQ(found.back(), 0xdeadbeef) << "wrote past the end";
    found.resize(count);
    return found;
}

TEST_P(Postprocess, FindsThePositionsOfTheReference) {
    unsigned seed = 0;
    for (const Shape& shape : shapes) {
        for (const StoredType type : types) {
            const size_t size = size_bytes(type), extra = 3;
            // Columns (positions side by side), rows (classes side by side), and neither.
            const size_t strides[][2] = {{size, (shape.positions + extra) * size},
                                         {(shape.classes + extra) * size, size},
                                         {(2 * shape.classes + 1) * size, 2 * size}};
            for (const auto& [position_stride, class_stride] : strides) {
                const size_t bytes = (shape.positions + extra) * position_stride +
                                     (shape.classes + extra) * class_stride;
                const auto data = random_bytes(bytes, ++seed);
                Scores scores{data.data(),   {type, 0.01f, 3}, shape.positions,
                              shape.classes, position_stride,  class_stride};
                for (const float threshold : {0.f, 0.25f, 1.f, 300.f, -inf, 1e38f}) {
                    ASSERT_EQ(run(positions_above, scores, threshold),
                              run(positions_above_ref, scores, threshold))
                        << "type " << int(type) << " " << shape.positions << "x" << shape.classes
                        << " strides " << position_stride << " " << class_stride << " threshold "
                        << threshold << " seed " << seed;
                }
            }
        }
    }
}

// Scores as a head has them: most are small, a few pass, a few are not finite.
TEST_P(Postprocess, FindsFewPositionsAmongMany) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> small(0, 0.2f);
    const size_t positions = 8400, classes = 80;
    std::vector<float> data(positions * classes);
    for (float& value : data) value = small(random);
    data[79 * positions + 8399] = 0.9f;
    data[0 * positions + 0] = 0.25f;
    data[41 * positions + 4000] = nan;
    data[42 * positions + 4001] = -nan;
    data[5 * positions + 2048] = -inf;
    data[6 * positions + 2047] = inf;
    const Scores scores{data.data(), {}, positions, classes, 4, positions * 4};
    EXPECT_EQ(run(positions_above, scores, 0.25f),
              (std::vector<uint32_t>{0, 2047, 2048, 4000, 4001, 8399}));
    EXPECT_EQ(best_class(scores, 8399).class_id, 79);
    EXPECT_EQ(best_class(scores, 8399).score, 0.9f);
    EXPECT_FALSE(best_class(scores, 2048).finite);
    EXPECT_FALSE(best_class(scores, 4000).finite);
}

TEST_P(Postprocess, CutsMasksAsTheReference) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> value(-1, 1);
    // Around one and two vectors, and strides of planes, of padded planes and of pixels.
    for (const size_t columns : {1u, 3u, 8u, 15u, 16u, 31u, 32u, 33u, 70u}) {
        for (const size_t channels : {1u, 5u, 32u}) {
            for (const bool planes : {true, false}) {
                const size_t rows = 3, stride = planes ? columns + 2 : columns * channels;
                std::vector<float> maps(channels * (rows + 1) * (columns + 2)), weights(channels);
                for (float& v : maps) v = value(random);
                for (float& v : weights) v = value(random);
                maps[1] = nan;
                const WeightedMaps m{maps.data(), weights.data(),
                                     channels,    planes ? rows * stride : 1,
                                     stride,      planes ? 1 : channels};
                for (const float threshold : {0.f, 0.4f, -inf, inf}) {
                    std::vector<uint8_t> got(rows * columns + 1, 77), want(got);
                    mask_above(m, rows, columns, threshold, got.data());
                    mask_above_ref(m, rows, columns, threshold, want.data());
                    ASSERT_EQ(got, want) << columns << " columns, " << channels << " channels";
                    EXPECT_EQ(got.back(), 77);
                }
            }
        }
    }
}

TEST_P(Postprocess, DecidesOverlapAsTheReference) {
    std::mt19937 random(2);
    std::uniform_int_distribution<int> corner(0, 12),
        side(-1, 8);  // whole numbers: exact ties occur
    for (const size_t count : {0u, 1u, 3u, 15u, 16u, 17u, 100u}) {
        for (int repeat = 0; repeat < 200; ++repeat) {
            std::vector<float> columns[5];
            std::vector<int32_t> groups;
            const auto box = [&] {
                GroupedBox b{};
                b.x0 = static_cast<float>(corner(random)),
                b.y0 = static_cast<float>(corner(random));
                b.x1 = b.x0 + static_cast<float>(side(random));
                b.y1 = b.y0 + static_cast<float>(side(random));
                b.area = (b.x1 - b.x0) * (b.y1 - b.y0);
                b.group = corner(random) % 3;
                return b;
            };
            for (size_t i = 0; i < count; ++i) {
                const GroupedBox b = box();
                const float values[] = {b.x0, b.y0, b.x1, b.y1, b.area};
                for (int k = 0; k < 5; ++k) columns[k].push_back(values[k]);
                groups.push_back(b.group);
            }
            const BoxColumns boxes{columns[0].data(),
                                   columns[1].data(),
                                   columns[2].data(),
                                   columns[3].data(),
                                   columns[4].data(),
                                   groups.data(),
                                   count};
            const GroupedBox probe = box();
            for (const float threshold : {0.f, 0.25f, 0.5f, 1.f}) {
                ASSERT_EQ(overlaps_any(boxes, probe, threshold),
                          overlaps_any_ref(boxes, probe, threshold));
            }
        }
    }
}

// Values around a range, with some that are no numbers.
std::vector<float> values_around(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(-2, 3);
    std::vector<float> values(count);
    for (float& v : values) v = value(random);
    for (size_t i = 0; i < count; i += 7 + random() % 9) {
        const float odd[] = {nan, inf, -inf, 3e38f, -3e38f, 0, -0.f};
        values[i] = odd[random() % 7];
    }
    return values;
}

TEST_P(Postprocess, MakesTheBytesOfTheReference) {
    constexpr ByteScale scales[] = {{0, 255, 255, 0},
                                    {-1, 127.5f, 255, 0},
                                    {0.25f, 219, 219, 16},
                                    {2, -100, 255, 0},
                                    {0, 3e38f, 255, 0}};
    unsigned seed = 0;
    for (const size_t count : {0, 1, 7, 16, 31, 32, 33, 64, 129, 1000}) {
        for (const ByteScale& scale : scales) {
            const auto values = values_around(count, ++seed);
            std::vector<uint8_t> bytes(count + 1, 0xee), wanted = bytes;
            EXPECT_EQ(to_bytes(values.data(), count, scale, bytes.data()),
                      to_bytes_ref(values.data(), count, scale, wanted.data()));
            EXPECT_EQ(bytes, wanted) << count << " from " << scale.zero;
        }
    }
}

TEST_P(Postprocess, MakesThePixelsOfTheReference) {
    const std::array<ByteScale, 3> scales = {
        {{0, 255, 255, 0}, {-1, 127.5f, 255, 0}, {0.25f, 219, 219, 16}}};
    for (const size_t count : {0, 1, 7, 16, 31, 32, 33, 64, 129, 1000}) {
        const auto values = values_around(3 * count, static_cast<unsigned>(count));
        const std::array<const float*, 3> planes = {values.data(), values.data() + count,
                                                    values.data() + 2 * count};
        std::vector<uint8_t> pixels(3 * count + 1, 0xee), wanted = pixels;
        EXPECT_EQ(to_pixels(planes, count, scales, pixels.data()),
                  to_pixels_ref(planes, count, scales, wanted.data()));
        EXPECT_EQ(pixels, wanted) << count;
    }
}

TEST_P(Postprocess, FindsTheRangeOfTheReference) {
    for (const size_t count : {0, 1, 7, 16, 31, 32, 33, 64, 129, 1000}) {
        const auto values = values_around(count, static_cast<unsigned>(count));
        const ValueRange found = range_of(values.data(), count);
        const ValueRange wanted = range_of_ref(values.data(), count);
        EXPECT_EQ(found.least, wanted.least) << count;
        EXPECT_EQ(found.greatest, wanted.greatest) << count;
    }
    const std::vector<float> none(40, nan);
    EXPECT_EQ(range_of(none.data(), none.size()).least, inf);
}

VARTML_ON_EACH_TARGET(Postprocess);

TEST(Bytes, AreRoundedToTheNearestAndClamped) {
    const float values[] = {-1, 0, 0.5f / 255, 1.5f / 255, 0.5f, 1, 2, nan, inf};
    uint8_t bytes[9];
    EXPECT_EQ(to_bytes_ref(values, 9, {0, 255, 255, 0}, bytes), 2u);
    const uint8_t wanted[] = {0, 0, 0, 2, 128, 255, 255, 0, 0};  // halves go to even numbers
    EXPECT_EQ(std::memcmp(bytes, wanted, 9), 0);
}

TEST(LeastAbove, IsTheFirstStoredValueThatPasses) {
    for (const float scale : {1 / 255.f, 0.007f, 1.f, 1e-6f}) {
        for (const int zero_point : {-128, 0, 5, 127}) {
            for (const float threshold : {0.f, 0.25f, 0.3f, 0.999f, 1.f, 500.f, -1.f}) {
                const Stored stored{StoredType::i8, scale, zero_point};
                int want = 128;
                for (int q = 127; q >= -128; --q) {
                    if (static_cast<float>(q - zero_point) * scale >= threshold) want = q;
                }
                EXPECT_EQ(least_above(stored, threshold), want) << scale << " " << threshold;
            }
        }
    }
}

TEST(Load, ReadsHalfPrecision) {
    // IEEE 754: sign, 5 bits of exponent with bias 15, 10 bits of fraction.
    const struct {
        uint16_t bits;
        float value;
    } cases[] = {{0x3c00, 1},        {0xc000, -2},       {0x7bff, 65504},
                 {0x0400, 0x1p-14f}, {0x0001, 0x1p-24f}, {0x3555, 0.333251953125f},
                 {0x8000, -0.f},     {0x7c00, inf}};
    for (const auto& [bits, value] : cases) {
        EXPECT_EQ(load({StoredType::f16}, &bits), value);
    }
    const uint16_t not_a_number = 0x7e00;
    EXPECT_TRUE(std::isnan(load({StoredType::f16}, &not_a_number)));
}

}  // namespace
