// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/suppress.h"

#include <algorithm>
#include <cmath>

#include "kernels/postprocess/overlap.h"
#include "lib/vision/oriented.h"

namespace vartml::vision {

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

}  // namespace vartml::vision
