// SPDX-License-Identifier: Apache-2.0
// Convolution of codes of 8 bits, four products at a time (eight with FEAT_I8MM of Arm), summed
// exactly in whole numbers.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether the processor has an instruction for it (VNNI, or FEAT_DotProd of Arm).
bool has_code_quads();

// Bytes of the packed weights and of where sums begin: at the bias, less what the zero point of the
// source adds. Weights are whole numbers from -128 to 127, biases of 32 bits.
size_t packed_quads_size(const ConvShape& shape);
void pack_quads(const ConvShape& shape, const float* weights, const float* bias, std::byte* packed);

// Output rows first…last-1 of a picture of codes that ends where the kernels end. Pixels are dense
// where a kernel has several columns and the channels are no multiple of four (of eight on Arm).
void conv_quads(const ConvShape& shape, const CodePicture& src, const std::byte* packed,
                const Epilogue& epilogue, const AnyDstPicture& dst, size_t first, size_t last);

}  // namespace vartml::kernels
