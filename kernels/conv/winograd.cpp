// SPDX-License-Identifier: Apache-2.0
// A group of tiles goes through three phases that stay in the second-level cache: patches of the
// input are transformed, for each of their positions a matrix product over the channels is made by
// the tiles of the direct convolution, and the sums are transformed back.
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

// A tile of Side x Side results is made of a patch of the input.
template <size_t Side>
constexpr size_t patch_side = Side + 2;
template <size_t Side>
constexpr size_t positions = patch_side<Side> * patch_side<Side>;

size_t whole_vectors(size_t channels) {
    const size_t lanes = hn::Lanes(FloatTag());
    return (channels + lanes - 1) / lanes * lanes;
}

// ---- sizes ------------------------------------------------------------------------------------

template <size_t Side>
struct Sizes {
    size_t in, out;                    // channels in whole vectors
    size_t tiles_x, tiles_y;           // of the picture
    size_t group;                      // tiles of a group
    size_t in_position, out_position;  // floats between positions of the transformed tiles

    explicit Sizes(const ConvShape& s)
        : in(whole_vectors(s.in_channels)),
          out(whole_vectors(s.out_channels)),
          tiles_x((s.out_width + Side - 1) / Side),
          tiles_y((s.out_height + Side - 1) / Side) {
        // Transformed tiles of a group stay in the second-level cache beside weights. A multiple of
        // what the widest tile of the product takes.
        constexpr size_t cache_floats = 100'000, step = point_pixels<max_vectors>, most = 4;
        const size_t fits = cache_floats / (positions<Side> * (in + out));
        group = std::clamp<size_t>(fits / step, 1, most) * step;
        // Distances that are no multiple of a page: stores to all positions would meet in few sets
        // of the first-level cache.
        constexpr size_t line = 16;
        in_position = group * in + line;
        out_position = group * out + line;
    }
    size_t tiles() const { return tiles_x * tiles_y; }
};

template <size_t Side>
size_t groups_with(const ConvShape& s) {
    const Sizes<Side> z(s);
    return (z.tiles() + z.group - 1) / z.group;
}

// A row of zeros (what lies beyond the picture), inputs, sums, a finished tile.
template <size_t Side>
size_t scratch_size_with(const ConvShape& s) {
    const Sizes<Side> z(s);
    return z.in + positions<Side> * (z.in_position + z.out_position) + Side * Side * z.out;
}

// ---- packed weights: bias, zeros (the bias of the products), blocks [position][in][channels] ----

template <size_t Side>
size_t wino_block(const Sizes<Side>& z) {
    const size_t lanes = hn::Lanes(FloatTag()), vectors = z.out / lanes;
    const size_t blocks = (vectors + max_vectors - 1) / max_vectors;
    return (vectors + blocks - 1) / blocks * lanes;
}

template <size_t Side>
size_t packed_size_with(const ConvShape& s) {
    const Sizes<Side> z(s);
    return z.out * (2 + positions<Side> * s.in_channels);
}

// Rows of G of both forms, for the points 0, 1, -1, 2, -2, (1/2, -1/2) and infinity.
template <size_t Side>
constexpr double filter_rows[patch_side<Side>][3] = {};
template <>
constexpr double filter_rows<4>[6][3] = {
    {1.0 / 4, 0, 0},
    {-1.0 / 6, -1.0 / 6, -1.0 / 6},
    {-1.0 / 6, 1.0 / 6, -1.0 / 6},
    {1.0 / 24, 1.0 / 12, 1.0 / 6},
    {1.0 / 24, -1.0 / 12, 1.0 / 6},
    {0, 0, 1},
};
template <>
constexpr double filter_rows<6>[8][3] = {
    {1, 0, 0},
    {-2.0 / 9, -2.0 / 9, -2.0 / 9},
    {-2.0 / 9, 2.0 / 9, -2.0 / 9},
    {1.0 / 90, 1.0 / 45, 2.0 / 45},
    {1.0 / 90, -1.0 / 45, 2.0 / 45},
    {32.0 / 45, 16.0 / 45, 8.0 / 45},
    {32.0 / 45, -16.0 / 45, 8.0 / 45},
    {0, 0, 1},
};

// G g Gᵀ
template <size_t Side>
void transform_weights(const float* g, double* u) {
    constexpr size_t side = patch_side<Side>;
    constexpr auto& G = filter_rows<Side>;
    double half[side][3];
    for (size_t i = 0; i < side; ++i)
        for (size_t x = 0; x < 3; ++x)
            half[i][x] = G[i][0] * static_cast<double>(g[x]) +
                         G[i][1] * static_cast<double>(g[3 + x]) +
                         G[i][2] * static_cast<double>(g[6 + x]);
    for (size_t i = 0; i < side; ++i)
        for (size_t j = 0; j < side; ++j)
            u[i * side + j] = half[i][0] * G[j][0] + half[i][1] * G[j][1] + half[i][2] * G[j][2];
}

template <size_t Side>
void pack_with(const ConvShape& s, const float* weights, const float* bias, float* packed) {
    const Sizes<Side> z(s);
    std::fill_n(packed, packed_size_with<Side>(s), 0.0F);
    if (bias) std::copy_n(bias, s.out_channels, packed);
    const size_t width = wino_block(z);
    for (size_t o = 0; o < s.out_channels; ++o) {
        const size_t c = o / width * width, own = std::min(width, z.out - c);
        float* const block = packed + 2 * z.out + c * positions<Side> * s.in_channels + (o - c);
        for (size_t i = 0; i < s.in_channels; ++i, weights += 9) {
            double u[positions<Side>];
            transform_weights<Side>(weights, u);
            for (size_t p = 0; p < positions<Side>; ++p)
                block[(p * s.in_channels + i) * own] = static_cast<float>(u[p]);
        }
    }
}

// ---- transforms -------------------------------------------------------------------------------

// Bᵀ d
HWY_INLINE void transform_input(const FloatVec (&d)[6], FloatVec (&t)[6]) {
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
// Rows of two opposite points.
HWY_INLINE void add_and_subtract(FloatVec even, FloatVec odd, FloatVec& plus, FloatVec& minus) {
    plus = hn::Add(even, odd);
    minus = hn::Sub(even, odd);
}
HWY_INLINE void transform_input(const FloatVec (&d)[8], FloatVec (&t)[8]) {
    const FloatTag f;
    const FloatVec k21_4 = hn::Set(f, 5.25F), k17_4 = hn::Set(f, 4.25F);
    const FloatVec k5_2 = hn::Set(f, 2.5F), k5_4 = hn::Set(f, 1.25F);
    const FloatVec two = hn::Set(f, 2.0F), four = hn::Set(f, 4.0F), five = hn::Set(f, 5.0F);
    const FloatVec half = hn::Set(f, 0.5F), quarter = hn::Set(f, 0.25F);
    t[0] = hn::MulAdd(k21_4, hn::Sub(d[4], d[2]), hn::Sub(d[0], d[6]));
    t[7] = hn::MulAdd(k21_4, hn::Sub(d[3], d[5]), hn::Sub(d[7], d[1]));
    add_and_subtract(hn::NegMulAdd(k17_4, d[4], hn::Add(d[2], d[6])),
                     hn::NegMulAdd(k17_4, d[3], hn::Add(d[1], d[5])), t[1], t[2]);
    const FloatVec middle = hn::Mul(k5_2, d[3]);
    add_and_subtract(hn::NegMulAdd(k5_4, d[4], hn::MulAdd(quarter, d[2], d[6])),
                     hn::MulAdd(two, d[5], hn::MulSub(half, d[1], middle)), t[3], t[4]);
    add_and_subtract(hn::NegMulAdd(five, d[4], hn::MulAdd(four, d[2], d[6])),
                     hn::MulAdd(half, d[5], hn::MulSub(two, d[1], middle)), t[5], t[6]);
}

// Aᵀ m
HWY_INLINE void transform_output(const FloatVec (&m)[6], FloatVec (&t)[4]) {
    const FloatTag f;
    const FloatVec four = hn::Set(f, 4.0F), two = hn::Set(f, 2.0F), eight = hn::Set(f, 8.0F);
    const FloatVec sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    const FloatVec far_sum = hn::Add(m[3], m[4]), far_difference = hn::Sub(m[3], m[4]);
    t[0] = hn::Add(hn::Add(m[0], sum), far_sum);
    t[1] = hn::MulAdd(two, far_difference, difference);
    t[2] = hn::MulAdd(four, far_sum, sum);
    t[3] = hn::Add(hn::MulAdd(eight, far_difference, difference), m[5]);
}
HWY_INLINE void transform_output(const FloatVec (&m)[8], FloatVec (&t)[6]) {
    const FloatTag f;
    const auto k = [f](float value) { return hn::Set(f, value); };
    const FloatVec sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    const FloatVec far_sum = hn::Add(m[3], m[4]), far_difference = hn::Sub(m[3], m[4]);
    const FloatVec near_sum = hn::Add(m[5], m[6]), near_difference = hn::Sub(m[5], m[6]);
    t[0] = hn::Add(hn::Add(m[0], sum), hn::Add(far_sum, near_sum));
    t[1] = hn::MulAdd(k(2), far_difference, hn::MulAdd(k(0.5F), near_difference, difference));
    t[2] = hn::MulAdd(k(4), far_sum, hn::MulAdd(k(0.25F), near_sum, sum));
    t[3] = hn::MulAdd(k(8), far_difference, hn::MulAdd(k(0.125F), near_difference, difference));
    t[4] = hn::MulAdd(k(16), far_sum, hn::MulAdd(k(0.0625F), near_sum, sum));
    t[5] = hn::Add(
        hn::MulAdd(k(32), far_difference, hn::MulAdd(k(0.03125F), near_difference, difference)),
        m[7]);
}

// One tile of the input: `patch` has the addresses of its pixels.
template <size_t Side, bool Whole, typename T>
HWY_INLINE void scatter_vector(const T* const* patch, size_t c, size_t left, float* dst,
                               size_t position) {
    constexpr size_t side = patch_side<Side>;
    FloatVec half[side][side];
    VARTML_UNROLL
    for (size_t x = 0; x < side; ++x) {
        FloatVec d[side], t[side];
        VARTML_UNROLL
        for (size_t y = 0; y < side; ++y) d[y] = load<Whole>(patch[y * side + x] + c, left);
        transform_input(d, t);
        VARTML_UNROLL
        for (size_t y = 0; y < side; ++y) half[y][x] = t[y];
    }
    VARTML_UNROLL
    for (size_t y = 0; y < side; ++y) {
        FloatVec t[side];
        transform_input(half[y], t);
        VARTML_UNROLL
        for (size_t x = 0; x < side; ++x)
            hn::StoreU(t[x], FloatTag(), dst + (y * side + x) * position + c);
    }
}

struct Tile2d {
    size_t y, x;  // first output pixel
};
template <size_t Side>
HWY_INLINE Tile2d tile_at(const Sizes<Side>& z, size_t index) {
    return {index / z.tiles_x * Side, index % z.tiles_x * Side};
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

template <size_t Side, typename T>
void scatter(const ConvShape& s, const Sizes<Side>& z, const PictureOf<const T>& src,
             const T* zeros, Tile2d tile, float* dst) {
    constexpr size_t side = patch_side<Side>;
    const T* patch[positions<Side>];
    for (size_t y = 0; y < side; ++y) {
        const auto iy = static_cast<int64_t>(tile.y + y) - s.pad_top;
        for (size_t x = 0; x < side; ++x) {
            const auto ix = static_cast<int64_t>(tile.x + x) - s.pad_left;
            const bool inside = iy >= 0 && iy < s.in_height && ix >= 0 && ix < s.in_width;
            patch[y * side + x] = inside ? src.data + static_cast<size_t>(iy) * src.row +
                                               static_cast<size_t>(ix) * src.pixel
                                         : zeros;
        }
    }
    const size_t ahead = tile.x + tiles_ahead * Side;
    if (ahead + side <= s.in_width) {
        for (size_t y = 0; y < side; ++y)
            if (tile.y + y < s.in_height)
                fetch_row(src, tile.y + y, ahead + side - Side, ahead + side, s.in_channels);
    }
    const size_t lanes = hn::Lanes(FloatTag());
    size_t c = 0;
    for (; c + lanes <= s.in_channels; c += lanes)
        scatter_vector<Side, true>(patch, c, lanes, dst, z.in_position);
    if (c < s.in_channels)
        scatter_vector<Side, false>(patch, c, s.in_channels - c, dst, z.in_position);
}

// The sums of one tile of up to Side x Side pixels to `dst`; `f` bounds them.
template <size_t Side, typename T>
void gather(const ConvShape& s, const Sizes<Side>& z, const float* src, const float* bias,
            const Finish& f, size_t rows, size_t columns, const PictureOf<T>& dst) {
    constexpr size_t side = patch_side<Side>;
    const FloatTag d;
    const size_t lanes = hn::Lanes(d);
    const Bounds bounds(f);
    for (size_t c = 0; c < s.out_channels; c += lanes) {
        FloatVec half[Side][side];
        VARTML_UNROLL
        for (size_t x = 0; x < side; ++x) {
            FloatVec m[side], t[Side];
            VARTML_UNROLL
            for (size_t y = 0; y < side; ++y)
                m[y] = hn::LoadU(d, src + (y * side + x) * z.out_position + c);
            transform_output(m, t);
            VARTML_UNROLL
            for (size_t y = 0; y < Side; ++y) half[y][x] = t[y];
        }
        const FloatVec b = hn::LoadU(d, bias + c);
        const size_t count = s.out_channels - c;
        VARTML_UNROLL
        for (size_t y = 0; y < Side; ++y) {
            if (y >= rows) break;
            FloatVec t[Side];
            transform_output(half[y], t);
            T* const row = dst.data + y * dst.row + c;
            VARTML_UNROLL
            for (size_t x = 0; x < Side; ++x)
                if (x < columns)
                    store<false>(bound(hn::Add(t[x], b), bounds), row + x * dst.pixel, count);
        }
    }
}

// ---- products ---------------------------------------------------------------------------------

template <size_t Side>
void multiply(const ConvShape& s, const Sizes<Side>& z, const float* packed, const float* in,
              float* out, size_t tiles) {
    const Finish plain = make_finish({}, {}, false);
    Taps taps;
    taps.list[taps.count++] = {0, 0};
    const size_t lanes = hn::Lanes(FloatTag()), width = wino_block(z);
    for (size_t p = 0; p < positions<Side>; ++p) {
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
                packed + 2 * z.out + (c * positions<Side> + p * own) * s.in_channels;
            const Block block{weights, packed + z.out, c, own, own, s.in_channels, own};
            cover(point_tiles(own / lanes), line, 0, tiles, taps, block, plain);
        }
    }
}

template <size_t Side, typename T>
void groups_of(const ConvShape& s, const PictureOf<const T>& src, const float* packed,
               const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
               float* scratch, size_t first, size_t last) {
    const Sizes<Side> z(s);
    float* const zeros = scratch;
    float* const in = zeros + z.in;
    float* const out = in + positions<Side> * z.in_position;
    float* const finished = out + positions<Side> * z.out_position;
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
            const size_t rows = std::min<size_t>(Side, s.out_height - tile.y);
            const size_t columns = std::min<size_t>(Side, s.out_width - tile.x);
            const auto y = static_cast<int64_t>(tile.y), x = static_cast<int64_t>(tile.x);
            const float* const sums = out + t * z.out;
            const size_t ahead = tile.x + tiles_ahead * Side;
            if (ahead + Side <= s.out_width)
                for (size_t r = 0; r < rows; ++r)
                    fetch_row(bytes, tile.y + r, ahead, ahead + Side,
                              s.out_channels * size_of(s.result));
            if (!f.rows) {
                if (s.result == Element::bf16)
                    gather<Side, bf16>(s, z, sums, packed, f, rows, columns,
                                       {reinterpret_cast<bf16*>(to.at(y, x)), dst.row, dst.pixel});
                else
                    gather<Side, float>(
                        s, z, sums, packed, f, rows, columns,
                        {reinterpret_cast<float*>(to.at(y, x)), dst.row, dst.pixel});
                continue;
            }
            gather<Side, float>(s, z, sums, packed, make_finish({}, {}, false), rows, columns,
                                {finished, Side * z.out, z.out});
            for (size_t r = 0; r < rows; ++r) {
                const int64_t row = y + static_cast<int64_t>(r);
                f.rows(epilogue, {finished + r * Side * z.out, z.out, add.at(row, x), add.pixel,
                                  to.at(row, x), to.pixel, columns, s.out_channels});
            }
        }
    }
}

template <size_t Side>
void winograd_with(const ConvShape& s, const AnySrcPicture& src, const float* packed,
                   const Epilogue& epilogue, const AnySrcPicture& residual,
                   const AnyDstPicture& dst, float* scratch, size_t first, size_t last) {
    if (s.source == Element::bf16)
        groups_of<Side, bf16>(s, {static_cast<const bf16*>(src.data), src.row, src.pixel}, packed,
                              epilogue, residual, dst, scratch, first, last);
    else
        groups_of<Side, float>(s, {static_cast<const float*>(src.data), src.row, src.pixel}, packed,
                               epilogue, residual, dst, scratch, first, last);
}

size_t groups(const ConvShape& s, size_t side) {
    return side == 6 ? groups_with<6>(s) : groups_with<4>(s);
}
size_t scratch_size(const ConvShape& s, size_t side) {
    return side == 6 ? scratch_size_with<6>(s) : scratch_size_with<4>(s);
}
size_t wino_packed_size(const ConvShape& s, size_t side) {
    return side == 6 ? packed_size_with<6>(s) : packed_size_with<4>(s);
}
void wino_pack(const ConvShape& s, size_t side, const float* weights, const float* bias,
               float* packed) {
    side == 6 ? pack_with<6>(s, weights, bias, packed) : pack_with<4>(s, weights, bias, packed);
}
void winograd(const ConvShape& s, size_t side, const AnySrcPicture& src, const float* packed,
              const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
              float* scratch, size_t first, size_t last) {
    const auto run = side == 6 ? winograd_with<6> : winograd_with<4>;
    run(s, src, packed, epilogue, residual, dst, scratch, first, last);
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

// What a convolution costs in multiply-adds of vectors of 16.
constexpr uint64_t lanes = 16;
uint64_t vectors(uint64_t channels) {
    return (channels + lanes - 1) / lanes;
}
uint64_t tiles(const ConvShape& s, uint64_t side) {
    return (s.out_width + side - 1) / side * ((s.out_height + side - 1) / side);
}
uint64_t direct_cost(const ConvShape& s) {
    // A vector multiplies twice as many pairs of bf16.
    const uint64_t factors = s.factors == Element::bf16 ? (s.in_channels + 1) / 2 : s.in_channels;
    return uint64_t{s.out_height} * s.out_width * factors * 9 * vectors(s.out_channels);
}
// The transforms of a tile per vector of channels were measured, and what products take longer
// whose weights come from farther caches.
uint64_t cost_of_4(const ConvShape& s) {
    const uint64_t in = vectors(s.in_channels), out = vectors(s.out_channels);
    return tiles(s, 4) * (36 * s.in_channels * out + 240 * (in + out));
}
uint64_t cost_of_6(const ConvShape& s) {
    const uint64_t in = vectors(s.in_channels), out = vectors(s.out_channels);
    const uint64_t products = 64 * s.in_channels * out;
    return tiles(s, 6) * (products + products / 10 + 430 * (in + out));
}

}  // namespace

size_t winograd_side(const ConvShape& s) {
    if (s.exact || s.depthwise || s.source == Element::u8 || s.kernel_height != 3 ||
        s.kernel_width != 3 || s.stride_height != 1 || s.stride_width != 1 ||
        s.dilation_height != 1 || s.dilation_width != 1)
        return 0;
    constexpr uint64_t least_tiles = 16;
    const uint64_t cost4 = cost_of_4(s), cost6 = cost_of_6(s);
    // Larger tiles where they save a tenth.
    const bool is_large = cost6 + cost6 / 9 < cost4 && tiles(s, 6) >= least_tiles;
    const size_t side = is_large ? 6 : 4;
    const uint64_t cost = is_large ? cost6 : cost4;
    return tiles(s, side) >= least_tiles && cost + cost / 4 < direct_cost(s) ? side : 0;
}

size_t winograd_groups(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(groups)(shape, winograd_side(shape));
}

size_t packed_winograd_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(wino_packed_size)(shape, winograd_side(shape));
}

size_t winograd_scratch_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(scratch_size)(shape, winograd_side(shape));
}

void pack_winograd(const ConvShape& shape, const float* weights, const float* bias, float* packed) {
    HWY_DYNAMIC_DISPATCH(wino_pack)(shape, winograd_side(shape), weights, bias, packed);
}

void conv_winograd(const ConvShape& shape, const AnySrcPicture& src, const float* packed,
                   const Epilogue& epilogue, const AnySrcPicture& residual,
                   const AnyDstPicture& dst, float* scratch, size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(winograd)
    (shape, winograd_side(shape), src, packed, epilogue, residual, dst, scratch, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
