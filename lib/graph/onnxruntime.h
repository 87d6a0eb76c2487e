// SPDX-License-Identifier: Apache-2.0
// Nodes that ONNX Runtime computes.
//
//   OnnxRuntime (vartml) model x...   types:ss data_dependent:i why:s
//
// `model` is a constant, the bytes of an ONNX model whose inputs are x... and whose outputs are
// those of the node, in this order. `types` are the outputs' as to_string() spells them,
// `data_dependent` is 1 where their shapes are upper bounds, `why` says for reports why the node is
// none of ours.
#pragma once
#include <optional>
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

inline constexpr std::string_view onnxruntime_kind = "OnnxRuntime";
inline bool is_onnxruntime(const Node& node) {
    return node.kind == onnxruntime_kind;
}

// "f32[1,3,416,416]"
std::optional<Type> parse_type(std::string_view text);

}  // namespace vartml::graph
