// SPDX-License-Identifier: Apache-2.0
// 3x3 convolution in fp32 by Winograd's minimal filtering: F(4x4, 3x3) has a quarter of the
// multiplications, F(6x6, 3x3) a fifth. Method, and the matrices of F(4x4): Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015; those of F(6x6) follow by the same
// construction (Toom and Cook) from the points 0, 1, -1, 2, -2, 1/2, -1/2.
#pragma once
#include "kernels/conv/conv.h"

namespace vartml::kernels {

// Outputs are made in square tiles of 4 or 6 pixels on a side; 0 where another way is better: with
// a stride, dilated, depthwise, or with too few channels or pixels for the transforms to pay. A
// rule on the shape alone.
size_t winograd_side(const ConvShape& shape);

// Tiles are numbered along rows; those beyond the picture's end are cut. Tiles are handled in
// groups, the unit of work to share.
size_t winograd_groups(const ConvShape& shape);

// Floats of the packed weights and bias, and of the scratch memory of one call.
size_t packed_winograd_size(const ConvShape& shape);
size_t winograd_scratch_size(const ConvShape& shape);

// Packs `weights` [out][in][3][3] and `bias` [out] (nullptr: zeros) for this processor.
void pack_winograd(const ConvShape& shape, const float* weights, const float* bias, float* packed);

// Groups first…last-1. Requires winograd_side(shape) > 0. Pictures and overlap as for conv(). A
// result does not depend on how groups are shared among calls. Results are within 3e-6, with
// tiles of 6x6 within 6e-6, of the sum of absolute products before they are rounded.
void conv_winograd(const ConvShape& shape, const AnySrcPicture& src, const float* packed,
                   const Epilogue& epilogue, const AnySrcPicture& residual,
                   const AnyDstPicture& dst, float* scratch, size_t first, size_t last);

}  // namespace vartml::kernels
