// SPDX-License-Identifier: Apache-2.0
// Between planes of floats (NCHW) and blocks of channels in a narrower type (HCWNC4, HCWNC8,
// HCWNC16), in one pass over memory.
#pragma once
#include <cstddef>

#include "kernels/layout/cast.h"

namespace vartml::kernels {

// Whether the functions below have vectors for it: f32 to bf16, or to int8 and uint8 with rounding
// to nearest, and back; blocks of 4, 8 or 16.
bool can_pack(const Cast& cast, size_t block);

// Blocks of pixels: rows, each dense, whose pixels follow each other in the planes.
struct BlockRows {
    size_t rows, pixels;      // of a row
    size_t row_stride_bytes;  // from row to row of blocks
    size_t block;
};

// dst[r][p * block + c] = plane c of src at r * pixels + p, cast, for c < channels, and zero bits
// for the rest of the block.
//   src  [channels][rows * pixels], planes `plane_stride_bytes` apart
//   dst  [rows][pixels][block]; block >= channels >= 1
// Requires can_pack(cast, block); src and dst do not overlap; no alignment. Fastest for rows of 16
// pixels and more, and where stores of 64 bytes are aligned. Every instruction set gives the bytes
// of the _ref function.
void pack_planes(const Cast& cast, const void* src, size_t plane_stride_bytes, size_t channels,
                 void* dst, const BlockRows& rows);
void pack_planes_ref(const Cast& cast, const void* src, size_t plane_stride_bytes, size_t channels,
                     void* dst, const BlockRows& rows);

// The way back: plane c of dst at r * pixels + p = src[r][p * block + c], cast, for c < channels.
void unpack_planes(const Cast& cast, const void* src, const BlockRows& rows, size_t channels,
                   void* dst, size_t plane_stride_bytes);
void unpack_planes_ref(const Cast& cast, const void* src, const BlockRows& rows, size_t channels,
                       void* dst, size_t plane_stride_bytes);

}  // namespace vartml::kernels
