// SPDX-License-Identifier: Apache-2.0
// What a graph itself says about the pixels that it takes.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::verify {

// Whether the first arithmetic on `input` is meant for pixels from 0 to 255: a mean of their size
// is taken away (Sub, Add, BatchNormalization), or they are divided by as much. False where the
// first arithmetic says nothing, as a convolution does.
bool takes_bytes(const graph::Graph& graph, graph::ValueId input);

}  // namespace vartml::verify
