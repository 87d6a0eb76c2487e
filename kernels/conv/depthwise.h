// SPDX-License-Identifier: Apache-2.0
// Convolution with one filter per channel; see conv.h.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Floats of the packed weights and bias.
size_t packed_depthwise_size(const ConvShape& shape);
void pack_depthwise(const ConvShape& shape, const float* weights, const float* bias, float* packed);

// Whether padding, where there is any, is better read from a copy: there are tiles whose edges cost
// little for squares of 3 and 5 at strides 1 and 2 alone.
bool prefers_padded_depthwise(const ConvShape& shape);

// Output rows first…last-1 of a picture of `source`, fp32 or bf16; shape.source is the residual's.
// Sums are made in fp32, in the order rows, columns of the kernel.
void conv_depthwise(const ConvShape& shape, const AnySrcPicture& src, Element source,
                    const float* packed, const Epilogue& epilogue, const AnySrcPicture& residual,
                    const AnyDstPicture& dst, size_t first, size_t last);

}  // namespace vartml::kernels
