// SPDX-License-Identifier: Apache-2.0
#include "kernels/preprocess/resample.h"

#include "kernels/preprocess/read_row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/preprocess/resample.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<int16_t>;
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using Quad = hn::FixedTag<int16_t, 4>;
using TwoQuads = hn::FixedTag<int16_t, 8>;
using FloatQuad = hn::FixedTag<float, 4>;

template <class V>
HWY_INLINE V blend(V a, V b, V weight) {
    return hn::Add(a, hn::MulFixedPoint15(hn::Sub(b, a), weight));
}

void BlendRows(const int16_t* const* a, const int16_t* const* b, int16_t weight, size_t planes,
               size_t copies, size_t count, int16_t* quads) {
    const D16 d;
    const size_t lanes = hn::Lanes(d);
    const auto w = hn::Set(d, weight), zero = hn::Zero(d);
    const int16_t *a0 = a[0], *b0 = b[0];
    if (planes == 1) {
        for (size_t p = 0; p < count; p += lanes) {
            const auto v = blend(hn::LoadU(d, a0 + p), hn::LoadU(d, b0 + p), w);
            const auto copy = copies == 1 ? zero : v;
            hn::StoreInterleaved4(v, copy, copy, zero, d, quads + 4 * p);
        }
    } else if (weight == 0) {
        const int16_t *a1 = a[1], *a2 = a[2];
        for (size_t p = 0; p < count; p += lanes)
            hn::StoreInterleaved4(hn::LoadU(d, a0 + p), hn::LoadU(d, a1 + p), hn::LoadU(d, a2 + p),
                                  zero, d, quads + 4 * p);
    } else {
        const int16_t *a1 = a[1], *a2 = a[2], *b1 = b[1], *b2 = b[2];
        for (size_t p = 0; p < count; p += lanes)
            hn::StoreInterleaved4(blend(hn::LoadU(d, a0 + p), hn::LoadU(d, b0 + p), w),
                                  blend(hn::LoadU(d, a1 + p), hn::LoadU(d, b1 + p), w),
                                  blend(hn::LoadU(d, a2 + p), hn::LoadU(d, b2 + p), w), zero, d,
                                  quads + 4 * p);
    }
    hn::StoreU(hn::Zero(Quad()), Quad(), quads + 4 * count);
}

void SampleColumns(const int16_t* src, const uint32_t* offsets, const int16_t* weights,
                   size_t count, int16_t* dst) {
    const TwoQuads d;
    const hn::Repartition<uint64_t, TwoQuads> d64;
    size_t p = 0;
    for (; p + 2 <= count; p += 2) {
        // Each load gives both neighbours of one pixel.
        const auto first = hn::BitCast(d64, hn::LoadU(d, src + 4 * size_t{offsets[p]}));
        const auto second = hn::BitCast(d64, hn::LoadU(d, src + 4 * size_t{offsets[p + 1]}));
        const auto a = hn::BitCast(d, hn::InterleaveLower(d64, first, second));
        const auto b = hn::BitCast(d, hn::InterleaveUpper(d64, first, second));
        hn::StoreU(blend(a, b, hn::LoadU(d, weights + 4 * p)), d, dst + 4 * p);
    }
    if (p == count) return;
    const Quad d1;
    const int16_t* last = src + 4 * size_t{offsets[p]};
    hn::StoreU(blend(hn::LoadU(d1, last), hn::LoadU(d1, last + 4), hn::LoadU(d1, weights + 4 * p)),
               d1, dst + 4 * p);
}

HWY_INLINE hn::Vec<DF> load_floats(const int16_t* ptr) {
    const hn::Rebind<int16_t, DF> d;
    return hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(d, ptr)));
}
// The same from fewer values than a vector holds.
HWY_INLINE hn::Vec<DF> load_floats(const int16_t* ptr, size_t count) {
    const hn::Rebind<int16_t, DF> d;
    return hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadN(d, ptr, count)));
}

void AccumulateRows(const int16_t* quads, float weight, bool begin, size_t count, float* sums) {
    const DF d;
    const size_t lanes = hn::Lanes(d), values = 4 * count;
    const auto w = hn::Set(d, weight);
    size_t i = 0;
    for (; i + lanes <= values; i += lanes) {
        const auto part = hn::Mul(load_floats(quads + i), w);
        hn::StoreU(begin ? part : hn::Add(hn::LoadU(d, sums + i), part), d, sums + i);
    }
    if (const size_t rest = values - i; rest != 0) {
        const auto part = hn::Mul(load_floats(quads + i, rest), w);
        hn::StoreN(begin ? part : hn::Add(hn::LoadN(d, sums + i, rest), part), d, sums + i, rest);
    }
}

void SumColumns(const float* rows, const Span* spans, const float* weights, bool begin,
                size_t count, float* sums) {
    const FloatQuad d;
    for (size_t p = 0; p < count; ++p) {
        const Span span = spans[p];
        auto sum = begin ? hn::Zero(d) : hn::LoadU(d, sums + 4 * p);
        for (size_t k = 0; k < span.count; ++k)
            sum = hn::Add(sum, hn::Mul(hn::LoadU(d, rows + 4 * (span.first + k)),
                                       hn::Set(d, weights[span.weights + k])));
        hn::StoreU(sum, d, sums + 4 * p);
    }
}

void RoundQuads(const float* sums, size_t count, int16_t* quads) {
    const FloatQuad d;
    for (size_t p = 0; p < count; ++p) {
        const auto limited = hn::Min(hn::Max(hn::LoadU(d, sums + 4 * p), hn::Zero(d)),
                                     hn::Set(d, static_cast<float>(colour_max)));
        hn::StoreU(hn::DemoteTo(Quad(), hn::NearestInt(limited)), Quad(), quads + 4 * p);
    }
}

// Calls store(values, index) or store(values, index, count) with a vector of normalised values.
template <class Store>
HWY_INLINE void normalise_with(const int16_t* quads, const float* mean, const float* scale,
                               size_t count, const Store& store) {
    const DF d;
    const size_t lanes = hn::Lanes(d), values = 4 * count;
    const auto m = hn::LoadDup128(d, mean), s = hn::LoadDup128(d, scale);
    const auto unit = hn::Set(d, 1.0f / (1 << colour_shift));
    size_t i = 0;
    for (; i + lanes <= values; i += lanes)
        store(hn::Mul(hn::Sub(hn::Mul(load_floats(quads + i), unit), m), s), i, lanes);
    if (i < values)
        store(hn::Mul(hn::Sub(hn::Mul(load_floats(quads + i, values - i), unit), m), s), i,
              values - i);
}

void Normalise(const int16_t* quads, const float* mean, const float* scale, size_t count,
               float* dst) {
    const DF d;
    normalise_with(quads, mean, scale, count, [&](hn::Vec<DF> v, size_t i, size_t n) HWY_ATTR {
        if (n == hn::Lanes(d))
            hn::StoreU(v, d, dst + i);
        else
            hn::StoreN(v, d, dst + i, n);
    });
}

void NormaliseBf16(const int16_t* quads, const float* mean, const float* scale, size_t count,
                   uint16_t* dst) {
    const DU d;
    const hn::Rebind<uint16_t, DU> d16;
    normalise_with(quads, mean, scale, count, [&](hn::Vec<DF> v, size_t i, size_t n) HWY_ATTR {
        const auto bits = hn::BitCast(d, v);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
        const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
        const auto top = hn::TruncateTo(d16, hn::ShiftRight<16>(rounded));
        if (n == hn::Lanes(d))
            hn::StoreU(top, d16, dst + i);
        else
            hn::StoreN(top, d16, dst + i, n);
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {

HWY_EXPORT(BlendRows);
HWY_EXPORT(SampleColumns);
HWY_EXPORT(AccumulateRows);
HWY_EXPORT(SumColumns);
HWY_EXPORT(RoundQuads);
HWY_EXPORT(Normalise);
HWY_EXPORT(NormaliseBf16);

void blend_rows(const int16_t* const* a, const int16_t* const* b, int16_t weight, size_t planes,
                size_t copies, size_t count, int16_t* quads) {
    HWY_DYNAMIC_DISPATCH(BlendRows)(a, b, weight, planes, copies, count, quads);
}
void sample_columns(const int16_t* src, const uint32_t* offsets, const int16_t* weights,
                    size_t count, int16_t* dst) {
    HWY_DYNAMIC_DISPATCH(SampleColumns)(src, offsets, weights, count, dst);
}
void accumulate_rows(const int16_t* quads, float weight, bool begin, size_t count, float* sums) {
    HWY_DYNAMIC_DISPATCH(AccumulateRows)(quads, weight, begin, count, sums);
}
void sum_columns(const float* rows, const Span* spans, const float* weights, bool begin,
                 size_t count, float* sums) {
    HWY_DYNAMIC_DISPATCH(SumColumns)(rows, spans, weights, begin, count, sums);
}
void round_quads(const float* sums, size_t count, int16_t* quads) {
    HWY_DYNAMIC_DISPATCH(RoundQuads)(sums, count, quads);
}
void normalise(const int16_t* quads, const float* mean, const float* scale, size_t count,
               float* dst) {
    HWY_DYNAMIC_DISPATCH(Normalise)(quads, mean, scale, count, dst);
}
void normalise_bf16(const int16_t* quads, const float* mean, const float* scale, size_t count,
                    uint16_t* dst) {
    HWY_DYNAMIC_DISPATCH(NormaliseBf16)(quads, mean, scale, count, dst);
}

}  // namespace vartml::kernels
#endif
