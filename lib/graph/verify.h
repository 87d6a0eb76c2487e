// SPDX-License-Identifier: Apache-2.0
// Checks that a graph keeps the rules that every pass and device relies on.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::graph {

// Ids in range; names unique; each value produced once and before its use; constants of the right
// size; operators known with the right number of inputs and the attributes of ops.h; output types
// equal to infer_types. Errors: bad_model naming the node or value, found and expected.
Result<void> verify(const Graph& graph);

}  // namespace vartml::graph
