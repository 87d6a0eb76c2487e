// SPDX-License-Identifier: Apache-2.0
// An int8 model from a float one: where tensors are quantised, and with which scale.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What a tensor holds over the calibration set, outliers left out.
struct Range {
    float low = 0, high = 0;
};
using Ranges = std::map<std::string, Range>;  // by the name of the value

// The range of most elements: from the 0.001 % to the 99.999 % quantile. Joins `range`.
void widen(Range& range, std::span<const float> elements);

// Errors: invalid_argument, as the end of a sentence about the model, where products work on codes
// or on floats of 16 bits already.
Result<void> check_quantisable(const graph::Graph& graph);

// Folds batch normalisations, scales and constants, so that weights are quantised as they will be
// used. Run it before values_to_quantise().
Result<void> prepare_to_quantise(graph::Graph& graph);

// The float tensors that quantise() needs a range for: what convolutions, products, additions and
// average pools read and write, except at the last product before each output, which stays float.
std::vector<graph::ValueId> values_to_quantise(const graph::Graph& graph);

// Puts QuantizeLinear and DequantizeLinear around these operators: activations uint8 per tensor,
// weights int8 symmetric per output channel. Passes make int8 operators of them. Returns how many
// operators work on int8. Errors: invalid_argument for a value without range.
Result<size_t> quantise(graph::Graph& graph, const Ranges& ranges);

}  // namespace vartml::compiler
