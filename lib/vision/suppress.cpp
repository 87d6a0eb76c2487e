// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/suppress.h"

#include <algorithm>

#include "kernels/postprocess/overlap.h"

namespace vartml::vision {

void Suppressor::clear() {
    for (auto* column : {&x0_, &y0_, &x1_, &y1_, &area_}) column->clear();
    group_.clear();
}

bool Suppressor::suppresses(const Candidate& c, int32_t group, float iou) {
    const float area = (c.x1 - c.x0) * (c.y1 - c.y0);
    const kernels::BoxColumns kept{x0_.data(),   y0_.data(),    x1_.data(),   y1_.data(),
                                   area_.data(), group_.data(), group_.size()};
    if (kernels::overlaps_any(kept, {c.x0, c.y0, c.x1, c.y1, area, group}, iou)) return true;
    x0_.push_back(c.x0);
    y0_.push_back(c.y0);
    x1_.push_back(c.x1);
    y1_.push_back(c.y1);
    area_.push_back(area);
    group_.push_back(group);
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
