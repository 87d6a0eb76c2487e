// SPDX-License-Identifier: Apache-2.0
// What is drawn, as rows of coverage on a canvas.
#pragma once
#include <cstdint>
#include <span>

#include "gst/overlay/canvas.h"

namespace vartml::gst::overlay {

void fill(Canvas& canvas, const Rect& rect, Rgba color);

// The sides of a rectangle, `line` pixels inwards; its corners are drawn once.
struct Outline {
    Rect rect;
    int line = 1;
    Rgba color;
};
// Top, bottom, left, right; empty where the line fills the rectangle.
std::array<Rect, 4> sides(const Outline& outline);
void draw(Canvas& canvas, const Outline& outline);

// A line with round ends, or a disc when both ends are the same. Pixel (x, y) has its centre at
// (x + 0.5, y + 0.5). Edges are anti-aliased.
struct Stroke {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    float radius = 1;
    Rgba color;
};
// What it may cover.
Rect bounds(const Stroke& stroke);
void draw(Canvas& canvas, const Stroke& stroke);

}  // namespace vartml::gst::overlay
