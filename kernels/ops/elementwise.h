// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic on rows of floats.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace vartml::kernels {

enum class Binary : uint8_t { add, sub, mul, div, max, min, pow, prelu };

// Rows of an operand in f32 or bf16: element i of row r is data[r·row + i·stride]; stride 0 or 1.
struct OperandRows {
    const void* data;
    ptrdiff_t row;
    size_t stride;
    Element element = Element::f32;
};
// Rows of a result: element i of row r is data[r·row + i].
struct ResultRows {
    void* data;
    ptrdiff_t row;
    Element element = Element::f32;
};

// Element i of row r of dst = op(a, b) of those elements, r < rows, i < count, in fp32; bf16 is
// rounded to nearest even. prelu: a where a >= 0, else a·b. max and min give NaN where an operand
// is NaN. dst may be a or b of the same element. Every instruction set gives the same numbers (pow:
// those of std::pow).
void binary_rows(Binary op, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
                 size_t rows, size_t count);
void binary_rows_ref(Binary op, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
                     size_t rows, size_t count);

// dst[i] = scale · sum over r < rows of src[r·row + i], i < count; four partial sums, so the order
// differs from that of a plain loop.
void sum_of_rows(const float* src, ptrdiff_t row, size_t rows, float scale, float* dst,
                 size_t count);
void sum_of_rows(const bf16* src, ptrdiff_t row, size_t rows, float scale, float* dst,
                 size_t count);

// dst[i] = sum over k < count of weights[k]·rows[k][i], i < columns.
void weighted_sum(const float* const* rows, const float* weights, size_t count, float* dst,
                  size_t columns);

// dst[i] = wa·a[i] + wb·b[i], i < count: linear interpolation between rows.
void blend_row(const float* a, float wa, const float* b, float wb, float* dst, size_t count);
// Pixel x of dst, `channels` floats: (1 - weight[x]) of pixel first[x] of src and weight[x] of
// pixel second[x], x < pixels: linear interpolation along a row.
void blend_pixels(const float* src, const int64_t* first, const int64_t* second,
                  const float* weight, size_t channels, float* dst, size_t pixels);

}  // namespace vartml::kernels
