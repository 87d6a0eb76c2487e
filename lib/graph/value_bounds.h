// SPDX-License-Identifier: Apache-2.0
// What the numbers that a model computes from shapes are at most, before the data are known.
#pragma once
#include <optional>

#include "lib/graph/graph.h"

namespace vartml::graph {

// The type of the first output of a Reshape, Expand, ConstantOfShape, Pad or Range in ONNX form
// whose sizes are computed from shapes: no size is larger in a run. One case is no proof: the -1 of
// a Reshape is taken as if all sizes were at their bound at once, as in x[n,2,3] by [n,-1]; the run
// tells where that is wrong. nullopt where a number has no bound.
std::optional<Type> bound_by_values(const Graph& graph, const Node& node);

}  // namespace vartml::graph
