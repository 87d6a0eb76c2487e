// SPDX-License-Identifier: Apache-2.0
// Filters of one channel each over factors that lie several to a word of 32 bits: a word has the
// taps of a kernel column, so that one instruction adds several products to the sum of a channel.
// The words are made a line at a time. Included once per instruction set; `W` as in words-inl.h.
#if defined(VARTML_KERNELS_CONV_DEPTHWISE_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_CONV_DEPTHWISE_WORDS_INL_H_
#undef VARTML_KERNELS_CONV_DEPTHWISE_WORDS_INL_H_
#else
#define VARTML_KERNELS_CONV_DEPTHWISE_WORDS_INL_H_
#endif

#include "kernels/conv/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

// Words of a kernel column.
template <typename W>
size_t column_words(const ConvShape& s) {
    return (s.kernel_height + W::count - 1) / W::count;
}

// ---- packed: where sums start, padded to whole vectors, then [vector][word][kernel column][lane]

template <typename W>
size_t packed_depthwise_size(const ConvShape& s) {
    return padded_outputs(s) * (sum_size + column_words<W>(s) * s.kernel_width * word_size<W>);
}

template <typename W>
void pack_depthwise(const ConvShape& s, const float* weights, const float* bias,
                    std::byte* packed) {
    std::memset(packed, 0, packed_depthwise_size<W>(s));
    auto* const starts = reinterpret_cast<typename W::Sum*>(packed);
    auto* const out = reinterpret_cast<typename W::Factor*>(packed + padded_outputs(s) * sum_size);
    const size_t width = s.kernel_width, words = column_words<W>(s) * width;
    for (size_t c = 0; c < s.out_channels; ++c) {
        float sum = 0;
        for (size_t y = 0; y < s.kernel_height; ++y) {
            for (size_t x = 0; x < width; ++x) {
                const size_t word = c / lanes * words + y / W::count * width + x;
                sum += *weights;
                out[(word * lanes + c % lanes) * W::count + y % W::count] = W::factor(*weights++);
            }
        }
        starts[c] = W::start(s, bias ? bias[c] : 0, sum);
    }
}

// ---- lines --------------------------------------------------------------------------------------

// Words of columns of the source, for one vector of channels: [word][column][lane].
struct Columns {
    const uint32_t* words;
    size_t count;  // columns
};
constexpr size_t max_column_vectors = 320, max_line = 64;

// The factors of a vector of channels at `src`, of which `count` exist, in the lowest bits of
// words.
template <typename W>
HWY_INLINE Words load_factors(const typename W::Element* src, size_t count) {
    using Unsigned = hwy::MakeUnsigned<typename W::Element>;
    const hn::Rebind<Unsigned, WordTag> d;
    const auto* const from = reinterpret_cast<const Unsigned*>(src);
    return hn::PromoteTo(WordTag(),
                         count >= lanes ? hn::LoadU(d, from) : hn::LoadN(d, from, count));
}

template <typename W, size_t Taps>
HWY_INLINE void make_columns(const typename W::Element* src, size_t tap, size_t pixel, size_t count,
                             size_t channels, uint32_t* words) {
    constexpr int bits = 32 / W::count;
    for (size_t x = 0; x < count; ++x, src += pixel, words += lanes) {
        Words word = load_factors<W>(src, channels);
        if constexpr (Taps > 1)
            word = hn::Or(word, hn::ShiftLeft<bits>(load_factors<W>(src + tap, channels)));
        if constexpr (Taps > 2)
            word = hn::Or(word, hn::ShiftLeft<2 * bits>(load_factors<W>(src + 2 * tap, channels)));
        if constexpr (Taps > 3)
            word = hn::Or(word, hn::ShiftLeft<3 * bits>(load_factors<W>(src + 3 * tap, channels)));
        hn::StoreU(word, WordTag(), words);
    }
}

template <typename W>
void make_all_columns(const ConvShape& s, const typename W::Element* src, size_t row, size_t pixel,
                      size_t count, size_t channels, uint32_t* words) {
    const size_t tap = s.dilation_height * row;
    for (size_t y = 0; y < s.kernel_height; y += W::count, src += W::count * tap) {
        const size_t taps = std::min<size_t>(W::count, s.kernel_height - y);
        if (taps == 1) make_columns<W, 1>(src, tap, pixel, count, channels, words);
        if (taps == 2) make_columns<W, 2>(src, tap, pixel, count, channels, words);
        if constexpr (W::count > 2) {
            if (taps == 3) make_columns<W, 3>(src, tap, pixel, count, channels, words);
            if (taps == 4) make_columns<W, 4>(src, tap, pixel, count, channels, words);
        }
        words += count * lanes;
    }
}

// Sums of M pixels, S columns apart, by kernels of K columns; K = 0: any, as the shape says.
template <typename W, size_t M, size_t K, size_t S>
void column_tile(const ConvShape& s, const Columns& columns, size_t first, typename W::Vec start,
                 const uint32_t* weights, float* sums) {
    const WordTag d;
    typename W::Vec sum[M];
#pragma GCC unroll 8
    for (size_t m = 0; m < M; ++m) sum[m] = start;
    const size_t words = column_words<W>(s);
    for (size_t j = 0; j < words; ++j) {
        const uint32_t* at = columns.words + (j * columns.count + first) * lanes;
        if constexpr (K == 0) {
            const size_t step = s.stride_width * lanes, next = s.dilation_width * lanes;
            for (size_t k = 0; k < s.kernel_width; ++k, at += next, weights += lanes) {
                const Words w = hn::LoadU(d, weights);
#pragma GCC unroll 8
                for (size_t m = 0; m < M; ++m)
                    sum[m] = W::add(hn::LoadU(d, at + m * step), w, sum[m]);
            }
        } else {
            Words w[K];
#pragma GCC unroll 8
            for (size_t k = 0; k < K; ++k, weights += lanes) w[k] = hn::LoadU(d, weights);
#pragma GCC unroll 24
            for (size_t i = 0; i < (M - 1) * S + K; ++i, at += lanes) {
                const Words x = hn::LoadU(d, at);
#pragma GCC unroll 8
                for (size_t k = 0; k < K; ++k) {
                    if (i < k || (i - k) % S != 0 || (i - k) / S >= M) continue;
                    sum[(i - k) / S] = W::add(x, w[k], sum[(i - k) / S]);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (size_t m = 0; m < M; ++m) hn::StoreU(W::to_float(sum[m]), FloatTag(), sums + m * lanes);
}

template <typename W>
struct ColumnTiles {
    size_t kernel, stride;
    using Run = void (*)(const ConvShape&, const Columns&, size_t, typename W::Vec, const uint32_t*,
                         float*);
    Run eight, one;
};
template <typename W>
constexpr ColumnTiles<W> column_tiles[] = {
    {3, 1, column_tile<W, 8, 3, 1>, column_tile<W, 1, 3, 1>},
    {3, 2, column_tile<W, 8, 3, 2>, column_tile<W, 1, 3, 2>},
    {5, 1, column_tile<W, 8, 5, 1>, column_tile<W, 1, 5, 1>},
    {5, 2, column_tile<W, 8, 5, 2>, column_tile<W, 1, 5, 2>},
    {0, 0, column_tile<W, 8, 0, 0>, column_tile<W, 1, 0, 0>},
};
template <typename W>
const ColumnTiles<W>& find_column_tiles(const ConvShape& s) {
    return *std::ranges::find_if(column_tiles<W>, [&s](const ColumnTiles<W>& t) {
        return t.kernel == 0 ||
               (t.kernel == s.kernel_width && t.stride == s.stride_width && s.dilation_width == 1);
    });
}

// Columns under so many pixels.
inline size_t columns_under(const ConvShape& s, size_t pixels) {
    return (pixels - 1) * s.stride_width + (s.kernel_width - 1) * s.dilation_width + 1;
}

// Output rows first…last-1 of a picture that ends where the kernels end.
template <typename W>
void depthwise_rows(const ConvShape& s, const PictureOf<const typename W::Element>& src,
                    const std::byte* packed, const Epilogue& epilogue, const AnyDstPicture& dst,
                    size_t first, size_t last) {
    const ByteRows out = byte_rows(dst, s.result);
    const FinishRows finish = find_finish(epilogue.activation, false, s.source, s.result);
    const auto* const starts = reinterpret_cast<const typename W::Sum*>(packed);
    const auto* const weights = reinterpret_cast<const uint32_t*>(packed) + padded_outputs(s);
    const ColumnTiles<W>& tiles = find_column_tiles<W>(s);
    const size_t words = column_words<W>(s), filter = words * s.kernel_width * lanes;
    HWY_ALIGN uint32_t columns[max_column_vectors * lanes];
    HWY_ALIGN float sums[max_line * lanes];
    // As many pixels as there is room for; conv_method() sees to it that one has.
    const size_t room = max_column_vectors / words - columns_under(s, 1);
    const size_t at_once = std::min(max_line, room / s.stride_width + 1);
    for (size_t y = first; y < last; ++y) {
        const auto* const row = src.data + y * s.stride_height * src.row;
        for (size_t x = 0; x < s.out_width; x += at_once) {
            const size_t pixels = std::min(at_once, s.out_width - x);
            const size_t count = columns_under(s, pixels);
            for (size_t c = 0; c < s.out_channels; c += lanes) {
                const size_t channels = std::min(lanes, s.out_channels - c);
                make_all_columns<W>(s, row + x * s.stride_width * src.pixel + c, src.row, src.pixel,
                                    count, channels, columns);
                const auto start = hn::LoadU(hn::DFromV<typename W::Vec>(), starts + c);
                const uint32_t* const w = weights + c / lanes * filter;
                size_t p = 0;
                const auto run = [&](auto tile, size_t at) {
                    tile(s, {columns, count}, at * s.stride_width, start, w, sums + at * lanes);
                };
                for (; p + 8 <= pixels; p += 8) run(tiles.eight, p);
                // Pixels that are done already are made twice, which costs less than one at a time.
                if (p < pixels && pixels >= 8)
                    run(tiles.eight, pixels - 8);
                else
                    for (; p < pixels; ++p) run(tiles.one, p);
                finish(epilogue, {sums, lanes, nullptr, 0,
                                  out.at(static_cast<int64_t>(y), static_cast<int64_t>(x)) +
                                      c * size_of(s.result),
                                  out.pixel, pixels, channels, c});
            }
        }
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
