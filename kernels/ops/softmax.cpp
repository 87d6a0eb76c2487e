// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/softmax.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/ops/activation-inl.h"
#include "kernels/ops/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

// exp(x) for x <= 0; below -87 what exp(-87) is, which is as good as 0.
HWY_INLINE FloatVec exp_below_zero(FloatVec x) {
    return exp_of_negative(at_most(hn::Set(FloatTag(), 87.0F), hn::Neg(x)));
}

// Classes of a vector of rows.
template <size_t n>
HWY_INLINE void load_rows(const float* src, FloatVec (&v)[n]) {
    const FloatTag d;
    if constexpr (n == 2) hn::LoadInterleaved2(d, src, v[0], v[1]);
    if constexpr (n == 3) hn::LoadInterleaved3(d, src, v[0], v[1], v[2]);
    if constexpr (n == 4) hn::LoadInterleaved4(d, src, v[0], v[1], v[2], v[3]);
}
template <size_t n>
HWY_INLINE void store_rows(const FloatVec (&v)[n], float* dst) {
    const FloatTag d;
    if constexpr (n == 2) hn::StoreInterleaved2(v[0], v[1], d, dst);
    if constexpr (n == 3) hn::StoreInterleaved3(v[0], v[1], v[2], d, dst);
    if constexpr (n == 4) hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, dst);
}

// Few classes, as detectors and road scenes have them: a vector of rows at a time.
template <size_t n>
void few_classes(const float* src, float* dst, size_t rows) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d);
    const auto softmax = [](FloatVec(&v)[n]) HWY_ATTR {
        FloatVec most = v[0];
        for (size_t c = 1; c < n; ++c) most = hn::Max(most, v[c]);
        FloatVec sum = hn::Zero(FloatTag());
        for (size_t c = 0; c < n; ++c) {
            v[c] = exp_below_zero(hn::Sub(v[c], most));
            sum = hn::Add(sum, v[c]);
        }
        for (size_t c = 0; c < n; ++c) v[c] = hn::Div(v[c], sum);
    };
    FloatVec v[n];
    size_t r = 0;
    for (; r + lanes <= rows; r += lanes) {
        load_rows<n>(src + n * r, v);
        softmax(v);
        store_rows<n>(v, dst + n * r);
    }
    for (; r < rows; ++r) {
        for (size_t c = 0; c < n; ++c) v[c] = hn::Set(d, src[n * r + c]);
        softmax(v);
        for (size_t c = 0; c < n; ++c) dst[n * r + c] = hn::GetLane(v[c]);
    }
}

void row(const float* src, float* dst, size_t count) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes, left = count - whole;
    FloatVec most = hn::Set(d, src[0]);
    for (size_t i = 0; i < whole; i += lanes) most = hn::Max(most, hn::LoadU(d, src + i));
    if (left > 0) most = hn::Max(most, hn::LoadNOr(hn::Set(d, src[0]), d, src + whole, left));
    const FloatVec largest = hn::Set(d, hn::ReduceMax(d, most));
    FloatVec sum = hn::Zero(d);
    for (size_t i = 0; i < whole; i += lanes) {
        const FloatVec e = exp_below_zero(hn::Sub(hn::LoadU(d, src + i), largest));
        hn::StoreU(e, d, dst + i);
        sum = hn::Add(sum, e);
    }
    if (left > 0) {
        const FloatVec e = exp_below_zero(hn::Sub(hn::LoadN(d, src + whole, left), largest));
        hn::StoreN(e, d, dst + whole, left);
        sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, left), e));
    }
    const FloatVec scale = hn::Div(hn::Set(d, 1.0F), hn::Set(d, hn::ReduceSum(d, sum)));
    for (size_t i = 0; i < whole; i += lanes)
        hn::StoreU(hn::Mul(hn::LoadU(d, dst + i), scale), d, dst + i);
    if (left > 0) hn::StoreN(hn::Mul(hn::LoadN(d, dst + whole, left), scale), d, dst + whole, left);
}

void softmax(const float* src, float* dst, size_t rows, size_t count) {
    if (count == 2) return few_classes<2>(src, dst, rows);
    if (count == 3) return few_classes<3>(src, dst, rows);
    if (count == 4) return few_classes<4>(src, dst, rows);
    for (size_t r = 0; r < rows; ++r) row(src + r * count, dst + r * count, count);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(softmax);
}  // namespace

void softmax_rows(const float* src, float* dst, size_t rows, size_t count) {
    HWY_DYNAMIC_DISPATCH(softmax)(src, dst, rows, count);
}

void softmax_rows_ref(const float* src, float* dst, size_t rows, size_t count) {
    for (size_t r = 0; r < rows; ++r, src += count, dst += count) {
        const double most = *std::max_element(src, src + count);
        double sum = 0;
        for (size_t i = 0; i < count; ++i) sum += std::exp(src[i] - most);
        for (size_t i = 0; i < count; ++i)
            dst[i] = static_cast<float>(std::exp(src[i] - most) / sum);
    }
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
