// SPDX-License-Identifier: Apache-2.0
// Computes the outputs of a node whose inputs are constants, in plain loops. For folding; not for
// speed.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::graph {

// Whether evaluate() knows the operator.
bool can_evaluate(std::string_view kind);

// One constant per output, in the type of the output value. The node is canonical, the types of its
// outputs are known. Errors: unsupported (operator or element type), bad_model (an index out of
// range), out_of_memory.
Result<std::vector<Constant>> evaluate(const Graph& graph, const Node& node);

}  // namespace vartml::graph
