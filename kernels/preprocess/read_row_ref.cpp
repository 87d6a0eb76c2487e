// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/preprocess/read_row.h"

namespace vartml::kernels {
namespace {

int32_t saturate(int32_t x) {
    return std::clamp(x, -32768, 32767);
}
int32_t multiply(int32_t x, int32_t factor) {
    return (x * factor + 0x4000) >> 15;
}
int16_t colour(int32_t x) {
    return static_cast<int16_t>(std::clamp<int32_t>(x, 0, colour_max));
}

uint32_t word(const uint8_t* plane, size_t i) {
    uint16_t w;
    std::memcpy(&w, plane + 2 * i, 2);
    return w;
}

// Samples of one pixel: y * 128, and chroma with its middle at 0, times 256.
struct Yuv {
    int32_t y, first, second;
};

Yuv read_yuv(RowKind kind, const uint8_t* const* src, size_t x) {
    const auto chroma = [](uint32_t sample) { return static_cast<int32_t>(sample << 8) - 32768; };
    const auto chroma_10 = [](uint32_t sample) {
        return static_cast<int32_t>(sample << 6) - 32768;
    };
    const size_t half = x / 2;
    switch (kind) {
        case RowKind::nv_half:
            return {src[0][x] << 7, chroma(src[1][2 * half]), chroma(src[1][2 * half + 1])};
        case RowKind::nv_full:
            return {src[0][x] << 7, chroma(src[1][2 * x]), chroma(src[1][2 * x + 1])};
        case RowKind::planar_half:
            return {src[0][x] << 7, chroma(src[1][half]), chroma(src[2][half])};
        case RowKind::nv_half_10:
            return {static_cast<int32_t>(word(src[0], x) >> 6 << 5),
                    chroma_10(word(src[1], 2 * half) >> 6),
                    chroma_10(word(src[1], 2 * half + 1) >> 6)};
        case RowKind::planar_half_10:
            return {static_cast<int32_t>((word(src[0], x) & 0x3ff) << 5),
                    chroma_10(word(src[1], half) & 0x3ff), chroma_10(word(src[2], half) & 0x3ff)};
        case RowKind::yuyv:
            return {src[0][2 * x] << 7, chroma(src[0][4 * half + 1]), chroma(src[0][4 * half + 3])};
        default:
            return {src[0][2 * x + 1] << 7, chroma(src[0][4 * half]), chroma(src[0][4 * half + 2])};
    }
}

// Bytes of one RGB pixel, in the order of the source.
std::array<int32_t, 4> read_rgb(RowKind kind, const uint8_t* const* src, size_t x) {
    switch (kind) {
        case RowKind::rgb3:
            return {src[0][3 * x], src[0][3 * x + 1], src[0][3 * x + 2], 0};
        case RowKind::rgb4:
            return {src[0][4 * x], src[0][4 * x + 1], src[0][4 * x + 2], src[0][4 * x + 3]};
        case RowKind::rgb_planar:
            return {src[0][x], src[1][x], src[2][x], 0};
        default:
            return {src[0][x], 0, 0, 0};
    }
}

}  // namespace

void read_row_ref(const RowFormat& f, const uint8_t* const* src, size_t first, size_t count,
                  int16_t* const* dst) {
    for (size_t i = 0; i < count; ++i) {
        if (f.kind < RowKind::rgb3) {
            const Yuv p = read_yuv(f.kind, src, first + i);
            const int32_t luma = multiply(p.y - f.y_offset, f.y_factor);
            if (f.luma_only) {
                dst[0][i] = colour(luma);
                continue;
            }
            const int32_t green = saturate(multiply(p.first, f.green_first_factor) +
                                           multiply(p.second, f.green_second_factor));
            dst[f.planes[0]][i] = colour(saturate(luma + multiply(p.first, f.first_factor)));
            dst[f.planes[1]][i] = colour(saturate(luma + green));
            dst[f.planes[2]][i] = colour(saturate(luma + multiply(p.second, f.second_factor)));
            continue;
        }
        const std::array<int32_t, 4> p = read_rgb(f.kind, src, first + i);
        if (f.kind == RowKind::grey) {
            dst[0][i] = static_cast<int16_t>(p[0] << colour_shift);
            continue;
        }
        const size_t bytes = f.kind == RowKind::rgb4 ? 4 : 3;
        int32_t luma = 0;
        for (size_t b = 0; b < bytes; ++b) {
            if (f.luma_only)
                luma += multiply(p[b] << colour_shift, f.luma_weights[b]);
            else
                dst[f.planes[b]][i] = static_cast<int16_t>(p[b] << colour_shift);
        }
        if (f.luma_only) dst[0][i] = colour(luma);
    }
}

}  // namespace vartml::kernels
