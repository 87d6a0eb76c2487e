// SPDX-License-Identifier: Apache-2.0
// Between planes (NCHW), pixels (NHWC) and blocks of channels (HCWNC4, HCWNC8, HCWNC16), whatever
// the words mean.
#pragma once
#include <cstddef>

namespace vartml::kernels {

// A word is an element of 1, 2, 4 or (by plain loops) 8 bytes. No alignment; src and dst do not
// overlap; nothing beyond the words named is written. Every instruction set gives the bytes of the
// _ref function.

// dst[p * block + c] = plane c of src at p for c < channels, and 0 for the rest of the block.
//   src  [channels][pixels], planes `plane_stride_bytes` apart
//   dst  [pixels][block], dense; block >= channels >= 1
void planes_to_pixels(size_t word_bytes, const void* src, size_t plane_stride_bytes,
                      size_t channels, size_t pixels, void* dst, size_t block);
void planes_to_pixels_ref(size_t word_bytes, const void* src, size_t plane_stride_bytes,
                          size_t channels, size_t pixels, void* dst, size_t block);

// The way back: plane c of dst at p = src[p * block + c] for c < channels; the rest of each block
// is skipped.
//   src  [pixels][block], dense; block >= channels >= 1
//   dst  [channels][pixels], planes `plane_stride_bytes` apart
void pixels_to_planes(size_t word_bytes, const void* src, size_t block, size_t channels,
                      size_t pixels, void* dst, size_t plane_stride_bytes);
void pixels_to_planes_ref(size_t word_bytes, const void* src, size_t block, size_t channels,
                          size_t pixels, void* dst, size_t plane_stride_bytes);

// dst[p * dst_step + c] = src[p * src_step + c] for c < channels, and 0 for channels <= c < fill.
// Steps in words; src_step >= channels, dst_step >= fill >= channels >= 1.
void pixels_to_pixels(size_t word_bytes, const void* src, size_t src_step, void* dst,
                      size_t dst_step, size_t channels, size_t fill, size_t pixels);
void pixels_to_pixels_ref(size_t word_bytes, const void* src, size_t src_step, void* dst,
                          size_t dst_step, size_t channels, size_t fill, size_t pixels);

}  // namespace vartml::kernels
