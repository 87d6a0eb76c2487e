// SPDX-License-Identifier: Apache-2.0
// Softmax of rows of floats.
#pragma once
#include <cstddef>

namespace vartml::kernels {

// Rows of `count` elements, one behind the other: dst = exp(src - m) / sum of those, with m the
// largest of the row. dst may be src. Results are within 2e-6 + 2e-7·(m - src), relative, or 1e-35
// of the exact value.
void softmax_rows(const float* src, float* dst, size_t rows, size_t count);
void softmax_rows_ref(const float* src, float* dst, size_t rows, size_t count);

}  // namespace vartml::kernels
