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
#include "kernels/ops/bounds-inl.h"
#include "kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// The functions of several vectors take them a step at a time: each step of one of them waits for
// the step before it, and the others are computed meanwhile.

// 1 / v for finite v > 0: the estimate of the instruction set, then Newton steps until its error is
// below that of a float.
template <size_t N>
HWY_INLINE void reciprocals(FloatVec (&v)[N]) {
    const FloatVec two = hn::Set(FloatTag(), 2.0F);
    FloatVec r[N];
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) r[n] = hn::ApproximateReciprocal(v[n]);
#if HWY_TARGET > HWY_AVX3  // 14 bits are enough for one step, fewer are not
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) r[n] = hn::Mul(r[n], hn::NegMulAdd(v[n], r[n], two));
#endif
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) v[n] = hn::Mul(r[n], hn::NegMulAdd(v[n], r[n], two));
}

// exp(-x) for |x| <= 87: 2^(i + f) with f in [-1/2, 1/2], the power of f by a polynomial. The
// coefficients begin with that of the highest power.
template <size_t N, size_t Terms>
HWY_INLINE void powers_of_negative(FloatVec (&x)[N], const float (&coefficients)[Terms]) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec minus_log2e = hn::Set(d, -1.44269502F);
    // Adding 1.5·2^23 rounds to an integer, which then is in the lowest bits.
    const FloatVec magic = hn::Set(d, 12582912.0F);
    FloatVec shifted[N], p[N];
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) shifted[n] = hn::MulAdd(x[n], minus_log2e, magic);
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) {
        x[n] = hn::MulSub(x[n], minus_log2e, hn::Sub(shifted[n], magic));
        p[n] = hn::Set(d, coefficients[0]);
    }
    VARTML_UNROLL
    for (size_t term = 1; term < Terms; ++term) {
        VARTML_UNROLL
        for (size_t n = 0; n < N; ++n)
            p[n] = hn::MulAdd(p[n], x[n], hn::Set(d, coefficients[term]));
    }
    // i is added to the exponent; |i| <= 126 keeps it normal. A NaN, whose lowest bits may be any,
    // stays what it is.
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) {
        const auto is_number = hn::RebindMask(di, hn::Eq(x[n], x[n]));
        const auto i =
            hn::IfThenElseZero(is_number, hn::ShiftLeft<23>(hn::BitCast(di, shifted[n])));
        x[n] = hn::BitCast(d, hn::Add(hn::BitCast(di, p[n]), i));
    }
}

// With a polynomial of degree 5 (interpolates at Chebyshev nodes, then with the constant 1; error
// 2e-7).
template <size_t N>
HWY_INLINE void exps_of_negative(FloatVec (&x)[N]) {
    constexpr float terms[] = {1.33908633e-3F, 9.67603177e-3F, 5.55035695e-2F,
                               2.40221068e-1F, 6.93147182e-1F, 1.0F};
    powers_of_negative(x, terms);
}
HWY_INLINE FloatVec exp_of_negative(FloatVec x) {
    FloatVec one[1] = {x};
    exps_of_negative(one);
    return one[0];
}

template <size_t N>
HWY_INLINE void bound_by_87(FloatVec (&x)[N]) {
    const FloatTag d;
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n)
        x[n] = at_most(hn::Set(d, 87.0F), at_least(hn::Set(d, -87.0F), x[n]));
}

template <size_t N>
HWY_INLINE void sigmoids(FloatVec (&x)[N]) {
    bound_by_87(x);
    exps_of_negative(x);
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) x[n] = hn::Add(hn::Set(FloatTag(), 1.0F), x[n]);
    reciprocals(x);
}
HWY_INLINE FloatVec sigmoid(FloatVec x) {
    FloatVec one[1] = {x};
    sigmoids(one);
    return one[0];
}

// With the digits that bf16 has and four bits more: a polynomial of degree 3 (interpolates at
// Chebyshev nodes; error 1e-4) and the estimate of the reciprocal, of 14 bits with AVX-512, of 12
// with AVX2, where a Newton step follows.
template <size_t N>
HWY_INLINE void short_sigmoids(FloatVec (&x)[N]) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
    const FloatTag d;
    constexpr float terms[] = {5.58382829e-2F, 2.42639479e-1F, 6.93136734e-1F, 9.99924557e-1F};
    bound_by_87(x);
    powers_of_negative(x, terms);
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) {
        const FloatVec v = hn::Add(hn::Set(d, 1.0F), x[n]);
        const FloatVec r = hn::ApproximateReciprocal(v);
        x[n] = HWY_TARGET <= HWY_AVX3 ? r : hn::Mul(r, hn::NegMulAdd(v, r, hn::Set(d, 2.0F)));
    }
#else
    sigmoids(x);
#endif
}

// x·sigmoid(x), `Short`: as above. Bounded, because the smallest sigmoid is not 0.
template <bool Short, size_t N>
HWY_INLINE void silus(FloatVec (&x)[N]) {
    FloatVec s[N];
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) s[n] = x[n];
    Short ? short_sigmoids(s) : sigmoids(s);
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n)
        x[n] = hn::Mul(at_least(hn::Set(FloatTag(), -87.0F), x[n]), s[n]);
}

// One of the other activations.
template <Activation a>
HWY_INLINE FloatVec activate(FloatVec x, FloatVec alpha, FloatVec beta) {
    const FloatTag d;
    const FloatVec zero = hn::Zero(d), one = hn::Set(d, 1.0F);
    if constexpr (a == Activation::relu) return at_least(zero, x);
    if constexpr (a == Activation::leaky)
        return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, alpha), x);
    if constexpr (a == Activation::clip) return at_most(beta, at_least(alpha, x));
    if constexpr (a == Activation::hard_sigmoid) {
        return at_most(one, at_least(zero, hn::MulAdd(alpha, x, beta)));
    }
    if constexpr (a == Activation::hard_swish) {
        const FloatVec gate = hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
        return hn::Mul(x, at_most(one, at_least(zero, gate)));
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
            exp_of_negative(at_most(hn::Set(d, 87.0F), at_least(hn::Set(d, -87.0F), half)));
        return hn::Mul(root, root);
    }
    return x;
}

// `Short`: with the digits that bf16 has and four bits more.
template <Activation a, bool Short, size_t N>
HWY_INLINE void activate_all(FloatVec (&x)[N], FloatVec alpha, FloatVec beta) {
    if constexpr (a == Activation::silu) return silus<Short>(x);
    if constexpr (a == Activation::sigmoid) return Short ? short_sigmoids(x) : sigmoids(x);
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) x[n] = activate<a>(x[n], alpha, beta);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
