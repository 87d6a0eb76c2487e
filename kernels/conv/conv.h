// SPDX-License-Identifier: Apache-2.0
// Convolution of fp32 pictures with channels last, with bias, activation and residual. Pictures may
// be channel slices of wider ones: the distance between pixels is free.
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
    bool depthwise = false;    // one filter per channel; in_channels = out_channels
    bool bf16_source = false;  // the source is a Bf16Picture
};

// A picture in memory, distances in elements: row y, pixel x, channel c at data[y·row + x·pixel +
// c].
struct SrcPicture {
    const float* data;
    size_t row, pixel;
};
struct Bf16Picture {
    const bf16* data;
    size_t row, pixel;
};
struct DstPicture {
    float* data;
    size_t row, pixel;
};

// The way a shape goes, a rule on the shape alone.
enum class ConvMethod { direct, winograd };
ConvMethod conv_method(const ConvShape& shape);
const char* name_of(ConvMethod method);

// Floats of the packed weights and bias.
size_t packed_conv_size(const ConvShape& shape);

// Packs `weights` [out][in][kh][kw] (depthwise [out][1][kh][kw]) and `bias` [out] (nullptr: zeros)
// for this processor.
void pack_conv(const ConvShape& shape, const float* weights, const float* bias, float* packed);

// Into how many units a picture's work can be cut, and the floats of scratch memory that a call of
// conv() needs.
size_t conv_units(const ConvShape& shape);
size_t conv_scratch_size(const ConvShape& shape);

// Units first…last-1 of the output. `residual` (data nullptr: none) has the size of the output. The
// output overlaps neither input nor residual. Sums are made in fp32, each independently of how the
// units are shared among calls.
void conv(const ConvShape& shape, const SrcPicture& src, const float* packed,
          const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
          float* scratch, size_t first, size_t last);
// The same where shape.bf16_source.
void conv(const ConvShape& shape, const Bf16Picture& src, const float* packed,
          const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
          float* scratch, size_t first, size_t last);

// The same in plain loops, from unpacked weights; all rows.
void conv_ref(const ConvShape& shape, const SrcPicture& src, const float* weights,
              const float* bias, const Epilogue& epilogue, const SrcPicture& residual,
              const DstPicture& dst);

}  // namespace vartml::kernels
