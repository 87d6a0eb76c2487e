// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/weighted.h"

#include <algorithm>

namespace vartml::vision {

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
