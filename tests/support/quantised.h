// SPDX-License-Identifier: Apache-2.0
// What quantised operators mean: the float operator between DequantizeLinear and QuantizeLinear.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::test {

// The graph with float operators for quantised ones; run_reference() then gives codes as numbers.
graph::Graph in_floats(const graph::Graph& graph);

// Constants of {0} with more than one element: pseudo-random codes, biases, and scales around 0.01.
// Codes of weights lie within `most_weight` of 0, of uint8 within that of 127.
void randomise_quantised(graph::Graph& graph, unsigned seed, int most_weight = 127);

}  // namespace vartml::test
