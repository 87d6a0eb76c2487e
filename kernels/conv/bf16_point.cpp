// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/bf16_point.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "kernels/conv/bf16_point.h"
#include "kernels/ops/activation-inl.h"

// The instruction sets with products of bf16 pairs in vectors of 512 bits.
#undef VARTML_BF16_PRODUCTS
#if HWY_TARGET == HWY_AVX3_ZEN4 || HWY_TARGET == HWY_AVX3_SPR
#define VARTML_BF16_PRODUCTS 1
#else
#define VARTML_BF16_PRODUCTS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

#if VARTML_BF16_PRODUCTS

constexpr size_t lanes = 16, registers = 32, max_vectors = 4;
using HalfTag = hn::Rebind<hwy::bfloat16_t, FloatTag>;  // as many lanes as FloatTag
using PairTag = hn::Repartition<hwy::bfloat16_t, FloatTag>;

bool has_products() {
    return true;
}

// ---- packed: biases, padded to whole vectors, then blocks of [pair of channels][output][2] ------

size_t padded_outputs(const PointShape& s) {
    return (s.out_channels + lanes - 1) / lanes * lanes;
}

// Outputs of a block: as equal as whole vectors allow.
size_t block_width(const PointShape& s) {
    const size_t vectors = padded_outputs(s) / lanes;
    const size_t blocks = (vectors + max_vectors - 1) / max_vectors;
    return (vectors + blocks - 1) / blocks * lanes;
}

size_t packed_size(const PointShape& s) {
    return padded_outputs(s) * (sizeof(float) + s.in_channels * sizeof(bf16));
}

bf16 rounded(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

void pack(const PointShape& s, const float* weights, const float* bias, std::byte* packed) {
    std::memset(packed, 0, packed_size(s));
    if (bias) std::memcpy(packed, bias, s.out_channels * sizeof(float));
    auto* const out = reinterpret_cast<bf16*>(packed + padded_outputs(s) * sizeof(float));
    const size_t width = block_width(s);
    for (size_t o = 0; o < s.out_channels; ++o) {
        const size_t first = o / width * width;
        const size_t own = std::min(width, padded_outputs(s) - first);
        for (size_t c = 0; c < s.in_channels; ++c)
            out[first * s.in_channels + (c / 2 * own + o - first) * 2 + c % 2] =
                rounded(*weights++);
    }
}

// ---- sums ---------------------------------------------------------------------------------------

struct Block {
    const float* bias;
    const bf16* weights;
    size_t width;  // padded outputs
    size_t pairs;  // of input channels
};

// Sums of M pixels by V vectors of outputs, which stay in registers until they are complete.
template <size_t M, size_t V>
void sum_tile(const bf16* src, size_t step, const Block& block, float* sums) {
    const FloatTag d;
    const PairTag pair;
    const hn::RebindToUnsigned<FloatTag> bits;
    FloatVec sum[M][V], unused = hn::Zero(d);
#pragma GCC unroll 4
    for (size_t v = 0; v < V; ++v) {
        const FloatVec bias = hn::LoadU(d, block.bias + v * lanes);
#pragma GCC unroll 16
        for (size_t m = 0; m < M; ++m) sum[m][v] = bias;
    }
    const auto* w = reinterpret_cast<const hwy::bfloat16_t*>(block.weights);
    for (size_t k = 0; k < block.pairs; ++k, src += 2, w += V * lanes * 2) {
        hn::Vec<PairTag> wv[V];
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) wv[v] = hn::LoadU(pair, w + v * lanes * 2);
#pragma GCC unroll 16
        for (size_t m = 0; m < M; ++m) {
            uint32_t two;
            std::memcpy(&two, src + m * step, sizeof two);
            const auto x = hn::BitCast(pair, hn::Set(bits, two));
#pragma GCC unroll 4
            for (size_t v = 0; v < V; ++v)
                sum[m][v] = hn::ReorderWidenMulAccumulate(d, x, wv[v], sum[m][v], unused);
        }
    }
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) hn::StoreU(sum[m][v], d, sums + (m * V + v) * lanes);
    }
}

using Sum = void (*)(const bf16*, size_t, const Block&, float*);
struct Size {
    size_t pixels;
    Sum run;
};
template <size_t V, size_t M = std::min<size_t>(14, (registers - 2 - V) / V)>
constexpr Size sizes[] = {{M, sum_tile<M, V>},
                          {(M + 1) / 2, sum_tile<(M + 1) / 2, V>},
                          {(M + 3) / 4, sum_tile<(M + 3) / 4, V>},
                          {1, sum_tile<1, V>}};
constexpr size_t max_sums = 28 * lanes;  // of a tile
constexpr std::span<const Size> tiles[max_vectors] = {sizes<1>, sizes<2>, sizes<3>, sizes<4>};

// ---- what happens to sums -----------------------------------------------------------------------

// x·sigmoid(x) and sigmoid(x) with the digits that bf16 has and four bits more: as sigmoid(), with
// a power by a polynomial of degree 3 (interpolates at Chebyshev nodes; error 1e-4) and the
// estimate of the reciprocal.
HWY_INLINE FloatVec short_sigmoid(FloatVec x) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const FloatVec bounded = hn::Min(hn::Set(d, 87.0F), hn::Max(hn::Set(d, -87.0F), x));
    const FloatVec minus_log2e = hn::Set(d, -1.44269502F), magic = hn::Set(d, 12582912.0F);
    const FloatVec shifted = hn::MulAdd(bounded, minus_log2e, magic);
    const FloatVec f = hn::MulSub(bounded, minus_log2e, hn::Sub(shifted, magic));
    FloatVec p = hn::Set(d, 5.58382829e-2F);
    p = hn::MulAdd(p, f, hn::Set(d, 2.42639479e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 6.93136734e-1F));
    p = hn::MulAdd(p, f, hn::Set(d, 9.99924557e-1F));
    const auto n = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
    const FloatVec e = hn::BitCast(d, hn::Add(hn::BitCast(di, p), n));
    return hn::ApproximateReciprocal(hn::Add(hn::Set(d, 1.0F), e));
}

template <Activation a, typename T>
HWY_INLINE FloatVec activated(FloatVec x, FloatVec alpha, FloatVec beta) {
    const FloatTag d;
    if constexpr (sizeof(T) == sizeof(bf16) && a == Activation::sigmoid) return short_sigmoid(x);
    if constexpr (sizeof(T) == sizeof(bf16) && a == Activation::silu)
        return hn::Mul(hn::Max(hn::Set(d, -87.0F), x), short_sigmoid(x));
    return activate<a>(x, alpha, beta);
}

// The first `count` of the vector's elements.
HWY_INLINE void store(FloatVec x, float* dst, size_t count) {
    const FloatTag d;
    count >= lanes ? hn::StoreU(x, d, dst) : hn::StoreN(x, d, dst, count);
}
HWY_INLINE void store(FloatVec x, bf16* dst, size_t count) {
    const HalfTag half;
    const auto y = hn::DemoteTo(half, x);
    auto* const to = reinterpret_cast<hwy::bfloat16_t*>(dst);
    count >= lanes ? hn::StoreU(y, half, to) : hn::StoreN(y, half, to, count);
}
HWY_INLINE FloatVec load(const bf16* src, size_t count) {
    const HalfTag half;
    const auto* from = reinterpret_cast<const hwy::bfloat16_t*>(src);
    return hn::PromoteTo(FloatTag(),
                         count >= lanes ? hn::LoadU(half, from) : hn::LoadN(half, from, count));
}

// `pixels` rows of sums, `width` apart, of which `count` are stored.
template <Activation a, bool Residual, typename T>
HWY_INLINE void finish_rows(const Epilogue& e, const float* sums, size_t width,
                            const Bf16Line& residual, T* dst, size_t step, size_t pixels,
                            size_t count) {
    const FloatTag d;
    const FloatVec alpha = hn::Set(d, e.alpha), beta = hn::Set(d, e.beta);
    for (size_t p = 0; p < pixels; ++p, sums += width, dst += step) {
        for (size_t i = 0; i < count; i += lanes) {
            FloatVec x = hn::LoadU(d, sums + i);
            if constexpr (Residual) {
                const FloatVec plus = load(residual.data + p * residual.step + i, count - i);
                x = e.add_first ? activated<a, T>(hn::Add(x, plus), alpha, beta)
                                : hn::Add(activated<a, T>(x, alpha, beta), plus);
            } else {
                x = activated<a, T>(x, alpha, beta);
            }
            store(x, dst + i, count - i);
        }
    }
}

template <typename T>
HWY_NOINLINE void finish(const Epilogue& e, const float* sums, size_t width,
                         const Bf16Line& residual, T* dst, size_t step, size_t pixels,
                         size_t count) {
#define VARTML_CASE(name)                                                                          \
    case Activation::name:                                                                         \
        return residual.data ? finish_rows<Activation::name, true>(e, sums, width, residual, dst,  \
                                                                   step, pixels, count)            \
                             : finish_rows<Activation::name, false>(e, sums, width, residual, dst, \
                                                                    step, pixels, count);
    switch (e.activation) {
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
}

// ---- all pixels ---------------------------------------------------------------------------------

template <typename T>
HWY_INLINE void point(const PointShape& s, const Bf16Line& src, const std::byte* packed,
                      const Epilogue& epilogue, const Bf16Line& residual, T* dst, size_t step,
                      size_t pixels) {
    const auto* const biases = reinterpret_cast<const float*>(packed);
    const size_t outputs = padded_outputs(s), width = block_width(s);
    const auto* const weights = reinterpret_cast<const bf16*>(packed + outputs * sizeof(float));
    alignas(64) float sums[max_sums];
    // Pieces whose input stays in the first-level cache while the blocks of outputs go over it.
    constexpr size_t l1_elements = 12288, least = 28;
    const size_t piece = std::max(least, l1_elements / std::max<size_t>(1, src.step));
    for (size_t first = 0; first < pixels;) {
        size_t last = std::min(pixels, first + piece);
        if (pixels - last < least) last = pixels;
        for (size_t o = 0; o < s.out_channels; o += width) {
            const Block block{biases + o, weights + o * s.in_channels, std::min(width, outputs - o),
                              s.in_channels / 2};
            const size_t count = std::min<size_t>(block.width, s.out_channels - o);
            const auto run = [&](const Size& size, size_t at) {
                size.run(src.data + at * src.step, src.step, block, sums);
                const Bf16Line add{residual.data ? residual.data + at * residual.step + o : nullptr,
                                   residual.step};
                finish(epilogue, sums, block.width, add, dst + at * step + o, step, size.pixels,
                       count);
            };
            // The last tile is moved back over pixels that are done already where there are
            // enough: making them twice costs less than a small tile.
            size_t at = first;
            for (const Size& size : tiles[block.width / lanes - 1]) {
                for (; at + size.pixels <= last; at += size.pixels) run(size, at);
                if ((last - at) * 2 > size.pixels && last - first >= size.pixels) {
                    run(size, last - size.pixels);
                    break;
                }
            }
        }
        first = last;
    }
}

void point_bf16(const PointShape& s, const Bf16Line& src, const std::byte* packed,
                const Epilogue& epilogue, const Bf16Line& residual, bf16* dst, size_t step,
                size_t pixels) {
    point(s, src, packed, epilogue, residual, dst, step, pixels);
}
void point_float(const PointShape& s, const Bf16Line& src, const std::byte* packed,
                 const Epilogue& epilogue, const Bf16Line& residual, float* dst, size_t step,
                 size_t pixels) {
    point(s, src, packed, epilogue, residual, dst, step, pixels);
}

#else  // has_bf16_point() is false: never called

bool has_products() {
    return false;
}
size_t packed_size(const PointShape&) {
    return 0;
}
void pack(const PointShape&, const float*, const float*, std::byte*) {}
void point_bf16(const PointShape&, const Bf16Line&, const std::byte*, const Epilogue&,
                const Bf16Line&, bf16*, size_t, size_t) {}
void point_float(const PointShape&, const Bf16Line&, const std::byte*, const Epilogue&,
                 const Bf16Line&, float*, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(has_products);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack);
HWY_EXPORT(point_bf16);
HWY_EXPORT(point_float);
}  // namespace

bool has_bf16_point(const PointShape& shape) {
    return shape.in_channels % 2 == 0 && HWY_DYNAMIC_DISPATCH(has_products)();
}

size_t packed_bf16_point_size(const PointShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_size)(shape);
}

void pack_bf16_point(const PointShape& shape, const float* weights, const float* bias,
                     std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack)(shape, weights, bias, packed);
}

void bf16_point(const PointShape& shape, const Bf16Line& src, const std::byte* packed,
                const Epilogue& epilogue, const Bf16Line& residual, bf16* dst, size_t dst_step,
                size_t pixels) {
    HWY_DYNAMIC_DISPATCH(point_bf16)
    (shape, src, packed, epilogue, residual, dst, dst_step, pixels);
}

void bf16_point(const PointShape& shape, const Bf16Line& src, const std::byte* packed,
                const Epilogue& epilogue, const Bf16Line& residual, float* dst, size_t dst_step,
                size_t pixels) {
    HWY_DYNAMIC_DISPATCH(point_float)
    (shape, src, packed, epilogue, residual, dst, dst_step, pixels);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
