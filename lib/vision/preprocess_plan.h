// SPDX-License-Identifier: Apache-2.0
// Geometry of pre-processing: which part of the frame goes where, and which pixels make each model
// pixel.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <vartml/preprocess.h>

#include "kernels/preprocess/read_row.h"
#include "kernels/preprocess/resample.h"

namespace vartml {

// One axis: source pixels [first, first + length) become model pixels [offset, offset + scaled).
struct Axis {
    double first = 0, length = 0;
    uint32_t frame = 0, model = 0;  // sizes in pixels
    uint32_t scaled = 0, offset = 0;
    double ratio() const { return length / scaled; }
};

struct Geometry {
    Axis x, y;
    Affine to_frame() const;
};

// `region` lies in the frame and is not empty.
Geometry plan_geometry(const PictureInfo& picture, const Region& region, uint32_t model_width,
                       uint32_t model_height, const PreprocessOptions& options);

// Two neighbouring source pixels and the weight of the second in steps of 2^-15; weight 0 means the
// first alone.
struct Tap {
    uint32_t first = 0;
    int16_t weight = 0;
    bool operator==(const Tap&) const = default;
};
// Taps of all scaled pixels, with pixel centres at halves. Only pixels that the region touches are
// read.
std::vector<Tap> bilinear_taps(const Axis& axis);
std::vector<Tap> nearest_taps(const Axis& axis);

// Source pixels under each scaled pixel, weighted by the part that it covers; weights sum to 1.
struct AreaTaps {
    std::vector<kernels::Span> spans;
    std::vector<float> weights;
};
AreaTaps area_taps(const Axis& axis);

// What each pixel format looks like in memory.

struct PixelLayout {
    PixelFormat format;
    std::string_view name;
    kernels::RowKind kind;
    unsigned num_planes;
    unsigned chroma_rows_shift;  // rows of chroma = rows of luma >> shift
    std::string_view
        order;  // YUV: chroma in memory order, "UV" or "VU"; RGB: bytes or planes in memory order
};

// nullptr for PixelFormat::unknown.
const PixelLayout* find_pixel_layout(PixelFormat format);

constexpr bool is_yuv(kernels::RowKind kind) {
    return kind < kernels::RowKind::rgb3;
}
constexpr bool is_10_bit(kernels::RowKind kind) {
    return kind == kernels::RowKind::nv_half_10 || kind == kernels::RowKind::planar_half_10;
}

// How to read rows of `picture` as colours in the model's order; one plane for gray.
kernels::RowFormat row_format(const PictureInfo& picture, ChannelOrder channels);

}  // namespace vartml
