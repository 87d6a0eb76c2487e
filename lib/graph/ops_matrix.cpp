// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>
#include <map>

#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

struct GemmSizes {
    int64_t m, n, k;
};

std::optional<GemmSizes> gemm_sizes(const Graph& graph, const Node& node) {
    const auto &a = input_type(graph, node, 0).shape, &b = input_type(graph, node, 1).shape;
    if (a.size() != 2 || b.size() != 2) return std::nullopt;
    const bool trans_a = node.get("transA", int64_t{0}), trans_b = node.get("transB", int64_t{0});
    if (a[trans_a ? 0 : 1] != b[trans_b ? 1 : 0]) return std::nullopt;
    return GemmSizes{a[trans_a ? 1 : 0], b[trans_b ? 0 : 1], a[trans_a ? 0 : 1]};
}

Result<Types> infer_gemm(const Graph& graph, const Node& node) {
    const Type &a = input_type(graph, node, 0), &b = input_type(graph, node, 1);
    const auto sizes = gemm_sizes(graph, node);
    if (!sizes || a.data_type != b.data_type) {
        return bad_node(node, "multiplies " + to_string(a) + " by " + to_string(b) +
                                  ", expected two matrices of one type that go together");
    }
    Type y{a.data_type, {sizes->m, sizes->n}};
    if (has_input(node, 2) && broadcast(y.shape, input_type(graph, node, 2).shape) != y.shape) {
        return bad_node(node, "adds " + to_string(input_type(graph, node, 2)) +
                                  ", which does not broadcast to " + to_string(y));
    }
    return Types{y};
}

uint64_t count_gemm(const Graph& graph, const Node& node) {
    const auto sizes = gemm_sizes(graph, node);
    const uint64_t outputs = count_output(graph, node);
    return sizes
               ? 2 * outputs * static_cast<uint64_t>(sizes->k) + (has_input(node, 2) ? outputs : 0)
               : 0;
}

// Numpy's matmul: 1-D operands are a row or a column, leading axes broadcast.
Result<Types> multiplied(const Graph& graph, const Node& node, size_t second, DataType type) {
    std::vector<int64_t> a = input_type(graph, node, 0).shape;
    std::vector<int64_t> b = input_type(graph, node, second).shape;
    const Error error = bad_node(node, "multiplies " + to_string(input_type(graph, node, 0)) +
                                           " by " + to_string(input_type(graph, node, second)) +
                                           ", which do not go together");
    if (a.empty() || b.empty()) return error;
    const bool row = a.size() == 1, column = b.size() == 1;
    if (row) a.insert(a.begin(), 1);
    if (column) b.push_back(1);
    if (a.back() != b[b.size() - 2]) return error;
    auto shape = broadcast(std::span(a).first(a.size() - 2), std::span(b).first(b.size() - 2));
    if (!shape) return error;
    if (!row) shape->push_back(a[a.size() - 2]);
    if (!column) shape->push_back(b.back());
    return Types{{type, std::move(*shape)}};
}

Result<Types> infer_matmul(const Graph& graph, const Node& node) {
    auto types = multiplied(graph, node, 1, input_type(graph, node, 0).data_type);
    if (types && input_type(graph, node, 1).data_type != types->front().data_type) {
        return bad_node(node, "multiplies " + to_string(input_type(graph, node, 0)) + " by " +
                                  to_string(input_type(graph, node, 1)) + ", expected one type");
    }
    if (types && has_input(node, 2)) {
        const Type& bias = input_type(graph, node, 2);
        if (types->front().shape.empty() ||
            bias.shape != std::vector<int64_t>{types->front().shape.back()}) {
            return bad_node(node, "has the bias " + to_string(bias) +
                                      ", expected one element per column of " +
                                      to_string(types->front()));
        }
    }
    return types;
}
Result<Types> infer_matmul_integer(const Graph& graph, const Node& node) {
    return multiplied(graph, node, 1, DataType::int32);
}
Result<Types> infer_qlinear_matmul(const Graph& graph, const Node& node) {
    auto types = multiplied(graph, node, 3, input_type(graph, node, 7).data_type);
    if (!types || !has_input(node, 8)) return types;
    const Type& bias = input_type(graph, node, 8);
    if (types->front().shape.empty() ||
        bias != Type{DataType::int32, {types->front().shape.back()}}) {
        return bad_node(node, "has the bias " + to_string(bias) +
                                  ", expected i32 with one element per column of " +
                                  to_string(types->front()));
    }
    return types;
}

uint64_t count_matmul(const Graph& graph, const Node& node) {
    const auto& a = input_type(graph, node, 0).shape;
    const uint64_t outputs = count_output(graph, node);
    const bool bias =
        has_input(node, node.base() == "QLinearMatMul" ? 8 : 2) && node.base() != "MatMulInteger";
    return 2 * outputs * static_cast<uint64_t>(a.back()) + (bias ? outputs : 0);
}

// Sizes of the labels of an Einsum; labels of the ellipsis are '0', '1', … from the right.
struct Einsum {
    std::map<char, int64_t> sizes;
    std::string output;
};

std::string replace_ellipsis(std::string term, size_t axes) {
    const size_t dots = term.find("...");
    if (dots == term.npos) return term;
    std::string labels;
    for (size_t i = axes; i-- > 0;) labels += static_cast<char>('0' + i);
    return term.replace(dots, 3, labels);
}

std::optional<Einsum> parse_einsum(const Graph& graph, const Node& node) {
    std::string equation = node.get("equation", "");
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    std::string rest = equation.substr(0, arrow) + ',';
    Einsum einsum;
    std::map<char, int> seen;
    size_t most_axes = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        const size_t comma = rest.find(',');
        if (comma == rest.npos) return std::nullopt;
        const auto& shape = input_type(graph, node, i).shape;
        std::string term = rest.substr(0, comma);
        rest.erase(0, comma + 1);
        if (term.find("...") != term.npos) {
            if (shape.size() + 3 < term.size()) return std::nullopt;
            const size_t axes = shape.size() + 3 - term.size();
            if (axes > 10) return std::nullopt;
            most_axes = std::max(most_axes, axes);
            term = replace_ellipsis(term, axes);
        }
        if (term.size() != shape.size()) return std::nullopt;
        for (size_t axis = 0; axis < term.size(); ++axis) {
            const auto [entry, added] = einsum.sizes.try_emplace(term[axis], shape[axis]);
            if (!added && entry->second != shape[axis] && entry->second != 1 && shape[axis] != 1) {
                return std::nullopt;
            }
            entry->second = std::max(entry->second, shape[axis]);
            ++seen[term[axis]];
        }
    }
    if (!rest.empty()) return std::nullopt;
    if (arrow != equation.npos) {
        einsum.output = replace_ellipsis(equation.substr(arrow + 2), most_axes);
    } else {
        // Without an arrow: the ellipsis, then the labels seen once, in alphabetical order.
        einsum.output = replace_ellipsis("...", most_axes);
        for (const auto& [label, times] : seen) {
            if (times == 1 && (label < '0' || label > '9')) einsum.output += label;
        }
    }
    return einsum;
}

Result<Types> infer_einsum(const Graph& graph, const Node& node) {
    const auto einsum = parse_einsum(graph, node);
    Type y{input_type(graph, node, 0).data_type, {}};
    for (const char label : einsum ? einsum->output : std::string()) {
        const auto size = einsum->sizes.find(label);
        if (size == einsum->sizes.end()) {
            return bad_node(node, std::string("uses the label '") + label + "' only in its output");
        }
        y.shape.push_back(size->second);
    }
    if (!einsum) {
        return bad_node(node, "has the equation '" + node.get("equation", "") +
                                  "', which does not fit its inputs");
    }
    return Types{y};
}

uint64_t count_einsum(const Graph& graph, const Node& node) {
    const auto einsum = parse_einsum(graph, node);
    if (!einsum || node.inputs.size() < 2) return 0;
    uint64_t terms = 1;
    for (const auto& [label, size] : einsum->sizes) terms *= static_cast<uint64_t>(size);
    return 2 * terms * (node.inputs.size() - 1);
}

// com.microsoft: x [batch, sequence, width] times weight [width, q + k + v].
Result<Types> infer_attention(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1);
    const auto sizes = node.get("qkv_hidden_sizes", std::vector<int64_t>());
    if (x.shape.size() != 3 || w.shape.size() != 2 || (!sizes.empty() && sizes.size() != 3) ||
        node.outputs.size() > 1) {
        return bad_node(node, "has inputs " + to_string(x) + " and " + to_string(w) +
                                  ", expected rank 3 and rank 2, and one output");
    }
    return Types{
        {x.data_type, {x.shape[0], x.shape[1], sizes.empty() ? w.shape[1] / 3 : sizes[2]}}};
}

// The projection, then scores and their product with v.
uint64_t count_attention(const Graph& graph, const Node& node) {
    const auto &x = input_type(graph, node, 0).shape, &w = input_type(graph, node, 1).shape;
    const uint64_t tokens = static_cast<uint64_t>(x[0] * x[1]);
    const uint64_t width = static_cast<uint64_t>(w[1] / 3);
    return 2 * tokens * static_cast<uint64_t>(x[2] * w[1]) +
           4 * tokens * static_cast<uint64_t>(x[1]) * width;
}

constexpr OpInfo ops[] = {
    {"Gemm", 2, 3, 1, 1, "alpha:f beta:f transA:i transB:i", infer_gemm, count_gemm},
    {"MatMul", 2, 3, 1, 1, "", infer_matmul, count_matmul},
    {"MatMulInteger", 2, 4, 1, 1, "", infer_matmul_integer, count_matmul},
    {"QLinearMatMul", 8, 9, 1, 1, "", infer_qlinear_matmul, count_matmul},
    {"Einsum", 1, -1, 1, 1, "equation:s*", infer_einsum, count_einsum},
    {"Attention", 2, 7, 1, 2,
     "do_rotary:i mask_filter_value:f num_heads:i* past_present_share_buffer:i qkv_hidden_sizes:is "
     "rotary_embedding_dim:i scale:f unidirectional:i",
     infer_attention, count_attention},
};

}  // namespace

std::span<const OpInfo> matrix_ops() {
    return ops;
}

}  // namespace vartml::graph
