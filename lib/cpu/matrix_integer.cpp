// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 8-bit integers.
#include <vector>

#include "lib/cpu/kernel.h"
#include "lib/cpu/matrix.h"

namespace vartml::cpu {

namespace {

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

constexpr KernelRow kernels[] = {
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
};

}  // namespace

std::span<const KernelRow> integer_matrix_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
