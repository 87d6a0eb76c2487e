// SPDX-License-Identifier: Apache-2.0
// The specification of codes.h in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/ops/codes.h"

namespace vartml::kernels {
namespace {

int32_t number(uint8_t code, bool is_signed) {
    return is_signed ? static_cast<int8_t>(code) : code;
}

uint8_t code(float steps, const Coding& to) {
    const float low = static_cast<float>((to.is_signed ? -128 : 0) - to.zero);
    const float high = static_cast<float>((to.is_signed ? 127 : 255) - to.zero);
    if (std::isnan(steps)) return static_cast<uint8_t>(to.zero);
    const float bounded = std::min(std::max(steps, low), high);
    return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(bounded)) + to.zero);
}

}  // namespace

void quantise_row_ref(const float* src, const Coding& to, uint8_t* dst, size_t count) {
    for (size_t i = 0; i < count; ++i) dst[i] = code(src[i] / to.scale, to);
}

void requantise_row_ref(const float* src, const float* scales, const float* bias, const Coding& to,
                        uint8_t* dst, size_t count) {
    for (size_t i = 0; i < count; ++i) dst[i] = code(src[i] * scales[i] + bias[i], to);
}

void dequantise_row_ref(const uint8_t* src, const Coding& from, float* dst, size_t count) {
    for (size_t i = 0; i < count; ++i)
        dst[i] = static_cast<float>(number(src[i], from.is_signed) - from.zero) * from.scale;
}

void widen_row_ref(const uint8_t* src, uint8_t zero, int16_t* dst, size_t count) {
    for (size_t i = 0; i < count; ++i) dst[i] = static_cast<int16_t>(src[i] - zero);
}

void binary_codes_ref(CodeBinary op, const Codes& a, const Codes& b, uint8_t* dst, const Coding& to,
                      size_t count) {
    const float by_a = a.coding.scale / to.scale, by_b = b.coding.scale / to.scale;
    const float by_both = a.coding.scale * b.coding.scale / to.scale;
    for (size_t i = 0; i < count; ++i) {
        const auto x = static_cast<float>(number(a.data[i], a.coding.is_signed) - a.coding.zero);
        const auto y = static_cast<float>(number(b.data[i], b.coding.is_signed) - b.coding.zero);
        dst[i] = code(op == CodeBinary::add ? x * by_a + y * by_b : x * y * by_both, to);
    }
}

void look_up_ref(const uint8_t* table, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
                 ptrdiff_t dst_row, size_t rows, size_t count) {
    for (size_t r = 0; r < rows; ++r, src += src_row, dst += dst_row)
        for (size_t i = 0; i < count; ++i) dst[i] = table[src[i]];
}

void add_codes_ref(const uint8_t* src, ptrdiff_t row, size_t rows, bool is_signed, int32_t* sums,
                   size_t count) {
    for (size_t r = 0; r < rows; ++r, src += row)
        for (size_t i = 0; i < count; ++i) sums[i] += number(src[i], is_signed);
}

}  // namespace vartml::kernels
