// SPDX-License-Identifier: Apache-2.0
// Arithmetic on codes of 8 bits, which stand for real numbers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// real = (code - zero) · scale; the codes are int8 or uint8.
struct Coding {
    float scale = 1;
    int32_t zero = 0;
    bool is_signed = false;
    bool operator==(const Coding&) const = default;
};

// dst[i] = src[i] / scale, rounded to nearest even, plus zero, saturated; NaN gives zero.
void quantise_row(const float* src, const Coding& to, uint8_t* dst, size_t count);
void quantise_row_ref(const float* src, const Coding& to, uint8_t* dst, size_t count);

// The same of src[i] · scales[i] + bias[i], with steps of 1.
void requantise_row(const float* src, const float* scales, const float* bias, const Coding& to,
                    uint8_t* dst, size_t count);
void requantise_row_ref(const float* src, const float* scales, const float* bias, const Coding& to,
                        uint8_t* dst, size_t count);

// dst[i] = (src[i] - zero) · scale.
void dequantise_row(const uint8_t* src, const Coding& from, float* dst, size_t count);
void dequantise_row_ref(const uint8_t* src, const Coding& from, float* dst, size_t count);

// dst[i] = src[i] - zero.
void widen_row(const uint8_t* src, uint8_t zero, int16_t* dst, size_t count);
void widen_row_ref(const uint8_t* src, uint8_t zero, int16_t* dst, size_t count);

// dst[i] = saturate(round(x) + zero of dst) with x = real a · (scale of a / scale of dst) + the
// same of b, or the product of both codes less their zeros · (scale of a · scale of b / scale of
// dst).
enum class CodeBinary : uint8_t { add, mul };
struct Codes {
    const uint8_t* data;
    Coding coding;
};
void binary_codes(CodeBinary op, const Codes& a, const Codes& b, uint8_t* dst, const Coding& to,
                  size_t count);
void binary_codes_ref(CodeBinary op, const Codes& a, const Codes& b, uint8_t* dst, const Coding& to,
                      size_t count);

// dst[r·dst_row + i] = table[src[r·src_row + i]], r < rows, i < count; 256 entries.
void look_up(const uint8_t* table, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
             ptrdiff_t dst_row, size_t rows, size_t count);
void look_up_ref(const uint8_t* table, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
                 ptrdiff_t dst_row, size_t rows, size_t count);

// sums[i] += codes src[r·row + i] over r < rows, i < count. Exact.
void add_codes(const uint8_t* src, ptrdiff_t row, size_t rows, bool is_signed, int32_t* sums,
               size_t count);
void add_codes_ref(const uint8_t* src, ptrdiff_t row, size_t rows, bool is_signed, int32_t* sums,
                   size_t count);

// Every instruction set gives the same codes and floats.

}  // namespace vartml::kernels
