// SPDX-License-Identifier: Apache-2.0
// Normalisation and softmax: the shape stays.
#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

Result<Types> infer_axis(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = node.get("axis", int64_t{-1});
    if (!x.shape.empty() && wrap_axis(axis, x.shape.size()) < 0) {
        return bad_node(node, "has the axis " + std::to_string(axis) + ", outside of its input " +
                                  to_string(x));
    }
    return Types{x};
}

// The inputs from 1 on hold one element per channel.
Result<Types> infer_per_channel(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (x.shape.size() < 2) {
        return bad_node(node, "has the input " + to_string(x) + ", expected rank 2 or more");
    }
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (input_type(graph, node, i).shape != std::vector<int64_t>{x.shape[1]}) {
            return bad_node(node, "has the parameter " + to_string(input_type(graph, node, i)) +
                                      ", expected one element per channel of " + to_string(x));
        }
    }
    return Types{x};
}

// scale and bias broadcast to the axes from `axis` on; mean and inverse deviation are the other
// outputs.
Result<Types> infer_layer(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{-1}), x.shape.size());
    if (axis < 0) return infer_axis(graph, node);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (has_input(node, i) && broadcast(x.shape, input_type(graph, node, i).shape) != x.shape) {
            return bad_node(node, "has the parameter " + to_string(input_type(graph, node, i)) +
                                      ", which does not broadcast to " + to_string(x));
        }
    }
    Type statistics{DataType::float32, x.shape};
    for (size_t i = static_cast<size_t>(axis); i < x.shape.size(); ++i) statistics.shape[i] = 1;
    return Types{x, statistics, statistics};
}

uint64_t count_softmax(const Graph& graph, const Node& node) {
    return 5 * count_output(graph, node);
}
uint64_t count_normalisation(const Graph& graph, const Node& node) {
    return 4 * count_output(graph, node);
}

constexpr OpInfo ops[] = {
    {"BatchNormalization", 5, 5, 1, 1, "epsilon:f", infer_per_channel, count_normalisation},
    {"GroupNormalization", 3, 3, 1, 1, "epsilon:f num_groups:i*", infer_per_channel,
     count_normalisation},
    {"InstanceNormalization", 3, 3, 1, 1, "epsilon:f", infer_per_channel, count_normalisation},
    {"LayerNormalization", 2, 3, 1, 3, "axis:i epsilon:f", infer_layer, count_normalisation},
    {"RMSNormalization", 2, 2, 1, 1, "axis:i epsilon:f", infer_layer, count_normalisation},
    {"LpNormalization", 1, 1, 1, 1, "axis:i p:i", infer_axis, count_normalisation},
    {"LRN", 1, 1, 1, 1, "alpha:f beta:f bias:f size:i*", infer_same, count_normalisation},
    {"MeanVarianceNormalization", 1, 1, 1, 1, "axes:is", infer_same, count_normalisation},
    {"Softmax", 1, 1, 1, 1, "axis:i", infer_axis, count_softmax},
    {"LogSoftmax", 1, 1, 1, 1, "axis:i", infer_axis, count_softmax},
    {"Hardmax", 1, 1, 1, 1, "axis:i", infer_axis, count_none},
};

}  // namespace

std::span<const OpInfo> normalisation_ops() {
    return ops;
}

}  // namespace vartml::graph
