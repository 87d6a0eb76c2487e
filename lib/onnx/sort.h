// SPDX-License-Identifier: Apache-2.0
// Execution order of a foreign graph.
#pragma once
#include <set>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/onnx/proto.h"

namespace vartml::onnx {

// Tensors that a node reads from the graph it stands in; for one with subgraphs also what those
// take from outside.
std::set<std::string> reads(const pb::NodeProto& node);

// Node indices such that each tensor is made before it is read, subgraphs' reads included; the
// order of the file where that leaves a choice. `known` are tensors that exist before the first
// node. Errors: bad_model for a tensor that nobody makes, one made twice, and a cycle; the sentence
// names node and tensor.
Result<std::vector<int>> sort_nodes(const std::string& file, const pb::GraphProto& graph,
                                    const std::set<std::string>& known);

}  // namespace vartml::onnx
