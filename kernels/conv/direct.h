// SPDX-License-Identifier: Apache-2.0
// Convolution over all channels in registers, without transforms; see conv.h.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Floats of the packed weights and bias.
size_t packed_direct_size(const ConvShape& shape);
void pack_direct(const ConvShape& shape, const float* weights, const float* bias, float* packed);

// Output rows first…last-1 of a picture in fp32; shape.source is the residual's. Sums are made in
// the order rows, columns, channels of the kernel.
void conv_direct(const ConvShape& shape, const SrcPicture& src, const float* packed,
                 const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                 size_t first, size_t last);

}  // namespace vartml::kernels
