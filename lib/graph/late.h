// SPDX-License-Identifier: Apache-2.0
// Nodes that can be settled only when they run: a parameter is computed, or the shape that it
// relates to depends on the data.
//
// Such a node is of the kind "Late". Its attribute `op` is the operator; the other attributes and
// the inputs are those of ONNX, not yet canonical. Output shapes are upper bounds. No pass touches
// it; when it runs, settle() makes the canonical node of it.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

inline constexpr std::string_view late_kind = "Late";

inline bool is_late(const Node& node) {
    return node.kind == late_kind;
}
// The operator for reports: the kind, or what a late node will be.
std::string op_type(const Node& node);

// Whether a node in ONNX form must stay late: its parameters are not all constant, or it relates to
// a shape that depends on the data.
bool must_be_late(const Graph& graph, const Node& node);

// Upper bounds of the outputs of a node that must be late. `declared` is what the model says of
// each output, where it says all dimensions. Errors: unsupported where neither the inputs nor the
// model bound an output, with the way out; bad_model.
Result<std::vector<Type>> bound_types(const Graph& graph, const Node& node,
                                      std::span<const std::optional<Type>> declared);

// Room for the only output of a late node that nothing bounds: per axis the largest of its first
// input and of `outputs`, those of the model, of the same rank. nullopt where there is nothing to
// go by. A guess: a run that needs more fails.
std::optional<Type> guess_bound(const Graph& graph, const Node& node,
                                std::span<const Type> outputs);

// The node as "Late", and back.
void make_late(Node& node);
void settle(Node& node);

}  // namespace vartml::graph
