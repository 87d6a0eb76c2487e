// SPDX-License-Identifier: Apache-2.0
// Rows of elements, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/ops/rows.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Round to nearest even on the bits; NaN keeps its sign and upper bits and becomes quiet.
HWY_ATTR uint16_t bf16_bits(uint32_t bits) {
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void f32_to_bf16(const float* src, bf16* dst, size_t count) {
    const hn::ScalableTag<uint32_t> d32;
    const hn::Rebind<uint16_t, decltype(d32)> d16;
    const size_t lanes = hn::Lanes(d32);
    auto* const bits = reinterpret_cast<const uint32_t*>(src);
    auto* const out = reinterpret_cast<uint16_t*>(dst);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto v = hn::LoadU(d32, bits + i);
        const auto upper = hn::ShiftRight<16>(v);
        const auto odd = hn::And(upper, hn::Set(d32, 1));
        const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(v, hn::Set(d32, 0x7FFF)), odd));
        const auto nan = hn::Gt(hn::And(v, hn::Set(d32, 0x7FFFFFFF)), hn::Set(d32, 0x7F800000));
        const auto quiet = hn::Or(upper, hn::Set(d32, 0x40));
        hn::StoreU(hn::TruncateTo(d16, hn::IfThenElse(nan, quiet, rounded)), d16, out + i);
    }
    for (; i < count; ++i) out[i] = bf16_bits(bits[i]);
}

void bf16_to_f32(const bf16* src, float* dst, size_t count) {
    const hn::ScalableTag<uint32_t> d32;
    const hn::Rebind<uint16_t, decltype(d32)> d16;
    const size_t lanes = hn::Lanes(d32);
    auto* const in = reinterpret_cast<const uint16_t*>(src);
    auto* const bits = reinterpret_cast<uint32_t*>(dst);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, in + i))), d32, bits + i);
    }
    for (; i < count; ++i) bits[i] = static_cast<uint32_t>(in[i]) << 16;
}

void f32_to_fp16(const float* src, fp16* dst, size_t count) {
    const hn::ScalableTag<float> d32;
    const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
    const size_t lanes = hn::Lanes(d32);
    auto* const out = reinterpret_cast<hwy::float16_t*>(dst);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d32, src + i)), d16, out + i);
    }
    for (; i < count; ++i) out[i] = hwy::F16FromF32(src[i]);
}

void fp16_to_f32(const fp16* src, float* dst, size_t count) {
    const hn::ScalableTag<float> d32;
    const hn::Rebind<hwy::float16_t, decltype(d32)> d16;
    const size_t lanes = hn::Lanes(d32);
    auto* const in = reinterpret_cast<const hwy::float16_t*>(src);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hn::StoreU(hn::PromoteTo(d32, hn::LoadU(d16, in + i)), d32, dst + i);
    }
    for (; i < count; ++i) dst[i] = hwy::F32FromF16(in[i]);
}

// A row per channel becomes a pixel per column.
template <size_t channels, typename T>
void interleave_rows(const T* src, ptrdiff_t stride, T* dst, size_t count) {
    const hn::CappedTag<T, 32 / sizeof(T)> d;
    const size_t lanes = hn::Lanes(d);
    if (count < lanes) {
        for (size_t i = 0; i < count; ++i)
            for (size_t c = 0; c < channels; ++c)
                dst[i * channels + c] =
                    src[static_cast<ptrdiff_t>(c) * stride + static_cast<ptrdiff_t>(i)];
        return;
    }
    // The last vector ends with the row and repeats what the one before has done.
    for (size_t i = 0; i < count; i += lanes) {
        const size_t at = i + lanes <= count ? i : count - lanes;
        const T* const from = src + at;
        T* const to = dst + at * channels;
        const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
        if constexpr (channels == 2) {
            hn::StoreInterleaved2(a, b, d, to);
        } else if constexpr (channels == 3) {
            hn::StoreInterleaved3(a, b, hn::LoadU(d, from + 2 * stride), d, to);
        } else {
            hn::StoreInterleaved4(a, b, hn::LoadU(d, from + 2 * stride),
                                  hn::LoadU(d, from + 3 * stride), d, to);
        }
    }
}

template <typename T>
HWY_INLINE void interleave(const T* src, ptrdiff_t stride, T* dst, size_t count, size_t channels) {
    if (channels == 2) return interleave_rows<2>(src, stride, dst, count);
    if (channels == 3) return interleave_rows<3>(src, stride, dst, count);
    interleave_rows<4>(src, stride, dst, count);
}

void interleave_8(const uint8_t* src, ptrdiff_t stride, uint8_t* dst, size_t count,
                  size_t channels) {
    interleave(src, stride, dst, count, channels);
}
void interleave_16(const uint16_t* src, ptrdiff_t stride, uint16_t* dst, size_t count,
                   size_t channels) {
    interleave(src, stride, dst, count, channels);
}
void interleave_32(const uint32_t* src, ptrdiff_t stride, uint32_t* dst, size_t count,
                   size_t channels) {
    interleave(src, stride, dst, count, channels);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace vartml::kernels {
namespace {

HWY_EXPORT(f32_to_bf16);
HWY_EXPORT(bf16_to_f32);
HWY_EXPORT(f32_to_fp16);
HWY_EXPORT(fp16_to_f32);
HWY_EXPORT(interleave_8);
HWY_EXPORT(interleave_16);
HWY_EXPORT(interleave_32);

void interleave(const uint8_t* src, ptrdiff_t stride, uint8_t* dst, size_t count, size_t channels) {
    HWY_DYNAMIC_DISPATCH(interleave_8)(src, stride, dst, count, channels);
}
void interleave(const uint16_t* src, ptrdiff_t stride, uint16_t* dst, size_t count,
                size_t channels) {
    HWY_DYNAMIC_DISPATCH(interleave_16)(src, stride, dst, count, channels);
}
void interleave(const uint32_t* src, ptrdiff_t stride, uint32_t* dst, size_t count,
                size_t channels) {
    HWY_DYNAMIC_DISPATCH(interleave_32)(src, stride, dst, count, channels);
}

// Through floats that stay in the nearest cache.
template <typename Src, typename Dst>
void convert_through_floats(const Src* src, Dst* dst, size_t count) {
    constexpr size_t chunk = 512;
    float floats[chunk];
    for (size_t i = 0; i < count; i += chunk) {
        const size_t n = count - i < chunk ? count - i : chunk;
        convert_row(src + i, floats, n);
        convert_row(floats, dst + i, n);
    }
}

template <typename T>
void convert_row(const T* src, T* dst, size_t count) {
    std::memcpy(dst, src, count * sizeof(T));
}

template <typename T>
void convert_one(const T& src, T& dst) {
    dst = src;
}
void convert_one(float src, bf16& dst) {
    const auto bits = std::bit_cast<uint32_t>(src);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    dst.bits =
        static_cast<uint16_t>((nan ? bits | 0x400000 : bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
void convert_one(bf16 src, float& dst) {
    dst = std::bit_cast<float>(static_cast<uint32_t>(src.bits) << 16);
}
void convert_one(float src, fp16& dst) {
    dst.bits = std::bit_cast<uint16_t>(hwy::F16FromF32(src));
}
void convert_one(fp16 src, float& dst) {
    dst = hwy::F32FromF16(std::bit_cast<hwy::float16_t>(src.bits));
}
template <typename Src, typename Dst>
    requires(!std::is_same_v<Src, Dst>)
void convert_one(Src src, Dst& dst) {
    float value;
    convert_one(src, value);
    convert_one(value, dst);
}

// Rows of so few columns that a loop over them costs more than they do.
template <size_t columns, typename Src, typename Dst>
void copy_short_rows(const Src* src, ptrdiff_t src_stride, Dst* dst, ptrdiff_t dst_stride,
                     size_t rows) {
    for (size_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
        Src row[columns];
        for (size_t c = 0; c < columns; ++c) row[c] = src[c];
        for (size_t c = 0; c < columns; ++c) convert_one(row[c], dst[c]);
    }
}

}  // namespace

void convert_row(const float* src, bf16* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(f32_to_bf16)(src, dst, count);
}
void convert_row(const bf16* src, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(bf16_to_f32)(src, dst, count);
}
void convert_row(const float* src, fp16* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(f32_to_fp16)(src, dst, count);
}
void convert_row(const fp16* src, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(fp16_to_f32)(src, dst, count);
}
void convert_row(const bf16* src, fp16* dst, size_t count) {
    convert_through_floats(src, dst, count);
}
void convert_row(const fp16* src, bf16* dst, size_t count) {
    convert_through_floats(src, dst, count);
}

template <typename Src, typename Dst>
void copy_rows(const Src* src, ptrdiff_t src_stride, Dst* dst, ptrdiff_t dst_stride, size_t rows,
               size_t columns) {
    if (src_stride == static_cast<ptrdiff_t>(columns) && dst_stride == src_stride) {
        columns *= rows;
        rows = rows > 0;
    }
    // Short rows that become dense ones are collected, then converted.
    if constexpr (!std::is_same_v<Src, Dst>) {
        if (columns > 0 && columns < 8 && dst_stride == static_cast<ptrdiff_t>(columns)) {
            Src dense[512];
            for (size_t n = 0; rows > 0; rows -= n, dst += n * columns) {
                n = std::min(rows, std::size(dense) / columns);
                copy_rows(src, src_stride, dense, dst_stride, n, columns);
                convert_row(dense, dst, n * columns);
                src += static_cast<ptrdiff_t>(n) * src_stride;
            }
            return;
        }
    }
    if (columns == 2) return copy_short_rows<2>(src, src_stride, dst, dst_stride, rows);
    if (columns == 3) return copy_short_rows<3>(src, src_stride, dst, dst_stride, rows);
    if (columns == 4) return copy_short_rows<4>(src, src_stride, dst, dst_stride, rows);
    if (columns == 6) return copy_short_rows<6>(src, src_stride, dst, dst_stride, rows);
    // A call per row would cost more than the row.
    if (columns < 8) {
        for (size_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
            for (size_t c = 0; c < columns; ++c) convert_one(src[c], dst[c]);
        }
        return;
    }
    for (size_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
        convert_row(src, dst, columns);
    }
}

// Tiles of 16 x 16 elements keep both sides in the first-level cache.
template <typename Src, typename Dst>
void copy_tile(const Src* src, ptrdiff_t src_row, ptrdiff_t src_column, Dst* dst,
               ptrdiff_t dst_stride, size_t rows, size_t columns) {
    if constexpr (std::is_same_v<Src, Dst> && std::is_integral_v<Src> && sizeof(Src) <= 4) {
        if (src_row == 1 && columns >= 2 && columns <= 4 &&
            dst_stride == static_cast<ptrdiff_t>(columns)) {
            interleave(src, src_column, dst, rows, columns);
            return;
        }
    }
    constexpr size_t tile = 16;
    for (size_t r0 = 0; r0 < rows; r0 += tile) {
        const size_t r1 = r0 + tile < rows ? r0 + tile : rows;
        for (size_t c0 = 0; c0 < columns; c0 += tile) {
            const size_t c1 = c0 + tile < columns ? c0 + tile : columns;
            for (size_t r = r0; r < r1; ++r) {
                Dst* const out = dst + static_cast<ptrdiff_t>(r) * dst_stride;
                const Src* const in = src + static_cast<ptrdiff_t>(r) * src_row;
                for (size_t c = c0; c < c1; ++c) {
                    convert_one(in[static_cast<ptrdiff_t>(c) * src_column], out[c]);
                }
            }
        }
    }
}

#define VARTML_PAIR(Src, Dst)                                                        \
    template void copy_rows(const Src*, ptrdiff_t, Dst*, ptrdiff_t, size_t, size_t); \
    template void copy_tile(const Src*, ptrdiff_t, ptrdiff_t, Dst*, ptrdiff_t, size_t, size_t);
VARTML_PAIR(uint8_t, uint8_t)
VARTML_PAIR(uint16_t, uint16_t)
VARTML_PAIR(uint32_t, uint32_t)
VARTML_PAIR(uint64_t, uint64_t)
VARTML_PAIR(float, float)
VARTML_PAIR(float, bf16)
VARTML_PAIR(bf16, float)
VARTML_PAIR(float, fp16)
VARTML_PAIR(fp16, float)
VARTML_PAIR(bf16, fp16)
VARTML_PAIR(fp16, bf16)
#undef VARTML_PAIR

}  // namespace vartml::kernels
#endif  // HWY_ONCE
