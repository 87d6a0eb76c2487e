// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/preprocess/read_row.h"
#include "kernels/preprocess/resample.h"
#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

std::mt19937 random_source(uint32_t seed) {
    return std::mt19937(seed);
}

// Below, at and above the vectors of every instruction set.
const size_t lengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 131};

class Preprocess : public OnEachTarget {};

std::vector<int16_t> colours(size_t count, uint32_t seed) {
    std::mt19937 random = random_source(seed);
    std::vector<int16_t> values(count);
    for (int16_t& v : values) v = static_cast<int16_t>(random() % (colour_max + 1));
    return values;
}

TEST_P(Preprocess, ReadingRowsEqualsTheReference) {
    const RowKind kinds[] = {
        RowKind::nv_half,        RowKind::nv_full,    RowKind::planar_half, RowKind::nv_half_10,
        RowKind::planar_half_10, RowKind::yuyv,       RowKind::uyvy,        RowKind::rgb3,
        RowKind::rgb4,           RowKind::rgb_planar, RowKind::grey};
    std::mt19937 random = random_source(3);
    for (const RowKind kind : kinds) {
        for (const bool luma_only : {false, true}) {
            RowFormat f;
            f.kind = kind;
            f.luma_only = luma_only;
            f.y_offset = 2048;
            f.y_factor = 19078;
            f.first_factor = 18750;  // large enough for sums that saturate
            f.second_factor = 14686;
            f.green_first_factor = -6200;
            f.green_second_factor = -9900;
            f.planes = {2, 1, 0, 3};
            f.luma_weights = {9798, 19235, 3735, 0};
            for (const size_t count : lengths) {
                for (const size_t first : {size_t{0}, size_t{6}}) {
                    std::vector<uint8_t> bytes[3];
                    const uint8_t* src[3];
                    for (size_t p = 0; p < 3; ++p) {
                        bytes[p].resize(4 * (first + count + 1));
                        for (uint8_t& b : bytes[p]) b = static_cast<uint8_t>(random());
                        src[p] = bytes[p].data();
                    }
                    std::vector<int16_t> want[4], got[4];
                    int16_t *want_planes[4], *got_planes[4];
                    for (size_t p = 0; p < 4; ++p) {
                        want[p].assign(count + row_slack + 16, -1);
                        got[p] = want[p];
                        want_planes[p] = want[p].data();
                        got_planes[p] = got[p].data();
                    }
                    read_row_ref(f, src, first, count, want_planes);
                    read_row(f, src, first, count, got_planes);
                    for (size_t p = 0; p < 4; ++p) {
                        for (size_t i = 0; i < count; ++i)
                            ASSERT_EQ(got[p][i], want[p][i])
                                << static_cast<int>(kind) << " " << count << " " << p << " " << i;
                        for (size_t i = count + row_slack; i < got[p].size(); ++i)
                            ASSERT_EQ(got[p][i], -1);
                    }
                }
            }
        }
    }
}

TEST_P(Preprocess, BlendingRowsEqualsTheReference) {
    for (const size_t count : lengths) {
        const std::vector<int16_t> values = colours(6 * (count + row_slack), 1);
        const int16_t *a[3], *b[3];
        for (size_t p = 0; p < 3; ++p) {
            a[p] = values.data() + p * (count + row_slack);
            b[p] = values.data() + (p + 3) * (count + row_slack);
        }
        for (const auto& [planes, copies] : {std::pair{3, 3}, {1, 1}, {1, 3}}) {
            for (const int16_t weight : {0, 1, 16384, 30001, 32767}) {
                std::vector<int16_t> want(4 * (count + row_slack) + 16, -1), got = want;
                blend_rows_ref(a, b, weight, planes, copies, count, want.data());
                blend_rows(a, b, weight, planes, copies, count, got.data());
                for (size_t i = 0; i < 4 * (count + 1); ++i)
                    ASSERT_EQ(got[i], want[i]) << count << " " << i;
                for (size_t i = 4 * (count + row_slack); i < got.size(); ++i) ASSERT_EQ(got[i], -1);
            }
        }
    }
}

TEST_P(Preprocess, SamplingColumnsEqualsTheReference) {
    const std::vector<int16_t> src = colours(4 * 301, 2);
    std::mt19937 random = random_source(4);
    for (const size_t count : lengths) {
        std::vector<uint32_t> offsets(count);
        std::vector<int16_t> weights;
        for (uint32_t& o : offsets) {
            o = random() % 300;
            weights.insert(weights.end(), 4, static_cast<int16_t>(random() & 0x7fff));
        }
        std::vector<int16_t> want(4 * count + 16, -1), got = want;
        sample_columns_ref(src.data(), offsets.data(), weights.data(), count, want.data());
        sample_columns(src.data(), offsets.data(), weights.data(), count, got.data());
        ASSERT_EQ(got, want) << count;
    }
}

TEST_P(Preprocess, AreasEqualTheReference) {
    std::mt19937 random = random_source(5);
    const auto weight = [&] { return static_cast<float>(random() % 1000) / 3000.0f; };
    for (const size_t count : lengths) {
        const std::vector<int16_t> quads = colours(4 * count, 6);
        std::vector<float> want(4 * count + 8, -1.0f), got = want;
        for (const bool begin : {true, false, false}) {
            const float w = weight();
            accumulate_rows_ref(quads.data(), w, begin, count, want.data());
            accumulate_rows(quads.data(), w, begin, count, got.data());
        }
        ASSERT_EQ(got, want) << count;

        std::vector<Span> spans;
        std::vector<float> weights;
        for (size_t p = 0; p < count; ++p) {
            const auto first = static_cast<uint32_t>(random() % count);
            const auto length = static_cast<uint32_t>(random() % (count - first) + 1);
            spans.push_back({first, length, static_cast<uint32_t>(weights.size())});
            for (uint32_t k = 0; k < length; ++k) weights.push_back(weight());
        }
        std::vector<float> want_sums(4 * count + 8, -1.0f), got_sums = want_sums;
        for (const bool begin : {true, false}) {
            sum_columns_ref(want.data(), spans.data(), weights.data(), begin, count,
                            want_sums.data());
            sum_columns(got.data(), spans.data(), weights.data(), begin, count, got_sums.data());
        }
        ASSERT_EQ(got_sums, want_sums) << count;

        std::vector<int16_t> want_quads(4 * count + 8, -1), got_quads = want_quads;
        round_quads_ref(want_sums.data(), count, want_quads.data());
        round_quads(got_sums.data(), count, got_quads.data());
        ASSERT_EQ(got_quads, want_quads) << count;
    }
}

TEST_P(Preprocess, NormalisingEqualsTheReference) {
    const float mean[4] = {123.675f, 116.28f, -3.0f, 0}, scale[4] = {0.0171f, 1.0f, -0.0174f, 0};
    for (const size_t count : lengths) {
        const std::vector<int16_t> quads = colours(4 * count, 7);
        std::vector<float> want(4 * count + 8, -1.0f), got = want;
        normalise_ref(quads.data(), mean, scale, count, want.data());
        normalise(quads.data(), mean, scale, count, got.data());
        ASSERT_EQ(got, want) << count;
        std::vector<uint16_t> want_bf16(4 * count + 8, 0xeeee), got_bf16 = want_bf16;
        normalise_bf16_ref(quads.data(), mean, scale, count, want_bf16.data());
        normalise_bf16(quads.data(), mean, scale, count, got_bf16.data());
        ASSERT_EQ(got_bf16, want_bf16) << count;
    }
}

VARTML_ON_EACH_TARGET(Preprocess);

}  // namespace
}  // namespace vartml::kernels
