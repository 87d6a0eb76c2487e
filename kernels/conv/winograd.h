// SPDX-License-Identifier: Apache-2.0
// 3x3 convolution by Winograd's minimal filtering F(4x4, 3x3): a quarter of the
// multiplications, in fp32. Method and matrices: Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", 2015.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Whether it is the better way: stride 1, no dilation, not depthwise, and so many channels and
// pixels that the transforms pay. A rule on the shape alone.
bool prefers_winograd(const ConvShape& shape);

// Outputs are made in tiles of 4x4 pixels, numbered along rows; those beyond the picture's end are
// cut. Tiles are handled in groups, the unit of work to share.
size_t winograd_groups(const ConvShape& shape);

// Floats of the packed weights and bias, and of the scratch memory of one call.
size_t packed_winograd_size(const ConvShape& shape);
size_t winograd_scratch_size(const ConvShape& shape);

// Packs `weights` [out][in][3][3] and `bias` [out] (nullptr: zeros) for this processor.
void pack_winograd(const ConvShape& shape, const float* weights, const float* bias, float* packed);

// Groups first…last-1. Requires prefers_winograd(shape) to hold but for the sizes. Pictures and
// overlap as for conv(). A result does not depend on how groups are shared among calls. Results
// are within 3e-6 of the sum of absolute products before they are rounded.
void conv_winograd(const ConvShape& shape, const AnySrcPicture& src, const float* packed,
                   const Epilogue& epilogue, const AnySrcPicture& residual,
                   const AnyDstPicture& dst, float* scratch, size_t first, size_t last);

}  // namespace vartml::kernels
