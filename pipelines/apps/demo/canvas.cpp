// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/canvas.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace demo {

Picture::Picture(int w, int h, Colour colour)
    : width(w), height(h), rgb(static_cast<size_t>(w) * h * 3) {
    fill(0, 0, w, h, colour);
}

void Picture::fill(int x0, int y0, int x1, int y1, Colour colour) {
    x0 = std::max(x0, 0), y0 = std::max(y0, 0), x1 = std::min(x1, width), y1 = std::min(y1, height);
    for (int y = y0; y < y1; ++y) {
        for (int x = x0; x < x1; ++x) {
            uint8_t* p = at(x, y);
            p[0] = colour.r, p[1] = colour.g, p[2] = colour.b;
        }
    }
}

namespace {

Picture half(const Picture& src) {
    Picture dst(src.width / 2, src.height / 2);
    for (int y = 0; y < dst.height; ++y) {
        for (int x = 0; x < dst.width; ++x) {
            const uint8_t *a = src.at(2 * x, 2 * y), *b = src.at(2 * x, 2 * y + 1);
            for (int c = 0; c < 3; ++c) {
                dst.at(x, y)[c] = static_cast<uint8_t>((a[c] + a[c + 3] + b[c] + b[c + 3] + 2) / 4);
            }
        }
    }
    return dst;
}

double longest_side(const Quad& q) {
    double longest = 1;
    for (size_t i = 0; i < 4; ++i) {
        const Point &a = q[i], &b = q[(i + 1) % 4];
        longest = std::max(longest, std::hypot(a.x - b.x, a.y - b.y));
    }
    return longest;
}

// The pixels of row `y` that the quadrangle may touch.
std::pair<int, int> span_of(const Quad& quad, int y, int width) {
    double low = width, high = 0;
    auto take = [&](double x) { low = std::min(low, x), high = std::max(high, x); };
    for (size_t i = 0; i < 4; ++i) {
        const Point &a = quad[i], &b = quad[(i + 1) % 4];
        if (a.y >= y && a.y <= y + 1) take(a.x);
        for (const double edge : {y + 0.0, y + 1.0}) {
            if ((a.y < edge) != (b.y < edge)) take(a.x + (b.x - a.x) * (edge - a.y) / (b.y - a.y));
        }
    }
    return {std::max(0, static_cast<int>(std::floor(low))),
            std::min(width, static_cast<int>(std::ceil(high)))};
}

}  // namespace

Texture::Texture(Picture picture) {
    levels_.push_back(std::move(picture));
    while (std::min(levels_.back().width, levels_.back().height) >= 8) {
        levels_.push_back(half(levels_.back()));
    }
}

const Picture& Texture::level_for(const Quad& quad) const {
    // Two samples per pixel and axis are taken, so about two texels per pixel are wanted.
    const double wanted = 2 * longest_side(quad);
    size_t level = 0;
    while (level + 1 < levels_.size() &&
           std::max(levels_[level + 1].width, levels_[level + 1].height) >= wanted) {
        ++level;
    }
    return levels_[level];
}

void Texture::draw(Picture& dst, const Quad& quad, double gain) const {
    const Picture& src = level_for(quad);
    const std::array<double, 9> m = unit_square_to(quad).inverse().m;
    const Box box = bounds(quad);
    const int y0 = std::max(0, static_cast<int>(std::floor(box.y0)));
    const int y1 = std::min(dst.height, static_cast<int>(std::ceil(box.y1)));
    const int gain_256 = static_cast<int>(gain * 256);
    for (int y = y0; y < y1; ++y) {
        const auto [x0, x1] = span_of(quad, y, dst.width);
        for (int x = x0; x < x1; ++x) {
            int sum[3] = {0, 0, 0}, inside = 0;
            for (int i = 0; i < 4; ++i) {
                const double sx = x + 0.25 + 0.5 * (i & 1), sy = y + 0.25 + 0.5 * (i >> 1);
                const double w = 1 / (m[6] * sx + m[7] * sy + m[8]);
                const double u = (m[0] * sx + m[1] * sy + m[2]) * w;
                const double v = (m[3] * sx + m[4] * sy + m[5]) * w;
                if (!(u >= 0 && u < 1 && v >= 0 && v < 1)) continue;
                const uint8_t* texel =
                    src.at(static_cast<int>(u * src.width), static_cast<int>(v * src.height));
                for (int c = 0; c < 3; ++c) sum[c] += texel[c];
                ++inside;
            }
            uint8_t* out = dst.at(x, y);
            for (int c = 0; c < 3; ++c) {
                const int value = (sum[c] * gain_256 / 256 + out[c] * (4 - inside)) / 4;
                out[c] = static_cast<uint8_t>(std::min(value, 255));
            }
        }
    }
}

void copy_window(const Picture& src, int x, int y, Picture& dst) {
    assert(x >= 0 && y >= 0 && x + dst.width <= src.width && y + dst.height <= src.height);
    for (int row = 0; row < dst.height; ++row) {
        std::memcpy(dst.at(0, row), src.at(x, y + row), static_cast<size_t>(dst.width) * 3);
    }
}

}  // namespace demo
