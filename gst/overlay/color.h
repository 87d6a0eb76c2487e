// SPDX-License-Identifier: Apache-2.0
// Colours of what is drawn.
#pragma once
#include <cstdint>
#include <string_view>

namespace vartml::gst::overlay {

struct Rgba {
    uint8_t r = 0, g = 0, b = 0, a = 255;
    bool operator==(const Rgba&) const = default;
};

// 0xaarrggbb, as GStreamer's elements write colours.
Rgba from_argb(uint32_t argb);
// The same colour, `opacity` (0 to 1) as opaque as it was.
Rgba with_opacity(Rgba color, double opacity);

// One of 20 colours that are told apart from each other, for a name or a number: the same in every
// run and on every machine.
Rgba palette_color(std::string_view label);
Rgba palette_color(uint64_t id);

// Black or white, whichever is read better on this ground.
Rgba text_color(Rgba ground);

}  // namespace vartml::gst::overlay
