// SPDX-License-Identifier: Apache-2.0
// Convolution of codes of 8 bits as numbers of 16 bits, two products at a time: for processors
// that have no products of 8 bits, or whose sums of them saturate. Sums are exact.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether there is code for it on this processor.
bool has_code_pairs();

// Bytes of the packed weights and of where sums begin, the bias. Weights are whole numbers from
// -128 to 127, biases of 32 bits.
size_t packed_code_pairs_size(const ConvShape& shape);
void pack_code_pairs(const ConvShape& shape, const float* weights, const float* bias,
                     std::byte* packed);

// Output rows first…last-1 of a picture of codes less their zero point that ends where the kernels
// end. Pixels are dense where a kernel has several columns and the channels are odd.
void conv_code_pairs(const ConvShape& shape, const PictureOf<const int16_t>& src,
                     const std::byte* packed, const Epilogue& epilogue, const AnyDstPicture& dst,
                     size_t first, size_t last);

}  // namespace vartml::kernels
