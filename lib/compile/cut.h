// SPDX-License-Identifier: Apache-2.0
// A part of a graph as a graph of its own.
#pragma once
#include <cstddef>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// The nodes with these indices, ascending, under their names. Inputs: what they read of others and
// of the graph's inputs; outputs: what others read of them, and what the graph gives. Those at the
// border of `graph` come first, in its order, the others in that of their values. Constants go into
// every part that reads them; they share their bytes.
graph::Graph cut(const graph::Graph& graph, const std::vector<size_t>& nodes);

}  // namespace vartml::compiler
