// SPDX-License-Identifier: Apache-2.0
// Suppression of overlapping boxes.
#include <algorithm>
#include <optional>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"

namespace vartml::cpu {

namespace {

struct Box {
    float left, top, right, bottom;
    float area() const { return (right - left) * (bottom - top); }
};

// given: ONNX operator NonMaxSuppression: [y1, x1, y2, x2] with the corners in any order, or
// [x, y, width, height] around the centre.
Box read_box(const float* p, bool center) {
    if (center) {
        const float x = p[2] / 2, y = p[3] / 2;
        return {p[0] - x, p[1] - y, p[0] + x, p[1] + y};
    }
    return {std::min(p[1], p[3]), std::min(p[0], p[2]), std::max(p[1], p[3]), std::max(p[0], p[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
    const Box common{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                     std::min(a.bottom, b.bottom)};
    if (!(common.right > common.left && common.bottom > common.top)) return false;
    const float shared = common.area(), both = a.area() + b.area() - shared;
    return shared > 0 && both > 0 && shared / both > threshold;
}

struct Limits {
    int64_t most;
    float iou;
    std::optional<float> score;
};

float read_float(const Call& call, size_t i, float fallback) {
    if (!call.has_input(i)) return fallback;
    const auto numbers = read_numbers<float>(call.inputs[i]);
    return numbers.empty() ? fallback : numbers[0];
}

// Thresholds are attributes, or inputs where one of them is no constant.
Limits read_limits(const Call& call) {
    Limits limits{read_integer(call, 2, call.node.get("max_output_boxes_per_class", int64_t{0})),
                  read_float(call, 3, call.node.get("iou_threshold", 0.0F)), std::nullopt};
    if (call.node.has("score_threshold") || call.has_input(4))
        limits.score = read_float(call, 4, call.node.get("score_threshold", 0.0F));
    return limits;
}

// The boxes of one class that stay, by falling score, of equal scores the lower index first.
void select(const std::vector<Box>& boxes, const float* scores, const Limits& limits,
            std::vector<int64_t>& order, std::vector<int64_t>& selected) {
    order.clear();
    selected.clear();
    for (size_t i = 0; i < boxes.size(); ++i) {
        if (!limits.score || scores[i] > *limits.score) order.push_back(static_cast<int64_t>(i));
    }
    // Scores that are NaN come last.
    const auto ahead = [&](int64_t a, int64_t b) {
        const float x = scores[a], y = scores[b];
        return x > y || (is_nan(y) && !is_nan(x));
    };
    std::ranges::stable_sort(order, ahead);
    for (const int64_t i : order) {
        if (static_cast<int64_t>(selected.size()) >= limits.most) return;
        const Box& box = boxes[static_cast<size_t>(i)];
        const bool stays = std::ranges::none_of(selected, [&](int64_t k) {
            return overlaps(box, boxes[static_cast<size_t>(k)], limits.iou);
        });
        if (stays) selected.push_back(i);
    }
}

Result<void> non_max_suppression(const Call& call) {
    const Array &boxes = call.inputs[0], &scores = call.inputs[1];
    Array& y = call.outputs[0];
    for (const Array& x : {boxes, scores}) {
        if (x.type != DataType::float32) return no_type(call, x.type);
    }
    const Shape &b = boxes.shape, &s = scores.shape;
    if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
        return bad_data(call, "has boxes and scores that do not go together");
    const Limits limits = read_limits(call);
    const bool center = call.node.get("center_point_box", int64_t{0}) != 0;
    const auto count = static_cast<size_t>(b[1]);
    const int64_t room = y.shape[0];
    std::vector<Box> list(count);
    std::vector<int64_t> order, selected;
    int64_t found = 0;
    int64_t* dst = y.as<int64_t>();
    for (int64_t batch = 0; batch < b[0]; ++batch) {
        for (size_t i = 0; i < count; ++i)
            list[i] =
                read_box(boxes.as<float>() + (batch * b[1] + static_cast<int64_t>(i)) * 4, center);
        for (int64_t klass = 0; klass < s[1]; ++klass) {
            select(list, scores.as<float>() + (batch * s[1] + klass) * s[2], limits, order,
                   selected);
            found += static_cast<int64_t>(selected.size());
            if (found > room) return bad_data(call, "selects more boxes than its output holds");
            for (const int64_t box : selected) {
                for (const int64_t number : {batch, klass, box}) *dst++ = number;
            }
        }
    }
    y.shape[0] = found;
    return {};
}

constexpr KernelRow rows[] = {{"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const KernelRow> index_boxes_kernels() {
    return rows;
}

}  // namespace vartml::cpu
