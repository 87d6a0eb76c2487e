// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/elementwise.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/ops/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <Binary op>
HWY_INLINE V apply(V a, V b) {
    const D d;
    if constexpr (op == Binary::add) return hn::Add(a, b);
    if constexpr (op == Binary::sub) return hn::Sub(a, b);
    if constexpr (op == Binary::mul) return hn::Mul(a, b);
    if constexpr (op == Binary::div) return hn::Div(a, b);
    if constexpr (op == Binary::max || op == Binary::min) {
        const V best = op == Binary::max ? hn::IfThenElse(hn::Gt(a, b), a, b)
                                         : hn::IfThenElse(hn::Lt(a, b), a, b);
        return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::NaN(d), best);
    }
    return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a);  // prelu
}

template <Binary op>
void row(const float* a, size_t a_stride, const float* b, size_t b_stride, float* dst,
         size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const V a0 = hn::Set(d, count ? a[0] : 0), b0 = hn::Set(d, count ? b[0] : 0);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V x = a_stride ? hn::LoadU(d, a + i) : a0;
        const V y = b_stride ? hn::LoadU(d, b + i) : b0;
        hn::StoreU(apply<op>(x, y), d, dst + i);
    }
    if (i == count) return;
    const V x = a_stride ? hn::LoadN(d, a + i, count - i) : a0;
    const V y = b_stride ? hn::LoadN(d, b + i, count - i) : b0;
    hn::StoreN(apply<op>(x, y), d, dst + i, count - i);
}

void binary(Binary op, const float* a, size_t a_stride, const float* b, size_t b_stride, float* dst,
            size_t count) {
    switch (op) {
        case Binary::add:
            return row<Binary::add>(a, a_stride, b, b_stride, dst, count);
        case Binary::sub:
            return row<Binary::sub>(a, a_stride, b, b_stride, dst, count);
        case Binary::mul:
            return row<Binary::mul>(a, a_stride, b, b_stride, dst, count);
        case Binary::div:
            return row<Binary::div>(a, a_stride, b, b_stride, dst, count);
        case Binary::max:
            return row<Binary::max>(a, a_stride, b, b_stride, dst, count);
        case Binary::min:
            return row<Binary::min>(a, a_stride, b, b_stride, dst, count);
        case Binary::prelu:
            return row<Binary::prelu>(a, a_stride, b, b_stride, dst, count);
        case Binary::pow:
            return binary_row_ref(op, a, a_stride, b, b_stride, dst, count);
    }
}

void blend2(const float* a, float wa, const float* b, float wb, float* dst, size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const V va = hn::Set(d, wa), vb = hn::Set(d, wb);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V sum = hn::Add(hn::Mul(va, hn::LoadU(d, a + i)), hn::Mul(vb, hn::LoadU(d, b + i)));
        hn::StoreU(sum, d, dst + i);
    }
    for (; i < count; ++i) dst[i] = wa * a[i] + wb * b[i];
}

void blend4(const float* a, float wa, const float* b, float wb, const float* c, float wc,
            const float* e, float we, float* dst, size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const V va = hn::Set(d, wa), vb = hn::Set(d, wb), vc = hn::Set(d, wc), ve = hn::Set(d, we);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V ab = hn::Add(hn::Mul(va, hn::LoadU(d, a + i)), hn::Mul(vb, hn::LoadU(d, b + i)));
        const V ce = hn::Add(hn::Mul(vc, hn::LoadU(d, c + i)), hn::Mul(ve, hn::LoadU(d, e + i)));
        hn::StoreU(hn::Add(ab, ce), d, dst + i);
    }
    for (; i < count; ++i) dst[i] = (wa * a[i] + wb * b[i]) + (wc * c[i] + we * e[i]);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(binary);
HWY_EXPORT(blend2);
HWY_EXPORT(blend4);
}  // namespace

void binary_row(Binary op, const float* a, size_t a_stride, const float* b, size_t b_stride,
                float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(binary)(op, a, a_stride, b, b_stride, dst, count);
}

void blend_row(const float* a, float wa, const float* b, float wb, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(blend2)(a, wa, b, wb, dst, count);
}

void blend_row(const float* a, float wa, const float* b, float wb, const float* c, float wc,
               const float* d, float wd, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(blend4)(a, wa, b, wb, c, wc, d, wd, dst, count);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
