// SPDX-License-Identifier: Apache-2.0
// Computes at compile time what constants decide.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::cpu {

// Outputs of a canonical node whose inputs are constants: one constant per output, in the type of
// the output value, which is known. For a shape that depends on the data the real one is put into
// `shapes`. Errors: unsupported (operator or element type), bad_model (an index out of range),
// out_of_memory.
Result<std::vector<graph::Constant>> evaluate(const graph::Graph& graph, const graph::Node& node,
                                              std::vector<std::vector<int64_t>>* shapes = nullptr);

// Makes constants of the outputs of a canonical node when they are known: inputs constant, or Shape
// and Size of a static shape. Returns false where they are not, where no kernel knows the operator
// or the type, and where a constant of more than 64 MiB would come out of less, or one of more than
// 1 MiB where the graph's constants have 1 GiB then. The node itself stays.
Result<bool> fold_node(graph::Graph& graph, const graph::Node& node);

enum class Appended { node, folded };

// Canonicalises the node, sets the types of its outputs (values that the caller added with an empty
// type) and appends it; or makes constants of its outputs, as fold_node() does; or appends it as a
// late node (graph/late.h), for which `declared` may say what the model knows of each output.
// Errors: bad_model, unsupported; the sentence names the node.
Result<Appended> append_node(graph::Graph& graph, graph::Node node,
                             std::span<const std::optional<graph::Type>> declared = {});

}  // namespace vartml::cpu
