// SPDX-License-Identifier: Apache-2.0
// How the parts of a model hand tensors to one another and to the application.
#pragma once
#include <set>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/partition.h"
#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"

namespace vartml::compiler {

// Tensors by who touches them. What is in no part counts as the CPU.
struct TensorPlaces {
    // Read by another part than the one that makes them, or inputs of the model that the CPU reads:
    // everybody sees them dense and in the type of the ONNX model.
    std::set<std::string> inner;
    // At the model's border and touched by the CPU: they have no HW view.
    std::set<std::string> on_host;
    // Inputs of the model that several parts read: where one part quantises, with the type of the
    // ONNX model in all of them.
    std::set<std::string> shared;
};
TensorPlaces find_tensor_places(const graph::Graph& graph, const std::vector<Part>& parts);

// Fills execution_order and edges from the tensors of the model and of its partitions, which are in
// execution order. Edges are ordered by source, destination and tensor; all edges of one tensor
// share a buffer. A tensor that no partition makes has no edge.
void connect(artifact::CompiledModel& model);

// A compiled model that also gives what is between its operators, to look for the first that is
// wrong.

// A tensor of the ONNX model, and the node of the program that makes it.
struct KeptTensor {
    std::string name;
    std::string node, kind;            // "Conv_12", "Conv+Relu"
    std::vector<std::string> sources;  // the ONNX nodes that the node came from
};

struct ModelWithTensors {
    artifact::CompiledModel model;
    std::vector<KeptTensor> tensors;  // in execution order, own outputs of the model included
    size_t in_onnx = 0;               // tensors between the ONNX operators that are left of folding
};

// Whether an operator gives codes of 8 bits.
bool computes_on_codes(const artifact::CompiledModel& model);
// Whether a program computes on codes of 8 bits although no operator of `onnx_file` gives any: what
// `vartml compile --quantize` makes. Errors: those of onnx::import_onnx.
Result<bool> was_quantised(const artifact::CompiledModel& model, const std::string& onnx_file);

// The programs of `model`, with every tensor as an output in its CPU view that holds what the
// tensor of that name in `onnx_file` holds. What the passes fused is not there; neither is a tensor
// that an operator was moved past. Errors: those of onnx::import_onnx.
Result<ModelWithTensors> keep_tensors(artifact::CompiledModel model, const std::string& onnx_file);

}  // namespace vartml::compiler
