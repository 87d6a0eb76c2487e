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

Result<Types> infer_groups(const Graph& graph, const Node& node) {
    auto types = infer_per_channel(graph, node);
    if (!types) return types;
    const int64_t groups = node.get("num_groups", int64_t{0}), channels = types->front().shape[1];
    if (groups < 1 || channels % groups != 0) {
        return bad_node(node, "makes " + std::to_string(groups) + " groups of the channels of " +
                                  to_string(types->front()));
    }
    return types;
}

Result<Types> infer_lp(const Graph& graph, const Node& node) {
    const int64_t p = node.get("p", int64_t{2});
    if (p != 1 && p != 2) {
        return bad_node(node, "has p " + std::to_string(p) + ", expected 1 or 2");
    }
    return infer_axis(graph, node);
}

Result<Types> infer_local_response(const Graph& graph, const Node& node) {
    const int64_t size = node.get("size", int64_t{0});
    if (size < 1 || size > max_elements) {
        return bad_node(node, "sums over " + std::to_string(size) + " channels");
    }
    return infer_per_channel(graph, node);
}

Result<Types> infer_mean_variance(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto axes = node.get("axes", std::vector<int64_t>());
    for (const int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) {
            return bad_node(node, "normalises axes " + to_string(axes) + ", outside of its input " +
                                      to_string(x));
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
    {"GroupNormalization", 3, 3, 1, 1, "epsilon:f num_groups:i*", infer_groups,
     count_normalisation},
    {"InstanceNormalization", 3, 3, 1, 1, "epsilon:f", infer_per_channel, count_normalisation},
    {"LayerNormalization", 2, 3, 1, 3, "axis:i epsilon:f", infer_layer, count_normalisation},
    {"RMSNormalization", 2, 2, 1, 1, "axis:i epsilon:f", infer_layer, count_normalisation},
    {"LpNormalization", 1, 1, 1, 1, "axis:i p:i", infer_lp, count_normalisation},
    {"LRN", 1, 1, 1, 1, "alpha:f beta:f bias:f size:i*", infer_local_response, count_normalisation},
    {"MeanVarianceNormalization", 1, 1, 1, 1, "axes:is", infer_mean_variance, count_normalisation},
    {"Softmax", 1, 1, 1, 1, "axis:i", infer_axis, count_softmax},
    {"LogSoftmax", 1, 1, 1, 1, "axis:i", infer_axis, count_softmax},
    {"Hardmax", 1, 1, 1, 1, "axis:i", infer_axis, count_none},
};

}  // namespace

std::span<const OpInfo> normalisation_ops() {
    return ops;
}

}  // namespace vartml::graph
