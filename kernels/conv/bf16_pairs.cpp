// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/bf16_pairs.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "kernels/conv/bf16_pairs.h"

// Old instruction sets have no code here: their few registers and short vectors serve nobody.
#undef VARTML_HAS_PAIRS
#if HWY_TARGET >= HWY_SSE4 && HWY_ARCH_X86
#define VARTML_HAS_PAIRS 0
#else
#define VARTML_HAS_PAIRS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if VARTML_HAS_PAIRS

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using PairTag = hn::Repartition<hwy::bfloat16_t, FloatTag>;
using Pairs = hn::Vec<PairTag>;

constexpr size_t lanes = hn::MaxLanes(FloatTag());

// Vector registers: 32 with AVX-512 and on Arm, else 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr size_t registers = 32, max_vectors = 4;
#else
constexpr size_t registers = 16, max_vectors = 2;
#endif

bool has_pairs() {
    return true;
}

// sum + the two products of each pair; where there is no instruction for it, in fp32.
HWY_INLINE FloatVec add_products(Pairs x, Pairs y, FloatVec sum) {
    const FloatTag d;
#if HWY_NATIVE_DOT_BF16
    FloatVec unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, x, y, sum, unused);
#else
    sum = hn::MulAdd(hn::PromoteEvenTo(d, x), hn::PromoteEvenTo(d, y), sum);
    return hn::MulAdd(hn::PromoteOddTo(d, x), hn::PromoteOddTo(d, y), sum);
#endif
}

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
bool joins_columns(const ConvShape& s) {
    return s.dilation_width == 1 && s.kernel_width > 1;
}

Runs make_runs(const ConvShape& s, const Bf16Picture& src) {
    const bool joined = joins_columns(s) && src.pixel == s.in_channels;
    Runs runs;
    for (size_t y = 0; y < s.kernel_height; ++y) {
        for (size_t x = 0; x < (joined ? 1 : s.kernel_width); ++x) {
            const size_t at = y * s.dilation_height * src.row + x * s.dilation_width * src.pixel;
            runs.list[runs.count++] = {static_cast<ptrdiff_t>(at),
                                       s.in_channels * (joined ? s.kernel_width : 1)};
        }
    }
    return runs;
}

// Pairs of a kernel row; where columns are joined an odd channel makes a pair with the next.
size_t row_pairs(const ConvShape& s) {
    if (joins_columns(s)) return (size_t{s.kernel_width} * s.in_channels + 1) / 2;
    return s.kernel_width * ((size_t{s.in_channels} + 1) / 2);
}
size_t pairs_of(const ConvShape& s) {
    return s.kernel_height * row_pairs(s);
}

// ---- packed: biases, padded to whole vectors, then blocks of [pair][output][2] ------------------

size_t padded_outputs(const ConvShape& s) {
    return (s.out_channels + lanes - 1) / lanes * lanes;
}

// Outputs of a block: as equal as whole vectors allow.
size_t block_width(const ConvShape& s) {
    const size_t vectors = padded_outputs(s) / lanes;
    const size_t blocks = (vectors + max_vectors - 1) / max_vectors;
    return (vectors + blocks - 1) / blocks * lanes;
}

size_t packed_size(const ConvShape& s) {
    return padded_outputs(s) * (sizeof(float) + pairs_of(s) * 2 * sizeof(bf16));
}

bf16 rounded(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

void pack(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    std::memset(packed, 0, packed_size(s));
    if (bias) std::memcpy(packed, bias, s.out_channels * sizeof(float));
    auto* const out = reinterpret_cast<bf16*>(packed + padded_outputs(s) * sizeof(float));
    const size_t width = block_width(s), pairs = pairs_of(s);
    // Elements from a kernel column to the next, where each begins with a pair of its own or not.
    const size_t column = joins_columns(s) ? s.in_channels : (s.in_channels + 1) / 2 * 2;
    for (size_t o = 0; o < s.out_channels; ++o) {
        const size_t first = o / width * width;
        const size_t own = std::min(width, padded_outputs(s) - first);
        bf16* const block = out + first * pairs * 2;
        for (size_t c = 0; c < s.in_channels; ++c) {
            for (size_t y = 0; y < s.kernel_height; ++y) {
                for (size_t x = 0; x < s.kernel_width; ++x) {
                    const size_t k = y * row_pairs(s) * 2 + x * column + c;
                    block[(k / 2 * own + o - first) * 2 + k % 2] = rounded(*weights++);
                }
            }
        }
    }
}

// ---- sums ---------------------------------------------------------------------------------------

struct Block {
    const float* bias;
    const bf16* weights;
    size_t width;  // padded outputs
};

// Sums of M pixels by V vectors of outputs, which stay in registers until they are complete.
template <size_t M, size_t V>
void sum_tile(const bf16* first, size_t step, const Runs& runs, const Block& block, float* sums) {
    const FloatTag d;
    const PairTag pair;
    const hn::RebindToUnsigned<FloatTag> bits;
    FloatVec sum[M][V];
#pragma GCC unroll 4
    for (size_t v = 0; v < V; ++v) {
        const FloatVec bias = hn::LoadU(d, block.bias + v * lanes);
#pragma GCC unroll 16
        for (size_t m = 0; m < M; ++m) sum[m][v] = bias;
    }
    const auto* w = reinterpret_cast<const hwy::bfloat16_t*>(block.weights);
    // `Two`: of the source; the last of an odd run is one.
    const auto add = [&]<typename Two>(Two, const bf16* src) HWY_ATTR {
        Pairs wv[V];
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) wv[v] = hn::LoadU(pair, w + v * lanes * 2);
#pragma GCC unroll 16
        for (size_t m = 0; m < M; ++m) {
            Two two;
            std::memcpy(&two, src + m * step, sizeof two);
            const auto x = hn::BitCast(pair, hn::Set(bits, two));
#pragma GCC unroll 4
            for (size_t v = 0; v < V; ++v) sum[m][v] = add_products(x, wv[v], sum[m][v]);
        }
        w += V * lanes * 2;
    };
    for (size_t r = 0; r < runs.count; ++r) {
        const bf16* src = first + runs.list[r].src;
        const bf16* const end = src + runs.list[r].count / 2 * 2;
        for (; src != end; src += 2) add(uint32_t{}, src);
        if (runs.list[r].count % 2 != 0) add(uint16_t{}, src);
    }
#pragma GCC unroll 16
    for (size_t m = 0; m < M; ++m) {
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) hn::StoreU(sum[m][v], d, sums + (m * V + v) * lanes);
    }
}

using Sum = void (*)(const bf16*, size_t, const Runs&, const Block&, float*);
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
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr std::span<const Size> tiles[max_vectors] = {sizes<1>, sizes<2>, sizes<3>, sizes<4>};
#else
constexpr std::span<const Size> tiles[max_vectors] = {sizes<1>, sizes<2>};
#endif

// ---- all pixels ---------------------------------------------------------------------------------

// Pixels of the output in a row.
struct Line {
    const bf16* src;
    size_t step;  // elements
    std::byte* dst;
    const std::byte* residual;
    size_t pixels;
};

struct Finish {
    FinishRows run;
    const Epilogue& epilogue;
    size_t dst_step, residual_step;  // bytes
    size_t result_size, source_size;
};

void run_line(const ConvShape& s, const Line& line, const Runs& runs, const std::byte* packed,
              const Finish& f) {
    const auto* const biases = reinterpret_cast<const float*>(packed);
    const size_t outputs = padded_outputs(s), width = block_width(s), pairs = pairs_of(s);
    const auto* const weights = reinterpret_cast<const bf16*>(packed + outputs * sizeof(float));
    HWY_ALIGN float sums[max_sums];
    // Pieces whose input stays in the first-level cache while the blocks of outputs go over it.
    constexpr size_t l1_elements = 12288, least = 28;
    const size_t piece =
        std::max(least, l1_elements / std::max<size_t>(1, line.step * s.kernel_height));
    for (size_t first = 0; first < line.pixels;) {
        size_t last = std::min(line.pixels, first + piece);
        if (line.pixels - last < least) last = line.pixels;
        for (size_t o = 0; o < s.out_channels; o += width) {
            const Block block{biases + o, weights + o * pairs * 2, std::min(width, outputs - o)};
            const size_t count = std::min<size_t>(block.width, s.out_channels - o);
            const auto run = [&](const Size& size, size_t at) {
                size.run(line.src + at * line.step, line.step, runs, block, sums);
                const std::byte* const add =
                    line.residual ? line.residual + at * f.residual_step + o * f.source_size
                                  : nullptr;
                f.run(f.epilogue, {sums, block.width, add, f.residual_step,
                                   line.dst + at * f.dst_step + o * f.result_size, f.dst_step,
                                   size.pixels, count});
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

void conv_rows(const ConvShape& s, const Bf16Picture& src, const std::byte* packed,
               const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
               size_t first, size_t last) {
    const ByteRows out = byte_rows(dst, s.result), add = byte_rows(residual, s.source);
    const Runs runs = make_runs(s, src);
    const Finish f{find_finish(epilogue.activation, residual.data != nullptr, s.source, s.result),
                   epilogue,
                   out.pixel,
                   add.pixel,
                   size_of(s.result),
                   size_of(s.source)};
    const size_t step = s.stride_width * src.pixel, row = s.stride_height * src.row;
    // Rows follow each other without a gap.
    const bool flat = row == step * s.out_width && out.row == out.pixel * s.out_width &&
                      (!residual.data || add.row == add.pixel * s.out_width);
    const size_t at_once = flat ? last - first : 1;
    for (size_t y = first; y < last; y += at_once)
        run_line(s,
                 {src.data + y * row, step, out.at(static_cast<int64_t>(y), 0),
                  add.at(static_cast<int64_t>(y), 0), at_once * s.out_width},
                 runs, packed, f);
}

#else  // has_bf16_pairs() is false: never called

bool has_pairs() {
    return false;
}
size_t packed_size(const ConvShape&) {
    return 0;
}
void pack(const ConvShape&, const float*, const float*, std::byte*) {}
void conv_rows(const ConvShape&, const Bf16Picture&, const std::byte*, const Epilogue&,
               const AnySrcPicture&, const AnyDstPicture&, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(has_pairs);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack);
HWY_EXPORT(conv_rows);
}  // namespace

bool has_bf16_pairs() {
    return HWY_DYNAMIC_DISPATCH(has_pairs)();
}

size_t packed_pairs_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_size)(shape);
}

void pack_pairs(const ConvShape& shape, const float* weights, const float* bias,
                std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack)(shape, weights, bias, packed);
}

bool reads_in_place(const ConvShape& s) {
    const auto fits = [](uint32_t in, uint32_t out, uint32_t stride, uint32_t kernel,
                         uint32_t dilation, int32_t pad) {
        return pad == 0 && (out - 1) * stride + (kernel - 1) * dilation < in;
    };
    return s.source == Element::bf16 && (s.in_channels % 2 == 0 || s.kernel_width == 1) &&
           fits(s.in_height, s.out_height, s.stride_height, s.kernel_height, s.dilation_height,
                s.pad_top) &&
           fits(s.in_width, s.out_width, s.stride_width, s.kernel_width, s.dilation_width,
                s.pad_left);
}

void conv_pairs(const ConvShape& shape, const Bf16Picture& src, const std::byte* packed,
                const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(conv_rows)
    (shape, src, packed, epilogue, residual, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
