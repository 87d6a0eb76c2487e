// SPDX-License-Identifier: Apache-2.0
// Convolution whose factors lie several to a word, all of whose products one instruction adds to a
// sum. Included once per instruction set.
//
// `W` is what they are: Element of the source, Factor of the weights, Word of 32 or 64 bits and how
// many of them it holds, Sum of 32 bits with its vector, and
//   static Vec add(words of the source, words of weights, Vec sum)
//   static FloatVec to_float(Vec sum)
//   static Sum start(const ConvShape&, float bias, float sum of the output's weights)
//   static Factor factor(float weight)
// With words of 32 bits a vector has the sums of a pixel, for as many outputs as there are lanes.
// With words of 64 bits it has those of two pixels for two outputs, one pixel after the other, and
// `add` multiplies a matrix of two pixels with one of two outputs: Arm's matrix instructions.
#if defined(VARTML_KERNELS_CONV_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_CONV_WORDS_INL_H_
#undef VARTML_KERNELS_CONV_WORDS_INL_H_
#else
#define VARTML_KERNELS_CONV_WORDS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "kernels/conv/conv.h"
#include "kernels/conv/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

using WordTag = hn::RebindToUnsigned<FloatTag>;
using Words = hn::Vec<WordTag>;

constexpr size_t lanes = hn::MaxLanes(FloatTag());

// Pixels whose sums share a vector.
template <typename W>
constexpr size_t pixels_of = sizeof(typename W::Word) / sizeof(uint32_t);

// ---- what a sum is made of ----------------------------------------------------------------------

// Elements of the source that lie beside each other and meet weights that do.
struct Run {
    ptrdiff_t src;
    size_t count;
};
constexpr size_t max_runs = 128;
struct Runs {
    std::array<Run, max_runs> list;
    size_t count = 0;
};

// A kernel row is one run: the channels of its columns follow each other.
inline bool joins_columns(const ConvShape& s) {
    return s.dilation_width == 1 && s.kernel_width > 1;
}

inline Runs make_runs(const ConvShape& s, size_t row, size_t pixel) {
    const bool joined = joins_columns(s) && pixel == s.in_channels;
    Runs runs;
    for (size_t y = 0; y < s.kernel_height; ++y) {
        for (size_t x = 0; x < (joined ? 1 : s.kernel_width); ++x) {
            const size_t at = y * s.dilation_height * row + x * s.dilation_width * pixel;
            runs.list[runs.count++] = {static_cast<ptrdiff_t>(at),
                                       s.in_channels * (joined ? s.kernel_width : 1)};
        }
    }
    return runs;
}

// Weights from a kernel column to the next: joined ones may share a word, others begin with one.
template <typename W>
size_t column_factors(const ConvShape& s) {
    if (joins_columns(s)) return s.in_channels;
    return (size_t{s.in_channels} + W::count - 1) / W::count * W::count;
}
template <typename W>
size_t row_words(const ConvShape& s) {
    return (s.kernel_width * column_factors<W>(s) + W::count - 1) / W::count;
}
template <typename W>
size_t words_of(const ConvShape& s) {
    return s.kernel_height * row_words<W>(s);
}

// ---- packed: where sums start, padded to whole vectors, then blocks of [word][output]
// ------------

inline size_t padded_outputs(const ConvShape& s) {
    return (s.out_channels + lanes - 1) / lanes * lanes;
}

// Outputs of a block: as equal as whole vectors allow.
inline size_t block_width(const ConvShape& s) {
    const size_t vectors = padded_outputs(s) / lanes;
    const size_t blocks = (vectors + max_vectors - 1) / max_vectors;
    return (vectors + blocks - 1) / blocks * lanes;
}

constexpr size_t sum_size = 4;
template <typename W>
constexpr size_t word_size = sizeof(typename W::Word);

template <typename W>
size_t packed_size(const ConvShape& s) {
    return padded_outputs(s) * (sum_size + words_of<W>(s) * word_size<W>);
}

template <typename W>
void pack(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    std::memset(packed, 0, packed_size<W>(s));
    auto* const starts = reinterpret_cast<typename W::Sum*>(packed);
    auto* const out = reinterpret_cast<typename W::Factor*>(packed + padded_outputs(s) * sum_size);
    const size_t width = block_width(s), words = words_of<W>(s);
    const size_t column = column_factors<W>(s);
    for (size_t o = 0; o < s.out_channels; ++o) {
        const size_t first = o / width * width;
        const size_t own = std::min(width, padded_outputs(s) - first);
        auto* const block = out + first * words * W::count;
        float sum = 0;
        for (size_t c = 0; c < s.in_channels; ++c) {
            for (size_t y = 0; y < s.kernel_height; ++y) {
                for (size_t x = 0; x < s.kernel_width; ++x) {
                    const size_t k = y * row_words<W>(s) * W::count + x * column + c;
                    sum += *weights;
                    block[(k / W::count * own + o - first) * W::count + k % W::count] =
                        W::factor(*weights++);
                }
            }
        }
        starts[o] = W::start(s, bias ? bias[o] : 0, sum);
    }
}

// ---- sums ---------------------------------------------------------------------------------------

template <typename W>
struct Block {
    const typename W::Sum* starts;
    const std::byte* weights;
    size_t width;  // padded outputs
};

// `count` elements, fewer than a word, of M pixels as words, each stored whole: loading a word that
// was stored in parts waits for all of them.
template <typename W, size_t M>
HWY_INLINE void copy_ends(const typename W::Element* src, size_t step, size_t count,
                          typename W::Word* words) {
    const auto copy = [&](auto size) {
        if (count != size) return;
        for (size_t m = 0; m < M; ++m) {
            typename W::Word word = 0;
            std::memcpy(&word, src + m * step, size * sizeof(typename W::Element));
            words[m] = word;
        }
    };
    [&]<size_t... I>(std::index_sequence<I...>) {
        (copy(std::integral_constant<size_t, I + 1>()), ...);
    }(std::make_index_sequence<W::count - 1>());
}

// Where the sums of V vectors of outputs begin, as W's vectors hold them.
template <typename W, size_t V>
HWY_INLINE void load_starts(const typename W::Sum* starts, typename W::Vec* to) {
    using D = hn::DFromV<typename W::Vec>;
#pragma GCC unroll 8
    for (size_t v = 0; v < V * pixels_of<W>; ++v) {
        if constexpr (pixels_of<W> == 1) {
            to[v] = hn::LoadU(D(), starts + v * lanes);
        } else {
            uint64_t two;
            std::memcpy(&two, starts + v * 2, sizeof(two));
            to[v] = hn::BitCast(D(), hn::Set(hn::Repartition<uint64_t, D>(), two));
        }
    }
}

// The word at `src`, or those at `src` and `apart` elements behind it, for every output.
template <typename W>
HWY_INLINE Words spread(const typename W::Element* src, size_t apart) {
    typename W::Word word;
    std::memcpy(&word, src, sizeof(word));
    if constexpr (pixels_of<W> == 1) {
        return hn::Set(WordTag(), word);
    } else {
        const hn::Repartition<uint64_t, WordTag> d;
        uint64_t second;
        std::memcpy(&second, src + apart, sizeof(second));
        return hn::BitCast(WordTag(), hn::Dup128VecFromValues(d, word, second));
    }
}

// The sums of a pixel, of a vector of outputs.
template <typename W, size_t R, size_t U>
HWY_INLINE FloatVec sums_of(const typename W::Vec (&sum)[R][U], size_t m, size_t v) {
    if constexpr (pixels_of<W> == 1) {
        return W::to_float(sum[m][v]);
    } else {
        const hn::DFromV<typename W::Vec> d;
        const auto low = sum[m / 2][2 * v], high = sum[m / 2][2 * v + 1];
        return W::to_float(m % 2 == 0 ? hn::ConcatLowerLower(d, high, low)
                                      : hn::ConcatUpperUpper(d, high, low));
    }
}

// Where the sums of a tile go: bounded to the results, if these are whole vectors, else to `sums`.
struct Sums {
    float* sums;
    const Finish* finish;  // nullptr: to `sums`
    std::byte* dst;
    size_t dst_step;
};

// Sums of M pixels by V vectors of outputs, which stay in registers until they are complete.
template <typename W, size_t M, size_t V>
void sum_tile(const typename W::Element* first, size_t step, const Runs& runs,
              const Block<W>& block, const Sums& to) {
    const FloatTag d;
    const WordTag word;
    // Rows of vectors of sums; the last row of an odd number of pixels has its only one twice.
    constexpr size_t P = pixels_of<W>, R = (M + P - 1) / P, U = V * P;
    typename W::Vec start[U], sum[R][U];
    load_starts<W, V>(block.starts, start);
#pragma GCC unroll 8
    for (size_t u = 0; u < U; ++u) {
#pragma GCC unroll 16
        for (size_t r = 0; r < R; ++r) sum[r][u] = start[u];
    }
    typename W::Word ends[M];
    const auto* w = reinterpret_cast<const uint32_t*>(block.weights);
    for (size_t i = 0; i < runs.count; ++i) {
        const auto* src = first + runs.list[i].src;
        size_t apart = step, words = runs.list[i].count / W::count;
        // First the words as they lie, then the end. One loop for both: beside a second one the
        // sums would not stay in registers.
        for (size_t rest = runs.list[i].count % W::count;; rest = 0) {
            for (; words > 0; --words, src += W::count, w += U * lanes) {
                Words wv[U];
#pragma GCC unroll 8
                for (size_t u = 0; u < U; ++u) wv[u] = hn::LoadU(word, w + u * lanes);
#pragma GCC unroll 16
                for (size_t r = 0; r < R; ++r) {
                    const bool is_single = r * P + 1 == M;
                    const Words x = spread<W>(src + r * P * apart, is_single ? 0 : apart);
#pragma GCC unroll 8
                    for (size_t u = 0; u < U; ++u) sum[r][u] = W::add(x, wv[u], sum[r][u]);
                }
            }
            if (rest == 0) break;
            copy_ends<W, M>(src, step, rest, ends);
            src = reinterpret_cast<const typename W::Element*>(ends), apart = W::count, words = 1;
        }
    }
    FloatVec complete[M][V];
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) complete[m][v] = sums_of<W>(sum, m, v);
    }
    if (to.finish)
        return store_bounded<true>(complete, *to.finish, to.dst, to.dst_step, M, V * lanes);
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) hn::StoreU(complete[m][v], d, to.sums + (m * V + v) * lanes);
    }
}

template <typename W>
struct Size {
    size_t pixels;
    void (*run)(const typename W::Element*, size_t, const Runs&, const Block<W>&, const Sums&);
};
// Pixels beside V vectors of weights, two more registers and those of the source.
template <typename W, size_t V>
constexpr size_t most_pixels =
    pixels_of<W> == 1 ? std::min<size_t>(14, (registers - 2 - V) / V)
                      : std::min<size_t>(7, (registers - 2 - 2 * V) / (2 * V)) * 2;
template <typename W, size_t V, size_t M = most_pixels<W, V>>
constexpr Size<W> sizes[] = {{M, sum_tile<W, M, V>},
                             {(M + 1) / 2, sum_tile<W, (M + 1) / 2, V>},
                             {(M + 3) / 4, sum_tile<W, (M + 3) / 4, V>},
                             {1, sum_tile<W, 1, V>}};
constexpr size_t max_sums = 28 * lanes;  // of a tile
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
template <typename W>
constexpr std::span<const Size<W>> tiles[max_vectors] = {sizes<W, 1>, sizes<W, 2>, sizes<W, 3>,
                                                         sizes<W, 4>};
#else
template <typename W>
constexpr std::span<const Size<W>> tiles[max_vectors] = {sizes<W, 1>, sizes<W, 2>};
#endif

// ---- all pixels ---------------------------------------------------------------------------------

// Pixels of the output in a row.
template <typename W>
struct Line {
    const typename W::Element* src;
    size_t step;  // elements
    std::byte* dst;
    const std::byte* residual;
    size_t pixels;
};

template <typename W>
void run_line(const ConvShape& s, const Line<W>& line, const Runs& runs, const std::byte* packed,
              const Finish& f, size_t dst_step, size_t residual_step) {
    const auto* const starts = reinterpret_cast<const typename W::Sum*>(packed);
    const size_t outputs = padded_outputs(s), width = block_width(s), words = words_of<W>(s);
    const std::byte* const weights = packed + outputs * sum_size;
    HWY_ALIGN float sums[max_sums];
    const FinishRows finish =
        f.rows ? f.rows : find_finish(f.epilogue.activation, line.residual, s.source, s.result);
    // Pieces whose input stays in the first-level cache while the blocks of outputs go over it.
    constexpr size_t l1_elements = 24576 / sizeof(typename W::Element), least = 28;
    const size_t piece =
        std::max(least, l1_elements / std::max<size_t>(1, line.step * s.kernel_height));
    for (size_t first = 0; first < line.pixels;) {
        size_t last = std::min(line.pixels, first + piece);
        if (line.pixels - last < least) last = line.pixels;
        for (size_t o = 0; o < s.out_channels; o += width) {
            const Block<W> block{starts + o, weights + o * words * word_size<W>,
                                 std::min(width, outputs - o)};
            const size_t count = std::min<size_t>(block.width, s.out_channels - o);
            const bool stores = !f.rows && count == block.width;
            const auto run = [&](const Size<W>& size, size_t at) {
                std::byte* const dst = line.dst + at * dst_step + o * f.result_size;
                size.run(line.src + at * line.step, line.step, runs, block,
                         {sums, stores ? &f : nullptr, dst, dst_step});
                if (stores) return;
                const std::byte* const add =
                    line.residual ? line.residual + at * residual_step + o * f.source_size
                                  : nullptr;
                finish(f.epilogue, {sums, block.width, add, residual_step, dst, dst_step,
                                    size.pixels, count, o});
            };
            // The last tile is moved back over pixels that are done already where there are
            // enough: making them twice costs less than a small tile.
            size_t at = first;
            for (const Size<W>& size : tiles<W>[block.width / lanes - 1]) {
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

template <typename W>
void conv_rows(const ConvShape& s, const PictureOf<const typename W::Element>& src,
               const std::byte* packed, const Epilogue& epilogue, const AnySrcPicture& residual,
               const AnyDstPicture& dst, size_t first, size_t last) {
    const ByteRows out = byte_rows(dst, s.result), add = byte_rows(residual, s.source);
    const Runs runs = make_runs(s, src.row, src.pixel);
    const Finish f = make_finish(s, epilogue, residual.data != nullptr);
    const size_t step = s.stride_width * src.pixel, row = s.stride_height * src.row;
    // Rows follow each other without a gap.
    const bool flat = row == step * s.out_width && out.row == out.pixel * s.out_width &&
                      (!residual.data || add.row == add.pixel * s.out_width);
    const size_t at_once = flat ? last - first : 1;
    for (size_t y = first; y < last; y += at_once)
        run_line<W>(s,
                    {src.data + y * row, step, out.at(static_cast<int64_t>(y), 0),
                     add.at(static_cast<int64_t>(y), 0), at_once * s.out_width},
                    runs, packed, f, out.pixel, add.pixel);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
