// SPDX-License-Identifier: Apache-2.0
// Direct convolution of a copy of the source with its padding around it, a few rows at a time: no
// output pixel is special, and the source may be of another type.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether it is the better way, or the only one: a bf16 source, or so many pixels at the edges that
// whole lines pay for the copy. A rule on the shape alone.
bool prefers_padded(const ConvShape& shape);

// Floats of the scratch memory of one call.
size_t padded_scratch_size(const ConvShape& shape);

// Output rows first…last-1 with weights packed for conv_direct(). Sums are made as there, with the
// products of the padding.
void conv_padded(const ConvShape& shape, const SrcPicture& src, const float* packed,
                 const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
                 float* scratch, size_t first, size_t last);
void conv_padded(const ConvShape& shape, const Bf16Picture& src, const float* packed,
                 const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
                 float* scratch, size_t first, size_t last);

}  // namespace vartml::kernels
