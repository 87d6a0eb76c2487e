// SPDX-License-Identifier: Apache-2.0
// RGB pictures and the one way of drawing that the scene needs: a texture onto a quadrangle.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipelines/apps/demo/geometry.h"

namespace demo {

struct Colour {
    uint8_t r = 0, g = 0, b = 0;
};

// Dense RGB, 3 bytes per pixel.
struct Picture {
    int width = 0, height = 0;
    std::vector<uint8_t> rgb;

    Picture() = default;
    Picture(int w, int h, Colour fill = {});
    uint8_t* at(int x, int y) { return &rgb[(static_cast<size_t>(y) * width + x) * 3]; }
    const uint8_t* at(int x, int y) const { return &rgb[(static_cast<size_t>(y) * width + x) * 3]; }
    // Clipped; corners half-open.
    void fill(int x0, int y0, int x1, int y1, Colour colour);
};

// A picture and its halves, quarters, ...: drawn small without shimmer.
class Texture {
public:
    explicit Texture(Picture picture);

    int width() const { return levels_.front().width; }
    int height() const { return levels_.front().height; }

    // Draws the texture onto `quad`, four samples per pixel, light times `gain`, and clips it to
    // `dst`.
    void draw(Picture& dst, const Quad& quad, double gain) const;

private:
    const Picture& level_for(const Quad& quad) const;
    std::vector<Picture> levels_;
};

// The part of `src` at (x, y) that fills `dst`; inside `src`.
void copy_window(const Picture& src, int x, int y, Picture& dst);

}  // namespace demo
