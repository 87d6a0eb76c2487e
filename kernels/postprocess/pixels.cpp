// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/pixels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/postprocess/pixels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// (value - zero) * factor may be NaN where an infinity meets a zero: what is not finite is taken
// out first, and a product beyond the floats is clamped as any other.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> scaled(D d, const float* values, const ByteScale& s,
                                                 size_t& not_finite) {
    const hn::RebindToSigned<D> di;
    const auto value = hn::LoadU(d, values);
    const auto finite = hn::IsFinite(value);
    not_finite += hn::Lanes(d) - hn::CountTrue(d, finite);
    const auto usable = hn::IfThenElse(finite, value, hn::Set(d, s.zero));
    const auto product = hn::Mul(hn::Sub(usable, hn::Set(d, s.zero)), hn::Set(d, s.factor));
    const auto clamped = hn::Min(hn::Max(product, hn::Zero(d)), hn::Set(d, s.span));
    return hn::Add(hn::NearestInt(clamped), hn::Set(di, s.base));
}

// Bytes of two vectors of values each.
template <class D>
HWY_INLINE auto bytes_at(D d, const float* values, const ByteScale& s, size_t& not_finite) {
    const hn::Repartition<int16_t, D> d16;
    const hn::Half<hn::Repartition<uint8_t, D>> d8;
    const auto a = scaled(d, values, s, not_finite);
    const auto b = scaled(d, values + hn::Lanes(d), s, not_finite);
    return hn::DemoteTo(d8, hn::OrderedDemote2To(d16, a, b));
}

size_t to_bytes_impl(const float* values, size_t count, const ByteScale& s, uint8_t* bytes) {
    const hn::ScalableTag<float> d;
    const hn::Half<hn::Repartition<uint8_t, decltype(d)>> d8;
    const size_t step = 2 * hn::Lanes(d);
    size_t not_finite = 0, i = 0;
    for (; i + step <= count; i += step)
        hn::StoreU(bytes_at(d, values + i, s, not_finite), d8, bytes + i);
    return not_finite + to_bytes_ref(values + i, count - i, s, bytes + i);
}

size_t to_pixels_impl(const std::array<const float*, 3>& planes, size_t count,
                      const std::array<ByteScale, 3>& s, uint8_t* pixels) {
    const hn::ScalableTag<float> d;
    const hn::Half<hn::Repartition<uint8_t, decltype(d)>> d8;
    const size_t step = 2 * hn::Lanes(d);
    size_t not_finite = 0, i = 0;
    for (; i + step <= count; i += step) {
        hn::StoreInterleaved3(bytes_at(d, planes[0] + i, s[0], not_finite),
                              bytes_at(d, planes[1] + i, s[1], not_finite),
                              bytes_at(d, planes[2] + i, s[2], not_finite), d8, pixels + 3 * i);
    }
    return not_finite + to_pixels_ref({planes[0] + i, planes[1] + i, planes[2] + i}, count - i, s,
                                      pixels + 3 * i);
}

ValueRange range_of_impl(const float* values, size_t count) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    ValueRange none = range_of_ref(values, 0);
    auto least = hn::Set(d, none.least), greatest = hn::Set(d, none.greatest);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto value = hn::LoadU(d, values + i);
        const auto finite = hn::IsFinite(value);
        least = hn::Min(least, hn::IfThenElse(finite, value, hn::Set(d, none.least)));
        greatest = hn::Max(greatest, hn::IfThenElse(finite, value, hn::Set(d, none.greatest)));
    }
    const ValueRange rest = range_of_ref(values + i, count - i);
    return {HWY_MIN(hn::ReduceMin(d, least), rest.least),
            HWY_MAX(hn::ReduceMax(d, greatest), rest.greatest)};
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
HWY_EXPORT(to_bytes_impl);
HWY_EXPORT(to_pixels_impl);
HWY_EXPORT(range_of_impl);
size_t to_bytes(const float* values, size_t count, const ByteScale& scale, uint8_t* bytes) {
    return HWY_DYNAMIC_DISPATCH(to_bytes_impl)(values, count, scale, bytes);
}
size_t to_pixels(const std::array<const float*, 3>& planes, size_t count,
                 const std::array<ByteScale, 3>& scales, uint8_t* pixels) {
    return HWY_DYNAMIC_DISPATCH(to_pixels_impl)(planes, count, scales, pixels);
}
ValueRange range_of(const float* values, size_t count) {
    return HWY_DYNAMIC_DISPATCH(range_of_impl)(values, count);
}
}  // namespace vartml::kernels
#endif
