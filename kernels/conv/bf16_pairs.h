// SPDX-License-Identifier: Apache-2.0
// Convolution whose factors are bf16, two products at a time (four with FEAT_BF16 of Arm), summed
// in fp32.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Bytes of the packed weights and bias; weights are rounded to the nearest.
size_t packed_pairs_size(const ConvShape& shape);
void pack_pairs(const ConvShape& shape, const float* weights, const float* bias, std::byte* packed);

// Output rows first…last-1 of a picture of bf16 that ends where the kernels end; shape.source is
// the residual's. Pixels are dense where a kernel has several columns and the channels are odd (on
// Arm: no multiple of four).
void conv_pairs(const ConvShape& shape, const Bf16Picture& src, const std::byte* packed,
                const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                size_t first, size_t last);

}  // namespace vartml::kernels
