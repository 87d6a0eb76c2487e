// SPDX-License-Identifier: Apache-2.0
// Integer tensors at the border of an NPU partition: whoever fills or reads them works on codes.
#pragma once
#include <map>
#include <set>
#include <string>

#include <vartml/tensor.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What the codes of a border tensor stand for.
struct EdgeCodes {
    DataType real = DataType::unknown;  // type of the CPU view
    Quantisation quantisation;
};
using QuantisedEdges = std::map<std::string, EdgeCodes>;  // by tensor name

// Takes away the QuantizeLinear behind inputs that nothing else reads, and the DequantizeLinear in
// front of outputs: these tensors hold the codes then. Those named in `keep` stay as they are, as
// do those with a scale per channel.
QuantisedEdges quantise_edges(graph::Graph& graph, bool inputs, bool outputs,
                              const std::set<std::string>& keep);

}  // namespace vartml::compiler
