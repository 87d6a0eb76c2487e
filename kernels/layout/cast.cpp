// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout/cast.h"

#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/cast.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::ScalableTag<uint32_t>;
using DI = hn::RebindToSigned<DU>;
using DF = hn::RebindToFloat<DU>;
using VU = hn::Vec<DU>;
using VI = hn::Vec<DI>;
using VF = hn::Vec<DF>;

// Each operation turns a vector of Src into a vector of Dst of the same number of elements.
struct ToBf16 {
    using Src = float;
    using Dst = uint16_t;
    HWY_INLINE hn::Vec<hn::Rebind<Dst, DU>> operator()(VF x) const {
        const DU d;
        const VU bits = hn::BitCast(d, x);
        const VU top = hn::ShiftRight<16>(bits);
        const VU rounded = hn::ShiftRight<16>(
            hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), hn::And(top, hn::Set(d, 1))));
        const VU nan = hn::Or(top, hn::Set(d, 0x0040));
        return hn::TruncateTo(hn::Rebind<Dst, DU>(),
                              hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), nan, rounded));
    }
};

// Integer arithmetic instead of F16C, so that processors without it give the same bits.
struct ToF16 {
    using Src = float;
    using Dst = uint16_t;
    HWY_INLINE hn::Vec<hn::Rebind<Dst, DU>> operator()(VF x) const {
        const DU d;
        const DF df;
        const VU bits = hn::BitCast(d, x);
        const VU sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
        const VU magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
        const VU mantissa = hn::ShiftRight<13>(magnitude);
        const VU nan = hn::Or(hn::Set(d, 0x7e00), hn::And(mantissa, hn::Set(d, 0x3ff)));
        const VU normal =
            hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0xfffu - 0x38000000u)),
                                       hn::And(mantissa, hn::Set(d, 1))));
        const VU subnormal =
            hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f))),
                    hn::Set(d, 0x3f000000));
        const VI m = hn::BitCast(DI(), magnitude);
        const auto at_least = [&](int32_t bound) HWY_ATTR {
            return hn::RebindMask(d, hn::Gt(m, hn::Set(DI(), bound - 1)));
        };
        VU half = hn::IfThenElse(at_least(0x38800000), normal, subnormal);
        half = hn::IfThenElse(at_least(0x47800000), hn::Set(d, 0x7c00), half);
        half = hn::IfThenElse(at_least(0x7f800001), nan, half);
        return hn::TruncateTo(hn::Rebind<Dst, DU>(), hn::Or(sign, half));
    }
};

// With `multiply`, `scale` is the reciprocal of a power of two: the product is exactly the
// quotient, and much faster.
template <class Q, bool truncate, bool multiply>
struct Quantise {
    using Src = float;
    using Dst = Q;
    VF scale, low, high;
    VI zero_point;
    explicit Quantise(const Cast& cast)
        : scale(hn::Set(DF(), multiply ? 1.0f / cast.scale : cast.scale)),
          low(hn::Set(DF(), static_cast<float>(std::numeric_limits<Q>::min() - cast.zero_point))),
          high(hn::Set(DF(), static_cast<float>(std::numeric_limits<Q>::max() - cast.zero_point))),
          zero_point(hn::Set(DI(), cast.zero_point)) {}
    HWY_INLINE hn::Vec<hn::Rebind<Q, DU>> operator()(VF x) const {
        const DU d;
        const DI di;
        const VF y = hn::Min(hn::Max(multiply ? hn::Mul(x, scale) : hn::Div(x, scale), low), high);
        VI q;
        if constexpr (truncate)
            q = hn::ConvertTo(di, y);
        else
            q = hn::NearestInt(y);
        q = hn::IfThenZeroElse(hn::RebindMask(di, hn::IsNaN(x)), q);
        // The value fits, so that dropping the upper bits is all that is left to do.
        const VU bits = hn::BitCast(d, hn::Add(q, zero_point));
        const hn::Rebind<std::make_unsigned_t<Q>, DU> dq;
        return hn::BitCast(hn::Rebind<Q, DU>(), hn::TruncateTo(dq, bits));
    }
};

struct FromBf16 {
    using Src = uint16_t;
    using Dst = float;
    HWY_INLINE VF operator()(hn::Vec<hn::Rebind<Src, DU>> x) const {
        return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), x)));
    }
};

struct FromF16 {
    using Src = uint16_t;
    using Dst = float;
    HWY_INLINE VF operator()(hn::Vec<hn::Rebind<Src, DU>> x) const {
        const DU d;
        const DF df;
        const VU h = hn::PromoteTo(d, x);
        const VU sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000)));
        const VU magnitude = hn::And(h, hn::Set(d, 0x7fff));
        const VU mantissa = hn::And(h, hn::Set(d, 0x3ff));
        const VU shifted = hn::ShiftLeft<13>(magnitude);
        const VU normal = hn::Add(shifted, hn::Set(d, 0x38000000));
        const VU subnormal = hn::BitCast(
            d, hn::Mul(hn::ConvertTo(df, hn::BitCast(DI(), mantissa)), hn::Set(df, 0x1p-24f)));
        const VI m = hn::BitCast(DI(), magnitude);
        const auto at_least = [&](int32_t bound) HWY_ATTR {
            return hn::RebindMask(d, hn::Gt(m, hn::Set(DI(), bound - 1)));
        };
        VU bits = hn::IfThenElse(at_least(0x400), normal, subnormal);
        bits = hn::IfThenElse(at_least(0x7c00), hn::Set(d, 0x7f800000), bits);
        bits = hn::IfThenElse(at_least(0x7c01),
                              hn::Or(hn::Set(d, 0x7fc00000), hn::ShiftLeft<13>(mantissa)), bits);
        return hn::BitCast(df, hn::Or(sign, bits));
    }
};

template <class Q>
struct Dequantise {
    using Src = Q;
    using Dst = float;
    VF scale;
    VI zero_point;
    explicit Dequantise(const Cast& cast)
        : scale(hn::Set(DF(), cast.scale)), zero_point(hn::Set(DI(), cast.zero_point)) {}
    HWY_INLINE VF operator()(hn::Vec<hn::Rebind<Q, DU>> x) const {
        const VI q = hn::PromoteTo(DI(), x);
        return hn::Mul(hn::ConvertTo(DF(), hn::Sub(q, zero_point)), scale);
    }
};

struct Rows {
    const std::byte* src;
    size_t src_stride;
    std::byte* dst;
    size_t dst_stride, rows, count, padding;
};

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
        size_t i = 0;
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

// Powers of two whose reciprocal is a normal number as well.
bool has_exact_reciprocal(float scale) {
    uint32_t bits;
    std::memcpy(&bits, &scale, 4);
    const uint32_t exponent = bits >> 23;
    return (bits & 0x7fffff) == 0 && exponent >= 1 && exponent <= 253;
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
