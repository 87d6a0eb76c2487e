// SPDX-License-Identifier: Apache-2.0
// Points, boxes, quadrangles, and the perspective map of the unit square onto one.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

namespace demo {

struct Point {
    double x = 0, y = 0;
};

// Corners, half-open, in pixels.
struct Box {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    double area() const { return std::max(0.0, x1 - x0) * std::max(0.0, y1 - y0); }
};

inline Box intersection(const Box& a, const Box& b) {
    return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

// Intersection over union; 0 where one of them is empty.
inline double iou(const Box& a, const Box& b) {
    const double common = intersection(a, b).area();
    return common > 0 ? common / (a.area() + b.area() - common) : 0;
}

// Corners in the order of the unit square: (0,0) (1,0) (1,1) (0,1).
using Quad = std::array<Point, 4>;

inline Box bounds(const Quad& q) {
    Box box{q[0].x, q[0].y, q[0].x, q[0].y};
    for (const Point& p : q) {
        box = {std::min(box.x0, p.x), std::min(box.y0, p.y), std::max(box.x1, p.x),
               std::max(box.y1, p.y)};
    }
    return box;
}

// A projective map of the plane, row by row.
struct Homography {
    std::array<double, 9> m{1, 0, 0, 0, 1, 0, 0, 0, 1};

    Point operator()(Point p) const {
        const double w = m[6] * p.x + m[7] * p.y + m[8];
        return {(m[0] * p.x + m[1] * p.y + m[2]) / w, (m[3] * p.x + m[4] * p.y + m[5]) / w};
    }

    // The map back, up to a factor that the division removes.
    Homography inverse() const {
        return {{m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                 m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                 m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]}};
    }
};

// Carries the unit square onto `q`, which must be convex.
inline Homography unit_square_to(const Quad& q) {
    const double sx = q[0].x - q[1].x + q[2].x - q[3].x, sy = q[0].y - q[1].y + q[2].y - q[3].y;
    const double ax = q[1].x - q[2].x, ay = q[1].y - q[2].y;
    const double bx = q[3].x - q[2].x, by = q[3].y - q[2].y;
    const double det = ax * by - bx * ay;
    const double g = (sx * by - bx * sy) / det, h = (ax * sy - sx * ay) / det;
    return {{q[1].x - q[0].x + g * q[1].x, q[3].x - q[0].x + h * q[3].x, q[0].x,
             q[1].y - q[0].y + g * q[1].y, q[3].y - q[0].y + h * q[3].y, q[0].y, g, h, 1}};
}

}  // namespace demo
