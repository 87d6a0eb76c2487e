// SPDX-License-Identifier: Apache-2.0
// Direct convolution for every instruction set. Output pixels are made in lines (a row, or a column
// at the picture's edge, where the same kernel taps are valid all along); a line is cut into tiles.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/direct.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/conv/direct.h"
#include "kernels/conv/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

// The tiles that run along a row with this kernel; nullptr where none do.
const RowTiles* find_row_tiles(const ConvShape& s) {
    for (const RowTiles& row : row_tiles)
        if (row.kernel == s.kernel_width && row.stride == s.stride_width && s.dilation_width == 1)
            return &row;
    return nullptr;
}

// ---- packed weights: bias, padded to whole vectors, then the blocks ---------------------------

size_t padded_channels(const ConvShape& s) {
    const size_t lanes = hn::Lanes(FloatTag());
    return (s.out_channels + lanes - 1) / lanes * lanes;
}

// Channels of a block: as equal as whole vectors allow.
size_t block_width(const ConvShape& s) {
    const size_t lanes = hn::Lanes(FloatTag()), vectors = padded_channels(s) / lanes;
    const size_t most = find_row_tiles(s) ? max_row_vectors : max_vectors;
    const size_t blocks = (vectors + most - 1) / most;
    return (vectors + blocks - 1) / blocks * lanes;
}

// The block that begins at output channel `c`.
Block make_block(const ConvShape& s, const float* packed, size_t c) {
    const size_t channels = padded_channels(s), width = std::min(block_width(s), channels - c);
    const size_t filter = size_t{s.in_channels} * s.kernel_height * s.kernel_width;
    return {packed + channels + c * filter,
            packed + c,
            c,
            std::min<size_t>(width, s.out_channels - c),
            width,
            s.in_channels,
            s.kernel_width * width};
}

size_t packed_size(const ConvShape& s) {
    const size_t taps = static_cast<size_t>(s.kernel_height) * s.kernel_width;
    return padded_channels(s) * (1 + taps * s.in_channels);
}

void pack(const ConvShape& s, const float* weights, const float* bias, float* packed) {
    std::fill_n(packed, packed_size(s), 0.0F);
    if (bias) std::copy_n(bias, s.out_channels, packed);
    const size_t inputs = s.in_channels, width = block_width(s);
    for (size_t o = 0; o < s.out_channels; ++o) {
        const Block block = make_block(s, packed, o / width * width);
        float* const out = packed + (block.weights - packed) + o % width;
        for (size_t c = 0; c < inputs; ++c)
            for (size_t y = 0; y < s.kernel_height; ++y)
                for (size_t x = 0; x < s.kernel_width; ++x)
                    out[(y * inputs + c) * block.channel_step + x * block.column] = *weights++;
    }
}

// ---- lines ------------------------------------------------------------------------------------

// `whole_rows`: the line runs along a row and its taps are whole kernel rows.
void run_line(const ConvShape& s, const Line& line, const Taps& taps, const float* packed,
              const Finish& f, bool whole_rows) {
    const RowTiles* const rows = whole_rows ? find_row_tiles(s) : nullptr;
    const size_t lanes = hn::Lanes(FloatTag()), width = block_width(s);
    // Pieces whose input stays in the first-level cache while the blocks of channels go over it.
    constexpr size_t l1_floats = 6144, least = 24;
    const size_t piece = std::max(least, l1_floats / std::max<size_t>(1, line.src_step));
    for (size_t first = 0; first < line.pixels;) {
        size_t last = std::min(line.pixels, first + piece);
        if (line.pixels - last < least) last = line.pixels;
        for (size_t c = 0; c < s.out_channels; c += width) {
            const Block block = make_block(s, packed, c);
            const size_t vectors = block.column / lanes;
            cover(rows ? rows->dense[vectors - 1] : point_tiles(vectors), line, first, last, taps,
                  block, f);
        }
        first = last;
    }
}

// Kernel rows [y0, y1) and columns [x0, x1).
Taps make_taps(const ConvShape& s, const SrcPicture& src, size_t y0, size_t y1, size_t x0,
               size_t x1) {
    Taps taps;
    const size_t row = size_t{s.kernel_width} * s.in_channels;
    for (size_t y = y0; y < y1; ++y) {
        for (size_t x = x0; x < x1; ++x) {
            taps.list[taps.count++] = {static_cast<ptrdiff_t>(y * s.dilation_height * src.row +
                                                              x * s.dilation_width * src.pixel),
                                       y * row + x};
        }
    }
    return taps;
}

// The part of a kernel of `size` that lies on [0, extent) when its first position is at `start`.
struct Range {
    size_t first, last;
    bool operator==(const Range&) const = default;
};
Range valid(int64_t start, size_t size, size_t dilation, size_t extent) {
    Range r{0, size};
    const auto step = static_cast<int64_t>(dilation);
    while (r.first < size && start + static_cast<int64_t>(r.first) * step < 0) ++r.first;
    while (r.last > r.first &&
           start + static_cast<int64_t>(r.last - 1) * step >= static_cast<int64_t>(extent))
        --r.last;
    return r;
}

void rows(const ConvShape& s, const SrcPicture& src, const float* packed, const Epilogue& epilogue,
          const AnySrcPicture& residual, const AnyDstPicture& dst, size_t first, size_t last) {
    const Finish f = make_finish(s, epilogue, residual.data != nullptr);
    const ByteRows out = byte_rows(dst, s.result), add = byte_rows(residual, s.source);
    // Padding may be at the ends alone.
    const bool point = s.kernel_height * s.kernel_width == 1 &&
                       s.stride_height * s.stride_width == 1 && s.pad_top == 0 && s.pad_left == 0 &&
                       s.out_height == s.in_height && s.out_width == s.in_width;
    const bool flat = point && src.row == src.pixel * s.in_width &&
                      dst.row == dst.pixel * s.out_width &&
                      (!residual.data || residual.row == residual.pixel * s.out_width);
    if (flat) {
        const Line line{src.data + first * src.row,
                        src.pixel,
                        out.at(static_cast<int64_t>(first), 0),
                        out.pixel,
                        add.at(static_cast<int64_t>(first), 0),
                        add.pixel,
                        static_cast<size_t>(last - first) * s.out_width};
        return run_line(s, line, make_taps(s, src, 0, 1, 0, 1), packed, f, false);
    }
    const Range all_x{0, s.kernel_width};
    const auto line_at = [&](int64_t y, int64_t x, size_t pixels, bool down) {
        const int64_t iy = y * s.stride_height - s.pad_top, ix = x * s.stride_width - s.pad_left;
        return Line{
            src.data + iy * static_cast<int64_t>(src.row) + ix * static_cast<int64_t>(src.pixel),
            down ? s.stride_height * src.row : s.stride_width * src.pixel,
            out.at(y, x),
            down ? out.row : out.pixel,
            add.at(y, x),
            down ? add.row : add.pixel,
            pixels};
    };
    const auto valid_x = [&](size_t x) {
        return valid(static_cast<int64_t>(x) * s.stride_width - s.pad_left, s.kernel_width,
                     s.dilation_width, s.in_width);
    };
    const auto valid_y = [&](size_t y) {
        return valid(static_cast<int64_t>(y) * s.stride_height - s.pad_top, s.kernel_height,
                     s.dilation_height, s.in_height);
    };
    size_t x0 = 0, x1 = s.out_width;  // columns where the whole kernel lies on the picture
    while (x0 < x1 && valid_x(x0) != all_x) ++x0;
    while (x1 > x0 && valid_x(x1 - 1) != all_x) --x1;
    // Rows in groups with the same kernel rows: one row each for the middle, columns at the edges
    // for the whole group.
    for (size_t y = first; y < last;) {
        const Range ky = valid_y(y);
        size_t end = y + 1;
        while (end < last && valid_y(end) == ky) ++end;
        const Taps middle = make_taps(s, src, ky.first, ky.last, 0, s.kernel_width);
        for (size_t row = y; row < end; ++row) {
            run_line(s,
                     line_at(static_cast<int64_t>(row), static_cast<int64_t>(x0), x1 - x0, false),
                     middle, packed, f, true);
        }
        for (size_t x = x0 == 0 ? x1 : 0; x < s.out_width; x = x + 1 == x0 ? x1 : x + 1) {
            const Range kx = valid_x(x);
            run_line(s, line_at(static_cast<int64_t>(y), static_cast<int64_t>(x), end - y, true),
                     make_taps(s, src, ky.first, ky.last, kx.first, kx.last), packed, f, false);
        }
        y = end;
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(rows);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack);
}  // namespace

size_t packed_direct_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_size)(shape);
}

void pack_direct(const ConvShape& shape, const float* weights, const float* bias, float* packed) {
    HWY_DYNAMIC_DISPATCH(pack)(shape, weights, bias, packed);
}

void conv_direct(const ConvShape& shape, const SrcPicture& src, const float* packed,
                 const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                 size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(rows)(shape, src, packed, epilogue, residual, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
