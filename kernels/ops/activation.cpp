// SPDX-License-Identifier: Apache-2.0
// Activations on rows, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/activation.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "kernels/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

using HalfTag = hn::Rebind<hwy::bfloat16_t, FloatTag>;  // as many lanes as FloatTag

// The first `count` of the vector's elements.
HWY_INLINE void store(FloatVec x, float* dst, size_t count) {
    const FloatTag d;
    count >= hn::Lanes(d) ? hn::StoreU(x, d, dst) : hn::StoreN(x, d, dst, count);
}
HWY_INLINE void store(FloatVec x, bf16* dst, size_t count) {
    const HalfTag half;
    const auto y = hn::DemoteTo(half, x);
    auto* const to = reinterpret_cast<hwy::bfloat16_t*>(dst);
    count >= hn::Lanes(half) ? hn::StoreU(y, half, to) : hn::StoreN(y, half, to, count);
}
HWY_INLINE FloatVec load(const float* src, size_t count) {
    const FloatTag d;
    return count >= hn::Lanes(d) ? hn::LoadU(d, src) : hn::LoadN(d, src, count);
}
HWY_INLINE FloatVec load(const bf16* src, size_t count) {
    const HalfTag half;
    const auto* from = reinterpret_cast<const hwy::bfloat16_t*>(src);
    return hn::PromoteTo(FloatTag(), count >= hn::Lanes(half) ? hn::LoadU(half, from)
                                                              : hn::LoadN(half, from, count));
}

// Vectors, of each of which `count` elements are finished, with the steps from one to the next.
struct Vectors {
    const float* sums;
    size_t width;
    const std::byte* residual;
    size_t residual_step;  // bytes
    std::byte* dst;
    size_t dst_step;
    size_t count;
};

// The next N. R: of the residual; void: there is none.
template <Activation a, typename R, typename T, size_t N>
HWY_INLINE void finish_next(const Epilogue& e, Vectors& v) {
    const FloatTag d;
    constexpr bool is_short = sizeof(T) < sizeof(float);
    const FloatVec alpha = hn::Set(d, e.alpha), beta = hn::Set(d, e.beta);
    FloatVec x[N];
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n) x[n] = load(v.sums + n * v.width, v.count);
    if constexpr (std::is_void_v<R>) {
        activate_all<a, is_short>(x, alpha, beta);
    } else {
        FloatVec plus[N];
        VARTML_UNROLL
        for (size_t n = 0; n < N; ++n)
            plus[n] = load(reinterpret_cast<const R*>(v.residual + n * v.residual_step), v.count);
        if (e.add_first) {
            VARTML_UNROLL
            for (size_t n = 0; n < N; ++n) x[n] = hn::Add(x[n], plus[n]);
        }
        activate_all<a, is_short>(x, alpha, beta);
        if (!e.add_first) {
            VARTML_UNROLL
            for (size_t n = 0; n < N; ++n) x[n] = hn::Add(x[n], plus[n]);
        }
        v.residual += N * v.residual_step;
    }
    VARTML_UNROLL
    for (size_t n = 0; n < N; ++n)
        store(x[n], reinterpret_cast<T*>(v.dst + n * v.dst_step), v.count);
    v.sums += N * v.width, v.dst += N * v.dst_step;
}

// Several at a time where the steps of one are many.
template <Activation a, typename R, typename T>
HWY_NOINLINE void finish_vectors(const Epilogue& e, size_t vectors, Vectors v) {
    if constexpr (a == Activation::silu || a == Activation::sigmoid) {
        for (; vectors >= 4; vectors -= 4) finish_next<a, R, T, 4>(e, v);
        for (; vectors >= 2; vectors -= 2) finish_next<a, R, T, 2>(e, v);
    }
    for (; vectors > 0; --vectors) finish_next<a, R, T, 1>(e, v);
}

template <typename R>
constexpr size_t size_of_residual = sizeof(R);
template <>
constexpr size_t size_of_residual<void> = 0;

template <Activation a, typename R, typename T>
void finish_each(const Epilogue& e, const SumRows& r) {
    const size_t lanes = hn::Lanes(FloatTag());
    constexpr size_t added = size_of_residual<R>;
    if (r.rows == 1) {
        const size_t whole = r.count / lanes, done = whole * lanes;
        finish_vectors<a, R, T>(
            e, whole, {r.sums, lanes, r.residual, lanes * added, r.dst, lanes * sizeof(T), lanes});
        if (done < r.count)
            finish_vectors<a, R, T>(e, 1,
                                    {r.sums + done, 0, r.residual + done * added, 0,
                                     r.dst + done * sizeof(T), 0, r.count - done});
        return;
    }
    for (size_t i = 0; i < r.count; i += lanes)
        finish_vectors<a, R, T>(e, r.rows,
                                {r.sums + i, r.width, r.residual + i * added, r.residual_step,
                                 r.dst + i * sizeof(T), r.dst_step, r.count - i});
}

// Rows of a few elements; steps in elements.
template <typename T>
HWY_INLINE void copy_few(const T* from, size_t from_step, T* to, size_t to_step, size_t rows,
                         size_t count) {
    const auto copy = [&](auto size) {
        for (size_t p = 0; p < rows; ++p)
            std::memcpy(to + p * to_step, from + p * from_step, size * sizeof(T));
    };
    if (count == 1) return copy(std::integral_constant<size_t, 1>());
    if (count == 2) return copy(std::integral_constant<size_t, 2>());
    if (count == 4) return copy(std::integral_constant<size_t, 4>());
    copy(count);
}

// Rows that follow each other everywhere are one. Sums of few channels are first put together, so
// that vectors are full, and results that lie apart are spread behind.
template <Activation a, typename R, typename T>
void finish_rows(const Epilogue& e, const SumRows& r) {
    const auto follow = [&](size_t step, size_t size) { return step == r.count * size; };
    const bool is_dense = follow(r.dst_step, sizeof(T));
    bool flat = is_dense;
    if constexpr (!std::is_void_v<R>) flat = flat && follow(r.residual_step, sizeof(R));
    SumRows one = r;
    one.rows = 1;
    one.count = r.rows * r.count;
    if (flat && r.width == r.count) return finish_each<a, R, T>(e, one);
    constexpr size_t most = 16 * hn::MaxLanes(FloatTag());
    const bool few = r.count * 2 <= hn::Lanes(FloatTag()) && one.count <= most;
    if (!few || (!flat && !std::is_void_v<R>)) return finish_each<a, R, T>(e, r);
    HWY_ALIGN float sums[most] = {};  // g++ 14 does not see that the copy fills them
    copy_few(r.sums, r.width, sums, r.count, r.rows, r.count);
    one.sums = sums;
    if (is_dense) return finish_each<a, R, T>(e, one);
    HWY_ALIGN T results[most];
    one.dst = reinterpret_cast<std::byte*>(results);
    finish_each<a, R, T>(e, one);
    copy_few(results, r.count, reinterpret_cast<T*>(r.dst), r.dst_step / sizeof(T), r.rows,
             r.count);
}

template <Activation a>
void finish_codes(const Epilogue& e, const SumRows& r) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const hn::Rebind<uint8_t, FloatTag> code;
    const size_t lanes = hn::Lanes(d);
    const FloatVec alpha = hn::Set(d, e.alpha), beta = hn::Set(d, e.beta);
    // Adding 1.5·2^23 rounds to an integer, which then is in the lowest bits.
    const FloatVec magic = hn::Set(d, 12582912.0F);
    const auto zero = hn::Set(di, int32_t{e.codes.zero});
    const FloatVec low = hn::Set(d, -static_cast<float>(e.codes.zero));
    const FloatVec high = hn::Set(d, 255.0F - static_cast<float>(e.codes.zero));
    for (size_t i = 0; i < r.count; i += lanes) {
        const size_t count = r.count - i;
        const FloatVec scale = load(e.codes.scales + r.channel + i, count);
        const FloatVec factor = load(e.codes.factors + r.channel + i, count);
        for (size_t p = 0; p < r.rows; ++p) {
            FloatVec x[1] = {hn::Mul(load(r.sums + p * r.width + i, count), scale)};
            activate_all<a, true>(x, alpha, beta);
            const FloatVec y = hn::Mul(x[0], factor);
            const auto rounded = hn::BitCast(di, hn::Add(at_most(high, at_least(low, y)), magic));
            const auto bytes = hn::TruncateTo(
                code, hn::BitCast(hn::RebindToUnsigned<FloatTag>(), hn::Add(rounded, zero)));
            auto* const to = reinterpret_cast<uint8_t*>(r.dst + p * r.dst_step) + i;
            count >= lanes ? hn::StoreU(bytes, code, to) : hn::StoreN(bytes, code, to, count);
        }
    }
}

template <Activation a, typename T>
FinishRows find(bool has_residual, Element source) {
    if (!has_residual) return finish_rows<a, void, T>;
    return source == Element::bf16 ? finish_rows<a, bf16, T> : finish_rows<a, float, T>;
}

FinishRows find_any(Activation activation, bool has_residual, Element source, Element result) {
#define VARTML_CASE(name)                                                                   \
    case Activation::name:                                                                  \
        if (result == Element::u8) return finish_codes<Activation::name>;                   \
        return result == Element::bf16 ? find<Activation::name, bf16>(has_residual, source) \
                                       : find<Activation::name, float>(has_residual, source);
    switch (activation) {
        VARTML_CASE(none)
        VARTML_CASE(relu)
        VARTML_CASE(leaky)
        VARTML_CASE(clip)
        VARTML_CASE(sigmoid)
        VARTML_CASE(silu)
        VARTML_CASE(hard_sigmoid)
        VARTML_CASE(hard_swish)
        VARTML_CASE(tanh)
        VARTML_CASE(exp)
    }
#undef VARTML_CASE
    return nullptr;
}

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(find_any);
}  // namespace

FinishRows find_finish(Activation activation, bool has_residual, Element source, Element result) {
    return HWY_DYNAMIC_DISPATCH(find_any)(activation, has_residual, source, result);
}

void activate_row(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
                  size_t count) {
    find_finish(epilogue.activation, residual != nullptr, Element::f32, Element::f32)(
        epilogue, {src, 0, reinterpret_cast<const std::byte*>(residual), 0,
                   reinterpret_cast<std::byte*>(dst), 0, 1, count});
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
