// SPDX-License-Identifier: Apache-2.0
// Convolution of fp32 and bf16 pictures with channels last, with bias, activation and residual, and
// of codes.
// Pictures may be channel slices of wider ones: the distance between pixels is free.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/ops/activation.h"
#include "kernels/types.h"

namespace vartml::kernels {

struct ConvShape {
    uint32_t in_height = 0, in_width = 0, in_channels = 0;
    uint32_t out_height = 0, out_width = 0, out_channels = 0;
    uint32_t kernel_height = 1, kernel_width = 1;
    uint32_t stride_height = 1, stride_width = 1;
    uint32_t dilation_height = 1, dilation_width = 1;
    int32_t pad_top = 0, pad_left = 0;
    bool depthwise = false;         // one filter per channel; in_channels = out_channels
    Element source = Element::f32;  // what the picture and the residual are made of
    Element result = Element::f32;
    Element factors = Element::f32;  // bf16: may be rounded to bf16 before they are multiplied
    // Of a source of codes, whose result and factors are codes, too: what stands for 0 and lies
    // around the picture.
    uint8_t source_zero = 0;
    bool exact = false;  // fp32 of whole numbers, whose sums stay whole: no minimal filtering
};

// A picture in memory, distances in elements: row y, pixel x, channel c at data[y·row + x·pixel +
// c].
template <typename T>
struct PictureOf {
    T* data;
    size_t row, pixel;
};
using SrcPicture = PictureOf<const float>;
using DstPicture = PictureOf<float>;
using Bf16Picture = PictureOf<const bf16>;
using CodePicture = PictureOf<const uint8_t>;
// Of the elements that a shape says.
using AnySrcPicture = PictureOf<const void>;
using AnyDstPicture = PictureOf<void>;

// The same with distances in bytes.
struct ByteRows {
    std::byte* data;
    size_t row, pixel;
    // nullptr where there is no picture.
    std::byte* at(int64_t y, int64_t x) const {
        return data ? data + y * static_cast<int64_t>(row) + x * static_cast<int64_t>(pixel)
                    : nullptr;
    }
};
template <typename T>
ByteRows byte_rows(const PictureOf<T>& picture, Element element) {
    const size_t size = size_of(element);
    return {static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(picture.data))),
            picture.row * size, picture.pixel * size};
}

// Whether there is code for factors of bf16 on this processor, which is fast where it multiplies
// them natively. Only there `factors` may be bf16.
bool has_bf16_pairs();
// Whether there is code for pictures of codes on this processor, faster than the same in fp32. Only
// there pictures may be codes.
bool has_code_products();

// The way a shape goes, a rule on the shape alone: in fp32 in place or by minimal filtering, or
// with factors that are rounded to bf16, or with codes: as they are, or as numbers of 16 bits,
// these in place or by minimal filtering.
enum class ConvMethod : uint8_t {
    direct,
    winograd4,  // tiles of 4x4 and 6x6 results
    winograd6,
    bf16_pairs,
    code_quads,
    code_pairs,
    code_winograd
};
ConvMethod conv_method(const ConvShape& shape);
const char* name_of(ConvMethod method);

// Bytes of the packed weights and bias.
size_t packed_conv_size(const ConvShape& shape);

// Packs `weights` [out][in][kh][kw] (depthwise [out][1][kh][kw]) and `bias` [out] (nullptr: zeros)
// for this processor. `packed` is aligned to 4 bytes. Of codes both are whole numbers: weights from
// -128 to 127, biases in products of steps.
void pack_conv(const ConvShape& shape, const float* weights, const float* bias, std::byte* packed);

// Into how many units a picture's work can be cut, and the bytes of scratch memory, aligned to 4,
// that a call of conv() needs.
size_t conv_units(const ConvShape& shape);
size_t conv_scratch_size(const ConvShape& shape);

// Units first…last-1 of the output. `residual` (data nullptr: none) has the size of the output. The
// output overlaps neither input nor residual. Sums are made in fp32, each independently of how the
// units are shared among calls; a bf16 result is rounded once, to the nearest, after activations
// that are within 4e-4 of their size. Sums of codes are exact; Epilogue::codes makes codes of them,
// without a residual.
void conv(const ConvShape& shape, const AnySrcPicture& src, const std::byte* packed,
          const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
          std::byte* scratch, size_t first, size_t last);

// The same in plain loops, from unpacked weights; all rows, all in fp32.
void conv_ref(const ConvShape& shape, const SrcPicture& src, const float* weights,
              const float* bias, const Epilogue& epilogue, const SrcPicture& residual,
              const DstPicture& dst);

}  // namespace vartml::kernels
