// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout/cast.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/cast.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/layout/cast-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Rows {
    const std::byte* src;
    size_t src_stride;
    std::byte* dst;
    size_t dst_stride, rows, count, padding;
};

// Whole groups of vectors of a row, whose narrow results make one vector: dropping bits of two
// words at a time costs half of what narrowing them one by one does. Returns how many elements are
// done.
HWY_INLINE size_t convert_groups(const float* src, uint16_t* dst, size_t count, const ToBf16& op) {
    const DF df;
    const hn::Repartition<uint16_t, DU> d16;
    const size_t lanes = hn::Lanes(df);
    size_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        const VU a = op.upper(hn::LoadU(df, src + i)), b = op.upper(hn::LoadU(df, src + i + lanes));
        hn::StoreU(hn::ConcatOdd(d16, hn::BitCast(d16, b), hn::BitCast(d16, a)), d16, dst + i);
    }
    return i;
}

template <class Q, bool truncate, bool multiply>
HWY_INLINE size_t convert_groups(const float* src, Q* dst, size_t count,
                                 const Quantise<Q, truncate, multiply>& op) {
    if constexpr (sizeof(Q) != 1) return 0;
    const DF df;
    const hn::Repartition<uint16_t, DU> d16;
    const hn::Repartition<uint8_t, DU> d8;
    const size_t lanes = hn::Lanes(df);
    const auto zero_point = hn::Set(d8, static_cast<uint8_t>(hn::GetLane(op.zero_point)));
    const auto lower = [&](size_t at) HWY_ATTR { return op.lower(hn::LoadU(df, src + at)); };
    size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        const auto a = hn::OrderedTruncate2To(d16, lower(i), lower(i + lanes));
        const auto b = hn::OrderedTruncate2To(d16, lower(i + 2 * lanes), lower(i + 3 * lanes));
        hn::StoreU(hn::Add(hn::OrderedTruncate2To(d8, a, b), zero_point), d8,
                   reinterpret_cast<uint8_t*>(dst) + i);
    }
    return i;
}

template <class Src, class Dst, class Op>
HWY_INLINE size_t convert_groups(const Src*, Dst*, size_t, const Op&) {
    return 0;
}

template <class Op>
void convert(const Rows& r, const Op& op) {
    using Src = typename Op::Src;
    using Dst = typename Op::Dst;
    const hn::Rebind<Src, DU> ds;
    const hn::Rebind<Dst, DU> dd;
    const size_t lanes = hn::Lanes(ds);
    for (size_t row = 0; row < r.rows; ++row) {
        const auto* src = reinterpret_cast<const Src*>(r.src + row * r.src_stride);
        auto* dst = reinterpret_cast<Dst*>(r.dst + row * r.dst_stride);
        size_t i = convert_groups(src, dst, r.count, op);
        for (; i + 2 * lanes <= r.count; i += 2 * lanes) {
            const auto a = op(hn::LoadU(ds, src + i)), b = op(hn::LoadU(ds, src + i + lanes));
            hn::StoreU(a, dd, dst + i);
            hn::StoreU(b, dd, dst + i + lanes);
        }
        for (; i + lanes <= r.count; i += lanes)
            hn::StoreU(op(hn::LoadU(ds, src + i)), dd, dst + i);
        if (const size_t rest = r.count - i; rest != 0)
            hn::StoreN(op(hn::LoadN(ds, src + i, rest)), dd, dst + i, rest);
        if (r.padding != 0) std::memset(dst + r.count, 0, r.padding * sizeof(Dst));
    }
}

template <class Q, bool multiply>
void quantise_by(const Rows& r, const Cast& cast) {
    if (cast.truncate)
        convert(r, Quantise<Q, true, multiply>(cast));
    else
        convert(r, Quantise<Q, false, multiply>(cast));
}

template <class Q>
void quantise(const Rows& r, const Cast& cast) {
    if (has_exact_reciprocal(cast.scale))
        quantise_by<Q, true>(r, cast);
    else
        quantise_by<Q, false>(r, cast);
}

void CastRows(const Cast& cast, const std::byte* src, size_t src_stride, std::byte* dst,
              size_t dst_stride, size_t rows, size_t count, size_t padding) {
    const Rows r{src, src_stride, dst, dst_stride, rows, count, padding};
    switch (cast.kind) {
        case CastKind::f32_bf16:
            return convert(r, ToBf16());
        case CastKind::f32_f16:
            return convert(r, ToF16());
        case CastKind::f32_i8:
            return quantise<int8_t>(r, cast);
        case CastKind::f32_u8:
            return quantise<uint8_t>(r, cast);
        case CastKind::f32_i16:
            return quantise<int16_t>(r, cast);
        case CastKind::f32_u16:
            return quantise<uint16_t>(r, cast);
        case CastKind::bf16_f32:
            return convert(r, FromBf16());
        case CastKind::f16_f32:
            return convert(r, FromF16());
        case CastKind::i8_f32:
            return convert(r, Dequantise<int8_t>(cast));
        case CastKind::u8_f32:
            return convert(r, Dequantise<uint8_t>(cast));
        case CastKind::i16_f32:
            return convert(r, Dequantise<int16_t>(cast));
        case CastKind::u16_f32:
            return convert(r, Dequantise<uint16_t>(cast));
        default:
            return;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {

void copy_rows(size_t element, const std::byte* src, size_t src_stride, std::byte* dst,
               size_t dst_stride, size_t rows, size_t count, size_t padding) {
    const size_t row_bytes = count * element, padding_bytes = padding * element;
    if (src_stride == row_bytes && dst_stride == row_bytes && padding == 0) {
        std::memcpy(dst, src, rows * row_bytes);
        return;
    }
    for (size_t r = 0; r < rows; ++r) {
        std::memcpy(dst + r * dst_stride, src + r * src_stride, row_bytes);
        if (padding != 0) std::memset(dst + r * dst_stride + row_bytes, 0, padding_bytes);
    }
}

}  // namespace

HWY_EXPORT(CastRows);

CastBytes cast_bytes(CastKind kind) {
    constexpr CastBytes table[] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {4, 2}, {4, 2}, {4, 1}, {4, 1},
                                   {4, 2}, {4, 2}, {2, 4}, {2, 4}, {1, 4}, {1, 4}, {2, 4}, {2, 4}};
    return table[static_cast<size_t>(kind)];
}

void cast_rows(const Cast& cast, const void* src, size_t src_stride_bytes, void* dst,
               size_t dst_stride_bytes, size_t rows, size_t count, size_t padding) {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    if (rows == 0 || (count == 0 && padding == 0)) return;
    if (cast.kind <= CastKind::copy8)
        return copy_rows(cast_bytes(cast.kind).dst, s, src_stride_bytes, d, dst_stride_bytes, rows,
                         count, padding);
    HWY_DYNAMIC_DISPATCH(CastRows)
    (cast, s, src_stride_bytes, d, dst_stride_bytes, rows, count, padding);
}

}  // namespace vartml::kernels
#endif
