// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "hwy/targets.h"
#include "kernels/layout/cast.h"
#include "kernels/layout/interleave.h"
#include "kernels/layout/pack.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

constexpr size_t guard_bytes = 80;
using Bytes = std::vector<uint8_t>;

Bytes random_bytes(size_t size, uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(size);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    return bytes;
}

// Below, at and above the vectors of every instruction set.
const size_t lengths[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 300};

class Layout : public OnEachTarget {};

TEST_P(Layout, CastsEqualTheReference) {
    for (int kind = 0; kind <= static_cast<int>(CastKind::u16_f32); ++kind) {
        for (const bool truncate : {false, true}) {
            const Cast cast{static_cast<CastKind>(kind), 0.37f, 3, truncate};
            const auto [src_bytes, dst_bytes] = cast_bytes(cast.kind);
            for (const size_t n : lengths) {
                const size_t src_stride = n * src_bytes + 5, dst_stride = (n + 3) * dst_bytes + 7;
                Bytes src = random_bytes(3 * src_stride, static_cast<uint32_t>(n));
                Bytes want(3 * dst_stride + guard_bytes, 0xa5), got = want;
                cast_rows_ref(cast, src.data(), src_stride, want.data(), dst_stride, 3, n, 3);
                cast_rows(cast, src.data(), src_stride, got.data(), dst_stride, 3, n, 3);
                ASSERT_EQ(got, want) << "kind " << kind << " count " << n;
            }
        }
    }
}

// Every bf16 pattern followed by bits around the rounding points: all the special cases of every
// conversion from float.
TEST_P(Layout, CastsOfEveryMagnitudeEqualTheReference) {
    std::vector<uint32_t> src;
    for (uint32_t top = 0; top < 0x10000; ++top)
        for (const uint32_t low :
             {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001})
            src.push_back(top << 16 | low);
    for (const CastKind kind : {CastKind::f32_bf16, CastKind::f32_f16, CastKind::f32_i8,
                                CastKind::f32_u8, CastKind::f32_i16, CastKind::f32_u16}) {
        for (const float scale : {0.0625f, 0.0613f, 0x1p126f, 0x1p-126f}) {
            const Cast cast{kind, scale, 11, false};
            Bytes want(src.size() * 2), got(src.size() * 2);
            cast_rows_ref(cast, src.data(), 0, want.data(), 0, 1, src.size(), 0);
            cast_rows(cast, src.data(), 0, got.data(), 0, 1, src.size(), 0);
            ASSERT_TRUE(got == want) << static_cast<int>(kind);
        }
    }
}

TEST_P(Layout, InterleavingEqualsTheReference) {
    for (const size_t word : {1, 2, 4, 8}) {
        for (const size_t block : {1, 2, 3, 4, 5, 8, 16, 21, 33}) {
            for (const size_t channels : {size_t{1}, block / 2, block - 1, block}) {
                if (channels == 0) continue;
                for (const size_t pixels : lengths) {
                    const size_t plane = pixels * word + 9;
                    const Bytes planes = random_bytes(channels * plane, 7);
                    Bytes want(pixels * block * word + guard_bytes, 0xa5), got = want;
                    planes_to_pixels_ref(word, planes.data(), plane, channels, pixels, want.data(),
                                         block);
                    planes_to_pixels(word, planes.data(), plane, channels, pixels, got.data(),
                                     block);
                    ASSERT_EQ(got, want)
                        << word << " " << block << " " << channels << " " << pixels;

                    Bytes want_back(channels * plane + guard_bytes, 0x5a), got_back = want_back;
                    pixels_to_planes_ref(word, want.data(), block, channels, pixels,
                                         want_back.data(), plane);
                    pixels_to_planes(word, want.data(), block, channels, pixels, got_back.data(),
                                     plane);
                    ASSERT_EQ(got_back, want_back)
                        << word << " " << block << " " << channels << " " << pixels;
                    for (size_t c = 0; c < channels; ++c)
                        ASSERT_TRUE(std::equal(planes.begin() + c * plane,
                                               planes.begin() + c * plane + pixels * word,
                                               got_back.begin() + c * plane));
                }
            }
        }
    }
}

TEST_P(Layout, RepackingEqualsTheReference) {
    struct {
        size_t src_step, dst_step, channels, fill;
    } const cases[] = {{3, 4, 3, 4}, {4, 3, 3, 3},     {1, 4, 1, 4},    {4, 1, 1, 1},
                       {8, 8, 8, 8}, {85, 8, 8, 8},    {85, 8, 5, 8},   {8, 85, 8, 8},
                       {3, 8, 3, 8}, {16, 20, 16, 16}, {20, 16, 4, 16}, {1, 1, 1, 1},
                       {7, 1, 1, 1}};
    for (const size_t word : {1, 2, 4, 8}) {
        for (const auto& c : cases) {
            for (const size_t pixels : lengths) {
                const Bytes src = random_bytes(pixels * c.src_step * word, 7);
                Bytes want(pixels * c.dst_step * word + guard_bytes, 0xa5), got = want;
                pixels_to_pixels_ref(word, src.data(), c.src_step, want.data(), c.dst_step,
                                     c.channels, c.fill, pixels);
                pixels_to_pixels(word, src.data(), c.src_step, got.data(), c.dst_step, c.channels,
                                 c.fill, pixels);
                ASSERT_EQ(got, want)
                    << word << " " << c.src_step << " " << c.dst_step << " " << pixels;
            }
        }
    }
}

// Floats among which are all special values, at sizes around the vectors.
TEST_P(Layout, PackingEqualsTheReference) {
    const CastKind kinds[][2] = {{CastKind::f32_i8, CastKind::i8_f32},
                                 {CastKind::f32_u8, CastKind::u8_f32},
                                 {CastKind::f32_bf16, CastKind::bf16_f32}};
    std::mt19937 random(7);
    std::vector<float> special = {0.5f,     -0.5f,     1.5f,      2.5f,      -2.5f, 1e30f,
                                  -1e30f,   INFINITY,  -INFINITY, NAN,       -NAN,  1e-40f,
                                  127.499f, -128.501f, 0x1p31f,   0x1.8p23f, -0.0f, 3.40282e38f};
    for (const auto& [there, back] : kinds) {
        for (const size_t block : {4, 8, 16}) {
            for (const size_t channels : {size_t{1}, block / 2 + 1, block - 1, block}) {
                for (const size_t pixels : lengths) {
                    for (const float scale : {0.0625f, 0.37f}) {
                        const Cast cast{there, scale, there == CastKind::f32_u8 ? 131 : -3, false};
                        ASSERT_TRUE(can_pack(cast, block));
                        constexpr size_t rows = 3;
                        const size_t plane = rows * pixels * 4 + 8;
                        const size_t row = pixels * block * cast_bytes(there).dst + 12;
                        const BlockRows blocks{rows, pixels, row, block};
                        Bytes planes(channels * plane);
                        for (size_t at = 0; at + 4 <= planes.size(); at += 4) {
                            const auto r = random();
                            const float x = r % 4 == 0 ? special[r / 4 % special.size()]
                                                       : static_cast<float>(r % 4096) / 50 - 40;
                            std::memcpy(planes.data() + at, &x, 4);
                        }
                        Bytes want(rows * row + guard_bytes, 0xa5), got = want;
                        pack_planes_ref(cast, planes.data(), plane, channels, want.data(), blocks);
                        pack_planes(cast, planes.data(), plane, channels, got.data(), blocks);
                        ASSERT_EQ(got, want) << block << " " << channels << " " << pixels;

                        const Cast cast_back{back, scale, cast.zero_point, false};
                        ASSERT_TRUE(can_pack(cast_back, block));
                        Bytes want_back(channels * plane + guard_bytes, 0x5a), got_back = want_back;
                        unpack_planes_ref(cast_back, want.data(), blocks, channels,
                                          want_back.data(), plane);
                        unpack_planes(cast_back, want.data(), blocks, channels, got_back.data(),
                                      plane);
                        ASSERT_EQ(got_back, want_back) << block << " " << channels << " " << pixels;
                    }
                }
            }
        }
    }
}

VARTML_ON_EACH_TARGET(Layout);

// The compiler's own types are the oracle of the reference.
TEST(LayoutReference, HalvesAreThoseOfTheCompiler) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const auto want = static_cast<float>(std::bit_cast<_Float16>(half));
        float got = 0;
        cast_rows_ref({.kind = CastKind::f16_f32}, &half, 0, &got, 0, 1, 1, 0);
        if (std::isnan(want))
            ASSERT_TRUE(std::isnan(got));
        else
            ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
                << std::hex << bits;
        // And back, together with both neighbours of the middle to the next half.
        if (std::isnan(want) || std::isinf(want)) continue;
        const float next =
            static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits + 1)));
        const float middle = std::isinf(next) ? std::copysign(65520.0f, want) : (want + next) / 2;
        for (const float x :
             {want, middle, std::nextafter(middle, want), std::nextafter(middle, next)}) {
            uint16_t back = 0;
            cast_rows_ref({.kind = CastKind::f32_f16}, &x, 0, &back, 0, 1, 1, 0);
            ASSERT_EQ(back, std::bit_cast<uint16_t>(static_cast<_Float16>(x))) << x;
        }
    }
}

}  // namespace
}  // namespace vartml::kernels
