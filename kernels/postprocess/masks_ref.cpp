// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/masks.h"

namespace vartml::kernels {

void mask_above_ref(const WeightedMaps& m, size_t rows, size_t columns, float threshold,
                    uint8_t* mask) {
    for (size_t row = 0; row < rows; ++row) {
        for (size_t column = 0; column < columns; ++column) {
            const float* cell = m.maps + row * m.row_stride + column * m.column_stride;
            float sum = 0;
            for (size_t c = 0; c < m.channels; ++c) {
                const float product = m.weights[c] * cell[c * m.channel_stride];
                sum = sum + product;
            }
            *mask++ = sum >= threshold;
        }
    }
}

}  // namespace vartml::kernels
