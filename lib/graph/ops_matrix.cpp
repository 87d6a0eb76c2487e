// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>

#include "lib/graph/einsum.h"
#include "lib/graph/ops.h"

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
    return has_input(node, 2) ? count_output(graph, node) : 0;
}

uint64_t macs_gemm(const Graph& graph, const Node& node) {
    const auto sizes = gemm_sizes(graph, node);
    return sizes ? saturating_product(count_output(graph, node), static_cast<uint64_t>(sizes->k))
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
// A scale or zero point of a product: one element; else one per row or column of a matrix, as a
// list or with the rank of the matrix.
Result<void> check_parameter(const Graph& graph, const Node& node, size_t input, const Type& matrix,
                             size_t axis_from_end) {
    if (!has_input(node, input)) return {};
    const Type& parameter = input_type(graph, node, input);
    const size_t rank = matrix.shape.size();
    if (parameter.elements() == 1 && parameter.shape.size() <= std::max<size_t>(rank, 1)) return {};
    const bool products = input_type(graph, node, 0).shape.size() > 1 && rank > 1;
    bool fits = products && (parameter.shape.size() == 1 || parameter.shape.size() == rank);
    for (size_t i = 0; fits && i < parameter.shape.size(); ++i) {
        const size_t axis = parameter.shape.size() == 1 ? rank - axis_from_end : i;
        const bool other_axis = axis + 2 >= rank && axis != rank - axis_from_end;
        fits = parameter.shape[i] == (other_axis ? 1 : matrix.shape[axis]);
    }
    if (fits) return {};
    return bad_node(node, "has the scale or zero point " + to_string(parameter) +
                              ", which does not fit the rows or columns of " + to_string(matrix));
}

struct ParameterOf {
    size_t input, matrix, axis_from_end;  // 2: per row, 1: per column
};
Result<void> check_parameters(const Graph& graph, const Node& node, const Type& y,
                              std::initializer_list<ParameterOf> parameters) {
    for (const auto& [input, matrix, axis] : parameters) {
        const Type& of = matrix == SIZE_MAX ? y : input_type(graph, node, matrix);
        if (auto ok = check_parameter(graph, node, input, of, axis); !ok) return ok;
    }
    return {};
}

Result<Types> infer_matmul_integer(const Graph& graph, const Node& node) {
    auto types = multiplied(graph, node, 1, DataType::int32);
    if (!types) return types;
    if (auto ok = check_parameters(graph, node, types->front(), {{2, 0, 2}, {3, 1, 1}}); !ok)
        return ok.error();
    return types;
}
Result<Types> infer_qlinear_matmul(const Graph& graph, const Node& node) {
    auto types = multiplied(graph, node, 3, input_type(graph, node, 7).data_type);
    if (!types) return types;
    constexpr size_t result = SIZE_MAX;
    auto ok = check_parameters(
        graph, node, types->front(),
        {{1, 0, 2}, {2, 0, 2}, {4, 3, 1}, {5, 3, 1}, {6, result, 2}, {7, result, 2}});
    if (!ok) return ok.error();
    if (!has_input(node, 8)) return types;
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
    const bool bias =
        has_input(node, node.base() == "QLinearMatMul" ? 8 : 2) && node.base() != "MatMulInteger";
    return bias ? count_output(graph, node) : 0;
}

uint64_t macs_matmul(const Graph& graph, const Node& node) {
    const auto& a = input_type(graph, node, 0).shape;
    return saturating_product(count_output(graph, node), static_cast<uint64_t>(a.back()));
}

std::optional<Einsum> einsum_of(const Graph& graph, const Node& node) {
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!has_input(node, i)) return std::nullopt;
        shapes.push_back(input_type(graph, node, i).shape);
    }
    return parse_einsum(node.get("equation", ""), shapes);
}

Result<Types> infer_einsum(const Graph& graph, const Node& node) {
    const auto einsum = einsum_of(graph, node);
    if (!einsum) {
        return bad_node(node, "has the equation '" + node.get("equation", "") +
                                  "', which does not fit its inputs");
    }
    Type y{input_type(graph, node, 0).data_type, {}};
    for (const char label : einsum->output) y.shape.push_back(einsum->sizes.at(label));
    return Types{y};
}

uint64_t macs_einsum(const Graph& graph, const Node& node) {
    const auto einsum = einsum_of(graph, node);
    if (!einsum || node.inputs.size() < 2) return 0;
    uint64_t terms = 1;
    for (const auto& [label, size] : einsum->sizes)
        terms = saturating_product(terms, static_cast<uint64_t>(size));
    return saturating_product(terms, node.inputs.size() - 1);
}

// What the node asks for beyond x, weight, bias, mask and a bias of the scores.
Result<void> check_attention_extras(const Node& node) {
    const std::pair<bool, const char*> extras[] = {
        {node.outputs.size() > 1, "makes the present state"},
        {has_input(node, 4) || has_input(node, 6), "reads a past state"},
        {node.get("do_rotary", int64_t{0}) != 0, "turns its inputs by their position (do_rotary)"},
        {node.get("past_present_share_buffer", int64_t{0}) != 0, "shares its state's buffer"},
    };
    for (const auto& [found, what] : extras) {
        if (!found) continue;
        return Error{ErrorCode::unsupported, "node '" + node.name + "' (" + node.kind + ") " +
                                                 what + ", which cannot be compiled"};
    }
    return {};
}

// com.microsoft: x [batch, sequence, width] times weight [width, q + k + v].
Result<Types> infer_attention(const Graph& graph, const Node& node) {
    if (auto ok = check_attention_extras(node); !ok) return ok.error();
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1);
    if (x.shape.size() != 3 || w.shape.size() != 2 || x.shape[2] != w.shape[0]) {
        return bad_node(node, "has inputs " + to_string(x) + " and " + to_string(w) +
                                  ", expected rank 3 and rank 2 that go together");
    }
    const auto sizes = node.get("qkv_hidden_sizes", std::vector<int64_t>(3, w.shape[1] / 3));
    const int64_t heads = node.get("num_heads", int64_t{0});
    const bool split = sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] >= 1 &&
                       sizes[2] >= 1 && sizes[0] + sizes[1] + sizes[2] == w.shape[1];
    if (!split || heads < 1 || sizes[0] % heads != 0 || sizes[2] % heads != 0) {
        return bad_node(node, "splits the weight " + to_string(w) + " into " + to_string(sizes) +
                                  " and " + std::to_string(heads) +
                                  " heads, which do not go together");
    }
    const int64_t batch = x.shape[0], length = x.shape[1];
    const auto is_one_of = [&](size_t input, std::initializer_list<std::vector<int64_t>> shapes) {
        return !has_input(node, input) ||
               std::ranges::find(shapes, input_type(graph, node, input).shape) != shapes.end();
    };
    if (!is_one_of(2, {{w.shape[1]}}) ||
        !is_one_of(3, {{batch}, {2 * batch}, {batch, length}, {batch, length, length}}) ||
        !is_one_of(5, {{1, 1, length, length},
                       {1, heads, length, length},
                       {batch, 1, length, length},
                       {batch, heads, length, length}})) {
        return bad_node(node, "has a bias or a mask that does not fit its input " + to_string(x) +
                                  " and " + std::to_string(heads) + " heads");
    }
    return Types{{x.data_type, {batch, length, sizes[2]}}};
}

// The projection, then scores and their product with v.
uint64_t macs_attention(const Graph& graph, const Node& node) {
    const auto &x = input_type(graph, node, 0).shape, &w = input_type(graph, node, 1).shape;
    const uint64_t tokens = static_cast<uint64_t>(x[0] * x[1]);
    const uint64_t width = static_cast<uint64_t>(w[1] / 3);
    const uint64_t scores = saturating_product(tokens, static_cast<uint64_t>(x[1]));
    return saturating_sum(saturating_product(tokens, static_cast<uint64_t>(w[0] * w[1])),
                          saturating_product(saturating_product(2, scores), width));
}

constexpr OpInfo ops[] = {
    {"Gemm", 2, 3, 1, 1, "alpha:f beta:f transA:i transB:i", infer_gemm, count_gemm, macs_gemm},
    {"MatMul", 2, 3, 1, 1, "", infer_matmul, count_matmul, macs_matmul},
    {"MatMulInteger", 2, 4, 1, 1, "", infer_matmul_integer, count_matmul, macs_matmul},
    {"QLinearMatMul", 8, 9, 1, 1, "", infer_qlinear_matmul, count_matmul, macs_matmul},
    {"Einsum", 1, -1, 1, 1, "equation:s*", infer_einsum, count_none, macs_einsum},
    {"Attention", 2, 7, 1, 2,
     "do_rotary:i mask_filter_value:f num_heads:i* past_present_share_buffer:i qkv_hidden_sizes:is "
     "rotary_embedding_dim:i scale:f unidirectional:i",
     infer_attention, count_none, macs_attention},
};

}  // namespace

std::span<const OpInfo> matrix_ops() {
    return ops;
}

}  // namespace vartml::graph
