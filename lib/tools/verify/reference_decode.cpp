// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/reference_decode.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace vartml::verify {
namespace {

using vision::Candidate;
using vision::Candidates;
using vision::DenseForm;
using vision::DenseHead;
using vision::HeadRequest;

// A head as rows of positions and columns of attributes.
struct Table {
    std::vector<double> numbers;
    size_t positions = 0, attributes = 0;
    bool attributes_first = false;
    double at(size_t position, size_t attribute) const {
        return attributes_first ? numbers[attribute * positions + position]
                                : numbers[position * attributes + attribute];
    }
    // Column of the greatest of those from `first` on, counted from there; the first of equals.
    int best(size_t position, size_t first) const {
        size_t best = first;
        for (size_t c = first; c < attributes; ++c)
            if (at(position, c) > at(position, best)) best = c;
        return static_cast<int>(best - first);
    }
};

double activated(double value, std::string_view activation) {
    return activation == "sigmoid" ? 1 / (1 + std::exp(-value)) : value;
}

Candidate centred(double cx, double cy, double w, double h, double score, int class_id,
                  size_t position) {
    return {static_cast<float>(cx - w / 2), static_cast<float>(cy - h / 2),
            static_cast<float>(cx + w / 2), static_cast<float>(cy + h / 2),
            static_cast<float>(score),      class_id,
            static_cast<uint32_t>(position)};
}

// YOLOX: centre (xy + cell) * stride, size exp(wh) * stride.
Candidate yolox_box(const Table& t, const vision::Grid& grid, size_t position, double score,
                    int class_id) {
    const vision::Level* level = &grid.levels.front();
    for (const vision::Level& l : grid.levels)
        if (position >= l.first) level = &l;
    const size_t cell = position - level->first;
    const double x = static_cast<double>(cell % level->width),
                 y = static_cast<double>(cell / level->width), stride = level->stride;
    return centred((t.at(position, 0) + x) * stride, (t.at(position, 1) + y) * stride,
                   std::exp(t.at(position, 2)) * stride, std::exp(t.at(position, 3)) * stride,
                   score, class_id, position);
}

std::optional<Candidates> yolo(std::string_view family, const HeadRequest& request,
                               const std::vector<TensorData>& values, float threshold) {
    const bool objectness = family != "yolo-v8";
    const DenseForm form{.attributes_first = family == "yolo-v8",
                         .box_attributes = objectness ? 5u : 4u,
                         .per_cell = family == "yolo-v5" ? 3u : 1u};
    const auto head = vision::find_dense_head(request, form);
    if (!head) return std::nullopt;
    const Table t{numbers_of(values[head->output]), head->grid.positions, head->attributes,
                  head->attributes_first};
    if (t.numbers.size() != t.positions * t.attributes) return std::nullopt;
    const std::string_view activation =
        vision::activation_of_table(request, request.outputs[head->output]);
    // In units of the picture where the last cell of each level has its box in the first corner.
    bool units = true;
    for (size_t i = 0; i < head->grid.levels.size(); ++i) {
        const auto& levels = head->grid.levels;
        const size_t last = (i + 1 < levels.size() ? levels[i + 1].first : t.positions) - 1;
        units &= std::abs(t.at(last, 0)) <= 2 && std::abs(t.at(last, 1)) <= 2 &&
                 t.at(last, 2) > 0 && t.at(last, 2) <= 2 && t.at(last, 3) > 0 && t.at(last, 3) <= 2;
    }
    const double x = units ? request.width : 1, y = units ? request.height : 1;
    Candidates found;
    for (size_t p = 0; p < t.positions; ++p) {
        const int best = t.best(p, form.box_attributes);
        const double object = objectness ? activated(t.at(p, 4), activation) : 1;
        const double score =
            object *
            activated(t.at(p, form.box_attributes + static_cast<size_t>(best)), activation);
        if (!(score >= threshold)) continue;
        found.add(family == "yolox" ? yolox_box(t, head->grid, p, score, best)
                                    : centred(t.at(p, 0) * x, t.at(p, 1) * y, t.at(p, 2) * x,
                                              t.at(p, 3) * y, score, best, p));
    }
    return found;
}

// Scores [1,N,2] of background and face, corners [1,N,4] in 0 to 1.
std::optional<Candidates> ultraface(const HeadRequest& request,
                                    const std::vector<TensorData>& values, float threshold) {
    std::optional<Table> scores, corners;
    // Boxes relative to priors have no formula here.
    if (vision::output_with_role(request, "offsets")) return std::nullopt;
    for (size_t i = 0; i < request.outputs.size(); ++i) {
        const auto& shape = request.outputs[i].cpu.shape;
        if (shape.size() != 3) return std::nullopt;
        Table table{numbers_of(values[i]), shape[1], shape[2], false};
        if (shape[2] == 2)
            scores = std::move(table);
        else if (shape[2] == 4)
            corners = std::move(table);
    }
    if (!scores || !corners || scores->positions != corners->positions) return std::nullopt;
    Candidates found;
    for (size_t p = 0; p < scores->positions; ++p) {
        if (!(scores->at(p, 1) >= threshold)) continue;
        found.add({static_cast<float>(corners->at(p, 0) * request.width),
                   static_cast<float>(corners->at(p, 1) * request.height),
                   static_cast<float>(corners->at(p, 2) * request.width),
                   static_cast<float>(corners->at(p, 3) * request.height),
                   static_cast<float>(scores->at(p, 1)), 0, static_cast<uint32_t>(p)});
    }
    return found;
}

template <typename Box>
double iou_of(const Box& a, const Box& b) {
    const double w = std::min<double>(a.x1, b.x1) - std::max<double>(a.x0, b.x0);
    const double h = std::min<double>(a.y1, b.y1) - std::max<double>(a.y0, b.y0);
    if (!(w > 0) || !(h > 0)) return 0;
    const auto area = [](const Box& box) {
        return (double{box.x1} - box.x0) * (double{box.y1} - box.y0);
    };
    return w * h / (area(a) + area(b) - w * h);
}

}  // namespace

std::optional<Candidates> plain_candidates(std::string_view family, const HeadRequest& request,
                                           const std::vector<TensorData>& values, float threshold) {
    if (values.size() != request.outputs.size()) return std::nullopt;
    if (family == "yolox" || family == "yolo-v5" || family == "yolo-v8")
        return yolo(family, request, values, threshold);
    if (family == "ultraface") return ultraface(request, values, threshold);
    return std::nullopt;
}

double plain_iou(const Candidate& a, const Candidate& b) {
    return iou_of(a, b);
}
double plain_iou(const Detection& a, const Detection& b) {
    return iou_of(a, b);
}

std::vector<Candidate> plain_means(std::vector<Candidate> boxes, double iou) {
    std::vector<Candidate> means;
    while (!boxes.empty()) {
        const Candidate best = boxes.front();
        double sum[4] = {0, 0, 0, 0}, weights = 0;
        std::vector<Candidate> rest;
        for (size_t i = 0; i < boxes.size(); ++i) {
            const Candidate& box = boxes[i];
            if (i > 0 && (box.class_id != best.class_id || plain_iou(best, box) <= iou)) {
                rest.push_back(box);
                continue;
            }
            const double corners[] = {box.x0, box.y0, box.x1, box.y1};
            for (size_t k = 0; k < 4; ++k) sum[k] += corners[k] * box.score;
            weights += box.score;
        }
        Candidate mean = best;
        if (weights > 0) {
            mean.x0 = static_cast<float>(sum[0] / weights);
            mean.y0 = static_cast<float>(sum[1] / weights);
            mean.x1 = static_cast<float>(sum[2] / weights);
            mean.y1 = static_cast<float>(sum[3] / weights);
        }
        means.push_back(mean);
        boxes = std::move(rest);
    }
    return means;
}

std::optional<Detection> plain_map(const Candidate& box, const Frame& frame) {
    const Affine& m = frame.to_frame;
    double x0 = HUGE_VAL, y0 = HUGE_VAL, x1 = -HUGE_VAL, y1 = -HUGE_VAL;
    for (const double u : {box.x0, box.x1})
        for (const double v : {box.y0, box.y1}) {
            const double x = m.a * u + m.b * v + m.c, y = m.d * u + m.e * v + m.f;
            x0 = std::min(x0, x), x1 = std::max(x1, x);
            y0 = std::min(y0, y), y1 = std::max(y1, y);
        }
    const auto cut = [](double value, uint32_t most) {
        return static_cast<float>(std::min(std::max(value, 0.0), static_cast<double>(most)));
    };
    const Detection d{cut(x0, frame.width),
                      cut(y0, frame.height),
                      cut(x1, frame.width),
                      cut(y1, frame.height),
                      box.score,
                      box.class_id};
    if (!(d.x0 < d.x1) || !(d.y0 < d.y1)) return std::nullopt;
    return d;
}

}  // namespace vartml::verify
