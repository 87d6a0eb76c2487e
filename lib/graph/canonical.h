// SPDX-License-Identifier: Apache-2.0
// From the ONNX form of a node to the canonical one of ops.h; what an importer calls for each node.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::graph {

// Brings a node in ONNX form (operator set 7 to 22: parameters as attributes or as inputs) into the
// form of ops.h. Types of its inputs must be known. Inputs that became attributes are removed.
// Types in attributes (`to`, `dtype`, `output_dtype`) are already strings; the importer has settled
// what needs the operator set's number: Softmax of opset < 13, scale per group of
// GroupNormalization 18, PRelu and BatchNormalization before 9 need nothing.
// Errors: bad_model naming the node.
Result<void> canonicalise(const Graph& graph, Node& node);

enum class Appended { node, folded };

// Canonicalises the node, sets the types of its outputs (values that the caller added with an empty
// type) and appends it. A node whose outputs are all known (inputs constant, or Shape and Size of a
// static shape) becomes constants instead, unless that would make a constant of more than 64 MiB
// out of less. Errors: bad_model, unsupported; the sentence names the node.
Result<Appended> append_node(Graph& graph, Node node);

}  // namespace vartml::graph
