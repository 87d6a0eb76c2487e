// SPDX-License-Identifier: Apache-2.0
// A mapped video frame of any format that is drawn into, or a bitmap of an overlay composition, as
// components (Y, U, V, R, G, B, alpha) that colours are laid over.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <gst/video/video.h>

namespace vartml::gst::overlay {

// Colours of what is drawn.

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

struct Rect {
    int x = 0, y = 0, w = 0, h = 0;
    int right() const { return x + w; }
    int bottom() const { return y + h; }
    bool empty() const { return w <= 0 || h <= 0; }
    bool operator==(const Rect&) const = default;
};
Rect intersection(const Rect& a, const Rect& b);

// Whether frames of the format can be drawn into.
bool can_draw(GstVideoFormat format);
// These formats.
std::span<const GstVideoFormat> drawable_formats();

// Every shape is rows of coverage (0 to 255 per pixel), and a canvas knows one way to lay a colour
// over them:
//   component = component + (colour - component) * coverage / 255, rounded to nearest.
// A component of 4:2:0 takes the mean coverage of the pixels that it stands for. An alpha component
// becomes more opaque, so that on a zeroed bitmap the result has premultiplied alpha. Components
// without coverage keep their value. Thread-safety: one thread at a time.
class Canvas {
public:
    // Layout, size and colour space of the frames to come. Requires a format that can be drawn.
    void set_format(const GstVideoInfo& info);
    // The frame that is drawn into: of this format and size, mapped for writing.
    void set_frame(const GstVideoFrame& frame);
    // Instead of the two above: rows of B, G, R, alpha.
    void set_bitmap(uint8_t* pixels, int width, int height, int stride_bytes);

    int width() const { return width_; }
    int height() const { return height_; }

    // Lays `color` over the part of `rect` that is inside. `row(y, x0, x1, coverage)` fills in the
    // coverage of pixels x0 to x1 - 1 of a row.
    template <typename Row>
    void cover(const Rect& rect, Rgba color, Row&& row);

    // Makes a mosaic of `rect`, which is inside: each component of a block gets the mean of its
    // covered samples. Blocks of `block` x `block` pixels begin at the rectangle's corner; both are
    // even, so that a sample of 4:2:0 is in one block. `covered` has a byte per pixel of the
    // rectangle, row by row, not 0 where it is covered; empty: all is. A sample of 4:2:0 is covered
    // with any of its pixels.
    void pixelate(const Rect& rect, int block, std::span<const uint8_t> covered);

private:
    struct Component {
        uint8_t* data = nullptr;
        ptrdiff_t stride = 0;
        int step = 1;       // bytes from one sample to the next
        bool half = false;  // one sample per 2x2 pixels
    };
    using Ink = std::array<uint8_t, 4>;  // a value per component

    void set_size(int width, int height);
    static void pixelate(const Component& c, const Rect& rect, const Rect& part,
                         std::span<const uint8_t> covered);
    Ink ink(Rgba color) const;
    // Of n pixels from even (x, y): rows y and y + 1, nullptr for one without coverage.
    void blend(int x, int y, int n, const std::array<const uint8_t*, 2>& rows, const Ink& ink);
    const uint8_t* mean(int x, int y, int n, const std::array<const uint8_t*, 2>& rows);
    static void fade(uint8_t* coverage, int n, uint8_t alpha);

    int width_ = 0, height_ = 0;
    unsigned num_components_ = 0;
    std::array<Component, 4> components_;
    std::array<std::array<double, 4>, 4> from_rgb_{};  // R, G, B, 1 to each component
    std::array<std::vector<uint8_t>, 2> rows_;
    std::vector<uint8_t> zeros_, means_;
};

template <typename Row>
void Canvas::cover(const Rect& rect, Rgba color, Row&& row) {
    const Rect r = intersection(rect, {0, 0, width_, height_});
    if (r.empty() || color.a == 0) return;
    const Ink values = ink(color);
    const int x0 = r.x & ~1, n = std::min((r.right() + 1) & ~1, width_) - x0;
    for (int y = r.y & ~1; y < r.bottom(); y += 2) {
        std::array<const uint8_t*, 2> rows{};
        for (int k = 0; k < 2; ++k) {
            if (y + k < r.y || y + k >= r.bottom()) continue;
            uint8_t* const coverage = rows_[k].data();
            coverage[0] = coverage[n - 1] = 0;  // what evens the ends
            row(y + k, r.x, r.right(), coverage + (r.x - x0));
            if (color.a < 255) fade(coverage, n, color.a);
            rows[k] = coverage;
        }
        blend(x0, y, n, rows, values);
    }
}

}  // namespace vartml::gst::overlay
