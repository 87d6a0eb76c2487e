// SPDX-License-Identifier: Apache-2.0
// Convolution 3x3 of codes by minimal filtering, F(2x2, 3x3), exact in whole numbers: 16 instead of
// 36 multiplications. For processors without products of 8 bits; what is multiplied has 12 bits.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether it is the better way for a shape of codes: a rule on the shape alone, for processors that
// multiply codes as numbers of 16 bits.
bool prefers_code_winograd(const ConvShape& shape);

// Outputs are made in tiles of 2x2 pixels, in groups, the unit of work to share.
size_t code_winograd_groups(const ConvShape& shape);

// Bytes of the packed weights and bias, and of the scratch memory of one call.
size_t packed_code_winograd_size(const ConvShape& shape);
size_t code_winograd_scratch_size(const ConvShape& shape);

// Weights are whole numbers from -128 to 127, biases of 32 bits.
void pack_code_winograd(const ConvShape& shape, const float* weights, const float* bias,
                        std::byte* packed);

// Groups first…last-1.
void conv_code_winograd(const ConvShape& shape, const CodePicture& src, const std::byte* packed,
                        const Epilogue& epilogue, const AnyDstPicture& dst, std::byte* scratch,
                        size_t first, size_t last);

}  // namespace vartml::kernels
