// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic on rows of floats.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

enum class Binary : uint8_t { add, sub, mul, div, max, min, pow, prelu };

// dst[i] = op(a[i·a_stride], b[i·b_stride]), i < count; strides 0 or 1. prelu: a where a >= 0, else
// a·b. max and min give NaN where an operand is NaN. dst may be a or b. Every instruction set gives
// the same floats (pow: those of std::pow).
void binary_row(Binary op, const float* a, size_t a_stride, const float* b, size_t b_stride,
                float* dst, size_t count);
void binary_row_ref(Binary op, const float* a, size_t a_stride, const float* b, size_t b_stride,
                    float* dst, size_t count);

// dst[i] = wa·a[i] + wb·b[i], i < count: linear interpolation between rows.
void blend_row(const float* a, float wa, const float* b, float wb, float* dst, size_t count);
// The same between four rows.
void blend_row(const float* a, float wa, const float* b, float wb, const float* c, float wc,
               const float* d, float wd, float* dst, size_t count);

}  // namespace vartml::kernels
