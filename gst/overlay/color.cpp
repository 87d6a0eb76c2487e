// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/color.h"

#include <array>
#include <cmath>

namespace vartml::gst::overlay {
namespace {

// ours: 20 hues and lightnesses far from each other, none so dark that it is lost on a shadow
constexpr std::array<Rgba, 20> palette = {{
    {0xff, 0x4d, 0x4d}, {0x3c, 0xb4, 0x4b}, {0xff, 0xe1, 0x19}, {0x4d, 0x8b, 0xff},
    {0xff, 0x8c, 0x1a}, {0xb6, 0x4f, 0xe0}, {0x46, 0xf0, 0xf0}, {0xf0, 0x50, 0xe6},
    {0xbf, 0xef, 0x45}, {0xfa, 0xa0, 0xb4}, {0x1a, 0xb0, 0xa0}, {0xc8, 0xa0, 0xff},
    {0xc4, 0x7a, 0x3a}, {0xff, 0xd8, 0xa0}, {0xe0, 0x30, 0x70}, {0x80, 0xff, 0xb0},
    {0xa8, 0xa8, 0x30}, {0x80, 0xc8, 0xff}, {0x8c, 0x78, 0xff}, {0xd8, 0xd8, 0xd8},
}};

// FNV-1a of 32 bits.
uint32_t hash(std::string_view text) {
    uint32_t value = 2166136261u;
    for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 16777619u;
    return value;
}

}  // namespace

Rgba from_argb(uint32_t argb) {
    return {static_cast<uint8_t>(argb >> 16), static_cast<uint8_t>(argb >> 8),
            static_cast<uint8_t>(argb), static_cast<uint8_t>(argb >> 24)};
}

Rgba with_opacity(Rgba color, double opacity) {
    color.a = static_cast<uint8_t>(std::lround(color.a * opacity));
    return color;
}

Rgba palette_color(std::string_view label) {
    return palette[hash(label) % palette.size()];
}

// 7 and 20 have no common factor: 20 objects that came one after the other have 20 colors, and
// neighbours are not alike.
Rgba palette_color(uint64_t id) {
    return palette[id % palette.size() * 7 % palette.size()];
}

Rgba text_color(Rgba ground) {
    const int light = 299 * ground.r + 587 * ground.g + 114 * ground.b;
    return light > 140'000 ? Rgba{0, 0, 0} : Rgba{255, 255, 255};
}

}  // namespace vartml::gst::overlay
