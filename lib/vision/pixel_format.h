// SPDX-License-Identifier: Apache-2.0
// What each pixel format looks like in memory.
#pragma once
#include <string_view>

#include <vartml/preprocess.h>

#include "kernels/preprocess/read_row.h"

namespace vartml {

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
