// SPDX-License-Identifier: Apache-2.0
// Runs a graph in plain loops: the oracle for rewrites.
#pragma once
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::graph {

// Values of each output of the graph, for inputs of pseudo-random numbers from -range to range that
// depend on `seed` and the name of the input only.
Result<std::vector<std::vector<double>>> interpret(const Graph& graph, uint32_t seed = 1,
                                                   double range = 4);

// The large constants of a graph from text, which are zero there: small pseudo-random numbers
// instead.
void randomise_constants(Graph& graph, uint32_t seed = 1);

}  // namespace vartml::graph
