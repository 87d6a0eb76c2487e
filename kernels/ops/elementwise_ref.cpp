// SPDX-License-Identifier: Apache-2.0
// The specification of elementwise.h in plain loops.
#include <cmath>
#include <limits>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/rows.h"

namespace vartml::kernels {
namespace {

float apply(Binary op, float a, float b) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    switch (op) {
        case Binary::add:
            return a + b;
        case Binary::sub:
            return a - b;
        case Binary::mul:
            return a * b;
        case Binary::div:
            return a / b;
        case Binary::max:
            return std::isnan(a) || std::isnan(b) ? nan : (a > b ? a : b);
        case Binary::min:
            return std::isnan(a) || std::isnan(b) ? nan : (a < b ? a : b);
        case Binary::pow:
            return std::pow(a, b);
        case Binary::prelu:
            return a < 0 ? a * b : a;
    }
    return 0;
}

// Element `at` of what may be bf16.
float element(const void* data, Element type, ptrdiff_t at) {
    if (type == Element::f32) return static_cast<const float*>(data)[at];
    float value = 0;
    convert_row(static_cast<const bf16*>(data) + at, &value, 1);
    return value;
}

}  // namespace

void binary_rows_ref(Binary op, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
                     size_t rows, size_t count) {
    for (size_t r = 0; r < rows; ++r) {
        const auto row = static_cast<ptrdiff_t>(r);
        for (size_t i = 0; i < count; ++i) {
            const ptrdiff_t to = row * dst.row + static_cast<ptrdiff_t>(i);
            const float result = apply(
                op, element(a.data, a.element, row * a.row + static_cast<ptrdiff_t>(i * a.stride)),
                element(b.data, b.element, row * b.row + static_cast<ptrdiff_t>(i * b.stride)));
            if (dst.element == Element::f32)
                static_cast<float*>(dst.data)[to] = result;
            else
                convert_row(&result, static_cast<bf16*>(dst.data) + to, 1);
        }
    }
}

}  // namespace vartml::kernels
