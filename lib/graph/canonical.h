// SPDX-License-Identifier: Apache-2.0
// From the ONNX form of a node to the canonical one of ops.h; what an importer calls for each node.
#pragma once
#include "lib/graph/graph.h"

namespace vartml::graph {

// Brings a node in ONNX form (operator set 7 and later: parameters as attributes or as inputs) into
// the form of ops.h. Types of its inputs must be known. Inputs that became attributes are removed,
// as are attributes without meaning for inference. The importer has settled before
//   - types in attributes (`to`, `dtype`, `output_dtype`): strings, "f32";
//   - ConstantOfShape: its `value` as a second, constant input; Constant: a value of the graph;
//   - what depends on the operator set: Softmax, LogSoftmax and Hardmax of set < 13 (ops.h); Resize
//     of set 10 is given as Upsample; RoiAlign of set 10 gets output_half_pixel; GroupNormalization
//     of set 18 gets scale and bias per channel; TopK and the like of older sets need nothing.
// Errors: bad_model naming the node.
Result<void> canonicalise(const Graph& graph, Node& node);

// Whether an input that canonicalise() takes into an attribute where it is constant is not.
bool has_computed_parameters(const Graph& graph, const Node& node);
// Whether the node has inputs that canonicalise() takes into attributes, and all of them are
// constant.
bool has_constant_parameters(const Graph& graph, const Node& node);

// Refuses integers in attributes that a program, which has 32 bits for each, does not hold. Where a
// model says "all" by the largest number, canonicalise() and make_late() have clamped it; a larger
// size, stride or power is nothing that anybody computes with.
Result<void> check_integers(const Node& node);

// Whether the first number of a constant stays what it is in an attribute, which is a float.
bool survives_float(const Value& value);

}  // namespace vartml::graph
