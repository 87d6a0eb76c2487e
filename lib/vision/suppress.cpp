// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/suppress.h"

#include <algorithm>
#include <cmath>

#include "kernels/postprocess/overlap.h"

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
    Quad around = b;
    if (cross(b[1] - b[0], b[2] - b[0]) < 0) std::ranges::reverse(around);  // of a mirrored box
    for (size_t i = 0; i < around.size() && polygon.count; ++i) {
        polygon = cut(polygon, around[i], around[(i + 1) % around.size()]);
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

void Suppressor::clear() {
    for (auto* column : {&x0_, &y0_, &x1_, &y1_, &area_, &angle_}) column->clear();
    group_.clear();
    turned_ = false;
}

bool Suppressor::suppresses(const Candidate& c, int32_t group, float iou) {
    const float area = (c.x1 - c.x0) * (c.y1 - c.y0);
    const kernels::BoxColumns kept{x0_.data(),   y0_.data(),    x1_.data(),   y1_.data(),
                                   area_.data(), group_.data(), group_.size()};
    const bool turned = turned_ || c.angle != 0;
    if (turned ? overlaps_turned(c, group, iou)
               : kernels::overlaps_any(kept, {c.x0, c.y0, c.x1, c.y1, area, group}, iou)) {
        return true;
    }
    turned_ = turned;
    angle_.push_back(c.angle);
    x0_.push_back(c.x0);
    y0_.push_back(c.y0);
    x1_.push_back(c.x1);
    y1_.push_back(c.y1);
    area_.push_back(area);
    group_.push_back(group);
    return false;
}

bool Suppressor::overlaps_turned(const Candidate& c, int32_t group, float iou) const {
    const Quad corners = corners_of(c);
    const double area = (double(c.x1) - c.x0) * (double(c.y1) - c.y0);
    const double radius = std::hypot(double(c.x1) - c.x0, double(c.y1) - c.y0) / 2;
    for (size_t i = 0; i < group_.size(); ++i) {
        if (group_[i] != group) continue;
        const double width = double(x1_[i]) - x0_[i], height = double(y1_[i]) - y0_[i];
        const double dx = (double(x0_[i]) + x1_[i] - c.x0 - c.x1) / 2;
        const double dy = (double(y0_[i]) + y1_[i] - c.y0 - c.y1) / 2;
        if (std::hypot(dx, dy) >= radius + std::hypot(width, height) / 2) continue;  // too far
        Candidate other{x0_[i], y0_[i], x1_[i], y1_[i], 0, 0, 0, angle_[i]};
        const double common = common_area(corners, corners_of(other));
        if (common / (area + width * height - common) > iou) return true;
    }
    return false;
}

bool map_to_frame(const Candidate& c, const Affine& map, uint32_t frame_width,
                  uint32_t frame_height, Detection& detection) {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool first = true;
    for (const auto& [u, v] : {std::pair(c.x0, c.y0), {c.x1, c.y0}, {c.x0, c.y1}, {c.x1, c.y1}}) {
        const double x = map.a * u + map.b * v + map.c, y = map.d * u + map.e * v + map.f;
        x0 = first ? x : std::min(x0, x), x1 = first ? x : std::max(x1, x);
        y0 = first ? y : std::min(y0, y), y1 = first ? y : std::max(y1, y);
        first = false;
    }
    detection = {.x0 = static_cast<float>(std::clamp<double>(x0, 0, frame_width)),
                 .y0 = static_cast<float>(std::clamp<double>(y0, 0, frame_height)),
                 .x1 = static_cast<float>(std::clamp<double>(x1, 0, frame_width)),
                 .y1 = static_cast<float>(std::clamp<double>(y1, 0, frame_height)),
                 .score = c.score,
                 .class_id = c.class_id};
    return detection.x0 < detection.x1 && detection.y0 < detection.y1;
}

namespace {

float overlap(const Candidate& a, const Candidate& b) {
    const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (!(w > 0) || !(h > 0)) return 0;
    const auto area = [](const Candidate& c) { return (c.x1 - c.x0) * (c.y1 - c.y0); };
    return w * h / (area(a) + area(b) - w * h);
}

Candidate mean_of(std::span<const Candidate> boxes) {
    Candidate mean = boxes.front();
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0, weights = 0;
    for (const Candidate& box : boxes) {
        x0 += box.x0 * box.score, y0 += box.y0 * box.score;
        x1 += box.x1 * box.score, y1 += box.y1 * box.score;
        weights += box.score;
    }
    if (!(weights > 0)) return mean;
    mean.x0 = x0 / weights, mean.y0 = y0 / weights;
    mean.x1 = x1 / weights, mean.y1 = y1 / weights;
    return mean;
}

}  // namespace

void WeightedNms::run(std::span<const Candidate> boxes, bool per_class, float iou, size_t most) {
    for (auto* list : {&means_, &members_, &left_}) list->clear();
    ends_.clear();
    std::ranges::copy_if(boxes, std::back_inserter(left_),
                         [](const Candidate& box) { return box.x0 < box.x1 && box.y0 < box.y1; });
    while (!left_.empty() && means_.size() < most) {
        const Candidate best = left_.front();
        rest_.clear();
        const size_t first = members_.size();
        for (const Candidate& box : left_) {
            const bool same =
                &box == left_.data() ||
                ((!per_class || box.class_id == best.class_id) && overlap(best, box) > iou);
            (same ? members_ : rest_).push_back(box);
        }
        means_.push_back(mean_of(std::span(members_).subspan(first)));
        ends_.push_back(members_.size());
        std::swap(left_, rest_);
    }
}

std::span<const Candidate> WeightedNms::members(size_t i) const {
    const size_t first = i ? ends_[i - 1] : 0;
    return std::span(members_).subspan(first, ends_[i] - first);
}

void add_weighted(std::vector<Keypoint>& sum, std::span<const Keypoint> points, float weight) {
    const bool first = sum.empty();
    if (first) sum.assign(points.begin(), points.end());
    for (size_t i = 0; i < sum.size() && i < points.size(); ++i) {
        sum[i].x = (first ? 0 : sum[i].x) + points[i].x * weight;
        sum[i].y = (first ? 0 : sum[i].y) + points[i].y * weight;
    }
}

void finish_weighted(std::vector<Keypoint>& sum, float weights) {
    for (Keypoint& point : sum) {
        point.x /= weights;
        point.y /= weights;
    }
}

}  // namespace vartml::vision
