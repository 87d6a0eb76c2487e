// SPDX-License-Identifier: Apache-2.0
// The rules of canonicalise() that are particular to one operator; private to lib/graph.
#pragma once
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

// Applies the rule of the node's kind, if there is one. Constant parameter inputs are attributes
// already, defaults are not filled in yet.
Result<void> apply_rule(const Graph& graph, Node& node);

}  // namespace vartml::graph
