// SPDX-License-Identifier: Apache-2.0
// What happens to the sums of a convolution before they are stored. Included once per instruction
// set.
#if defined(VARTML_KERNELS_CONV_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_CONV_FINISH_INL_H_
#undef VARTML_KERNELS_CONV_FINISH_INL_H_
#else
#define VARTML_KERNELS_CONV_FINISH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <limits>

#include "kernels/conv/conv.h"
#include "kernels/ops/bounds-inl.h"
#include "kernels/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
// Elements of bf16 as many as there are lanes.
using Bf16Tag = hn::Rebind<hwy::bfloat16_t, FloatTag>;

// Vector registers: 32 with AVX-512 and on Arm, else 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr size_t registers = 32;
constexpr size_t max_vectors = 4;
#else
constexpr size_t registers = 16;
constexpr size_t max_vectors = 2;
#endif

// `Whole`: there is a vector of them, else `left`, which may be more.
template <bool Whole>
HWY_INLINE FloatVec load(const float* src, size_t left) {
    if constexpr (Whole) return hn::LoadU(FloatTag(), src);
    return hn::LoadN(FloatTag(), src, left);
}
template <bool Whole>
HWY_INLINE FloatVec load(const bf16* src, size_t left) {
    const Bf16Tag half;
    const auto* from = reinterpret_cast<const hwy::bfloat16_t*>(src);
    if constexpr (Whole) return hn::PromoteTo(FloatTag(), hn::LoadU(half, from));
    return hn::PromoteTo(FloatTag(), hn::LoadN(half, from, left));
}

// Sums are bounded where they are in registers and stored, or finished by a function of their rows,
// which the first-level cache holds.
struct Finish {
    float low, high;
    FinishRows rows;  // nullptr: bounds are enough, the result is fp32 or bf16
    Epilogue epilogue;
    size_t source_size, result_size;  // bytes of an element
};

HWY_INLINE Finish make_finish(const ConvShape& s, const Epilogue& e, bool has_residual) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    Finish f{-infinity, infinity, nullptr, e, size_of(s.source), size_of(s.result)};
    if (e.activation == Activation::relu) f.low = 0;
    if (e.activation == Activation::clip) f.low = e.alpha, f.high = e.beta;
    const bool is_bound = e.activation == Activation::none || e.activation == Activation::relu ||
                          e.activation == Activation::clip;
    if (has_residual || !is_bound || s.result == Element::u8)
        f.rows = find_finish(e.activation, has_residual, s.source, s.result);
    return f;
}

// Sums without `f.rows`, held by the caller beside them: a store to a result might be to `f`, too.
struct Bounds {
    FloatVec low, high;
    explicit HWY_INLINE Bounds(const Finish& f)
        : low(hn::Set(FloatTag(), f.low)), high(hn::Set(FloatTag(), f.high)) {}
};
HWY_INLINE FloatVec bound(FloatVec x, const Bounds& b) {
    return at_most(b.high, at_least(b.low, x));
}
template <bool Whole>
HWY_INLINE void store(FloatVec x, float* dst, size_t left) {
    const FloatTag d;
    if (Whole || HWY_LIKELY(left >= hn::Lanes(d))) {
        hn::StoreU(x, d, dst);
    } else {
        hn::StoreN(x, d, dst, left);
    }
}
template <bool Whole>
HWY_INLINE void store(FloatVec x, bf16* dst, size_t left) {
    const Bf16Tag half;
    auto* const to = reinterpret_cast<hwy::bfloat16_t*>(dst);
    if (Whole || HWY_LIKELY(left >= hn::Lanes(half))) {
        hn::StoreU(hn::DemoteTo(half, x), half, to);
    } else {
        hn::StoreN(hn::DemoteTo(half, x), half, to, left);
    }
}

// The first `rows` rows of V vectors, `left` of whose elements are stored; `Whole`: all of them.
template <bool Whole, typename T, size_t M, size_t V>
HWY_INLINE void store_rows(const FloatVec (&sum)[M][V], const Finish& f, std::byte* dst,
                           size_t dst_step, size_t rows, size_t left) {
    const Bounds bounds(f);
    VARTML_UNROLL
    for (size_t m = 0; m < M; ++m, dst += dst_step) {
        if (!Whole && m >= rows) return;
        VARTML_UNROLL
        for (size_t v = 0; v < V; ++v)
            store<Whole>(bound(sum[m][v], bounds),
                         reinterpret_cast<T*>(dst) + v * hn::MaxLanes(FloatTag()),
                         left - v * hn::MaxLanes(FloatTag()));
    }
}
template <bool Whole, size_t M, size_t V>
HWY_INLINE void store_bounded(const FloatVec (&sum)[M][V], const Finish& f, std::byte* dst,
                              size_t dst_step, size_t rows, size_t left) {
    f.result_size == sizeof(float) ? store_rows<Whole, float>(sum, f, dst, dst_step, rows, left)
                                   : store_rows<Whole, bf16>(sum, f, dst, dst_step, rows, left);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
