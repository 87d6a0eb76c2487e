// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/padded.h"

#include <algorithm>
#include <cstdint>

#include "kernels/conv/direct.h"
#include "kernels/ops/rows.h"

namespace vartml::kernels {
namespace {

// Source rows or columns under `outputs` positions.
size_t reach(size_t outputs, size_t stride, size_t kernel, size_t dilation) {
    return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

// The copy: pixels dense, but three channels have the place of four, as in the layouts of devices.
size_t copy_pixel(const ConvShape& s) {
    return s.in_channels == 3 ? 4 : s.in_channels;
}
size_t copy_width(const ConvShape& s) {
    return reach(s.out_width, s.stride_width, s.kernel_width, s.dilation_width);
}
size_t copy_row(const ConvShape& s) {
    return copy_width(s) * copy_pixel(s);
}
size_t copy_height(const ConvShape& s, size_t rows) {
    return reach(rows, s.stride_height, s.kernel_height, s.dilation_height);
}

// Output rows per copy: so many that the source rows which two copies share are few, and the copy
// is in the cache of the processor when it is read.
size_t rows_at_once(const ConvShape& s) {
    constexpr size_t cached = 24 * 1024;
    const size_t held = cached / copy_row(s), shared = copy_height(s, 1);
    const size_t rows = held > shared ? (held - shared) / s.stride_height + 1 : 1;
    return std::clamp<size_t>(rows, std::min<size_t>(4, s.out_height), s.out_height);
}

// Rows of so few pixels make no good tiles. Rows of the copy follow each other, so several are one
// line; the pixels between two rows are made in vain.
bool joins_rows(const ConvShape& s) {
    constexpr uint32_t good_tile = 10;
    return s.stride_height == 1 && s.stride_width == 1 && s.out_width < good_tile;
}
size_t line_pixels(const ConvShape& s, size_t rows) {
    return (rows - 1) * copy_width(s) + s.out_width;
}

// Part of the source [first, first + size) that lies on [0, extent).
struct Part {
    size_t before, count, after;  // of these lie before it, on it, behind it
    size_t first;                 // on it
};
Part on_picture(int64_t first, size_t size, size_t extent) {
    const auto all = static_cast<int64_t>(size);
    const int64_t before = std::clamp<int64_t>(-first, 0, all);
    const int64_t end = std::clamp<int64_t>(static_cast<int64_t>(extent) - first, before, all);
    return {static_cast<size_t>(before), static_cast<size_t>(end - before),
            static_cast<size_t>(all - end), static_cast<size_t>(first + before)};
}

template <typename Picture>
void copy_source(const ConvShape& s, const Picture& src, size_t y, size_t rows, float* to) {
    const size_t pixel = copy_pixel(s);
    const Part h = on_picture(static_cast<int64_t>(y * s.stride_height) - s.pad_top,
                              copy_height(s, rows), s.in_height);
    const Part w = on_picture(-s.pad_left, copy_width(s), s.in_width);
    to = std::fill_n(to, h.before * copy_row(s), 0.0F);
    for (size_t r = 0; r < h.count; ++r) {
        const auto* from = src.data + (h.first + r) * src.row + w.first * src.pixel;
        to = std::fill_n(to, w.before * pixel, 0.0F);
        if (src.pixel == pixel && w.count > 0)  // nothing is read behind the last channel
            copy_rows(from, 0, to, 0, 1, w.count * pixel - (pixel - s.in_channels));
        else
            copy_rows(from, static_cast<ptrdiff_t>(src.pixel), to, static_cast<ptrdiff_t>(pixel),
                      w.count, s.in_channels);
        to = std::fill_n(to + w.count * pixel, w.after * pixel, 0.0F);
    }
    std::fill_n(to, h.after * copy_row(s), 0.0F);
}

// All rows of a copy as one row of a picture whose rows overlap; `inner` has its padding.
void run_line(const ConvShape& s, ConvShape inner, size_t rows, const float* packed,
              const Epilogue& epilogue, float* copy, const DstPicture& dst) {
    inner.in_height = static_cast<uint32_t>(copy_height(s, 1));
    inner.in_width = static_cast<uint32_t>(rows * copy_width(s));
    inner.out_height = 1;
    inner.out_width = static_cast<uint32_t>(line_pixels(s, rows));
    const size_t pixel = s.out_channels;
    float* const line = copy + copy_height(s, rows_at_once(s)) * copy_row(s);
    conv_direct(inner, {copy, copy_row(s), copy_pixel(s)}, packed, epilogue, {nullptr, 0, 0},
                {line, inner.out_width * pixel, pixel}, 0, 1);
    for (size_t r = 0; r < rows; ++r)
        copy_rows(line + r * copy_width(s) * pixel, static_cast<ptrdiff_t>(pixel),
                  dst.data + r * dst.row, static_cast<ptrdiff_t>(dst.pixel), s.out_width, pixel);
}

template <typename Picture>
void run(const ConvShape& shape, const Picture& src, const float* packed, const Epilogue& epilogue,
         const SrcPicture& residual, const DstPicture& dst, float* scratch, size_t first,
         size_t last) {
    ConvShape inner = shape;
    inner.pad_top = inner.pad_left = 0;
    inner.in_width = static_cast<uint32_t>(copy_width(shape));
    const SrcPicture copy{scratch, copy_row(shape), copy_pixel(shape)};
    const size_t at_once = rows_at_once(shape);
    for (size_t y = first; y < last; y += at_once) {
        const size_t rows = std::min(at_once, last - y);
        copy_source(shape, src, y, rows, scratch);
        if (joins_rows(shape) && !residual.data) {
            run_line(shape, inner, rows, packed, epilogue, scratch,
                     {dst.data + y * dst.row, dst.row, dst.pixel});
            continue;
        }
        inner.in_height = static_cast<uint32_t>(copy_height(shape, rows));
        inner.out_height = static_cast<uint32_t>(rows);
        const SrcPicture add{residual.data ? residual.data + y * residual.row : nullptr,
                             residual.row, residual.pixel};
        conv_direct(inner, copy, packed, epilogue, add,
                    {dst.data + y * dst.row, dst.row, dst.pixel}, 0, rows);
    }
}

}  // namespace

bool prefers_padded(const ConvShape& s) {
    if (s.bf16_source) return true;
    // Dilated kernels have no tiles along a row; for them the copy lost.
    if (s.depthwise || s.kernel_width == 1 || s.dilation_width > 1) return false;
    // Columns where a part of the kernel lies beyond the picture.
    const size_t edge = copy_width(s) - std::min<size_t>(copy_width(s), s.in_width);
    return edge * 16 > s.out_width * s.stride_width;
}

size_t padded_scratch_size(const ConvShape& s) {
    const size_t rows = rows_at_once(s);
    return copy_height(s, rows) * copy_row(s) +
           (joins_rows(s) ? line_pixels(s, rows) * s.out_channels : 0);
}

void conv_padded(const ConvShape& shape, const SrcPicture& src, const float* packed,
                 const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
                 float* scratch, size_t first, size_t last) {
    run(shape, src, packed, epilogue, residual, dst, scratch, first, last);
}

void conv_padded(const ConvShape& shape, const Bf16Picture& src, const float* packed,
                 const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
                 float* scratch, size_t first, size_t last) {
    run(shape, src, packed, epilogue, residual, dst, scratch, first, last);
}

}  // namespace vartml::kernels
