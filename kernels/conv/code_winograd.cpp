// SPDX-License-Identifier: Apache-2.0
// A group of tiles goes through three phases that stay in the second-level cache: 4x4 codes are
// transformed, for each of the 16 positions a matrix product over the channels is made by the tiles
// of words-inl.h, and the sums are transformed back. Weights are transformed times 4, so that they
// are whole; sums are four times what they stand for.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/code_winograd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <vector>

#include "kernels/conv/code_pairs-inl.h"
#include "kernels/conv/code_winograd.h"
#include "kernels/conv/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

#if VARTML_HAS_CODE_PAIRS

constexpr size_t tile_side = 2, patch_side = 4, positions = patch_side * patch_side;

// Sums stay whole numbers, in the bits of floats.
struct Products : CodePairs {
    static HWY_INLINE FloatVec to_float(Vec sum) { return hn::BitCast(FloatTag(), sum); }
};

using HalfTag = hn::Repartition<int16_t, FloatTag>;
using Half = hn::Vec<HalfTag>;
constexpr size_t half_lanes = 2 * lanes;

// The product over the channels of one position.
ConvShape product_shape(const ConvShape& s) {
    ConvShape product;
    product.in_channels = s.in_channels;
    product.out_channels = s.out_channels;
    return product;
}

struct Sizes {
    size_t in, out;                    // channels in whole vectors
    size_t tiles_x, tiles_y;           // of the picture
    size_t group;                      // tiles of a group
    size_t in_position, out_position;  // elements between positions of the transformed tiles

    explicit Sizes(const ConvShape& s)
        : in((s.in_channels + half_lanes - 1) / half_lanes * half_lanes),
          out(padded_outputs(s)),
          tiles_x((s.out_width + tile_side - 1) / tile_side),
          tiles_y((s.out_height + tile_side - 1) / tile_side) {
        // Transformed tiles of a group stay in the second-level cache beside weights. A multiple of
        // what the widest tile of the product takes.
        constexpr size_t cache_bytes = 160 * 1024, step = sizes<Products, max_vectors>[0].pixels;
        const size_t fits = cache_bytes / (positions * (in * 2 + out * 4));
        group = std::clamp<size_t>(fits / step, 1, 8) * step;
        // Distances that are no multiple of a page: stores to all positions would meet in few sets
        // of the first-level cache.
        in_position = group * in + 32;
        out_position = group * out + 16;
    }
    size_t tiles() const { return tiles_x * tiles_y; }
    size_t tile_bytes() const { return tile_side * tile_side * out * sizeof(float); }
    size_t in_bytes() const { return positions * in_position * sizeof(int16_t); }
    size_t out_bytes() const { return positions * out_position * sizeof(int32_t); }
};

size_t groups(const ConvShape& s) {
    const Sizes z(s);
    return (z.tiles() + z.group - 1) / z.group;
}

// A finished tile, sums, transformed codes, a row of codes that stand for 0 (what lies beyond the
// picture).
size_t scratch_size(const ConvShape& s) {
    const Sizes z(s);
    return z.tile_bytes() + z.out_bytes() + z.in_bytes() + z.in;
}

// Bias, then the weights of each position.
size_t packed_winograd(const ConvShape& s) {
    return padded_outputs(s) * sizeof(int32_t) +
           positions * packed_size<Products>(product_shape(s));
}

// 4 G g Gᵀ
void transform_weights(const float* g, float* u) {
    constexpr float G[patch_side][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    for (size_t i = 0; i < patch_side; ++i) {
        for (size_t j = 0; j < patch_side; ++j) {
            float sum = 0;
            for (size_t y = 0; y < 3; ++y)
                for (size_t x = 0; x < 3; ++x) sum += G[i][y] * g[3 * y + x] * G[j][x];
            u[i * patch_side + j] = sum;
        }
    }
}

void pack_all(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    std::memset(packed, 0, packed_winograd(s));
    auto* const starts = reinterpret_cast<int32_t*>(packed);
    for (size_t o = 0; bias && o < s.out_channels; ++o) starts[o] = static_cast<int32_t>(bias[o]);
    packed += padded_outputs(s) * sizeof(int32_t);
    const ConvShape product = product_shape(s);
    const size_t filters = size_t{s.in_channels} * s.out_channels;
    std::vector<float> transformed(positions * filters);
    for (size_t f = 0; f < filters; ++f) {
        float u[positions];
        transform_weights(weights + 9 * f, u);
        for (size_t p = 0; p < positions; ++p) transformed[p * filters + f] = u[p];
    }
    for (size_t p = 0; p < positions; ++p)
        pack<Products>(product, transformed.data() + p * filters, nullptr,
                       packed + p * packed_size<Products>(product));
}

// ---- transforms -------------------------------------------------------------------------------

// Bᵀ d
HWY_INLINE void transform_input(const Half (&d)[patch_side], Half (&t)[patch_side]) {
    t[0] = hn::Sub(d[0], d[2]);
    t[1] = hn::Add(d[1], d[2]);
    t[2] = hn::Sub(d[2], d[1]);
    t[3] = hn::Sub(d[1], d[3]);
}

// Aᵀ m
template <typename V>
HWY_INLINE void transform_output(const V (&m)[patch_side], V (&t)[tile_side]) {
    t[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
    t[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
}

struct Tile2d {
    size_t y, x;  // first output pixel
};

// One tile of the input, transformed; beyond the picture it has `none`.
void scatter(const ConvShape& s, const Sizes& z, const CodePicture& src, const uint8_t* none,
             Tile2d tile, int16_t* dst) {
    const uint8_t* patch[positions];
    for (size_t y = 0; y < patch_side; ++y) {
        const auto iy = static_cast<int64_t>(tile.y + y) - s.pad_top;
        for (size_t x = 0; x < patch_side; ++x) {
            const auto ix = static_cast<int64_t>(tile.x + x) - s.pad_left;
            const bool inside = iy >= 0 && iy < s.in_height && ix >= 0 && ix < s.in_width;
            patch[y * patch_side + x] = inside ? src.data + static_cast<size_t>(iy) * src.row +
                                                     static_cast<size_t>(ix) * src.pixel
                                               : none;
        }
    }
    const HalfTag d;
    const hn::Rebind<uint8_t, HalfTag> codes;
    const Half zero = hn::Set(d, int16_t{s.source_zero});
    for (size_t c = 0; c < s.in_channels; c += half_lanes) {
        const size_t left = s.in_channels - c;
        Half half[patch_side][patch_side];
#pragma GCC unroll 4
        for (size_t x = 0; x < patch_side; ++x) {
            Half column[patch_side], t[patch_side];
#pragma GCC unroll 4
            for (size_t y = 0; y < patch_side; ++y) {
                const uint8_t* const from = patch[y * patch_side + x] + c;
                const auto code =
                    left >= half_lanes ? hn::LoadU(codes, from) : hn::LoadN(codes, from, left);
                column[y] = hn::Sub(hn::PromoteTo(d, code), zero);
            }
            transform_input(column, t);
#pragma GCC unroll 4
            for (size_t y = 0; y < patch_side; ++y) half[y][x] = t[y];
        }
#pragma GCC unroll 4
        for (size_t y = 0; y < patch_side; ++y) {
            Half t[patch_side];
            transform_input(half[y], t);
#pragma GCC unroll 4
            for (size_t x = 0; x < patch_side; ++x)
                hn::StoreU(t[x], d, dst + (y * patch_side + x) * z.in_position + c);
        }
    }
}

// Sums of a tile: [position][block of outputs][tile][output of the block], of which `src` is at the
// tile's first; made floats in `dst`, [y][x][output].
void gather(const ConvShape& s, const Sizes& z, const int32_t* src, size_t tile,
            const int32_t* bias, float* dst) {
    const Products::SumTag d;
    const size_t width = block_width(product_shape(s));
    for (size_t first = 0; first < z.out; first += width) {
        const size_t own = std::min(width, z.out - first);
        for (size_t c = 0; c < own; c += lanes) {
            const int32_t* const from = src + first * z.group + tile * own + c;
            Products::Vec half[tile_side][patch_side];
#pragma GCC unroll 4
            for (size_t x = 0; x < patch_side; ++x) {
                Products::Vec m[patch_side], t[tile_side];
#pragma GCC unroll 4
                for (size_t y = 0; y < patch_side; ++y)
                    m[y] = hn::LoadU(d, from + (y * patch_side + x) * z.out_position);
                transform_output(m, t);
#pragma GCC unroll 2
                for (size_t y = 0; y < tile_side; ++y) half[y][x] = t[y];
            }
            const auto start = hn::LoadU(d, bias + first + c);
#pragma GCC unroll 2
            for (size_t y = 0; y < tile_side; ++y) {
                Products::Vec t[tile_side];
                transform_output(half[y], t);
#pragma GCC unroll 2
                for (size_t x = 0; x < tile_side; ++x) {
                    const auto sum = hn::Add(hn::ShiftRight<2>(t[x]), start);
                    hn::StoreU(hn::ConvertTo(FloatTag(), sum), FloatTag(),
                               dst + (y * tile_side + x) * z.out + first + c);
                }
            }
        }
    }
}

void multiply(const ConvShape& s, const Sizes& z, const std::byte* packed, const int16_t* in,
              int32_t* out, size_t tiles) {
    const ConvShape product = product_shape(s);
    const size_t width = block_width(product), words = words_of<Products>(product);
    Runs runs;
    runs.list[runs.count++] = {0, words * Products::count};
    for (size_t p = 0; p < positions; ++p, packed += packed_size<Products>(product)) {
        const auto* const starts = reinterpret_cast<const int32_t*>(packed);
        const std::byte* const weights = packed + z.out * sum_size;
        for (size_t first = 0; first < z.out; first += width) {
            const size_t own = std::min(width, z.out - first);
            const Block<Products> block{starts, weights + first * words * word_size<Products>, own};
            const auto run = [&](const Size<Products>& size, size_t at) {
                int32_t* const sums = out + p * z.out_position + first * z.group + at * own;
                size.run(in + p * z.in_position + at * z.in, z.in, runs, block,
                         {reinterpret_cast<float*>(sums), nullptr, nullptr, 0});
            };
            size_t at = 0;
            for (const Size<Products>& size :
                 kernels::HWY_NAMESPACE::tiles<Products>[own / lanes - 1]) {
                for (; at + size.pixels <= tiles; at += size.pixels) run(size, at);
                if ((tiles - at) * 2 > size.pixels && tiles >= size.pixels) {
                    run(size, tiles - size.pixels);
                    break;
                }
            }
        }
    }
}

void conv_groups(const ConvShape& s, const CodePicture& src, const std::byte* packed,
                 const Epilogue& epilogue, const AnyDstPicture& dst, std::byte* scratch,
                 size_t first, size_t last) {
    const Sizes z(s);
    auto* const finished = reinterpret_cast<float*>(scratch);
    auto* const out = reinterpret_cast<int32_t*>(scratch + z.tile_bytes());
    auto* const in = reinterpret_cast<int16_t*>(scratch + z.tile_bytes() + z.out_bytes());
    auto* const none =
        reinterpret_cast<uint8_t*>(scratch + z.tile_bytes() + z.out_bytes() + z.in_bytes());
    std::fill_n(none, z.in, s.source_zero);
    const auto* const bias = reinterpret_cast<const int32_t*>(packed);
    packed += z.out * sizeof(int32_t);
    const FinishRows finish = find_finish(epilogue.activation, false, s.source, s.result);
    const ByteRows to = byte_rows(dst, s.result);
    const auto tile_at = [&z](size_t index) {
        return Tile2d{index / z.tiles_x * tile_side, index % z.tiles_x * tile_side};
    };
    for (size_t g = first; g < last; ++g) {
        const size_t begin = g * z.group, tiles = std::min(z.group, z.tiles() - begin);
        for (size_t t = 0; t < tiles; ++t)
            scatter(s, z, src, none, tile_at(begin + t), in + t * z.in);
        multiply(s, z, packed, in, out, tiles);
        for (size_t t = 0; t < tiles; ++t) {
            const Tile2d tile = tile_at(begin + t);
            gather(s, z, out, t, bias, finished);
            const size_t rows = std::min<size_t>(tile_side, s.out_height - tile.y);
            const size_t columns = std::min<size_t>(tile_side, s.out_width - tile.x);
            for (size_t r = 0; r < rows; ++r)
                finish(epilogue,
                       {finished + r * tile_side * z.out, z.out, nullptr, 0,
                        to.at(static_cast<int64_t>(tile.y + r), static_cast<int64_t>(tile.x)),
                        to.pixel, columns, s.out_channels});
        }
    }
}

#else  // prefers_code_winograd() is false: never called

size_t groups(const ConvShape&) {
    return 0;
}
size_t scratch_size(const ConvShape&) {
    return 0;
}
size_t packed_winograd(const ConvShape&) {
    return 0;
}
void pack_all(const ConvShape&, const float*, const float*, std::byte*) {}
void conv_groups(const ConvShape&, const CodePicture&, const std::byte*, const Epilogue&,
                 const AnyDstPicture&, std::byte*, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(groups);
HWY_EXPORT(scratch_size);
HWY_EXPORT(packed_winograd);
HWY_EXPORT(pack_all);
HWY_EXPORT(conv_groups);
}  // namespace

bool prefers_code_winograd(const ConvShape& s) {
    if (s.depthwise || s.kernel_height != 3 || s.kernel_width != 3 || s.stride_height != 1 ||
        s.stride_width != 1 || s.dilation_height != 1 || s.dilation_width != 1)
        return false;
    // Four times the sums of more channels may not fit 32 bits; transforms pay with some channels.
    constexpr uint32_t least = 16, most = 1024;
    return s.in_channels >= least && s.in_channels <= most && s.out_channels >= least &&
           s.out_height * s.out_width >= 64;
}

size_t code_winograd_groups(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(groups)(shape);
}

size_t packed_code_winograd_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_winograd)(shape);
}

size_t code_winograd_scratch_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(scratch_size)(shape);
}

void pack_code_winograd(const ConvShape& shape, const float* weights, const float* bias,
                        std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack_all)(shape, weights, bias, packed);
}

void conv_code_winograd(const ConvShape& shape, const CodePicture& src, const std::byte* packed,
                        const Epilogue& epilogue, const AnyDstPicture& dst, std::byte* scratch,
                        size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(conv_groups)(shape, src, packed, epilogue, dst, scratch, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
