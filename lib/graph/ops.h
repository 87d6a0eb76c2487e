// SPDX-License-Identifier: Apache-2.0
// The table of operators that the IR knows: number of inputs, attributes, output types and cost.
#pragma once
#include <cstdint>
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

struct OpInfo {
    std::string_view kind;                // ONNX type, or a type of ours
    int min_inputs, max_inputs;           // max_inputs -1: any number
    int min_outputs, max_outputs;
    std::string_view attributes;          // accepted, comma-separated; '*' after a name: required
    // Types of the outputs from inputs and attributes; the error names the node.
    Result<std::vector<Type>> (*infer)(const Graph&, const Node&);
    // Operations by the counting rule of the format document (2 per multiply-accumulate, …).
    uint64_t (*count)(const Graph&, const Node&);
};

// nullptr for an operator that the IR does not know. `kind` is one part, not a fused kind.
const OpInfo* find_op(std::string_view kind);

// Types of all outputs of a node, fused parts included.
Result<std::vector<Type>> infer_types(const Graph& graph, const Node& node);
uint64_t count_ops(const Graph& graph, const Node& node);

}  // namespace vartml::graph
