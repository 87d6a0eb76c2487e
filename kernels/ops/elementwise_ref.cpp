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

void binary_row_ref(Binary op, const float* a, size_t a_stride, const float* b, size_t b_stride,
                    float* dst, size_t count) {
    for (size_t i = 0; i < count; ++i) dst[i] = apply(op, a[i * a_stride], b[i * b_stride]);
}

}  // namespace vartml::kernels
