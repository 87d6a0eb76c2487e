// SPDX-License-Identifier: Apache-2.0
// Convolutions that our own kernels run: fp32 and bf16, channels last, read and written through
// views.
#pragma once
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/lowering.h"

namespace vartml::softnpu {

// Whether the kernels multiply what the node multiplies, on this processor.
bool multiplies_here(const Lowering& lowering, const graph::Node& node);
// What the node's products multiply: weights are packed as these.
kernels::Element factors_of(const Lowering& lowering, const graph::Node& node);

// Dimensions of one axis as those of a picture of one row; others as they are.
Dims as_picture(Dims dims);
// The shape of a convolution of one or two axes whose weights are input `weights`; groups of few
// channels are made several at a time.
GroupedShape conv_shape(const Lowering& lowering, const graph::Node& node, size_t weights);
// Weights [O][I / groups][k…] as that shape's groups read them: [O][in_channels][k…].
std::vector<float> spread_groups(std::vector<float> weights, const Dims& dims, int64_t groups,
                                 const GroupedShape& to);

// Whether the kernels have room for weights of these dimensions.
bool fits_kernels(const Dims& weights);
// Whether the kernels can run this convolution of constant weights, on a processor that multiplies
// what it multiplies.
bool fits_direct_conv(const Lowering& lowering, const graph::Node& node);
// Whether they do.
bool runs_direct_conv(const Lowering& lowering, const graph::Node& node);

// Lowers a convolution for which runs_direct_conv holds.
Result<void> lower_direct_conv(Lowering& lowering, const graph::Node& node);

// The same for transposed convolutions.
bool runs_direct_conv_transpose(const Lowering& lowering, const graph::Node& node);
Result<void> lower_direct_conv_transpose(Lowering& lowering, const graph::Node& node);

}  // namespace vartml::softnpu
