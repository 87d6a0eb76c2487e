// SPDX-License-Identifier: Apache-2.0
// Casts of a vector, for kernels that cast on the way. Included once per instruction set.
#if defined(VARTML_KERNELS_LAYOUT_CAST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_LAYOUT_CAST_INL_H_
#undef VARTML_KERNELS_LAYOUT_CAST_INL_H_
#else
#define VARTML_KERNELS_LAYOUT_CAST_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/layout/cast.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
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
    // In the upper half of each word; the lower one is of no meaning.
    HWY_INLINE VU upper(VF x) const {
        const DU d;
        const VU bits = hn::BitCast(d, x);
        const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
        const VU rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
        const VU nan = hn::Or(bits, hn::Set(d, 0x00400000));
        return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), nan, rounded);
    }
    HWY_INLINE hn::Vec<hn::Rebind<Dst, DU>> operator()(VF x) const {
        return hn::TruncateTo(hn::Rebind<Dst, DU>(), hn::ShiftRight<16>(upper(x)));
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
    using Unsigned = std::make_unsigned_t<Q>;
    VF scale, low, high;
    VU zero_point;
    explicit Quantise(const Cast& cast)
        : scale(hn::Set(DF(), multiply ? 1.0f / cast.scale : cast.scale)),
          low(hn::Set(DF(), static_cast<float>(std::numeric_limits<Q>::min() - cast.zero_point))),
          high(hn::Set(DF(), static_cast<float>(std::numeric_limits<Q>::max() - cast.zero_point))),
          zero_point(hn::Set(DU(), static_cast<uint32_t>(cast.zero_point))) {}
    // The element before its zero point is added, in the low bits of each word; the others are of
    // no meaning.
    HWY_INLINE VU lower(VF x) const {
        const DU d;
        const DF df;
        const VF y = hn::Min(hn::Max(multiply ? hn::Mul(x, scale) : hn::Div(x, scale), low), high);
        const auto is_number = hn::Eq(x, x);
        if constexpr (truncate)
            return hn::BitCast(
                d, hn::IfThenElseZero(hn::RebindMask(DI(), is_number), hn::ConvertTo(DI(), y)));
        // Adding 1.5·2^23 rounds to the nearest even integer, which then is in the lowest bits.
        return hn::BitCast(d, hn::IfThenElseZero(is_number, hn::Add(y, hn::Set(df, 0x1.8p23f))));
    }
    HWY_INLINE hn::Vec<hn::Rebind<Q, DU>> operator()(VF x) const {
        const hn::Rebind<Unsigned, DU> dq;
        return hn::BitCast(hn::Rebind<Q, DU>(), hn::TruncateTo(dq, hn::Add(lower(x), zero_point)));
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
    HWY_INLINE VF of(VI q) const {
        return hn::Mul(hn::ConvertTo(DF(), hn::Sub(q, zero_point)), scale);
    }
    HWY_INLINE VF operator()(hn::Vec<hn::Rebind<Q, DU>> x) const {
        return of(hn::PromoteTo(DI(), x));
    }
};

// Powers of two whose reciprocal is a normal number as well.
HWY_INLINE bool has_exact_reciprocal(float scale) {
    uint32_t bits;
    std::memcpy(&bits, &scale, 4);
    const uint32_t exponent = bits >> 23;
    return (bits & 0x7fffff) == 0 && exponent >= 1 && exponent <= 253;
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
