// SPDX-License-Identifier: Apache-2.0
// Filters of one channel each, for every instruction set. A tile is a few pixels of two output rows
// by one vector of channels: an input value is loaded, and widened, once for all sums in which it
// is. Rows beyond the picture are left out of the sums, pixels beyond it are zeros.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

// ---- packed weights: bias, then a vector per tap, each padded to whole vectors -----------------

size_t padded_channels(const ConvShape& s) {
    const size_t lanes = hn::Lanes(FloatTag());
    return (s.out_channels + lanes - 1) / lanes * lanes;
}

size_t packed_size(const ConvShape& s) {
    return padded_channels(s) * (1 + size_t{s.kernel_height} * s.kernel_width);
}

void pack(const ConvShape& s, const float* weights, const float* bias, float* packed) {
    std::fill_n(packed, packed_size(s), 0.0F);
    if (bias) std::copy_n(bias, s.out_channels, packed);
    const size_t step = padded_channels(s), taps = size_t{s.kernel_height} * s.kernel_width;
    for (size_t c = 0; c < s.out_channels; ++c)
        for (size_t t = 0; t < taps; ++t) packed[(1 + t) * step + c] = *weights++;
}

// ---- tiles --------------------------------------------------------------------------------------

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr size_t tile_rows = 2;  // 16 sums beside the weights of two kernel rows
#else
constexpr size_t tile_rows = 1;
#endif

constexpr size_t max_kernel = 128;  // rows or columns

// Where a tile lies.
template <typename T>
struct Tile {
    const ConvShape& shape;
    const float* packed;
    size_t step;  // floats between taps
    const T* const*
        rows;            // under the tile, at the tile's first column; nullptr: beyond the picture
    size_t pixel;        // elements
    size_t first, last;  // columns under the tile that are on the picture
    size_t pixels;       // that are results
    std::array<std::byte*, tile_rows> dst;
    std::array<const std::byte*, tile_rows> residual;
    size_t dst_step, residual_step;  // bytes
};

// The pixel of column `j`, or zeros; without a branch, which would part the sums.
alignas(64) constexpr float zeros[hn::MaxLanes(FloatTag())] = {};
template <typename T>
HWY_INLINE const T* column(const Tile<T>& t, const T* src, size_t j) {
    return j - t.first < t.last - t.first ? src : reinterpret_cast<const T*>(zeros);
}

// `Inside`: all columns are on the picture, all pixels results and all channels there.
template <bool Inside, typename T, size_t R, size_t M>
HWY_INLINE void finish_sums(const FloatVec (&sum)[R][M][1], const Tile<T>& t, size_t c,
                            const Finish& f) {
    const size_t left = t.shape.out_channels - c, rows = Inside ? M : t.pixels;
    VARTML_UNROLL
    for (size_t r = 0; r < R; ++r) {
        std::byte* const dst = t.dst[r] + c * f.result_size;
        if (!f.rows) {
            store_bounded<Inside>(sum[r], f, dst, t.dst_step, rows, left);
            continue;
        }
        constexpr size_t lanes = hn::MaxLanes(FloatTag());
        HWY_ALIGN float sums[M * lanes];
        VARTML_UNROLL
        for (size_t m = 0; m < M; ++m) hn::Store(sum[r][m][0], FloatTag(), sums + m * lanes);
        f.rows(f.epilogue,
               {sums, lanes, t.residual[r] ? t.residual[r] + c * f.source_size : nullptr,
                t.residual_step, dst, t.dst_step, rows, std::min(left, lanes), c});
    }
}

// A kernel of KxK, S pixels from one output to the next, for the vector of channels from `c` on.
template <typename T, size_t K, size_t S, size_t R, size_t M, bool Inside>
void square_tile(const Tile<T>& t, size_t c, const Finish& f) {
    const FloatTag d;
    const float* const packed = t.packed + c;
    const size_t left = t.shape.out_channels - c;
    FloatVec sum[R][M][1], w[K][K];
    const FloatVec bias = hn::LoadU(d, packed);
    VARTML_UNROLL
    for (size_t r = 0; r < R; ++r) {
        VARTML_UNROLL
        for (size_t m = 0; m < M; ++m) sum[r][m][0] = bias;
    }
    VARTML_UNROLL
    for (size_t i = 0; i < (R - 1) * S + K; ++i) {
        if (i < K) {
            VARTML_UNROLL
            for (size_t k = 0; k < K; ++k)
                w[i][k] = hn::LoadU(d, packed + (1 + i * K + k) * t.step);
        }
        const T* src = t.rows[i];
        if (!src) continue;
        src += c;
        VARTML_UNROLL
        for (size_t j = 0; j < (M - 1) * S + K; ++j, src += t.pixel) {
            const FloatVec x = load<Inside>(Inside ? src : column(t, src, j), left);
            VARTML_UNROLL
            for (size_t r = 0; r < R; ++r) {
                if (i < r * S || i - r * S >= K) continue;
                VARTML_UNROLL
                for (size_t k = 0; k < K; ++k) {
                    if (j < k || (j - k) % S != 0 || (j - k) / S >= M) continue;
                    FloatVec& own = sum[r][(j - k) / S][0];
                    own = hn::MulAdd(x, w[i - r * S][k], own);
                }
            }
        }
    }
    finish_sums<Inside>(sum, t, c, f);
}

// Any kernel; `Inside` makes no difference to what is read.
template <typename T, size_t M, bool Inside>
void any_tile(const Tile<T>& t, size_t c, const Finish& f) {
    const FloatTag d;
    const ConvShape& s = t.shape;
    const float* const packed = t.packed + c;
    const size_t left = s.out_channels - c, step = s.stride_width * t.pixel;
    FloatVec sum[1][M][1];
    const FloatVec bias = hn::LoadU(d, packed);
    VARTML_UNROLL
    for (size_t m = 0; m < M; ++m) sum[0][m][0] = bias;
    for (size_t ky = 0; ky < s.kernel_height; ++ky) {
        if (!t.rows[ky]) continue;
        for (size_t kx = 0; kx < s.kernel_width; ++kx) {
            const T* src = t.rows[ky] + kx * s.dilation_width * t.pixel + c;
            const FloatVec w = hn::LoadU(d, packed + (1 + ky * s.kernel_width + kx) * t.step);
            VARTML_UNROLL
            for (size_t m = 0; m < M; ++m, src += step) {
                const size_t j = m * s.stride_width + kx * s.dilation_width;
                const FloatVec x = load<Inside>(Inside ? src : column(t, src, j), left);
                sum[0][m][0] = hn::MulAdd(x, w, sum[0][m][0]);
            }
        }
    }
    finish_sums<Inside>(sum, t, c, f);
}

template <typename T>
using RunTile = void (*)(const Tile<T>&, size_t channel, const Finish&);

// Of M pixels.
template <typename T>
struct Width {
    size_t pixels;
    RunTile<T> inside, careful;
};
// Of R rows.
template <typename T>
struct Height {
    size_t rows;
    Width<T> wide, narrow;
};
template <typename T, size_t K, size_t S, size_t R>
constexpr Height<T> square_tiles = {
    R,
    {8, square_tile<T, K, S, R, 8, true>, square_tile<T, K, S, R, 8, false>},
    {4, square_tile<T, K, S, R, 4, true>, square_tile<T, K, S, R, 4, false>}};
template <typename T>
constexpr Height<T> any_tiles = {1,
                                 {8, any_tile<T, 8, true>, any_tile<T, 8, false>},
                                 {1, any_tile<T, 1, true>, any_tile<T, 1, false>}};

template <typename T>
struct Kernel {
    size_t size, stride;
    const Height<T>& high;
    const Height<T>& low;
};
template <typename T, size_t K, size_t S>
constexpr Kernel<T> square = {K, S, square_tiles<T, K, S, tile_rows>, square_tiles<T, K, S, 1>};
template <typename T>
constexpr Kernel<T> squares[] = {square<T, 3, 1>, square<T, 3, 2>, square<T, 5, 1>,
                                 square<T, 5, 2>};
template <typename T>
constexpr Kernel<T> any = {0, 0, any_tiles<T>, any_tiles<T>};

template <typename T>
const Kernel<T>& find_kernel(const ConvShape& s) {
    for (const Kernel<T>& k : squares<T>)
        if (k.size == s.kernel_width && k.size == s.kernel_height && k.stride == s.stride_width &&
            k.stride == s.stride_height && s.dilation_width == 1 && s.dilation_height == 1)
            return k;
    return any<T>;
}

// ---- all pixels ---------------------------------------------------------------------------------

// Of [start, start + size) the part that lies on [0, extent).
struct Part {
    size_t first, last;
};
Part on_picture(int64_t start, size_t size, size_t extent) {
    const auto all = static_cast<int64_t>(size);
    const int64_t first = std::clamp<int64_t>(-start, 0, all);
    const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(extent) - start, first, all);
    return {static_cast<size_t>(first), static_cast<size_t>(last)};
}

// A row of tiles. The last one is moved back over pixels that are done already where there are
// enough: making them twice costs less than a small tile. `rows` are those of the picture.
template <typename T>
void run_tiles(const ConvShape& s, const Height<T>& tiles, const T* const* rows, size_t num_rows,
               Tile<T> tile, const Finish& f) {
    const size_t lanes = hn::Lanes(FloatTag());
    const auto dst = tile.dst;
    const auto residual = tile.residual;
    std::array<const T*, max_kernel> at;
    tile.rows = at.data();
    for (size_t x = 0; x < s.out_width; x += tile.pixels) {
        const size_t rest = s.out_width - x;
        const Width<T>& width = rest > tiles.narrow.pixels ? tiles.wide : tiles.narrow;
        if (rest < width.pixels && s.out_width >= width.pixels) x = s.out_width - width.pixels;
        tile.pixels = std::min(width.pixels, s.out_width - x);
        const int64_t start = static_cast<int64_t>(x) * s.stride_width - s.pad_left;
        const size_t columns = (width.pixels - 1) * s.stride_width +
                               (size_t{s.kernel_width} - 1) * s.dilation_width + 1;
        const Part on = on_picture(start, columns, s.in_width);
        tile.first = on.first, tile.last = on.last;
        for (size_t i = 0; i < num_rows; ++i)
            at[i] = rows[i] ? rows[i] + start * static_cast<int64_t>(tile.pixel) : nullptr;
        for (size_t r = 0; r < tiles.rows; ++r) {
            tile.dst[r] = dst[r] + x * tile.dst_step;
            tile.residual[r] = residual[r] ? residual[r] + x * tile.residual_step : nullptr;
        }
        size_t c = 0;
        if (on.last - on.first == columns && tile.pixels == width.pixels)
            for (; c + lanes <= s.out_channels; c += lanes) width.inside(tile, c, f);
        for (; c < s.out_channels; c += lanes) width.careful(tile, c, f);
    }
}

template <typename T>
void rows_of(const ConvShape& s, const PictureOf<const T>& src, const float* packed,
             const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
             size_t first, size_t last) {
    const ByteRows out = byte_rows(dst, s.result), add = byte_rows(residual, s.source);
    const Finish f = make_finish(s, epilogue, residual.data != nullptr);
    const Kernel<T>& kernel = find_kernel<T>(s);
    for (size_t y = first; y < last;) {
        const Height<T>& tiles = y + kernel.high.rows <= last ? kernel.high : kernel.low;
        // Of the kernel's rows, or of all rows under those of the tile.
        const size_t taps = size_t{s.kernel_height} + (tiles.rows - 1) * s.stride_height;
        const int64_t start = static_cast<int64_t>(y) * s.stride_height - s.pad_top;
        std::array<const T*, max_kernel> rows;
        for (size_t i = 0; i < taps; ++i) {
            const int64_t at = start + static_cast<int64_t>(i * s.dilation_height);
            rows[i] = at < 0 || at >= s.in_height ? nullptr
                                                  : src.data + static_cast<size_t>(at) * src.row;
        }
        Tile<T> tile{s,  packed, padded_channels(s), nullptr,  src.pixel, 0, 0, 0,
                     {}, {},     out.pixel,          add.pixel};
        for (size_t r = 0; r < tiles.rows; ++r) {
            tile.dst[r] = out.at(static_cast<int64_t>(y + r), 0);
            tile.residual[r] = add.at(static_cast<int64_t>(y + r), 0);
        }
        run_tiles(s, tiles, rows.data(), taps, tile, f);
        y += tiles.rows;
    }
}

void rows(const ConvShape& s, const AnySrcPicture& src, Element source, const float* packed,
          const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
          size_t first, size_t last) {
    if (source == Element::bf16)
        rows_of<bf16>(s, {static_cast<const bf16*>(src.data), src.row, src.pixel}, packed, epilogue,
                      residual, dst, first, last);
    else
        rows_of<float>(s, {static_cast<const float*>(src.data), src.row, src.pixel}, packed,
                       epilogue, residual, dst, first, last);
}

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(rows);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack);
}  // namespace

size_t packed_depthwise_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_size)(shape);
}

void pack_depthwise(const ConvShape& shape, const float* weights, const float* bias,
                    float* packed) {
    HWY_DYNAMIC_DISPATCH(pack)(shape, weights, bias, packed);
}

bool prefers_padded_depthwise(const ConvShape& s) {
    const bool is_square = s.kernel_width == s.kernel_height && s.stride_width == s.stride_height &&
                           s.dilation_width == 1 && s.dilation_height == 1;
    return !is_square || (s.kernel_width != 3 && s.kernel_width != 5) || s.stride_width > 2;
}

void conv_depthwise(const ConvShape& shape, const AnySrcPicture& src, Element source,
                    const float* packed, const Epilogue& epilogue, const AnySrcPicture& residual,
                    const AnyDstPicture& dst, size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(rows)(shape, src, source, packed, epilogue, residual, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
