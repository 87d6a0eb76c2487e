// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/oriented.h"

#include <algorithm>
#include <cmath>

namespace vartml::vision {

namespace {

double cross(Point a, Point b) {
    return a.x * b.y - a.y * b.x;
}
double length(Point p) {
    return std::hypot(p.x, p.y);
}
Point operator-(Point a, Point b) {
    return {a.x - b.x, a.y - b.y};
}

// Half of a box's sides as vectors from its centre.
struct Axes {
    Point centre, along, across;
};

Axes axes_of(const Candidate& box) {
    const double c = std::cos(double(box.angle)), s = std::sin(double(box.angle));
    const double w = (double(box.x1) - box.x0) / 2, h = (double(box.y1) - box.y0) / 2;
    return {{(double(box.x0) + box.x1) / 2, (double(box.y0) + box.y1) / 2},
            {w * c, w * s},
            {-h * s, h * c}};
}

Quad quad_of(const Axes& axes) {
    const auto& [m, u, v] = axes;
    return {Point{m.x - u.x - v.x, m.y - u.y - v.y}, Point{m.x + u.x - v.x, m.y + u.y - v.y},
            Point{m.x + u.x + v.x, m.y + u.y + v.y}, Point{m.x - u.x + v.x, m.y - u.y + v.y}};
}

// A convex polygon; cutting a quad by four lines leaves at most eight corners.
struct Polygon {
    std::array<Point, 8> corners;
    size_t count = 0;
    void add(Point p) {
        if (count < corners.size()) corners[count++] = p;
    }
};

// What lies to the right of the line from `a` to `b` (inside, where quads are clockwise on a screen
// whose y points down).
Polygon cut(const Polygon& polygon, Point a, Point b) {
    Polygon kept;
    for (size_t i = 0; i < polygon.count; ++i) {
        const Point p = polygon.corners[i], q = polygon.corners[(i + 1) % polygon.count];
        const double side_p = cross(b - a, p - a), side_q = cross(b - a, q - a);
        if (side_p >= 0) kept.add(p);
        if ((side_p > 0 && side_q < 0) || (side_p < 0 && side_q > 0)) {
            const double t = side_p / (side_p - side_q);
            kept.add({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
        }
    }
    return kept;
}

Point turned(const Affine& map, Point p) {
    return {map.a * p.x + map.b * p.y, map.d * p.x + map.e * p.y};
}

// The rectangle around a parallelogram that keeps the direction of `along`.
Axes around(const Axes& axes, Point along, Point across) {
    const double side = length(along);
    const Point unit{along.x / side, along.y / side};
    const double overhang = std::abs(unit.x * across.x + unit.y * across.y);
    const double other = cross(unit, across);  // keeps the sign, and so the order of corners
    return {axes.centre,
            {unit.x * (side + overhang), unit.y * (side + overhang)},
            {-unit.y * other, unit.x * other}};
}

double area(const Axes& axes) {
    return length(axes.along) * length(axes.across);
}

}  // namespace

Quad corners_of(const Candidate& box) {
    return quad_of(axes_of(box));
}

double common_area(const Quad& a, const Quad& b) {
    Polygon polygon;
    for (const Point& p : a) polygon.add(p);
    for (size_t i = 0; i < b.size() && polygon.count; ++i) {
        polygon = cut(polygon, b[i], b[(i + 1) % b.size()]);
    }
    double twice = 0;
    for (size_t i = 0; i < polygon.count; ++i) {
        twice += cross(polygon.corners[i] - polygon.corners[0],
                       polygon.corners[(i + 1) % polygon.count] - polygon.corners[0]);
    }
    return std::abs(twice) / 2;
}

bool map_turned(const Candidate& candidate, const Affine& map, uint32_t frame_width,
                uint32_t frame_height, Detection& detection) {
    const Axes box = axes_of(candidate);
    const Point centre = turned(map, box.centre);
    const Axes mapped{
        {centre.x + map.c, centre.y + map.f}, turned(map, box.along), turned(map, box.across)};
    if (!(area(mapped) > 0)) return false;
    const Axes by_width = around(mapped, mapped.along, mapped.across);
    const Axes by_height = around(mapped, mapped.across, mapped.along);
    const bool width_first = area(by_width) <= area(by_height);
    // A box may be thrown back onto its sides by either direction; its angle is that of its width.
    const Point along = width_first ? by_width.along : by_height.across;
    const Point across = width_first ? by_width.across : by_height.along;
    const Axes result{mapped.centre, along, across};
    const double w = frame_width, h = frame_height;
    if (!(common_area({Point{0, 0}, Point{w, 0}, Point{w, h}, Point{0, h}}, quad_of(result)) > 0)) {
        return false;
    }
    const double half_width = length(along), half_height = length(across);
    detection = {.x0 = static_cast<float>(result.centre.x - half_width),
                 .y0 = static_cast<float>(result.centre.y - half_height),
                 .x1 = static_cast<float>(result.centre.x + half_width),
                 .y1 = static_cast<float>(result.centre.y + half_height),
                 .score = candidate.score,
                 .class_id = candidate.class_id,
                 .angle = static_cast<float>(std::atan2(along.y, along.x))};
    return true;
}

}  // namespace vartml::vision
