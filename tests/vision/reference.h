// SPDX-License-Identifier: Apache-2.0
// Detection heads decoded by plain loops over float tensors, written from the published formulas:
// the tests' oracle.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace vartml::test {

struct RefBox {
    double x0, y0, x1, y1, score;
    int class_id;
};

struct RefTensor {
    std::vector<float> data;
    size_t positions, attributes;
    bool attributes_first;
    float at(size_t position, size_t attribute) const {
        return attributes_first ? data[attribute * positions + position]
                                : data[position * attributes + attribute];
    }
};

inline double ref_iou(const RefBox& a, const RefBox& b) {
    const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return 0;
    const double inter = w * h;
    return inter / ((a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - inter);
}

// Greedy, by score descending; equal scores keep their order.
inline std::vector<RefBox> ref_nms(std::vector<RefBox> boxes, double iou, bool per_class,
                                   size_t most = 100) {
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const RefBox& a, const RefBox& b) { return a.score > b.score; });
    std::vector<RefBox> kept;
    for (const RefBox& box : boxes) {
        bool keep = true;
        for (const RefBox& other : kept) {
            if (per_class && box.class_id != other.class_id) continue;
            keep = keep && ref_iou(box, other) <= iou;
        }
        if (keep && kept.size() < most) kept.push_back(box);
    }
    return kept;
}

// Class of the greatest score.
inline int ref_best(const RefTensor& t, size_t position, size_t first) {
    int best = 0;
    for (size_t c = first; c < t.attributes; ++c) {
        if (t.at(position, c) > t.at(position, first + static_cast<size_t>(best))) {
            best = static_cast<int>(c - first);
        }
    }
    return best;
}

inline RefBox ref_centred(float cx, float cy, float w, float h, double score, int class_id) {
    return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, class_id};
}

inline std::vector<RefBox> ref_yolox(const RefTensor& t, int width, int height, double threshold) {
    std::vector<RefBox> boxes;
    size_t position = 0;
    for (const int stride : {8, 16, 32}) {
        for (int gy = 0; gy < height / stride; ++gy) {
            for (int gx = 0; gx < width / stride; ++gx, ++position) {
                const int best = ref_best(t, position, 5);
                const float score =
                    t.at(position, 4) * t.at(position, 5 + static_cast<size_t>(best));
                if (!(score >= threshold)) continue;
                boxes.push_back(ref_centred(
                    (t.at(position, 0) + static_cast<float>(gx)) * static_cast<float>(stride),
                    (t.at(position, 1) + static_cast<float>(gy)) * static_cast<float>(stride),
                    std::exp(t.at(position, 2)) * static_cast<float>(stride),
                    std::exp(t.at(position, 3)) * static_cast<float>(stride), score, best));
            }
        }
    }
    return boxes;
}

// `objectness`: yolo-v5; without: yolo-v8.
inline std::vector<RefBox> ref_yolo(const RefTensor& t, bool objectness, double threshold) {
    std::vector<RefBox> boxes;
    const size_t first = objectness ? 5 : 4;
    for (size_t p = 0; p < t.positions; ++p) {
        const int best = ref_best(t, p, first);
        float score = t.at(p, first + static_cast<size_t>(best));
        if (objectness) score *= t.at(p, 4);
        if (!(score >= threshold)) continue;
        boxes.push_back(ref_centred(t.at(p, 0), t.at(p, 1), t.at(p, 2), t.at(p, 3), score, best));
    }
    return boxes;
}

inline std::vector<RefBox> ref_end2end(const RefTensor& t, double threshold) {
    std::vector<RefBox> boxes;
    for (size_t p = 0; p < t.positions; ++p) {
        if (!(t.at(p, 4) >= threshold)) continue;
        boxes.push_back({t.at(p, 0), t.at(p, 1), t.at(p, 2), t.at(p, 3), t.at(p, 4),
                         static_cast<int>(t.at(p, 5))});
    }
    return boxes;
}

inline std::vector<RefBox> ref_ultraface(const RefTensor& scores, const RefTensor& corners,
                                         float width, float height, double threshold) {
    std::vector<RefBox> boxes;
    for (size_t p = 0; p < scores.positions; ++p) {
        if (!(scores.at(p, 1) >= threshold)) continue;
        boxes.push_back({corners.at(p, 0) * width, corners.at(p, 1) * height,
                         corners.at(p, 2) * width, corners.at(p, 3) * height, scores.at(p, 1), 0});
    }
    return boxes;
}

// One level of NanoDet: centre of the cell, or its corner (`middle` 0), distances left, top, right,
// bottom as expectations over `bins` bins.
inline std::vector<RefBox> ref_nanodet(const RefTensor& scores, const RefTensor& distances,
                                       int grid_width, int stride, size_t bins, double threshold,
                                       double middle = 0.5) {
    std::vector<RefBox> boxes;
    for (size_t p = 0; p < scores.positions; ++p) {
        const int best = ref_best(scores, p, 0);
        const float score = scores.at(p, static_cast<size_t>(best));
        if (!(score >= threshold)) continue;
        double side[4];
        for (size_t k = 0; k < 4; ++k) {
            double sum = 0, weighted = 0;
            for (size_t b = 0; b < bins; ++b) {
                const double weight = std::exp(static_cast<double>(distances.at(p, k * bins + b)));
                sum += weight;
                weighted += weight * static_cast<double>(b);
            }
            side[k] = weighted / sum * stride;
        }
        const double cx = (static_cast<int>(p) % grid_width + middle) * stride;
        const double cy = (static_cast<int>(p) / grid_width + middle) * stride;
        boxes.push_back({cx - side[0], cy - side[1], cx + side[2], cy + side[3], score, best});
    }
    return boxes;
}

}  // namespace vartml::test
