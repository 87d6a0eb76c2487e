// SPDX-License-Identifier: Apache-2.0
// Conversion of element types: float to bf16, fp16 and quantised integers, and back.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

enum class CastKind : uint8_t {
    copy1,
    copy2,
    copy4,
    copy8,  // bytes of an element, copied
    f32_bf16,
    f32_f16,
    f32_i8,
    f32_u8,
    f32_i16,
    f32_u16,
    bf16_f32,
    f16_f32,
    i8_f32,
    u8_f32,
    i16_f32,
    u16_f32
};

// The integer kinds use real = (q - zero_point) * scale.
struct Cast {
    CastKind kind = CastKind::copy4;
    float scale = 1.0f;      // > 0
    int32_t zero_point = 0;  // within the integer type
    bool truncate = false;   // float to integer rounds toward zero instead of to nearest even
};

// Bytes of an element before and after.
struct CastBytes {
    size_t src, dst;
};
CastBytes cast_bytes(CastKind kind);

// Converts `rows` rows of `count` elements and writes `padding` zero bytes' worth of elements after
// each row of `dst`.
//   bf16   round to nearest even; NaN becomes (bits >> 16) | 0x40; overflow gives infinity
//   f16    IEEE, round to nearest even; subnormals kept; NaN stays NaN (quiet, sign and top of the
//   payload kept) q      clamp(rne(x / scale) + zero_point); NaN gives zero_point, infinities
//   saturate int    (q - zero_point) * scale in f32
// Strides in bytes; no alignment; src and dst do not overlap. Cannot fail.
// Every instruction set gives the bytes of cast_rows_ref.
void cast_rows(const Cast& cast, const void* src, size_t src_stride_bytes, void* dst,
               size_t dst_stride_bytes, size_t rows, size_t count, size_t padding);
void cast_rows_ref(const Cast& cast, const void* src, size_t src_stride_bytes, void* dst,
                   size_t dst_stride_bytes, size_t rows, size_t count, size_t padding);

}  // namespace vartml::kernels
