// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/padded.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/conv/bf16_pairs.h"
#include "kernels/conv/code_pairs.h"
#include "kernels/conv/code_quads.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/direct.h"
#include "kernels/ops/codes.h"
#include "kernels/ops/rows.h"

namespace vartml::kernels {
namespace {

// Source rows or columns under `outputs` positions.
size_t reach(size_t outputs, size_t stride, size_t kernel, size_t dilation) {
    return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

// What a copy is made of; i16: codes less what stands for 0.
enum class CopyType : uint8_t { f32, bf16, u8, i16 };
CopyType copy_of(const ConvShape& s) {
    switch (conv_method(s)) {
        case ConvMethod::bf16_pairs:
            return CopyType::bf16;
        case ConvMethod::code_pairs:
            return CopyType::i16;
        case ConvMethod::code_quads:
            return CopyType::u8;
        default:
            return CopyType::f32;
    }
}
size_t copy_size(const ConvShape& s) {  // bytes of an element
    constexpr size_t sizes[] = {sizeof(float), sizeof(bf16), sizeof(uint8_t), sizeof(int16_t)};
    return sizes[static_cast<size_t>(copy_of(s))];
}
// Pixels of the copy are dense, but three channels of fp32 keep the place of four that they have in
// the layouts of devices.
size_t copy_pixel(const ConvShape& s, size_t source_pixel) {
    return s.in_channels == 3 && source_pixel == 4 && copy_of(s) == CopyType::f32 ? 4
                                                                                  : s.in_channels;
}
size_t widest_pixel(const ConvShape& s) {
    return copy_pixel(s, 4);
}
size_t copy_width(const ConvShape& s) {
    return reach(s.out_width, s.stride_width, s.kernel_width, s.dilation_width);
}
size_t widest_row(const ConvShape& s) {
    return copy_width(s) * widest_pixel(s);
}
size_t copy_height(const ConvShape& s, size_t rows) {
    return reach(rows, s.stride_height, s.kernel_height, s.dilation_height);
}

// Output rows per copy: so many that the source rows which two copies share are few, and the copy
// is in the cache of the processor when it is read.
size_t rows_at_once(const ConvShape& s) {
    const size_t cached = 96 * 1024 / copy_size(s);
    const size_t held = cached / widest_row(s), shared = copy_height(s, 1);
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

// Pixels of three channels lose the place of a fourth: each is copied with what is behind it, where
// the next one goes.
template <typename T>
void pack_pixels(const T* from, T* to, size_t count) {
    for (; count > 1; --count, from += 4, to += 3) std::memcpy(to, from, 4 * sizeof(T));
    if (count > 0) std::memcpy(to, from, 3 * sizeof(T));
}

template <typename T>
void copy_pixels(const T* from, ptrdiff_t from_step, T* to, ptrdiff_t to_step, size_t count,
                 size_t channels) {
    if (from_step == to_step && count > 0) {  // nothing is read behind the last channel
        const auto gap = static_cast<size_t>(to_step) - channels;
        std::memcpy(to, from, (count * static_cast<size_t>(to_step) - gap) * sizeof(T));
        return;
    }
    if (from_step == 4 && to_step == 3) return pack_pixels(from, to, count);
    for (size_t i = 0; i < count; ++i, from += from_step, to += to_step)
        std::memcpy(to, from, channels * sizeof(T));
}
template <typename Src, typename Dst>
    requires(!std::is_same_v<Src, Dst>)
void copy_pixels(const Src* from, ptrdiff_t from_step, Dst* to, ptrdiff_t to_step, size_t count,
                 size_t channels) {
    const auto place = static_cast<size_t>(to_step);
    if (from_step == to_step && count > 0)
        return convert_row(from, to, count * place - (place - channels));
    if (from_step != 4 || to_step != 3)
        return copy_rows(from, from_step, to, to_step, count, channels);
    constexpr size_t at_once = 64;
    Dst converted[at_once * 4];
    for (size_t n = 0; count > 0; count -= n, from += n * 4, to += n * 3) {
        n = std::min(count, at_once);
        convert_row(from, converted, n * 4 - 1);
        pack_pixels(converted, to, n);
    }
}
// Codes become whole numbers, `zero` becomes 0.
void centre_row(const uint8_t* from, uint8_t zero, float* to, size_t count) {
    dequantise_row(from, {1, zero, false}, to, count);
}
void centre_row(const uint8_t* from, uint8_t zero, int16_t* to, size_t count) {
    widen_row(from, zero, to, count);
}
template <typename Dst>
void copy_pixels(const uint8_t* from, ptrdiff_t from_step, Dst* to, ptrdiff_t to_step, size_t count,
                 size_t channels, uint8_t zero) {
    const bool dense = from_step == to_step && from_step == static_cast<ptrdiff_t>(channels);
    const size_t rows = dense ? 1 : count, columns = dense ? count * channels : channels;
    for (size_t i = 0; i < rows; ++i, from += from_step, to += to_step)
        centre_row(from, zero, to, columns);
}

template <typename Src, typename Copy>
void copy_source(const ConvShape& s, const PictureOf<const Src>& src, size_t y, size_t rows,
                 Copy* to) {
    const size_t pixel = copy_pixel(s, src.pixel), row = copy_width(s) * pixel;
    Copy none{};
    if constexpr (std::is_same_v<Copy, uint8_t>) none = s.source_zero;
    const Part h = on_picture(static_cast<int64_t>(y * s.stride_height) - s.pad_top,
                              copy_height(s, rows), s.in_height);
    const Part w = on_picture(-s.pad_left, copy_width(s), s.in_width);
    to = std::fill_n(to, h.before * row, none);
    for (size_t r = 0; r < h.count; ++r) {
        const auto* from = src.data + (h.first + r) * src.row + w.first * src.pixel;
        to = std::fill_n(to, w.before * pixel, none);
        const auto step = static_cast<ptrdiff_t>(src.pixel), next = static_cast<ptrdiff_t>(pixel);
        if constexpr (std::is_same_v<Src, uint8_t> && !std::is_same_v<Copy, uint8_t>)
            copy_pixels(from, step, to, next, w.count, s.in_channels, s.source_zero);
        else
            copy_pixels(from, step, to, next, w.count, s.in_channels);
        to = std::fill_n(to + w.count * pixel, w.after * pixel, none);
    }
    std::fill_n(to, h.after * row, none);
}

void conv_copy(const ConvShape& inner, const SrcPicture& copy, const std::byte* packed,
               const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
               size_t rows) {
    const auto* const floats = reinterpret_cast<const float*>(packed);
    if (inner.depthwise)
        conv_depthwise(inner, {copy.data, copy.row, copy.pixel}, Element::f32, floats, epilogue,
                       residual, dst, 0, rows);
    else
        conv_direct(inner, copy, floats, epilogue, residual, dst, 0, rows);
}
void conv_copy(const ConvShape& inner, const Bf16Picture& copy, const std::byte* packed,
               const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
               size_t rows) {
    conv_pairs(inner, copy, packed, epilogue, residual, dst, 0, rows);
}
void conv_copy(const ConvShape& inner, const CodePicture& copy, const std::byte* packed,
               const Epilogue& epilogue, const AnySrcPicture& /*residual*/,
               const AnyDstPicture& dst, size_t rows) {
    conv_quads(inner, copy, packed, epilogue, dst, 0, rows);
}
void conv_copy(const ConvShape& inner, const PictureOf<const int16_t>& copy,
               const std::byte* packed, const Epilogue& epilogue, const AnySrcPicture& /*residual*/,
               const AnyDstPicture& dst, size_t rows) {
    conv_code_pairs(inner, copy, packed, epilogue, dst, 0, rows);
}

size_t copy_bytes(const ConvShape& s) {
    constexpr size_t line = 64;
    const size_t bytes = copy_height(s, rows_at_once(s)) * widest_row(s) * copy_size(s);
    return (bytes + line - 1) / line * line;
}

// All rows of a copy as one row of a picture whose rows overlap; `inner` has its padding.
template <typename Copy>
void run_line(const ConvShape& s, ConvShape inner, size_t rows, const std::byte* packed,
              const Epilogue& epilogue, const PictureOf<const Copy>& copy, std::byte* made,
              const ByteRows& dst) {
    inner.in_height = static_cast<uint32_t>(copy_height(s, 1));
    inner.in_width = static_cast<uint32_t>(rows * copy_width(s));
    inner.out_height = 1;
    inner.out_width = static_cast<uint32_t>(line_pixels(s, rows));
    const size_t pixel = s.out_channels * size_of(s.result);
    conv_copy(inner, copy, packed, epilogue, {nullptr, 0, 0},
              {made, inner.out_width * s.out_channels, s.out_channels}, 1);
    for (size_t r = 0; r < rows; ++r) {
        const std::byte* const from = made + r * copy_width(s) * pixel;
        for (size_t x = 0; x < s.out_width; ++x)
            std::memcpy(dst.data + r * dst.row + x * dst.pixel, from + x * pixel, pixel);
    }
}

template <typename Src, typename Copy>
void run(const ConvShape& shape, const PictureOf<const Src>& src, const std::byte* packed,
         const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
         std::byte* scratch, size_t first, size_t last) {
    ConvShape inner = shape;
    inner.pad_top = inner.pad_left = 0;
    inner.in_width = static_cast<uint32_t>(copy_width(shape));
    auto* const copy = reinterpret_cast<Copy*>(scratch);
    const ByteRows to = byte_rows(dst, shape.result), add = byte_rows(residual, shape.source);
    const size_t at_once = rows_at_once(shape), pixel = copy_pixel(shape, src.pixel);
    const PictureOf<const Copy> picture{copy, copy_width(shape) * pixel, pixel};
    for (size_t y = first; y < last; y += at_once) {
        const size_t rows = std::min(at_once, last - y);
        copy_source(shape, src, y, rows, copy);
        std::byte* const out = to.at(static_cast<int64_t>(y), 0);
        if (joins_rows(shape) && !residual.data) {
            run_line(shape, inner, rows, packed, epilogue, picture, scratch + copy_bytes(shape),
                     {out, to.row, to.pixel});
            continue;
        }
        inner.in_height = static_cast<uint32_t>(copy_height(shape, rows));
        inner.out_height = static_cast<uint32_t>(rows);
        conv_copy(inner, picture, packed, epilogue,
                  {add.at(static_cast<int64_t>(y), 0), residual.row, residual.pixel},
                  {out, dst.row, dst.pixel}, rows);
    }
}

// Whether no part of a kernel is beyond the picture.
bool lies_on_picture(const ConvShape& s) {
    const auto fits = [](uint32_t in, uint32_t out, uint32_t stride, uint32_t kernel,
                         uint32_t dilation, int32_t pad) {
        return pad == 0 && (out - 1) * stride + (kernel - 1) * dilation < in;
    };
    return fits(s.in_height, s.out_height, s.stride_height, s.kernel_height, s.dilation_height,
                s.pad_top) &&
           fits(s.in_width, s.out_width, s.stride_width, s.kernel_width, s.dilation_width,
                s.pad_left);
}

// The same, and the words of a pixel are its own: of 8 bytes for Arm's matrix instructions.
bool lies_in_words(const ConvShape& s) {
    const size_t word =
        (HWY_ARCH_ARM_A64 ? sizeof(uint64_t) : sizeof(uint32_t)) / size_of(s.source);
    return (s.in_channels % word == 0 || s.kernel_width == 1) && lies_on_picture(s);
}

}  // namespace

bool prefers_padded(const ConvShape& s) {
    const CopyType copy = copy_of(s);
    if (copy != CopyType::f32) {
        const bool is_same = (copy == CopyType::bf16 && s.source == Element::bf16) ||
                             (copy == CopyType::u8 && s.source == Element::u8);
        return !is_same || !lies_in_words(s);
    }
    if (s.depthwise)
        return s.source == Element::u8 || (prefers_padded_depthwise(s) && !lies_on_picture(s));
    if (s.source != Element::f32) return true;
    // Dilated kernels have no tiles along a row; for them the copy lost.
    if (s.kernel_width == 1 || s.dilation_width > 1) return false;
    // Columns where a part of the kernel lies beyond the picture.
    const size_t edge = copy_width(s) - std::min<size_t>(copy_width(s), s.in_width);
    return edge * 16 > s.out_width * s.stride_width;
}

size_t padded_scratch_size(const ConvShape& s) {
    const size_t made = joins_rows(s) ? line_pixels(s, rows_at_once(s)) * s.out_channels : 0;
    return copy_bytes(s) + (made * size_of(s.result) + 3) / 4 * 4;
}

void conv_padded(const ConvShape& shape, const AnySrcPicture& src, const std::byte* packed,
                 const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                 std::byte* scratch, size_t first, size_t last) {
    const auto from = [&]<typename Src>(const Src* data) {
        const PictureOf<const Src> picture{data, src.row, src.pixel};
        const auto to = [&]<typename Copy>() {
            run<Src, Copy>(shape, picture, packed, epilogue, residual, dst, scratch, first, last);
        };
        switch (copy_of(shape)) {
            case CopyType::f32:
                return to.template operator()<float>();
            case CopyType::bf16:
                if constexpr (!std::is_same_v<Src, uint8_t>) to.template operator()<bf16>();
                return;
            case CopyType::u8:
                if constexpr (std::is_same_v<Src, uint8_t>) to.template operator()<uint8_t>();
                return;
            case CopyType::i16:
                if constexpr (std::is_same_v<Src, uint8_t>) to.template operator()<int16_t>();
        }
    };
    switch (shape.source) {
        case Element::f32:
            return from(static_cast<const float*>(src.data));
        case Element::bf16:
            return from(static_cast<const bf16*>(src.data));
        case Element::u8:
            return from(static_cast<const uint8_t*>(src.data));
    }
}

}  // namespace vartml::kernels
