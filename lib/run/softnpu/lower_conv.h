// SPDX-License-Identifier: Apache-2.0
// Weights of convolutions in bf16: rounded so that the errors of a filter cancel.
#pragma once
#include <vector>

#include "lib/run/softnpu/lowering.h"

namespace vartml::softnpu {

// Filters, one after another, as numbers that bf16 has: each weight is one of its two neighbours,
// the nearer one but for a few that go the other way so that the errors of a filter add up to
// nearly 0. Rounded to the nearest alone they add up to something, and activations have means far
// from 0: every pixel of an output channel is then off by the same amount, in all pictures. Errors
// of single weights cost, too: a weight turns where twice the square of the sum falls by more than
// the sum of the squares grows. Nothing else is assumed of what the filters read.
std::vector<float> round_filters(std::vector<float> weights, size_t num_filters);

// Constant weights [O, I / groups, k…] of a convolution, rounded by filter.
std::vector<float> rounded_weights(Lowering& lowering, graph::ValueId id);

}  // namespace vartml::softnpu
