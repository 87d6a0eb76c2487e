// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/preprocess/read_row.h"
#include "kernels/preprocess/resample.h"

namespace vartml::kernels {
namespace {

int16_t blend(int32_t a, int32_t b, int32_t weight) {
    return static_cast<int16_t>(a + (((b - a) * weight + 0x4000) >> 15));
}

}  // namespace

void blend_rows_ref(const int16_t* const* a, const int16_t* const* b, int16_t weight, size_t planes,
                    size_t copies, size_t count, int16_t* quads) {
    for (size_t p = 0; p < count; ++p)
        for (size_t c = 0; c < 4; ++c) {
            const size_t plane = planes == 1 ? 0 : c;
            quads[4 * p + c] = c < (planes == 1 ? copies : planes)
                                   ? blend(a[plane][p], b[plane][p], weight)
                                   : int16_t{0};
        }
    std::fill_n(quads + 4 * count, 4, int16_t{0});
}

void sample_columns_ref(const int16_t* src, const uint32_t* offsets, const int16_t* weights,
                        size_t count, int16_t* dst) {
    for (size_t p = 0; p < count; ++p)
        for (size_t c = 0; c < 4; ++c) {
            const int16_t* a = src + 4 * size_t{offsets[p]} + c;
            dst[4 * p + c] = blend(a[0], a[4], weights[4 * p + c]);
        }
}

void accumulate_rows_ref(const int16_t* quads, float weight, bool begin, size_t count,
                         float* sums) {
    for (size_t i = 0; i < 4 * count; ++i) {
        const float part = static_cast<float>(quads[i]) * weight;
        sums[i] = begin ? part : sums[i] + part;
    }
}

void sum_columns_ref(const float* rows, const Span* spans, const float* weights, bool begin,
                     size_t count, float* sums) {
    for (size_t p = 0; p < count; ++p)
        for (size_t c = 0; c < 4; ++c) {
            float sum = begin ? 0.0f : sums[4 * p + c];
            for (size_t k = 0; k < spans[p].count; ++k) {
                const float part =
                    rows[4 * (spans[p].first + k) + c] * weights[spans[p].weights + k];
                sum = sum + part;
            }
            sums[4 * p + c] = sum;
        }
}

void round_quads_ref(const float* sums, size_t count, int16_t* quads) {
    for (size_t i = 0; i < 4 * count; ++i)
        quads[i] = static_cast<int16_t>(
            std::nearbyint(std::min(std::max(sums[i], 0.0f), static_cast<float>(colour_max))));
}

void normalise_ref(const int16_t* quads, const float* mean, const float* scale, size_t count,
                   float* dst) {
    for (size_t i = 0; i < 4 * count; ++i) {
        const float value = static_cast<float>(quads[i]) * (1.0f / (1 << colour_shift));
        const float centred = value - mean[i % 4];
        dst[i] = centred * scale[i % 4];
    }
}

void normalise_bf16_ref(const int16_t* quads, const float* mean, const float* scale, size_t count,
                        uint16_t* dst) {
    for (size_t p = 0; p < count; ++p) {
        float values[4];
        normalise_ref(quads + 4 * p, mean, scale, 1, values);
        for (size_t c = 0; c < 4; ++c) {
            const auto bits = std::bit_cast<uint32_t>(values[c]);
            dst[4 * p + c] = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        }
    }
}

}  // namespace vartml::kernels
