// SPDX-License-Identifier: Apache-2.0
// Scale and shift per channel, absorbed into the weights of a linear operator. Private to the
// passes.
#pragma once
#include <span>
#include <vector>

#include "lib/compile/passes/rewrite.h"

namespace vartml::compiler {

// Conv, ConvTranspose, Gemm or MatMul whose weight and bias are constant; fused parts may follow.
bool is_linear(const Rewriter& rewriter, const graph::Node& node);
// Axis of its result along which weights differ, and the size of that axis.
size_t channel_axis(const Rewriter& rewriter, const graph::Node& node);
size_t channels(const Rewriter& rewriter, const graph::Node& node);

// The numbers of a constant that varies along one axis of `shape` only, one for each index of it;
// empty otherwise.
std::vector<double> per_channel(const Rewriter& rewriter, graph::ValueId constant,
                                std::span<const int64_t> shape, size_t axis);

// Makes the node give y * scale + shift where it gave y, in front of fused parts. Its constants are
// replaced, not changed: others may use them. False, and nothing done, where the bias has a form
// that cannot take it.
bool absorb_affine(Rewriter& rewriter, size_t node, std::span<const double> scale,
                   std::span<const double> shift);

// Makes a Conv read x where it read x * scale + shift, per input channel. False where padding
// forbids it.
bool absorb_input_affine(Rewriter& rewriter, size_t node, std::span<const double> scale,
                         std::span<const double> shift);

}  // namespace vartml::compiler
