// SPDX-License-Identifier: Apache-2.0
// Rows of elements: conversion between float types, and tiles that swap two dimensions. The
// templates exist for Src = Dst = uint8_t, uint16_t, uint32_t, uint64_t, float and for the pairs of
// convert_row.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace vartml::kernels {

// dst[i] = src[i], i < count. fp32 to bf16 and fp16 round to nearest even, NaN stays NaN, overflow
// gives infinity; the other direction is exact. No alignment, no overlap.
void convert_row(const float* src, bf16* dst, size_t count);
void convert_row(const bf16* src, float* dst, size_t count);
void convert_row(const float* src, fp16* dst, size_t count);
void convert_row(const fp16* src, float* dst, size_t count);
// Between the halves through fp32: fp16 to bf16 rounds to nearest even, the other way also
// overflows to infinity.
void convert_row(const bf16* src, fp16* dst, size_t count);
void convert_row(const fp16* src, bf16* dst, size_t count);

// Copies `rows` rows of `columns` elements. Row strides in elements, which may be negative or 0 in
// the source; elements of a row are contiguous on both sides. Types of the same name are copied,
// two of fp32, bf16, fp16 converted as above.
template <typename Src, typename Dst>
void copy_rows(const Src* src, ptrdiff_t src_stride, Dst* dst, ptrdiff_t dst_stride, size_t rows,
               size_t columns);

// dst[r·dst_stride + c] = src[r·src_row + c·src_column] for r < rows, c < columns; strides in
// elements.
template <typename Src, typename Dst>
void copy_tile(const Src* src, ptrdiff_t src_row, ptrdiff_t src_column, Dst* dst,
               ptrdiff_t dst_stride, size_t rows, size_t columns);

}  // namespace vartml::kernels
