// SPDX-License-Identifier: Apache-2.0
// Quantise, dequantise and the element-wise QLinear forms; products are in ops_window.cpp and
// ops_matrix.cpp.
#include "lib/graph/op_rules.h"
#include "lib/graph/window.h"

namespace vartml::graph {

namespace {

Result<Types> infer_quantise(const Graph& graph, const Node& node) {
    DataType type = DataType::uint8;
    const std::string name = node.get("output_dtype", "");
    if (has_input(node, 2)) {
        type = input_type(graph, node, 2).data_type;
    } else if (const auto named = parse_short_name(name)) {
        type = *named;
    } else if (!name.empty()) {
        return bad_node(node, "makes '" + name + "', expected a type such as u8 or i8");
    }
    return Types{{type, input_type(graph, node, 0).shape}};
}

Result<Types> infer_dequantise(const Graph& graph, const Node& node) {
    return Types{{input_type(graph, node, 1).data_type, input_type(graph, node, 0).shape}};
}

// x xs xz ys yz
Result<Types> infer_unary(const Graph& graph, const Node& node) {
    return Types{input_type(graph, node, 0)};
}

// a as az b bs bz ys yz
Result<Types> infer_binary(const Graph& graph, const Node& node) {
    const Type &a = input_type(graph, node, 0), &b = input_type(graph, node, 3);
    auto shape = broadcast(a.shape, b.shape);
    if (!shape) {
        return bad_node(node, "has inputs " + to_string(a) + " and " + to_string(b) +
                                  ", which do not broadcast");
    }
    return Types{{a.data_type, std::move(*shape)}};
}

// The float operator of the same shapes, with these inputs.
Result<Types> infer_as(const Graph& graph, const Node& node, const char* kind,
                       std::vector<ValueId> inputs) {
    Node plain = node;
    plain.kind = kind;
    plain.inputs = std::move(inputs);
    return infer_types(graph, plain);
}

// ys yz (x xs xz)...
Result<Types> infer_concat(const Graph& graph, const Node& node) {
    if (node.inputs.size() % 3 != 2) {
        return bad_node(node, "has " + std::to_string(node.inputs.size()) +
                                  " inputs, expected 2 and 3 more per tensor");
    }
    std::vector<ValueId> tensors;
    for (size_t i = 2; i < node.inputs.size(); i += 3) tensors.push_back(node.inputs[i]);
    return infer_as(graph, node, "Concat", std::move(tensors));
}

Result<Types> infer_average_pool(const Graph& graph, const Node& node) {
    return infer_as(graph, node, "AveragePool", {node.inputs[0]});
}

Result<Types> infer_global_average_pool(const Graph& graph, const Node& node) {
    return infer_as(graph, node, "GlobalAveragePool", {node.inputs[0]});
}

uint64_t count_average_pool(const Graph& graph, const Node& node) {
    uint64_t area = 1;
    for (const int64_t size : node.get("kernel_shape", std::vector<int64_t>())) {
        area = saturating_product(area, static_cast<uint64_t>(size));
    }
    return saturating_product(area, count_output(graph, node));
}

uint64_t count_softmax(const Graph& graph, const Node& node) {
    return 5 * count_output(graph, node);
}

constexpr OpInfo ops[] = {
    {"QuantizeLinear", 2, 3, 1, 1, "axis:i block_size:i output_dtype:s", infer_quantise,
     count_output},
    {"DequantizeLinear", 2, 3, 1, 1, "axis:i block_size:i output_dtype:s", infer_dequantise,
     count_output},
    {"QLinearAdd", 8, 8, 1, 1, "", infer_binary, count_output},
    {"QLinearMul", 8, 8, 1, 1, "", infer_binary, count_output},
    {"QLinearConcat", 5, -1, 1, 1, "axis:i*", infer_concat, count_none},
    {"QLinearSigmoid", 5, 5, 1, 1, "", infer_unary, count_output},
    {"QLinearLeakyRelu", 5, 5, 1, 1, "alpha:f", infer_unary, count_output},
    {"QLinearSoftmax", 5, 5, 1, 1, "axis:i", infer_unary, count_softmax},
    {"QLinearAveragePool", 5, 5, 1, 1,
     "ceil_mode:i count_include_pad:i dilations:is kernel_shape:is* pads:is strides:is",
     infer_average_pool, count_average_pool},
    {"QLinearGlobalAveragePool", 5, 5, 1, 1, "", infer_global_average_pool, count_input},
};

}  // namespace

std::span<const OpInfo> quantised_ops() {
    return ops;
}

}  // namespace vartml::graph
