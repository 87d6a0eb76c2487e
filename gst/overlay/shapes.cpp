// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/shapes.h"

#include <cmath>
#include <cstring>

namespace vartml::gst::overlay {
namespace {

constexpr float far_away = 1 << 24;  // a float's last whole number without gap

int whole(float value) {
    return static_cast<int>(std::clamp(value, -far_away, far_away));
}

// A stroke, prepared for the distances of many pixels.
class Capsule {
public:
    explicit Capsule(const Stroke& s) : stroke_(s), dx_(s.x1 - s.x0), dy_(s.y1 - s.y0) {
        const float square = dx_ * dx_ + dy_ * dy_;
        inverse_ = square > 0 ? 1 / square : 0;
        length_ = std::sqrt(square);
    }

    // Pixels of rows between `top` and `bottom` that may be covered: those near the endless line.
    void narrow(float top, float bottom, int& x0, int& x1) const {
        if (std::abs(dy_) < 1e-3f) return;
        const float slope = dx_ / dy_;
        const float a = stroke_.x0 + (top - stroke_.y0) * slope;
        const float b = stroke_.x0 + (bottom - stroke_.y0) * slope;
        const float reach = (stroke_.radius + 1) * length_ / std::abs(dy_) + 1;
        x0 = std::max(x0, whole(std::floor(std::min(a, b) - reach)));
        x1 = std::min(x1, whole(std::ceil(std::max(a, b) + reach)));
    }

    uint8_t coverage(float x, float y) const {
        const float px = x - stroke_.x0, py = y - stroke_.y0;
        const float t = std::clamp((px * dx_ + py * dy_) * inverse_, 0.f, 1.f);
        const float distance = std::hypot(px - t * dx_, py - t * dy_);
        const float inside = std::clamp(stroke_.radius + 0.5f - distance, 0.f, 1.f);
        return static_cast<uint8_t>(inside * 255 + 0.5f);
    }

private:
    const Stroke& stroke_;
    float dx_, dy_, inverse_, length_;
};

}  // namespace

void fill(Canvas& canvas, const Rect& rect, Rgba color) {
    canvas.cover(rect, color, [](int, int x0, int x1, uint8_t* coverage) {
        std::memset(coverage, 255, static_cast<size_t>(x1 - x0));
    });
}

std::array<Rect, 4> sides(const Outline& outline) {
    const Rect& r = outline.rect;
    const int line = std::min({outline.line, (r.w + 1) / 2, (r.h + 1) / 2});
    const int between = r.h - 2 * line;
    return {{{r.x, r.y, r.w, line},
             {r.x, std::max(r.bottom() - line, r.y + line), r.w, std::min(line, r.h - line)},
             {r.x, r.y + line, line, between},
             {std::max(r.right() - line, r.x + line), r.y + line, std::min(line, r.w - line),
              between}}};
}

// In parts that end between samples of 4:2:0, so that each takes its color at once.
void draw(Canvas& canvas, const Outline& outline) {
    const Rect& r = outline.rect;
    const int line = outline.line;
    const auto row = [&](int y, int x0, int x1, uint8_t* coverage) {
        const bool whole = y < r.y + line || y >= r.bottom() - line;
        std::memset(coverage, whole ? 255 : 0, static_cast<size_t>(x1 - x0));
        if (whole) return;
        for (int x = x0; x < std::min(x1, r.x + line); ++x) coverage[x - x0] = 255;
        for (int x = std::max(x0, r.right() - line); x < x1; ++x) coverage[x - x0] = 255;
    };
    const auto part = [&](int x0, int y0, int x1, int y1) {
        canvas.cover({x0, y0, x1 - x0, y1 - y0}, outline.color, row);
    };
    const int left = (r.x + line + 1) & ~1, right = (r.right() - line) & ~1;
    const int top = (r.y + line + 1) & ~1, bottom = (r.bottom() - line) & ~1;
    if (left >= right || top >= bottom) return part(r.x, r.y, r.right(), r.bottom());
    part(r.x, r.y, r.right(), top);
    part(r.x, top, left, bottom);
    part(right, top, r.right(), bottom);
    part(r.x, bottom, r.right(), r.bottom());
}

Rect bounds(const Stroke& s) {
    const float reach = s.radius + 1;
    const int x0 = whole(std::floor(std::min(s.x0, s.x1) - reach));
    const int y0 = whole(std::floor(std::min(s.y0, s.y1) - reach));
    const int x1 = whole(std::ceil(std::max(s.x0, s.x1) + reach));
    const int y1 = whole(std::ceil(std::max(s.y0, s.y1) + reach));
    return {x0, y0, x1 - x0, y1 - y0};
}

void draw(Canvas& canvas, const Stroke& stroke) {
    // In bands, so that a slanting line does not visit its whole bounding box; they begin at
    // multiples of 2, so that no sample of 4:2:0 is in two.
    constexpr int band = 16;
    const Capsule capsule(stroke);
    const Rect all = intersection(bounds(stroke), {0, 0, canvas.width(), canvas.height()});
    for (int top = all.y / band * band; top < all.bottom(); top += band) {
        int from = all.x, to = all.right();
        capsule.narrow(static_cast<float>(top), static_cast<float>(top + band), from, to);
        const Rect part = intersection(all, {from, top, to - from, band});
        canvas.cover(part, stroke.color, [&](int y, int x0, int x1, uint8_t* coverage) {
            for (int x = x0; x < x1; ++x) {
                coverage[x - x0] =
                    capsule.coverage(static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f);
            }
        });
    }
}

}  // namespace vartml::gst::overlay
