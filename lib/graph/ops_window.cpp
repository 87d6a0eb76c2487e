// SPDX-License-Identifier: Apache-2.0
// Operators with a sliding window: convolution and pooling.
#include "lib/graph/ops_window.h"

#include <algorithm>

#include "lib/graph/ops.h"

namespace vartml::graph {
namespace {

// Index of the weight input, or 0 where the kernel is an attribute.
size_t weight_input(std::string_view base) {
    if (base == "QLinearConv") return 3;
    return base == "Conv" || base == "ConvTranspose" || base == "ConvInteger" ||
                   base == "DeformConv"
               ? 1
               : 0;
}

bool all_at_least(const std::vector<int64_t>& values, int64_t low) {
    return std::ranges::all_of(values, [low](int64_t v) { return v >= low && v <= INT32_MAX; });
}

Result<Types> convolved(const Graph& graph, const Node& node, size_t weight, DataType type,
                        size_t bias) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, weight);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    if (x.shape[1] != w.shape[1] * window->group || w.shape[0] % window->group != 0) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and " + std::to_string(window->group) +
                                  " groups, whose channels do not go together");
    }
    if (has_input(node, bias) &&
        input_type(graph, node, bias).shape != std::vector<int64_t>{w.shape[0]}) {
        return bad_node(node, "has the bias " + to_string(input_type(graph, node, bias)) +
                                  ", expected one element per output channel of the weight " +
                                  to_string(w));
    }
    Type y{type, {x.shape[0], w.shape[0]}};
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape.push_back(window_positions(x.shape[i + 2], *window, i, false));
        if (y.shape.back() < 1) {
            return bad_node(node, "has the padded input " + to_string(x) +
                                      ", which is smaller than the kernel of the weight " +
                                      to_string(w));
        }
    }
    return Types{y};
}

Result<Types> infer_conv(const Graph& graph, const Node& node) {
    return convolved(graph, node, 1, input_type(graph, node, 0).data_type, 2);
}
// Scales and zero points: one element, those of the weight perhaps one per output channel.
Result<void> check_parameters(const Graph& graph, const Node& node, size_t weight,
                              std::initializer_list<size_t> inputs,
                              std::initializer_list<size_t> of_weight) {
    const int64_t channels = input_type(graph, node, weight).shape[0];
    for (const auto& [list, most] :
         {std::pair(inputs, int64_t{1}), std::pair(of_weight, channels)}) {
        for (const size_t input : list) {
            if (!has_input(node, input)) continue;
            const Type& parameter = input_type(graph, node, input);
            if (parameter.elements() == 1 ||
                (parameter.shape.size() == 1 && parameter.elements() == most))
                continue;
            return bad_node(node, "has the scale or zero point " + to_string(parameter) +
                                      ", expected one element" +
                                      (most == 1 ? "" : " or one per output channel"));
        }
    }
    return {};
}

Result<Types> infer_conv_integer(const Graph& graph, const Node& node) {
    auto types = convolved(graph, node, 1, DataType::int32, node.inputs.size());
    if (!types) return types;
    if (auto ok = check_parameters(graph, node, 1, {2}, {3}); !ok) return ok.error();
    return types;
}
Result<Types> infer_qlinear_conv(const Graph& graph, const Node& node) {
    auto types = convolved(graph, node, 3, input_type(graph, node, 7).data_type, 8);
    if (!types) return types;
    if (auto ok = check_parameters(graph, node, 3, {1, 2, 6, 7}, {4, 5}); !ok) return ok.error();
    return types;
}

Result<Types> infer_conv_transpose(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    const auto output_padding = node.get("output_padding", std::vector<int64_t>(window->rank(), 0));
    if (x.shape[1] != w.shape[0] || w.shape[0] % window->group != 0 ||
        output_padding.size() != window->rank()) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and " + std::to_string(window->group) +
                                  " groups, which do not go together");
    }
    Type y{x.data_type, {x.shape[0], w.shape[1] * window->group}};
    if (has_input(node, 2) &&
        input_type(graph, node, 2).shape != std::vector<int64_t>{y.shape[1]}) {
        return bad_node(node, "has the bias " + to_string(input_type(graph, node, 2)) +
                                  ", expected one element per output channel (" +
                                  std::to_string(y.shape[1]) + ')');
    }
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape.push_back(bounded_product(window->strides[i], x.shape[i + 2] - 1) +
                          window->extent(i) + output_padding[i] - window->pads_begin[i] -
                          window->pads_end[i]);
    }
    return Types{y};
}

Result<Types> infer_pool(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    const bool ceil_mode = node.get("ceil_mode", int64_t{0}) != 0;
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape[i + 2] = window_positions(y.shape[i + 2], *window, i, ceil_mode);
        if (y.shape[i + 2] < 1) {
            return bad_node(node, "has the padded input " + to_string(input_type(graph, node, 0)) +
                                      ", which is smaller than its kernel " +
                                      to_string(window->kernel));
        }
    }
    return Types{y, {DataType::int64, y.shape}};
}

Result<Types> infer_global_pool(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (y.shape.size() < 2) {
        return bad_node(node, "has the input " + to_string(y) + ", expected rank 2 or more");
    }
    std::fill(y.shape.begin() + 2, y.shape.end(), 1);
    return Types{y};
}

uint64_t product(const std::vector<int64_t>& values) {
    uint64_t n = 1;
    for (const int64_t v : values) n = saturating_product(n, static_cast<uint64_t>(v));
    return n;
}

// 1 per output element with bias.
uint64_t count_conv(const Graph& graph, const Node& node) {
    const std::string_view base = node.base();
    const size_t bias = base == "QLinearConv" ? 8 : 2;
    const bool has_bias = base != "ConvInteger" && has_input(node, bias);
    return has_bias ? count_output(graph, node) : 0;
}

// Elements of the weight for each of its first dimension: filters, or inputs of ConvTranspose.
uint64_t weights_per_first(const Type& w) {
    return product(w.shape) / std::max<uint64_t>(static_cast<uint64_t>(w.shape[0]), 1);
}

uint64_t macs_conv(const Graph& graph, const Node& node) {
    const Type& w = input_type(graph, node, weight_input(node.base()));
    return saturating_product(count_output(graph, node), weights_per_first(w));
}

uint64_t macs_conv_transpose(const Graph& graph, const Node& node) {
    return saturating_product(count_input(graph, node),
                              weights_per_first(input_type(graph, node, 1)));
}

uint64_t count_pool(const Graph& graph, const Node& node) {
    auto window = window_of(graph, node);
    return window ? saturating_product(count_output(graph, node), product(window->kernel)) : 0;
}

constexpr std::string_view conv_attributes = "dilations:is group:i pads:is strides:is";
constexpr OpInfo ops[] = {
    {"Conv", 2, 3, 1, 1, conv_attributes, infer_conv, count_conv, macs_conv},
    {"ConvInteger", 2, 4, 1, 1, conv_attributes, infer_conv_integer, count_conv, macs_conv},
    {"QLinearConv", 8, 9, 1, 1, conv_attributes, infer_qlinear_conv, count_conv, macs_conv},
    {"ConvTranspose", 2, 3, 1, 1, "dilations:is group:i output_padding:is pads:is strides:is",
     infer_conv_transpose, count_conv, macs_conv_transpose},
    {"MaxPool", 1, 1, 1, 2,
     "ceil_mode:i dilations:is kernel_shape:is* pads:is storage_order:i strides:is", infer_pool,
     count_pool},
    {"AveragePool", 1, 1, 1, 1,
     "ceil_mode:i count_include_pad:i dilations:is kernel_shape:is* pads:is strides:is", infer_pool,
     count_pool},
    {"LpPool", 1, 1, 1, 1, "ceil_mode:i dilations:is kernel_shape:is* p:i pads:is strides:is",
     infer_pool, count_pool},
    {"GlobalAveragePool", 1, 1, 1, 1, "", infer_global_pool, count_input},
    {"GlobalLpPool", 1, 1, 1, 1, "p:i", infer_global_pool, count_input},
    {"GlobalMaxPool", 1, 1, 1, 1, "", infer_global_pool, count_input},
};

}  // namespace

std::span<const OpInfo> window_ops() {
    return ops;
}

Result<Window> window_of(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const size_t weight = weight_input(node.base());
    if (x.shape.size() < 3) {
        return bad_node(node, "has the input " + to_string(x) + ", expected rank 3 or more");
    }
    const size_t rank = x.shape.size() - 2;
    Window window;
    if (weight) {
        const Type& w = input_type(graph, node, weight);
        if (w.shape.size() != x.shape.size()) {
            return bad_node(node, "has the input " + to_string(x) + " and the weight " +
                                      to_string(w) + ", expected equal ranks");
        }
        window.kernel.assign(w.shape.begin() + 2, w.shape.end());
    } else {
        window.kernel = node.get("kernel_shape", std::vector<int64_t>());
    }
    window.strides = node.get("strides", std::vector<int64_t>(rank, 1));
    window.dilations = node.get("dilations", std::vector<int64_t>(rank, 1));
    window.group = node.get("group", int64_t{1});
    const auto pads = node.get("pads", std::vector<int64_t>(2 * rank, 0));
    if (window.kernel.size() != rank || window.strides.size() != rank ||
        window.dilations.size() != rank || pads.size() != 2 * rank ||
        !all_at_least(window.kernel, 1) || !all_at_least(window.strides, 1) ||
        !all_at_least(window.dilations, 1) || !all_at_least(pads, 0) || window.group < 1 ||
        window.group > 1 << 20) {
        return bad_node(node, "has the kernel " + to_string(window.kernel) + ", strides " +
                                  to_string(window.strides) + ", dilations " +
                                  to_string(window.dilations) + ", pads " + to_string(pads) +
                                  " and group " + std::to_string(window.group) +
                                  ", which do not fit the input " + to_string(x));
    }
    const auto middle = pads.begin() + static_cast<ptrdiff_t>(rank);
    window.pads_begin.assign(pads.begin(), middle);
    window.pads_end.assign(middle, pads.end());
    return window;
}

int64_t window_positions(int64_t size, const Window& window, size_t axis, bool ceil_mode) {
    const int64_t stride = window.strides[axis];
    const int64_t room =
        size + window.pads_begin[axis] + window.pads_end[axis] - window.extent(axis);
    if (room < 0) return 0;
    int64_t positions = room / stride + 1;
    // A last window that would lie wholly in the end padding is dropped (ONNX, from set 19 on
    // explicit).
    if (ceil_mode && room % stride != 0 && positions * stride < size + window.pads_begin[axis]) {
        ++positions;
    }
    return positions;
}

}  // namespace vartml::graph
