// SPDX-License-Identifier: Apache-2.0
// Which convolutions of a bf16 program multiply in f32.
#pragma once
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::softnpu {

// Per node: whether it is one of the first convolutions behind those that read the input. Where a
// network begins, few channels carry the whole picture, large weights cancel each other, and every
// layer behind enlarges what rounding loses: most of the error of a bf16 detector comes from there.
// In the order of the program, as many as have together at most 1/10 of the multiply-adds; those of
// codes among them count. A
// convolution of the input itself is not one of them: pixels have no more digits than bf16, its
// share of the work is large, and what rounding its weights shifts is put right
// (lower_conv.h).
std::vector<bool> find_early_convs(const graph::Graph& graph);

}  // namespace vartml::softnpu
