// SPDX-License-Identifier: Apache-2.0
// An int8 model from a float one: where tensors are quantised, and with which scale.
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/tensor_statistics.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

// Errors: invalid_argument, as the end of a sentence about the model, where products work on codes
// or on floats of 16 bits already.
Result<void> check_quantisable(const graph::Graph& graph);

// Folds batch normalisations, scales and constants, so that weights are quantised as they will be
// used. Run it before values_to_quantise().
Result<void> prepare_to_quantise(graph::Graph& graph);

// The float tensors that quantise() needs statistics of: what convolutions, products, additions and
// average pools read and write, except at the last product before each output, which stays float.
std::vector<graph::ValueId> values_to_quantise(const graph::Graph& graph);

// The indices of the convolutions and products that quantise() would have work on int8.
std::vector<size_t> products_to_quantise(const graph::Graph& graph,
                                         const std::set<std::string>& kept_float = {});

// Tensors that share their codes, and the products that read or write them: their indices.
struct CodedTensors {
    std::vector<graph::ValueId> values;
    std::vector<size_t> products;
    bool are_input = false;  // elements of an input of the graph, moved or not
};
// Those of quantise() with everything in int8, in the order of the graph.
std::vector<CodedTensors> coded_tensors(const graph::Graph& graph);

// What a product computes with instead of its own numbers.
struct Fit {
    std::vector<float> weights;  // in the order of its own
    // Of a product of int8, the same as codes times a scale per output.
    std::vector<int8_t> codes;
    std::vector<float> scales;
    std::vector<double> bias;  // per output, to add to its own
};
using Fits = std::map<std::string, Fit>;  // by the name of the node

// How much of a model works on int8.
struct QuantisedShare {
    size_t operators = 0;                      // that work on int8
    uint64_t int8_macs = 0, product_macs = 0;  // of convolutions and products: those, and all
};

// Puts QuantizeLinear and DequantizeLinear around these operators, but for the convolutions and
// products named in `kept_float` and for sums and pools with none beside them: activations uint8
// per tensor, weights int8 symmetric per output channel. Tensors between which elements only move
// have the same codes. What rounding the weights adds to a channel on average is taken from its
// bias, where `fits` has no numbers for it. Passes make int8 operators of it all. Errors:
// invalid_argument for a value without statistics.
Result<QuantisedShare> quantise(graph::Graph& graph, const Statistics& statistics,
                                const std::set<std::string>& kept_float = {},
                                const Fits& fits = {});

// The codes of quantise() at these tensors alone; everything computes in floats. Errors as there.
Result<void> quantise_tensors(graph::Graph& graph, const Statistics& statistics,
                              const std::vector<graph::ValueId>& values);

}  // namespace vartml::compiler
