// SPDX-License-Identifier: Apache-2.0
// Codes of 8 bits against plain loops, on every instruction set.
#include "kernels/ops/codes.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/ops/rows.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

// Below, at and around the vectors of all instruction sets.
constexpr size_t counts[] = {1, 3, 15, 16, 17, 58, 63, 64, 65, 300};

const Coding codings[] = {
    {0.05F, 120, false}, {0.05F, 0, false}, {0.3F, -7, true}, {1.0F, 0, true}, {0.01F, 127, true}};

std::vector<uint8_t> random_codes(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> codes(count);
    for (uint8_t& c : codes) c = static_cast<uint8_t>(random());
    return codes;
}

class CodesOf : public OnEachTarget {};

TEST_P(CodesOf, QuantisesToNearestEvenAndSaturates) {
    for (const Coding& to : codings) {
        std::vector<float> reals = {nan, inf, -inf, 0, 1e30F, -1e30F};
        for (int i = -600; i < 600; ++i) reals.push_back(static_cast<float>(i) * to.scale / 2);
        for (const size_t count : counts) reals.push_back(static_cast<float>(count) * 0.37F);
        std::vector<uint8_t> found(reals.size()), expected(reals.size());
        quantise_row(reals.data(), to, found.data(), reals.size());
        quantise_row_ref(reals.data(), to, expected.data(), reals.size());
        EXPECT_EQ(found, expected);
        EXPECT_EQ(found[0], static_cast<uint8_t>(to.zero));
        EXPECT_EQ(found[1], to.is_signed ? 127 : 255);
    }
}

TEST_P(CodesOf, RequantisesSums) {
    for (const Coding& to : codings) {
        for (const size_t count : counts) {
            std::vector<float> sums(count), scales(count), bias(count);
            for (size_t i = 0; i < count; ++i) {
                sums[i] = static_cast<float>(static_cast<int>(i * 7919 % 4001) - 2000);
                scales[i] = 0.01F + static_cast<float>(i) * 0.001F;
                bias[i] = static_cast<float>(i % 5) - 2.5F;
            }
            std::vector<uint8_t> found(count), expected(count);
            requantise_row(sums.data(), scales.data(), bias.data(), to, found.data(), count);
            requantise_row_ref(sums.data(), scales.data(), bias.data(), to, expected.data(), count);
            EXPECT_EQ(found, expected);
        }
    }
}

TEST_P(CodesOf, Widens) {
    for (const uint8_t zero : {0, 7, 128, 255}) {
        for (const size_t count : counts) {
            const auto codes = random_codes(count, 1);
            std::vector<int16_t> found(count + 1, 77), expected(count + 1, 77);
            widen_row(codes.data(), zero, found.data(), count);
            widen_row_ref(codes.data(), zero, expected.data(), count);
            EXPECT_EQ(found, expected);
        }
    }
}

TEST_P(CodesOf, DequantisesExactly) {
    for (const Coding& from : codings) {
        for (const size_t count : counts) {
            const auto codes = random_codes(count, 1);
            std::vector<float> found(count), expected(count);
            dequantise_row(codes.data(), from, found.data(), count);
            dequantise_row_ref(codes.data(), from, expected.data(), count);
            EXPECT_EQ(found, expected);
        }
    }
}

TEST_P(CodesOf, AddsAndMultiplies) {
    for (const CodeBinary op : {CodeBinary::add, CodeBinary::mul}) {
        for (const Coding& a : codings) {
            for (const Coding& b : codings) {
                const auto x = random_codes(300, 2), y = random_codes(300, 3);
                const Coding to{0.07F, 3, a.is_signed};
                for (const size_t count : counts) {
                    std::vector<uint8_t> found(count), expected(count);
                    binary_codes(op, {x.data(), a}, {y.data(), b}, found.data(), to, count);
                    binary_codes_ref(op, {x.data(), a}, {y.data(), b}, expected.data(), to, count);
                    EXPECT_EQ(found, expected);
                }
            }
        }
    }
}

TEST_P(CodesOf, LooksUpInTables) {
    const auto table = random_codes(256, 4);
    std::vector<uint8_t> codes = random_codes(3 * 400, 5);
    std::iota(codes.begin(), codes.begin() + 256, uint8_t{0});
    for (const size_t count : counts) {
        std::vector<uint8_t> found(3 * 320, 9), expected(3 * 320, 9);
        look_up(table.data(), codes.data(), 400, found.data(), 320, 3, count);
        look_up_ref(table.data(), codes.data(), 400, expected.data(), 320, 3, count);
        EXPECT_EQ(found, expected) << count;
    }
}

TEST_P(CodesOf, AddsUpManyRows) {
    constexpr size_t rows = 1000;  // more than 16 bits hold
    for (const bool is_signed : {false, true}) {
        for (const size_t count : counts) {
            std::vector<uint8_t> codes = random_codes(rows * count, 6);
            std::fill_n(codes.begin(), codes.size() / 2, uint8_t{255});
            std::vector<int32_t> found(count, 5), expected(count, 5);
            add_codes(codes.data(), static_cast<ptrdiff_t>(count), rows, is_signed, found.data(),
                      count);
            add_codes_ref(codes.data(), static_cast<ptrdiff_t>(count), rows, is_signed,
                          expected.data(), count);
            EXPECT_EQ(found, expected);
        }
    }
}

VARTML_ON_EACH_TARGET(CodesOf);

}  // namespace
}  // namespace vartml::kernels
