// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/op_rules.h"

#include <algorithm>

namespace vartml::graph {

Error bad_node(const Node& node, const std::string& sentence) {
    return {ErrorCode::bad_model, "node '" + node.name + "' (" + node.kind + ") " + sentence};
}

std::string to_string(std::span<const int64_t> shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(shape[i]);
    }
    return text + ']';
}

std::optional<std::vector<int64_t>> broadcast(std::span<const int64_t> a,
                                              std::span<const int64_t> b) {
    if (a.size() < b.size()) std::swap(a, b);
    std::vector<int64_t> shape(a.begin(), a.end());
    const size_t shift = a.size() - b.size();
    for (size_t i = 0; i < b.size(); ++i) {
        int64_t& size = shape[shift + i];
        if (size == b[i] || b[i] == 1) continue;
        if (size != 1) return std::nullopt;
        size = b[i];
    }
    return shape;
}

int64_t wrap_axis(int64_t axis, size_t rank) {
    const auto n = static_cast<int64_t>(rank);
    if (axis < -n || axis >= n) return -1;
    return axis < 0 ? axis + n : axis;
}

bool is_reasonable(const Type& type) {
    int64_t elements = 1;
    for (const int64_t size : type.shape) {
        if (size < 0 || size > max_elements) return false;
        if (size > 0 && elements > max_elements / size) return false;
        elements *= std::max<int64_t>(size, 1);
    }
    return true;
}

int64_t bounded_product(int64_t a, int64_t b) {
    constexpr int64_t bound = int64_t{1} << 62;
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return (a < 0) != (b < 0) ? -bound : bound;
    return std::clamp(product, -bound, bound);
}

Result<Types> infer_same(const Graph& graph, const Node& node) {
    return Types{input_type(graph, node, 0)};
}

Result<Types> infer_broadcast(const Graph& graph, const Node& node) {
    Type type = input_type(graph, node, 0);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const Type& other = input_type(graph, node, i);
        auto shape = broadcast(type.shape, other.shape);
        if (!shape || other.data_type != type.data_type) {
            return bad_node(node, "has inputs " + to_string(type) + " and " + to_string(other) +
                                      ", which do not broadcast");
        }
        type.shape = std::move(*shape);
    }
    return Types{type};
}

uint64_t count_none(const Graph&, const Node&) {
    return 0;
}

uint64_t count_output(const Graph& graph, const Node& node) {
    return static_cast<uint64_t>(output_type(graph, node).elements());
}

uint64_t count_input(const Graph& graph, const Node& node) {
    return static_cast<uint64_t>(input_type(graph, node, 0).elements());
}

}  // namespace vartml::graph
