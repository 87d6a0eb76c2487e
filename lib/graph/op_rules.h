// SPDX-License-Identifier: Apache-2.0
// What the files of the operator table share; private to lib/graph.
#pragma once
#include <span>
#include <string>

#include "lib/common/saturating.h"
#include "lib/graph/ops.h"

namespace vartml::graph {

// "node 'conv1' (Conv): " and the sentence given.
Error bad_node(const Node& node, const std::string& sentence);
std::string to_string(std::span<const int64_t> shape);  // [1,3,416,416]

inline bool has_input(const Node& node, size_t index) {
    return index < node.inputs.size() && node.inputs[index] != none;
}
// Type of an input that is there.
inline const Type& input_type(const Graph& graph, const Node& node, size_t index) {
    return graph.value(node.inputs[index]).type;
}
inline const Type& output_type(const Graph& graph, const Node& node, size_t index = 0) {
    return graph.value(node.outputs[index]).type;
}

// Numpy's rule; nullopt where the shapes do not go together.
std::optional<std::vector<int64_t>> broadcast(std::span<const int64_t> a,
                                              std::span<const int64_t> b);
// From 0 to rank - 1, or -1 where `axis` is outside.
int64_t wrap_axis(int64_t axis, size_t rank);

// Larger than any tensor that fits a device. Sizes up to here and their sums stay within 64 bits.
inline constexpr int64_t max_elements = int64_t{1} << 40;
// Whether all sizes are from 0 and the tensor has at most max_elements.
bool is_reasonable(const Type& type);
// The product, or 2^62 with its sign where that is less: never overflows, and never reasonable.
int64_t bounded_product(int64_t a, int64_t b);

// Rules that several operators share.
Result<Types> infer_same(const Graph& graph, const Node& node);       // type of input 0
Result<Types> infer_broadcast(const Graph& graph, const Node& node);  // all inputs, their type
uint64_t count_none(const Graph& graph, const Node& node);
uint64_t count_output(const Graph& graph, const Node& node);  // 1 per element of output 0
uint64_t count_input(const Graph& graph, const Node& node);   // 1 per element of input 0

// The table, in parts; each sorted by nothing in particular.
std::span<const OpInfo> elementwise_ops();
std::span<const OpInfo> window_ops();
std::span<const OpInfo> matrix_ops();
std::span<const OpInfo> normalisation_ops();
std::span<const OpInfo> movement_ops();
std::span<const OpInfo> reduction_ops();
std::span<const OpInfo> index_ops();
std::span<const OpInfo> picture_ops();
std::span<const OpInfo> quantised_ops();
std::span<const OpInfo> recurrent_ops();

}  // namespace vartml::graph
