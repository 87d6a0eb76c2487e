// SPDX-License-Identifier: Apache-2.0
// Products of matrices, of reals and of codes of 8 bits; determinants.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/graph/products.h"
#include "lib/graph/walk.h"

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
        has_input(node, node.kind == "QLinearMatMul" ? 8 : 2) && node.kind != "MatMulInteger";
    return bias ? count_output(graph, node) : 0;
}

uint64_t macs_matmul(const Graph& graph, const Node& node) {
    const auto& a = input_type(graph, node, 0).shape;
    return saturating_product(count_output(graph, node), static_cast<uint64_t>(a.back()));
}

Result<Types> infer_det(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const size_t rank = y.shape.size();
    if (rank < 2 || y.shape[rank - 1] != y.shape[rank - 2]) return bad_inputs(graph, node);
    y.shape.resize(rank - 2);
    return Types{y};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Products of stacks of matrices by numpy's rule.

// y += a * b. The leading axes broadcast; a vector is a row on the left and a column on the right.
template <typename T>
void multiply(const Shape& a_shape, const T* a, const Shape& b_shape, const T* b, T* y) {
    const auto outer_of = [](const Shape& shape) {
        return Shape(
            std::span<const int64_t>(shape).first(shape.size() < 2 ? 0 : shape.size() - 2));
    };
    const bool column = b_shape.size() == 1;
    const int64_t depth = a_shape.back(), columns = column ? 1 : b_shape.back();
    const Shape left = outer_of(a_shape), right = outer_of(b_shape);
    int64_t rows = a_shape.size() == 1 ? 1 : a_shape[a_shape.size() - 2];
    if (right.elements() == 1 && left.size() >= right.size()) {
        // One matrix on the right: the rows of all on the left.
        rows *= left.elements();
        return add_product(rows, columns, depth, a, depth, b, columns, y, columns);
    }
    const Shape& longer = left.size() >= right.size() ? left : right;
    const Shape& shorter = left.size() >= right.size() ? right : left;
    Shape outer = longer;
    for (size_t i = 0; i < shorter.size(); ++i) {
        int64_t& size = outer[outer.size() - shorter.size() + i];
        if (shorter[i] != 1) size = shorter[i];
    }
    Walk<2> walk(outer, {broadcast_strides(left, outer), broadcast_strides(right, outer)});
    for (int64_t i = 0; i < outer.elements(); ++i, walk.next())
        add_product(rows, columns, depth, a + walk.offset(0) * rows * depth, depth,
                    b + walk.offset(1) * depth * columns, columns, y + i * rows * columns, columns);
}

// The types that ONNX multiplies matrices of.
template <typename F>
bool with_factor(DataType type, F f) {
    return with_float(type, f) || with_one_of<int32_t, uint32_t, int64_t, uint64_t>(type, f);
}

template <typename T>
void matmul_as(const Call& call) {
    const Array &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
    const Numbers<T> as(a), bs(b), bias(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> sums(y);
    sums.fill(T());
    if (bias.data()) {
        const int64_t columns = y.shape.back();
        for (int64_t i = 0; i < y.elements(); ++i) sums.data()[i] = bias[i % columns];
    }
    multiply(a.shape, as.data(), b.shape, bs.data(), sums.data());
    sums.store();
}

Result<void> matmul(const Call& call) {
    const bool known = with_factor(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) matmul_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- Gemm
// ----------------------------------------------------------------------------------------------------------

// x * factor; integers round towards 0.
template <typename T>
T scaled(T x, float factor) {
    if (factor == 1) return x;
    if constexpr (std::is_integral_v<T>) {
        using Signed = std::make_signed_t<T>;
        const double product = static_cast<double>(static_cast<Signed>(x)) * factor;
        return static_cast<T>(graph::convert<Signed>(product));
    } else {
        return x * static_cast<T>(factor);
    }
}

// alpha * a * b + beta * c.
template <typename T>
void gemm_as(const Call& call) {
    const Array &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
    const bool trans_a = call.node.get("transA", int64_t{0}) != 0;
    const bool trans_b = call.node.get("transB", int64_t{0}) != 0;
    const int64_t rows = y.shape[0], columns = y.shape[1], depth = a.shape[trans_a ? 0 : 1];
    const Numbers<T> as(a), bs(b), cs(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> sums(y);
    sums.fill(T());
    std::vector<T> left, right;
    const T *l = as.data(), *r = bs.data();
    if (trans_a) {
        left.resize(static_cast<size_t>(rows * depth));
        transpose(depth, rows, l, left.data());
        l = left.data();
    }
    if (trans_b && rows == 1) {
        // The rows of b times a column.
        add_product(columns, 1, depth, r, depth, l, 1, sums.data(), 1);
    } else {
        if (trans_b) {
            right.resize(static_cast<size_t>(depth * columns));
            transpose(columns, depth, r, right.data());
            r = right.data();
        }
        add_product(rows, columns, depth, l, depth, r, columns, sums.data(), columns);
    }
    const float alpha = call.node.get("alpha", 1.0F), beta = call.node.get("beta", 1.0F);
    if (alpha != 1)
        for (int64_t i = 0; i < y.elements(); ++i) sums.data()[i] = scaled(sums.data()[i], alpha);
    if (cs.data()) {
        Walk<1> walk(y.shape, {broadcast_strides(call.inputs[2].shape, y.shape)});
        for (int64_t i = 0; i < y.elements(); ++i, walk.next())
            sums.data()[i] += scaled(cs[walk.offset()], beta);
    }
    sums.store();
}

Result<void> gemm(const Call& call) {
    const bool known = with_factor(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) gemm_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- determinants
// --------------------------------------------------------------------------------------------------

// By elimination with the largest pivot of each column.
double determinant(std::vector<double>& m, size_t n) {
    double product = 1;
    for (size_t column = 0; column < n; ++column) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; ++row)
            if (std::fabs(m[row * n + column]) > std::fabs(m[pivot * n + column])) pivot = row;
        const double head = m[pivot * n + column];
        product *= pivot == column ? head : -head;
        if (head == 0) break;
        for (size_t k = column; pivot != column && k < n; ++k)
            std::swap(m[pivot * n + k], m[column * n + k]);
        for (size_t row = column + 1; row < n; ++row) {
            const double factor = m[row * n + column] / head;
            for (size_t k = column + 1; k < n; ++k) m[row * n + k] -= factor * m[column * n + k];
        }
    }
    return product;
}

Result<void> det(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t n = x.shape.back();
    std::vector<double> matrix;
    const bool known = with_float(x.type, [&]<typename T>(T) {
        for (int64_t i = 0; i < y.elements(); ++i) {
            matrix.clear();
            for (const T v :
                 x.span<T>().subspan(static_cast<size_t>(i * n * n), static_cast<size_t>(n * n)))
                matrix.push_back(graph::convert<double>(v));
            y.as<T>()[i] = graph::convert<T>(determinant(matrix, static_cast<size_t>(n)));
        }
    });
    if (!known) return no_type(call, x.type);
    return {};
}

// Products of matrices of 8-bit integers.

// A scale or zero point of a matrix: one for all, a list for the rows or columns (`axis`), or one
// that broadcasts. Its strides along the axes of `whole`.
Strides parameter_strides(const Shape& parameter, const Shape& whole, size_t axis) {
    if (parameter.elements() == 1) return {};
    if (parameter.size() != 1) return broadcast_strides(parameter, whole);
    Strides strides{};
    strides[axis] = 1;
    return strides;
}

size_t rows_of(const Shape& shape) {
    return shape.size() < 2 ? 0 : shape.size() - 2;
}
size_t columns_of(const Shape& shape) {
    return shape.size() - 1;
}

// Elements minus their zero points.
std::vector<uint32_t> centred(const Array& x, const Array* zero, size_t axis) {
    const Numbers<uint32_t> numbers(x);
    std::vector<uint32_t> centred(numbers.data(), numbers.data() + x.elements());
    if (!zero) return centred;
    const Numbers<uint32_t> zeros(*zero);
    Walk<1> walk(x.shape, {parameter_strides(zero->shape, x.shape, axis)});
    for (uint32_t& v : centred) {
        v -= zeros[walk.offset()];
        walk.next();
    }
    return centred;
}

const Array* input_or_null(const Call& call, size_t i) {
    return call.has_input(i) ? &call.inputs[i] : nullptr;
}

// (a - az) * (b - bz); the indices are those of the inputs.
void multiply_centred(const Call& call, size_t a, size_t az, size_t b, size_t bz, uint32_t* y) {
    const Shape &left = call.inputs[a].shape, &right = call.inputs[b].shape;
    const auto as = centred(call.inputs[a], input_or_null(call, az), rows_of(left));
    const auto bs = centred(call.inputs[b], input_or_null(call, bz), columns_of(right));
    std::fill_n(y, call.outputs[0].elements(), 0U);
    multiply(left, as.data(), right, bs.data(), y);
}

bool is_byte(DataType type) {
    return type == DataType::int8 || type == DataType::uint8;
}

Result<void> matmul_integer(const Call& call) {
    for (const Array& array : call.inputs.first(2))
        if (!is_byte(array.type)) return no_type(call, array.type);
    if (call.outputs[0].elements() > 0)
        multiply_centred(call, 0, 2, 1, 3, call.outputs[0].as<uint32_t>());
    return {};
}

// a as az b bs bz ys yz bias?
template <typename T>
void qlinear_matmul_as(const Call& call) {
    const Array& y = call.outputs[0];
    std::vector<uint32_t> sums(static_cast<size_t>(y.elements()));
    multiply_centred(call, 0, 2, 3, 5, sums.data());
    const Numbers<float> a_scale(call.inputs[1]), b_scale(call.inputs[4]), y_scale(call.inputs[6]);
    const Numbers<int32_t> y_zero(call.inputs[7]);
    const int32_t* const bias = call.has_input(8) ? call.inputs[8].as<int32_t>() : nullptr;
    const size_t columns = y.shape.empty() ? 0 : columns_of(y.shape);
    const size_t rows = rows_of(y.shape);
    const auto strides = [&](size_t input, size_t axis) {
        return parameter_strides(call.inputs[input].shape, y.shape, axis);
    };
    Walk<4> walk(y.shape,
                 {strides(1, rows), strides(4, columns), strides(6, rows), strides(7, rows)});
    for (int64_t i = 0; i < y.elements(); ++i, walk.next()) {
        const float scale =
            a_scale[walk.offset(0)] * b_scale[walk.offset(1)] / y_scale[walk.offset(2)];
        uint32_t wide = sums[static_cast<size_t>(i)];
        if (bias) wide += static_cast<uint32_t>(bias[i % y.shape.back()]);
        const auto sum = static_cast<int32_t>(wide);
        y.as<T>()[i] = quantised<T>(static_cast<float>(sum) * scale, y_zero[walk.offset(3)]);
    }
}

Result<void> qlinear_matmul(const Call& call) {
    for (const size_t i : {size_t{0}, size_t{3}})
        if (!is_byte(call.inputs[i].type)) return no_type(call, call.inputs[i].type);
    const DataType type = call.outputs[0].type;
    const bool known = with_one_of<int8_t, uint8_t>(type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) qlinear_matmul_as<T>(call);
    });
    if (!known) return no_type(call, type);
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"Gemm", 2, 3, 1, 1, "alpha:f=1 beta:f=1 transA:i=0 transB:i=0", infer_gemm, count_gemm,
     cpu::gemm, Trait::product | Trait::matrix_work | Trait::linear, macs_gemm},
    {"MatMul", 2, 3, 1, 1, "", infer_matmul, count_matmul, cpu::matmul,
     Trait::product | Trait::matrix_work | Trait::linear, macs_matmul},
    {"MatMulInteger", 2, 4, 1, 1, "", infer_matmul_integer, count_matmul, cpu::matmul_integer,
     Trait::matrix_work | Trait::linear | Trait::codes, macs_matmul},
    {"QLinearMatMul", 8, 9, 1, 1, "", infer_qlinear_matmul, count_matmul, cpu::qlinear_matmul,
     Trait::matrix_work | Trait::linear | Trait::codes, macs_matmul},
    {"Det", 1, 1, 1, 1, "", infer_det, count_none, cpu::det},
};

}  // namespace

std::span<const OpInfo> matrix_ops() {
    return rows;
}

}  // namespace vartml::graph
