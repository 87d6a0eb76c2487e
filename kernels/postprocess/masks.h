// SPDX-License-Identifier: Apache-2.0
// The mask of an object as a weighted sum of maps.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// `channels` maps with a weight each, from the first cell that is wanted; strides in elements.
struct WeightedMaps {
    const float* maps;
    const float* weights;
    size_t channels, channel_stride, row_stride, column_stride;
};

// Writes 1 where the sum over the channels of weight * map is at least `threshold` (not NaN), else
// 0, to `mask`, which has `rows` dense rows of `columns`. Sums are made in float, channel by
// channel, each product and each sum rounded, so that every instruction set and every stride gives
// the bytes of mask_above_ref. A sum that is NaN gives 0.
void mask_above(const WeightedMaps& maps, size_t rows, size_t columns, float threshold,
                uint8_t* mask);
void mask_above_ref(const WeightedMaps& maps, size_t rows, size_t columns, float threshold,
                    uint8_t* mask);

}  // namespace vartml::kernels
