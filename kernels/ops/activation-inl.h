// SPDX-License-Identifier: Apache-2.0
// Activations of a vector of floats, for kernels that apply them to their results. Included once
// per instruction set.
#if defined(VARTML_KERNELS_OPS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_OPS_ACTIVATION_INL_H_
#undef VARTML_KERNELS_OPS_ACTIVATION_INL_H_
#else
#define VARTML_KERNELS_OPS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/ops/activation.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// 1 / v for finite v > 0: the estimate of the instruction set, then Newton steps until its error is
// below that of a float.
HWY_INLINE FloatVec reciprocal(FloatVec v) {
    const FloatTag d;
    const FloatVec two = hn::Set(d, 2.0F);
    FloatVec r = hn::ApproximateReciprocal(v);
    r = hn::Mul(r, hn::NegMulAdd(v, r, two));
#if HWY_TARGET > HWY_AVX3  // 14 bits are enough for one step, fewer are not
    r = hn::Mul(r, hn::NegMulAdd(v, r, two));
#endif
    return r;
}

// exp(-x) for |x| <= 87: 2^(n + f) with f in [-1/2, 1/2], the power of f by a polynomial of degree
// 5 (interpolates at Chebyshev nodes, then with the constant 1; error 2e-7).
HWY_INLINE FloatVec exp_of_negative(FloatVec x) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec minus_log2e = hn::Set(d, -1.44269502F);
    // Adding 1.5·2^23 rounds to an integer, which then is in the lowest bits.
    const FloatVec magic = hn::Set(d, 12582912.0F);
    const FloatVec shifted = hn::MulAdd(x, minus_log2e, magic);
    const FloatVec f = hn::MulSub(x, minus_log2e, hn::Sub(shifted, magic));
    FloatVec p = hn::Set(d, 1.33908633e-3F);
    p = hn::MulAdd(p, f, hn::Set(d, 9.67603177e-3F));
    p = hn::MulAdd(p, f, hn::Set(d, 5.55035695e-2F));
    p = hn::MulAdd(p, f, hn::Set(d, 2.40221068e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 6.93147182e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
    // n is added to the exponent; |n| <= 126 keeps it normal.
    const auto n = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
    return hn::BitCast(d, hn::Add(hn::BitCast(di, p), n));
}

HWY_INLINE FloatVec sigmoid(FloatVec x) {
    const FloatTag d;
    // In this order NaN stays NaN, here and below.
    const FloatVec bounded = hn::Min(hn::Set(d, 87.0F), hn::Max(hn::Set(d, -87.0F), x));
    return reciprocal(hn::Add(hn::Set(d, 1.0F), exp_of_negative(bounded)));
}

template <Activation a>
HWY_INLINE FloatVec activate(FloatVec x, FloatVec alpha, FloatVec beta) {
    const FloatTag d;
    const FloatVec zero = hn::Zero(d), one = hn::Set(d, 1.0F);
    if constexpr (a == Activation::relu) return hn::Max(zero, x);
    if constexpr (a == Activation::leaky)
        return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, alpha), x);
    if constexpr (a == Activation::clip) return hn::Min(beta, hn::Max(alpha, x));
    if constexpr (a == Activation::sigmoid) return sigmoid(x);
    if constexpr (a == Activation::silu) {
        // Bounded, because the smallest sigmoid is not 0.
        return hn::Mul(hn::Max(hn::Set(d, -87.0F), x), sigmoid(x));
    }
    if constexpr (a == Activation::hard_sigmoid) {
        return hn::Min(one, hn::Max(zero, hn::MulAdd(alpha, x, beta)));
    }
    if constexpr (a == Activation::hard_swish) {
        const FloatVec gate = hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
        return hn::Mul(x, hn::Min(one, hn::Max(zero, gate)));
    }
    if constexpr (a == Activation::tanh) {
        // 2·sigmoid(2x) - 1 loses digits near 0, where x itself is the better answer.
        const FloatVec s = sigmoid(hn::Add(x, x));
        const FloatVec big = hn::Sub(hn::Add(s, s), one);
        const FloatVec x2 = hn::Mul(x, x);
        FloatVec small = hn::MulAdd(x2, hn::Set(d, -17.0F / 315), hn::Set(d, 2.0F / 15));
        small = hn::MulAdd(small, x2, hn::Set(d, -1.0F / 3));
        small = hn::MulAdd(hn::Mul(small, x2), x, x);
        return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.25F)), small, big);
    }
    if constexpr (a == Activation::exp) {
        // As a square, which overflows and underflows as exp does.
        const FloatVec half = hn::Mul(x, hn::Set(d, -0.5F));
        const FloatVec root =
            exp_of_negative(hn::Min(hn::Set(d, 87.0F), hn::Max(hn::Set(d, -87.0F), half)));
        return hn::Mul(root, root);
    }
    return x;
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
