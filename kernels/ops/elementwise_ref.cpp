// SPDX-License-Identifier: Apache-2.0
// The specification of elementwise.h in plain loops.
#include <cmath>
#include <limits>

#include "kernels/ops/elementwise.h"

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

}  // namespace

void binary_rows_ref(Binary op, const OperandRows& a, const OperandRows& b, float* dst,
                     ptrdiff_t dst_row, size_t rows, size_t count) {
    for (size_t r = 0; r < rows; ++r) {
        const auto row = static_cast<ptrdiff_t>(r);
        for (size_t i = 0; i < count; ++i) {
            dst[row * dst_row + static_cast<ptrdiff_t>(i)] =
                apply(op, a.data[row * a.row + static_cast<ptrdiff_t>(i * a.stride)],
                      b.data[row * b.row + static_cast<ptrdiff_t>(i * b.stride)]);
        }
    }
}

}  // namespace vartml::kernels
