// SPDX-License-Identifier: Apache-2.0
// A group of tiles goes through three phases that stay in the second-level cache: 6x6 inputs are
// transformed, for each of the 36 positions a matrix product over the channels is made by the tiles
// of the direct convolution, and the sums are transformed back.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/conv/tiles-inl.h"
#include "kernels/conv/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

constexpr size_t tile_side = 4, patch_side = 6, positions = patch_side * patch_side;

size_t whole_vectors(size_t channels) {
    const size_t lanes = hn::Lanes(FloatTag());
    return (channels + lanes - 1) / lanes * lanes;
}

// ---- sizes ------------------------------------------------------------------------------------

struct Sizes {
    size_t in, out;                    // channels in whole vectors
    size_t tiles_x, tiles_y;           // of the picture
    size_t group;                      // tiles of a group
    size_t in_position, out_position;  // floats between positions of the transformed tiles

    explicit Sizes(const ConvShape& s)
        : in(whole_vectors(s.in_channels)),
          out(whole_vectors(s.out_channels)),
          tiles_x((s.out_width + tile_side - 1) / tile_side),
          tiles_y((s.out_height + tile_side - 1) / tile_side) {
        // Transformed tiles of a group stay in the second-level cache beside weights. A multiple of
        // what the widest tile of the product takes.
        constexpr size_t cache_floats = 100'000, step = point_pixels<max_vectors>, most = 4;
        const size_t fits = cache_floats / (positions * (in + out));
        group = std::clamp<size_t>(fits / step, 1, most) * step;
        // Distances that are no multiple of a page: stores to all positions would meet in few sets
        // of the first-level cache.
        constexpr size_t line = 16;
        in_position = group * in + line;
        out_position = group * out + line;
    }
    size_t tiles() const { return tiles_x * tiles_y; }
};

size_t groups(const ConvShape& s) {
    const Sizes z(s);
    return (z.tiles() + z.group - 1) / z.group;
}

// A row of zeros (what lies beyond the picture), inputs, sums, a finished tile.
size_t scratch_size(const ConvShape& s) {
    const Sizes z(s);
    return z.in + positions * (z.in_position + z.out_position) + tile_side * tile_side * z.out;
}

// ---- packed weights: bias, zeros (the bias of the products), blocks [position][in][channels] ----

size_t wino_block(const Sizes& z) {
    const size_t lanes = hn::Lanes(FloatTag()), vectors = z.out / lanes;
    const size_t blocks = (vectors + max_vectors - 1) / max_vectors;
    return (vectors + blocks - 1) / blocks * lanes;
}

size_t wino_packed_size(const ConvShape& s) {
    const Sizes z(s);
    return z.out * (2 + positions * s.in_channels);
}

// G g Gᵀ
void transform_weights(const float* g, double* u) {
    constexpr double G[patch_side][3] = {
        {1.0 / 4, 0, 0},
        {-1.0 / 6, -1.0 / 6, -1.0 / 6},
        {-1.0 / 6, 1.0 / 6, -1.0 / 6},
        {1.0 / 24, 1.0 / 12, 1.0 / 6},
        {1.0 / 24, -1.0 / 12, 1.0 / 6},
        {0, 0, 1},
    };
    double half[patch_side][3];
    for (size_t i = 0; i < patch_side; ++i)
        for (size_t x = 0; x < 3; ++x)
            half[i][x] = G[i][0] * static_cast<double>(g[x]) +
                         G[i][1] * static_cast<double>(g[3 + x]) +
                         G[i][2] * static_cast<double>(g[6 + x]);
    for (size_t i = 0; i < patch_side; ++i)
        for (size_t j = 0; j < patch_side; ++j)
            u[i * patch_side + j] =
                half[i][0] * G[j][0] + half[i][1] * G[j][1] + half[i][2] * G[j][2];
}

void wino_pack(const ConvShape& s, const float* weights, const float* bias, float* packed) {
    const Sizes z(s);
    std::fill_n(packed, wino_packed_size(s), 0.0F);
    if (bias) std::copy_n(bias, s.out_channels, packed);
    const size_t width = wino_block(z);
    for (size_t o = 0; o < s.out_channels; ++o) {
        const size_t c = o / width * width, own = std::min(width, z.out - c);
        float* const block = packed + 2 * z.out + c * positions * s.in_channels + (o - c);
        for (size_t i = 0; i < s.in_channels; ++i, weights += 9) {
            double u[positions];
            transform_weights(weights, u);
            for (size_t p = 0; p < positions; ++p)
                block[(p * s.in_channels + i) * own] = static_cast<float>(u[p]);
        }
    }
}

// ---- transforms -------------------------------------------------------------------------------

// Bᵀ d
HWY_INLINE void transform_input(const FloatVec (&d)[patch_side], FloatVec (&t)[patch_side]) {
    const FloatTag f;
    const FloatVec two = hn::Set(f, 2.0F), four = hn::Set(f, 4.0F), five = hn::Set(f, 5.0F);
    t[0] = hn::MulAdd(four, d[0], hn::NegMulAdd(five, d[2], d[4]));
    t[5] = hn::MulAdd(four, d[1], hn::NegMulAdd(five, d[3], d[5]));
    const FloatVec even = hn::NegMulAdd(four, d[2], d[4]), odd = hn::NegMulAdd(four, d[1], d[3]);
    t[1] = hn::Add(even, odd);
    t[2] = hn::Sub(even, odd);
    const FloatVec outer = hn::Sub(d[4], d[2]), inner = hn::Mul(two, hn::Sub(d[3], d[1]));
    t[3] = hn::Add(outer, inner);
    t[4] = hn::Sub(outer, inner);
}

// Aᵀ m
HWY_INLINE void transform_output(const FloatVec (&m)[patch_side], FloatVec (&t)[tile_side]) {
    const FloatTag f;
    const FloatVec four = hn::Set(f, 4.0F), two = hn::Set(f, 2.0F), eight = hn::Set(f, 8.0F);
    const FloatVec sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    const FloatVec far_sum = hn::Add(m[3], m[4]), far_difference = hn::Sub(m[3], m[4]);
    t[0] = hn::Add(hn::Add(m[0], sum), far_sum);
    t[1] = hn::MulAdd(two, far_difference, difference);
    t[2] = hn::MulAdd(four, far_sum, sum);
    t[3] = hn::Add(hn::MulAdd(eight, far_difference, difference), m[5]);
}

// One tile of the input: `patch` has the addresses of its 6x6 pixels.
template <bool Whole, typename T>
HWY_INLINE void scatter_vector(const T* const* patch, size_t c, size_t left, float* dst,
                               size_t position) {
    FloatVec half[patch_side][patch_side];
    VARTML_UNROLL
    for (size_t x = 0; x < patch_side; ++x) {
        FloatVec d[patch_side], t[patch_side];
        VARTML_UNROLL
        for (size_t y = 0; y < patch_side; ++y)
            d[y] = load<Whole>(patch[y * patch_side + x] + c, left);
        transform_input(d, t);
        VARTML_UNROLL
        for (size_t y = 0; y < patch_side; ++y) half[y][x] = t[y];
    }
    VARTML_UNROLL
    for (size_t y = 0; y < patch_side; ++y) {
        FloatVec t[patch_side];
        transform_input(half[y], t);
        VARTML_UNROLL
        for (size_t x = 0; x < patch_side; ++x)
            hn::StoreU(t[x], FloatTag(), dst + (y * patch_side + x) * position + c);
    }
}

struct Tile2d {
    size_t y, x;  // first output pixel
};
HWY_INLINE Tile2d tile_at(const Sizes& z, size_t index) {
    return {index / z.tiles_x * tile_side, index % z.tiles_x * tile_side};
}

// Tiles between the one that is transformed and the one whose pixels are fetched. Pixels of a tile
// lie in several rows, too many for a processor to see their order by itself: large pictures came
// late from the third-level cache.
constexpr size_t tiles_ahead = 2;
// The first `count` elements of pixels [first, last) of a row.
template <typename T>
HWY_INLINE void fetch_row(const PictureOf<T>& picture, size_t y, size_t first, size_t last,
                          size_t count) {
    constexpr size_t line = 64 / sizeof(T);
    for (size_t x = first; x < last; ++x) {
        T* const pixel = picture.data + y * picture.row + x * picture.pixel;
        for (size_t i = 0; i < count; i += line) hwy::Prefetch(pixel + i);
    }
}

template <typename T>
void scatter(const ConvShape& s, const Sizes& z, const PictureOf<const T>& src, const T* zeros,
             Tile2d tile, float* dst) {
    const T* patch[positions];
    for (size_t y = 0; y < patch_side; ++y) {
        const auto iy = static_cast<int64_t>(tile.y + y) - s.pad_top;
        for (size_t x = 0; x < patch_side; ++x) {
            const auto ix = static_cast<int64_t>(tile.x + x) - s.pad_left;
            const bool inside = iy >= 0 && iy < s.in_height && ix >= 0 && ix < s.in_width;
            patch[y * patch_side + x] = inside ? src.data + static_cast<size_t>(iy) * src.row +
                                                     static_cast<size_t>(ix) * src.pixel
                                               : zeros;
        }
    }
    const size_t ahead = tile.x + tiles_ahead * tile_side;
    if (ahead + patch_side <= s.in_width) {
        for (size_t y = 0; y < patch_side; ++y)
            if (tile.y + y < s.in_height)
                fetch_row(src, tile.y + y, ahead + patch_side - tile_side, ahead + patch_side,
                          s.in_channels);
    }
    const size_t lanes = hn::Lanes(FloatTag());
    size_t c = 0;
    for (; c + lanes <= s.in_channels; c += lanes)
        scatter_vector<true>(patch, c, lanes, dst, z.in_position);
    if (c < s.in_channels) scatter_vector<false>(patch, c, s.in_channels - c, dst, z.in_position);
}

// The sums of one tile of up to 4x4 pixels to `dst`; `f` bounds them.
template <typename T>
void gather(const ConvShape& s, const Sizes& z, const float* src, const float* bias,
            const Finish& f, size_t rows, size_t columns, const PictureOf<T>& dst) {
    const FloatTag d;
    const size_t lanes = hn::Lanes(d);
    const Bounds bounds(f);
    for (size_t c = 0; c < s.out_channels; c += lanes) {
        FloatVec half[tile_side][patch_side];
        VARTML_UNROLL
        for (size_t x = 0; x < patch_side; ++x) {
            FloatVec m[patch_side], t[tile_side];
            VARTML_UNROLL
            for (size_t y = 0; y < patch_side; ++y)
                m[y] = hn::LoadU(d, src + (y * patch_side + x) * z.out_position + c);
            transform_output(m, t);
            VARTML_UNROLL
            for (size_t y = 0; y < tile_side; ++y) half[y][x] = t[y];
        }
        const FloatVec b = hn::LoadU(d, bias + c);
        const size_t count = s.out_channels - c;
        VARTML_UNROLL
        for (size_t y = 0; y < tile_side; ++y) {
            if (y >= rows) break;
            FloatVec t[tile_side];
            transform_output(half[y], t);
            T* const row = dst.data + y * dst.row + c;
            VARTML_UNROLL
            for (size_t x = 0; x < tile_side; ++x)
                if (x < columns)
                    store<false>(bound(hn::Add(t[x], b), bounds), row + x * dst.pixel, count);
        }
    }
}

// ---- products ---------------------------------------------------------------------------------

void multiply(const ConvShape& s, const Sizes& z, const float* packed, const float* in, float* out,
              size_t tiles) {
    const Finish plain = make_finish({}, {}, false);
    Taps taps;
    taps.list[taps.count++] = {0, 0};
    const size_t lanes = hn::Lanes(FloatTag()), width = wino_block(z);
    for (size_t p = 0; p < positions; ++p) {
        const Line line{in + p * z.in_position,
                        z.in,
                        reinterpret_cast<std::byte*>(out + p * z.out_position),
                        z.out * sizeof(float),
                        nullptr,
                        0,
                        tiles};
        for (size_t c = 0; c < z.out; c += width) {
            const size_t own = std::min(width, z.out - c);
            const float* const weights =
                packed + 2 * z.out + (c * positions + p * own) * s.in_channels;
            const Block block{weights, packed + z.out, c, own, own, s.in_channels, own};
            cover(point_tiles(own / lanes), line, 0, tiles, taps, block, plain);
        }
    }
}

template <typename T>
void groups_of(const ConvShape& s, const PictureOf<const T>& src, const float* packed,
               const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
               float* scratch, size_t first, size_t last) {
    const Sizes z(s);
    float* const zeros = scratch;
    float* const in = zeros + z.in;
    float* const out = in + positions * z.in_position;
    float* const finished = out + positions * z.out_position;
    std::fill_n(zeros, z.in, 0.0F);
    const Finish f = make_finish(s, epilogue, residual.data != nullptr);
    const ByteRows to = byte_rows(dst, s.result), add = byte_rows(residual, s.source);
    const PictureOf<std::byte> bytes{to.data, to.row, to.pixel};
    for (size_t g = first; g < last; ++g) {
        const size_t begin = g * z.group, tiles = std::min(z.group, z.tiles() - begin);
        for (size_t t = 0; t < tiles; ++t)
            scatter(s, z, src, reinterpret_cast<const T*>(zeros), tile_at(z, begin + t),
                    in + t * z.in);
        multiply(s, z, packed, in, out, tiles);
        for (size_t t = 0; t < tiles; ++t) {
            const Tile2d tile = tile_at(z, begin + t);
            const size_t rows = std::min<size_t>(tile_side, s.out_height - tile.y);
            const size_t columns = std::min<size_t>(tile_side, s.out_width - tile.x);
            const auto y = static_cast<int64_t>(tile.y), x = static_cast<int64_t>(tile.x);
            const float* const sums = out + t * z.out;
            const size_t ahead = tile.x + tiles_ahead * tile_side;
            if (ahead + tile_side <= s.out_width)
                for (size_t r = 0; r < rows; ++r)
                    fetch_row(bytes, tile.y + r, ahead, ahead + tile_side,
                              s.out_channels * size_of(s.result));
            if (!f.rows) {
                if (s.result == Element::bf16)
                    gather<bf16>(s, z, sums, packed, f, rows, columns,
                                 {reinterpret_cast<bf16*>(to.at(y, x)), dst.row, dst.pixel});
                else
                    gather<float>(s, z, sums, packed, f, rows, columns,
                                  {reinterpret_cast<float*>(to.at(y, x)), dst.row, dst.pixel});
                continue;
            }
            gather<float>(s, z, sums, packed, make_finish({}, {}, false), rows, columns,
                          {finished, tile_side * z.out, z.out});
            for (size_t r = 0; r < rows; ++r) {
                const int64_t row = y + static_cast<int64_t>(r);
                f.rows(epilogue, {finished + r * tile_side * z.out, z.out, add.at(row, x),
                                  add.pixel, to.at(row, x), to.pixel, columns, s.out_channels});
            }
        }
    }
}

void winograd(const ConvShape& s, const AnySrcPicture& src, const float* packed,
              const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
              float* scratch, size_t first, size_t last) {
    if (s.source == Element::bf16)
        groups_of<bf16>(s, {static_cast<const bf16*>(src.data), src.row, src.pixel}, packed,
                        epilogue, residual, dst, scratch, first, last);
    else
        groups_of<float>(s, {static_cast<const float*>(src.data), src.row, src.pixel}, packed,
                         epilogue, residual, dst, scratch, first, last);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(groups);
HWY_EXPORT(scratch_size);
HWY_EXPORT(wino_packed_size);
HWY_EXPORT(wino_pack);
HWY_EXPORT(winograd);
}  // namespace

bool prefers_winograd(const ConvShape& s) {
    if (s.depthwise || s.source == Element::u8 || s.kernel_height != 3 || s.kernel_width != 3 ||
        s.stride_height != 1 || s.stride_width != 1 || s.dilation_height != 1 ||
        s.dilation_width != 1)
        return false;
    // In multiply-adds of vectors of 16; the transforms of a tile were measured.
    constexpr uint64_t lanes = 16, transform = 240, least_tiles = 16;
    const uint64_t in = (s.in_channels + lanes - 1) / lanes;
    const uint64_t out = (s.out_channels + lanes - 1) / lanes;
    const uint64_t tiles = uint64_t{(s.out_width + 3) / 4} * ((s.out_height + 3) / 4);
    // A vector multiplies twice as many pairs of bf16.
    const uint64_t in_factors =
        s.factors == Element::bf16 ? (s.in_channels + 1) / 2 : s.in_channels;
    const uint64_t direct = uint64_t{s.out_height} * s.out_width * in_factors * 9 * out;
    const uint64_t winograd = tiles * (36 * s.in_channels * out + transform * (in + out));
    return tiles >= least_tiles && winograd + winograd / 4 < direct;
}

size_t winograd_groups(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(groups)(shape);
}

size_t packed_winograd_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(wino_packed_size)(shape);
}

size_t winograd_scratch_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(scratch_size)(shape);
}

void pack_winograd(const ConvShape& shape, const float* weights, const float* bias, float* packed) {
    HWY_DYNAMIC_DISPATCH(wino_pack)(shape, weights, bias, packed);
}

void conv_winograd(const ConvShape& shape, const AnySrcPicture& src, const float* packed,
                   const Epilogue& epilogue, const AnySrcPicture& residual,
                   const AnyDstPicture& dst, float* scratch, size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(winograd)
    (shape, src, packed, epilogue, residual, dst, scratch, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
