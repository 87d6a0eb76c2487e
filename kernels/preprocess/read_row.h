// SPDX-License-Identifier: Apache-2.0
// One row of a video frame as planes of colour values, whatever the pixel format.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// A colour value in steps of 1/64: 0 is black, 255 * 64 is full. Room for whole vectors is left
// after each row.
inline constexpr int colour_shift = 6;
inline constexpr int16_t colour_max = 255 << colour_shift;
inline constexpr size_t row_slack = 128;

// How samples lie in a row. Chroma of "half" kinds is shared by pixels 2k and 2k + 1.
enum class RowKind : uint8_t {
    nv_half,         // Y; pairs of chroma
    nv_full,         // Y; pairs of chroma per pixel
    planar_half,     // Y; first chroma; second chroma
    nv_half_10,      // nv_half of 16 bits, value in the upper 10
    planar_half_10,  // planar_half of 16 bits, value in the lower 10
    yuyv,            // Y0 first Y1 second
    uyvy,            // first Y0 second Y1
    rgb3,            // three bytes per pixel
    rgb4,            // four bytes per pixel
    rgb_planar,      // three planes
    grey,            // one byte per pixel
};

// What a row becomes. Fixed-point factors are in steps of 2^-15.
//   y' = y * 128 - y_offset, c' = (c - 128) * 256, both for 10 bits with two more bits of precision
//   luma   = y' * y_factor                                    (fixed-point product, rounded)
//   colour = clamp(luma + first' * a + second' * b, 0, 255)   (each product rounded, sums saturated
//   to 16 bits)
struct RowFormat {
    RowKind kind = RowKind::grey;
    bool luma_only = false;  // one plane: the luma of YUV, the weighted sum of RGB
    int16_t y_offset = 0, y_factor = 16384;
    int16_t first_factor = 0, second_factor = 0;  // of the colour that this chroma alone raises
    int16_t green_first_factor = 0, green_second_factor = 0;  // of green
    // Plane of dst that gets each result. YUV: the colour of first, green, the colour of second.
    // RGB: each byte or plane of the source; plane 3 is thrown away.
    std::array<uint8_t, 4> planes{0, 1, 2, 3};
    std::array<int16_t, 4> luma_weights{};  // RGB with luma_only: of each byte or plane of the
                                            // source; sum 32768 at most
};

// Reads `count` pixels from pixel `first` (even for kinds that share chroma) of the row whose
// planes begin at `src`.
//   src  up to three planes, of the frame row and of the chroma row that belongs to it; no
//   alignment dst  planes of colour values; 4 planes for rgb4, else 3, or 1 for grey and luma_only;
//   each has room for
//        count + row_slack values, of which those from `count` on are undefined afterwards
// Reads nothing beyond the samples of these pixels. Every instruction set gives the values of
// read_row_ref.
void read_row(const RowFormat& format, const uint8_t* const* src, size_t first, size_t count,
              int16_t* const* dst);
void read_row_ref(const RowFormat& format, const uint8_t* const* src, size_t first, size_t count,
                  int16_t* const* dst);

}  // namespace vartml::kernels
