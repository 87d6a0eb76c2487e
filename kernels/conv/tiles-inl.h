// SPDX-License-Identifier: Apache-2.0
// Tiles of a direct convolution: a few pixels by a few vectors of channels whose sums stay in
// registers. Included by the kernel once per instruction set.
//
// What bounds them is loads: processors make two multiply-adds of vectors in a cycle, and some load
// only one operand. So a tile either is wide (an input value serves four vectors of weights) or
// runs along a row, where an input value serves every kernel column.
#if defined(VARTML_KERNELS_CONV_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_CONV_TILES_INL_H_
#undef VARTML_KERNELS_CONV_TILES_INL_H_
#else
#define VARTML_KERNELS_CONV_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/conv/conv.h"
#include "kernels/conv/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

// A kernel position: where its input lies relative to the pixel's first, where its weights lie.
struct Tap {
    ptrdiff_t src;
    size_t weights;  // units of Block::column
};
constexpr size_t max_taps = 128;
struct Taps {
    std::array<Tap, max_taps> list;
    size_t count = 0;
};

// A run of output pixels with the same taps.
struct Line {
    const float* src;
    size_t src_step;  // elements
    std::byte* dst;
    size_t dst_step;  // bytes
    const std::byte* residual;
    size_t residual_step;  // bytes
    size_t pixels;
};

// Output channels that are made together and their weights, [kernel rows][in
// channels][kernel columns][channels of the block].
struct Block {
    const float* weights;
    const float* bias;
    size_t channel, count;  // first output channel, how many are stored
    size_t column;          // floats between kernel columns: padded channels
    size_t channels;        // input channels
    size_t channel_step;    // floats between them
};

template <size_t M, size_t V>
HWY_INLINE void finish_tile(FloatVec (&sum)[M][V], const Line& line, size_t first,
                            const Block& block, const Finish& f) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d);
    std::byte* const dst = line.dst + first * line.dst_step + block.channel * f.result_size;
    if (!f.rows) {
        if (block.count == V * lanes)
            return store_bounded<true>(sum, f, dst, line.dst_step, M, block.count);
        return store_bounded<false>(sum, f, dst, line.dst_step, M, block.count);
    }
    HWY_ALIGN float sums[M * V * hn::MaxLanes(FloatTag())];
    VARTML_UNROLL
    for (size_t m = 0; m < M; ++m) {
        VARTML_UNROLL
        for (size_t v = 0; v < V; ++v) hn::Store(sum[m][v], d, sums + (m * V + v) * lanes);
    }
    const std::byte* const residual =
        line.residual ? line.residual + first * line.residual_step + block.channel * f.source_size
                      : nullptr;
    f.rows(f.epilogue, {sums, V * lanes, residual, line.residual_step, dst, line.dst_step, M,
                        block.count, block.channel});
}

template <size_t M, size_t V>
HWY_INLINE void start_tile(FloatVec (&sum)[M][V], const Block& block) {
    const FloatTag d;
    VARTML_UNROLL
    for (size_t v = 0; v < V; ++v) {
        const FloatVec bias = hn::LoadU(d, block.bias + v * hn::Lanes(d));
        VARTML_UNROLL
        for (size_t m = 0; m < M; ++m) sum[m][v] = bias;
    }
}

// Any taps, one after another.
template <size_t M, size_t V>
void point_tile(const Line& line, size_t first, const Taps& taps, const Block& block,
                const Finish& f) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d), step = line.src_step, next = block.channel_step;
    FloatVec sum[M][V];
    start_tile(sum, block);
    const float* const base = line.src + first * step;
    for (size_t t = 0; t < taps.count; ++t) {
        const Tap& tap = taps.list[t];
        const float* src = base + tap.src;
        const float* const end = src + block.channels;
        const float* w = block.weights + tap.weights * block.column;
        for (; src != end; ++src, w += next) {
            FloatVec wv[V];
            VARTML_UNROLL
            for (size_t v = 0; v < V; ++v) wv[v] = hn::LoadU(d, w + v * lanes);
            VARTML_UNROLL
            for (size_t m = 0; m < M; ++m) {
                const FloatVec x = hn::Set(d, src[m * step]);
                VARTML_UNROLL
                for (size_t v = 0; v < V; ++v) sum[m][v] = hn::MulAdd(x, wv[v], sum[m][v]);
            }
        }
    }
    finish_tile(sum, line, first, block, f);
}

// Whole kernel rows of K columns, S pixels from one output to the next: a value of the input is
// loaded once for all outputs that it belongs to.
template <size_t M, size_t V, size_t K, size_t S>
void row_tile(const Line& line, size_t first, const Taps& taps, const Block& block,
              const Finish& f) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d), pixel = line.src_step / S, next = block.channel_step;
    FloatVec sum[M][V];
    start_tile(sum, block);
    const float* const base = line.src + first * line.src_step;
    for (size_t t = 0; t < taps.count; t += K) {
        const float* src = base + taps.list[t].src;
        const float* const end = src + block.channels;
        const float* w = block.weights + taps.list[t].weights * block.column;
        for (; src != end; ++src, w += next) {
            const float* at = src;
            FloatVec wv[K][V];
            VARTML_UNROLL
            for (size_t k = 0; k < K; ++k) {
                VARTML_UNROLL
                for (size_t v = 0; v < V; ++v) wv[k][v] = hn::LoadU(d, w + (k * V + v) * lanes);
            }
            VARTML_UNROLL
            for (size_t i = 0; i < (M - 1) * S + K; ++i, at += pixel) {
                const FloatVec x = hn::Set(d, *at);
                VARTML_UNROLL
                for (size_t k = 0; k < K; ++k) {
                    if (i < k || (i - k) % S != 0 || (i - k) / S >= M) continue;
                    VARTML_UNROLL
                    for (size_t v = 0; v < V; ++v)
                        sum[(i - k) / S][v] = hn::MulAdd(x, wv[k][v], sum[(i - k) / S][v]);
                }
            }
        }
    }
    finish_tile(sum, line, first, block, f);
}

// ---- which tile ------------------------------------------------------------------------------

// Tiles of falling size; the last is of one pixel.
struct Size {
    size_t pixels;
    void (*run)(const Line&, size_t, const Taps&, const Block&, const Finish&);
};

// Pixels beside V vectors of weights and one of input in the registers.
template <size_t V>
constexpr size_t point_pixels = std::min<size_t>(14, (registers - 1 - V) / V);
template <size_t V, size_t M = point_pixels<V>>
constexpr Size point_sizes[] = {{M, point_tile<M, V>},
                                {(M + 1) / 2, point_tile<(M + 1) / 2, V>},
                                {(M + 3) / 4, point_tile<(M + 3) / 4, V>},
                                {1, point_tile<1, V>}};

template <size_t V, size_t K>
constexpr size_t row_pixels = std::min<size_t>(14, (registers - 1 - K * V) / V);
template <size_t V, size_t K, size_t S, size_t M = row_pixels<V, K>>
constexpr Size row_sizes[] = {{M, row_tile<M, V, K, S>},
                              {(M + 1) / 2, row_tile<(M + 1) / 2, V, K, S>},
                              {(M + 3) / 4, row_tile<(M + 3) / 4, V, K, S>},
                              {1, row_tile<1, V, K, S>}};

// Vectors of a block of a row tile.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr size_t max_row_vectors = 2;
#else
constexpr size_t max_row_vectors = 1;
#endif

struct RowTiles {
    size_t kernel, stride;
    std::span<const Size> dense[max_row_vectors];
};
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
#define VARTML_ROW_TILES(K, S)                     \
    {                                              \
        K, S, {                                    \
            row_sizes<1, K, S>, row_sizes<2, K, S> \
        }                                          \
    }
#else
#define VARTML_ROW_TILES(K, S) \
    {                          \
        K, S, {                \
            row_sizes<1, K, S> \
        }                      \
    }
#endif
constexpr RowTiles row_tiles[] = {VARTML_ROW_TILES(3, 1), VARTML_ROW_TILES(3, 2),
                                  VARTML_ROW_TILES(5, 1), VARTML_ROW_TILES(5, 2),
                                  VARTML_ROW_TILES(6, 2), VARTML_ROW_TILES(7, 2)};
#undef VARTML_ROW_TILES

HWY_INLINE std::span<const Size> point_tiles(size_t vectors) {
    if (vectors == 1) return point_sizes<1>;
    if (vectors == 2) return point_sizes<2>;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
    if (vectors == 3) return point_sizes<3>;
    return point_sizes<4>;
#else
    return {};
#endif
}

// All pixels of [first, last) of a line for one block of channels. The last tile is moved back over
// pixels that are done already where the line is long enough: making them twice costs less than a
// small tile. Where a residual is the output itself that would add it twice; the contract excludes
// it.
HWY_INLINE void cover(std::span<const Size> sizes, const Line& line, size_t first, size_t last,
                      const Taps& taps, const Block& block, const Finish& f) {
    size_t at = first;
    for (const Size& size : sizes) {
        for (; at + size.pixels <= last; at += size.pixels) size.run(line, at, taps, block, f);
        const size_t rest = last - at;
        if (rest * 2 > size.pixels && last - first >= size.pixels) {
            size.run(line, last - size.pixels, taps, block, f);
            return;
        }
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
