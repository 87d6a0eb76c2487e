// SPDX-License-Identifier: Apache-2.0
// Convolution of a copy of the source with its padding around it, a few rows at a time: no output
// pixel is special, and the source may be of another type.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether it is the better way, or the only one: a source of another type than the factors, or so
// many pixels at the edges that whole lines pay for the copy. A rule on the shape alone.
bool prefers_padded(const ConvShape& shape);

// Bytes of the scratch memory of one call.
size_t padded_scratch_size(const ConvShape& shape);

// Output rows first…last-1 with weights packed for the shape's method, direct or bf16_pairs. Sums
// are made as there, with the products of the padding.
void conv_padded(const ConvShape& shape, const AnySrcPicture& src, const std::byte* packed,
                 const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                 std::byte* scratch, size_t first, size_t last);

}  // namespace vartml::kernels
