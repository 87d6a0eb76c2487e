// SPDX-License-Identifier: Apache-2.0
// Products of matrices of one type; determinants.
#include <cmath>
#include <utility>
#include <vector>

#include "lib/cpu/kernel.h"
#include "lib/cpu/matrix.h"

namespace vartml::cpu {

namespace {

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

constexpr KernelRow kernels[] = {
    {"Det", det},
    {"Gemm", gemm},
    {"MatMul", matmul},
};

}  // namespace

std::span<const KernelRow> matrix_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
