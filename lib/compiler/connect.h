// SPDX-License-Identifier: Apache-2.0
// How the parts of a model hand tensors to one another and to the application.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "lib/artifact/compiled_model.h"
#include "lib/compiler/partition.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

// Tensors by who touches them. What is in no part counts as the CPU.
struct TensorPlaces {
    // Read by another part than the one that makes them, or inputs of the model that the CPU reads:
    // everybody sees them dense and in the type of the ONNX model.
    std::set<std::string> inner;
    // At the model's border and touched by the CPU: they have no HW view.
    std::set<std::string> on_host;
};
TensorPlaces find_tensor_places(const graph::Graph& graph, const std::vector<Part>& parts);

// Fills execution_order and edges from the tensors of the model and of its partitions, which are in
// execution order. Edges are ordered by source, destination and tensor; all edges of one tensor
// share a buffer. A tensor that no partition makes has no edge.
void connect(artifact::CompiledModel& model);

}  // namespace vartml::compiler
