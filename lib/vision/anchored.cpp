// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/anchored.h"

#include <algorithm>
#include <cmath>

namespace vartml::vision {

AnchoredHead::AnchoredHead(AnchoredForm form)
    : form_(std::move(form)),
      activation_(form_.activation),
      softmax_(form_.activation == "softmax") {
    size_t most = 0;
    for (const Part& part : form_.parts) most = std::max(most, part.rows);
    found_.resize(most);
}

Result<AnchoredHead::Tensors> AnchoredHead::tensors_of(std::span<const OutputTensor> tensors,
                                                       const Part& part) const {
    Tensors t;
    for (const auto& [index, matrix] :
         {std::pair(form_.scores, &t.scores), std::pair(form_.boxes, &t.boxes),
          std::pair(form_.quality, &t.quality), std::pair(form_.landmarks, &t.landmarks)}) {
        if (index == absent || part.outputs[index] == absent) continue;
        auto found = table_matrix(tensors[part.outputs[index]]);
        if (!found) return std::move(found).error();
        *matrix = *found;
    }
    return t;
}

size_t AnchoredHead::find_rows(const Tensors& t, float threshold) {
    if (softmax_) {
        for (size_t row = 0; row < t.scores.rows; ++row) found_[row] = static_cast<uint32_t>(row);
        return t.scores.rows;
    }
    // A geometric mean with something of at most 1 reaches the threshold from its square on.
    if (form_.quality != absent && threshold > 0) threshold *= threshold * 0.9999f;
    return kernels::positions_above(scores_of(t.scores, form_.first_class, form_.classes),
                                    activation_.stored_threshold(threshold), found_.data());
}

AnchoredHead::Score AnchoredHead::score_of(const Tensors& t, uint32_t row, float threshold) const {
    if (softmax_) return softmax_score(t.scores, row, threshold);
    const kernels::BestClass best =
        best_class(scores_of(t.scores, form_.first_class, form_.classes), row);
    if (!best.finite) return {NAN, 0};
    float score = activation_(best.score);
    if (form_.quality != absent) {
        const float quality = t.quality.value(row, 0);
        if (!std::isfinite(quality)) return {NAN, 0};
        score = std::sqrt(std::clamp(score, 0.f, 1.f) * std::clamp(activation_(quality), 0.f, 1.f));
    }
    return {score, best.class_id};
}

// Exact where the score reaches the threshold; elsewhere it may be 0 without an exponential.
AnchoredHead::Score AnchoredHead::softmax_score(const Matrix& scores, uint32_t row,
                                                float threshold) const {
    const size_t columns = form_.first_class + form_.classes;
    const kernels::BestClass best =
        best_class(scores_of(scores, form_.first_class, form_.classes), row);
    const kernels::BestClass any = best_class(scores_of(scores, 0, columns), row);
    if (!any.finite) return {NAN, 0};
    // A class that is not the greatest has at most half of the sum.
    if (threshold > 0.5f && best.score < any.score) return {0, best.class_id};
    float sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += std::exp(scores.value(row, c) - any.score);
    return {std::exp(best.score - any.score) / sum, best.class_id};
}

Candidate AnchoredHead::box(const Tensors& t, const Prior& prior, uint32_t row) const {
    const auto value = [&](size_t i) { return t.boxes.value(row, form_.order[i]); };
    const float a = value(0), b = value(1), c = value(2), d = value(3);
    Candidate box{};
    if (form_.code == BoxCode::corners) {
        box.x0 = a * form_.width, box.y0 = b * form_.height;
        box.x1 = c * form_.width, box.y1 = d * form_.height;
        return box;
    }
    if (form_.code == BoxCode::distances) {
        box.x0 = prior.cx - a * prior.width, box.y0 = prior.cy - b * prior.height;
        box.x1 = prior.cx + c * prior.width, box.y1 = prior.cy + d * prior.height;
        return box;
    }
    const float cx = prior.cx + a * form_.centre_variance * prior.width;
    const float cy = prior.cy + b * form_.centre_variance * prior.height;
    const bool exponent = form_.code == BoxCode::exponent;
    const float w = prior.width * (exponent ? std::exp(c * form_.size_variance) : c);
    const float h = prior.height * (exponent ? std::exp(d * form_.size_variance) : d);
    box.x0 = cx - w / 2, box.y0 = cy - h / 2;
    box.x1 = cx + w / 2, box.y1 = cy + h / 2;
    return box;
}

Keypoint AnchoredHead::point(const Tensors& t, const Prior& prior, uint32_t row,
                             unsigned index) const {
    const size_t column = form_.first_landmark + size_t{2} * index;
    return {
        .x = prior.cx + t.landmarks.value(row, column) * form_.centre_variance * prior.width,
        .y = prior.cy + t.landmarks.value(row, column + 1) * form_.centre_variance * prior.height};
}

bool AnchoredHead::points_finite(const Tensors& t, uint32_t row) const {
    for (size_t i = 0; i < size_t{2} * form_.landmark_count; ++i) {
        if (!std::isfinite(t.landmarks.value(row, form_.first_landmark + i))) return false;
    }
    return true;
}

Result<void> AnchoredHead::run(std::span<const OutputTensor> tensors, const RunContext& context,
                               Candidates& out) {
    for (const Part& part : form_.parts) {
        auto t = tensors_of(tensors, part);
        if (!t) return std::move(t).error();
        const size_t count = find_rows(*t, context.threshold);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = found_[i];
            const Score score = score_of(*t, row, context.threshold);
            if (score.value < context.threshold) continue;
            if (std::isnan(score.value) || !points_finite(*t, row)) {
                ++out.not_finite;
                continue;
            }
            const size_t position = part.first + row;
            Candidate candidate = box(*t, form_.priors[position], row);
            candidate.score = score.value;
            candidate.class_id = score.class_id + form_.first_class_id;
            candidate.position = static_cast<uint32_t>(position);
            out.add(candidate);
        }
    }
    return {};
}

Result<void> AnchoredHead::add_details(std::span<const OutputTensor> tensors, const RunContext&,
                                       const Candidate& candidate, BoxDetails& details) {
    if (!form_.landmark_count) return {};
    const Part* part = form_.parts.data();
    while (candidate.position >= part->first + part->rows) ++part;
    auto t = tensors_of(tensors, *part);
    if (!t) return std::move(t).error();
    const auto row = static_cast<uint32_t>(candidate.position - part->first);
    for (unsigned i = 0; i < form_.landmark_count; ++i) {
        details.keypoints.push_back(point(*t, form_.priors[candidate.position], row, i));
    }
    return {};
}

std::vector<Prior> cell_priors(const Grid& grid, unsigned per_cell, float offset) {
    std::vector<Prior> priors;
    priors.reserve(grid.positions);
    for (const Level& level : grid.levels) {
        const auto stride = static_cast<float>(level.stride);
        for (uint32_t y = 0; y < level.height; ++y) {
            for (uint32_t x = 0; x < level.width; ++x) {
                priors.insert(priors.end(), per_cell,
                              {(static_cast<float>(x) + offset) * stride,
                               (static_cast<float>(y) + offset) * stride, stride, stride});
            }
        }
    }
    return priors;
}

std::vector<Rows> rows_of_levels(const Grid& grid) {
    std::vector<Rows> rows;
    for (size_t i = 0; i < grid.levels.size(); ++i) {
        const size_t end = i + 1 < grid.levels.size() ? grid.levels[i + 1].first : grid.positions;
        rows.push_back({grid.levels[i].stride, end - grid.levels[i].first});
    }
    return rows;
}

namespace {

struct Size {
    float width, height;
};

// Sizes of the priors of each level.
// dec-positions: numbers of strides and anchors that do not fit.
Error anchors_error(const HeadRequest& request, const std::string& found,
                    const std::string& expected) {
    return head_error(request, "dec-positions",
                      source_of(request.info) + " has " + found + ", expected " + expected +
                          "; correct the lines x-vartml-strides and x-vartml-anchors",
                      found, expected, "x-vartml-anchors=…");
}

std::string anchors_text(size_t pairs, size_t levels) {
    return std::to_string(pairs) + " anchors for " + std::to_string(levels) + " strides";
}

// Sizes of the priors of each level.
Result<std::vector<std::vector<Size>>> sizes_of(const HeadRequest& request,
                                                std::span<const PriorLevel> published,
                                                size_t levels) {
    std::vector<std::vector<Size>> sizes(levels);
    const auto& anchors = request.info.anchors;
    const size_t pairs = anchors.size() / 2;
    if (anchors.empty() && levels != published.size()) {
        return anchors_error(request, std::to_string(levels) + " strides and no anchors",
                             std::to_string(published.size()) + " strides, or anchors");
    }
    if (pairs % levels != 0) {
        return anchors_error(request, anchors_text(pairs, levels), "as many for each stride");
    }
    for (size_t i = 0; i < levels; ++i) {
        if (anchors.empty()) {
            for (const float side : published[i].sides) sizes[i].push_back({side, side});
        } else {
            for (size_t k = i * pairs / levels; k < (i + 1) * pairs / levels; ++k)
                sizes[i].push_back({anchors[2 * k], anchors[2 * k + 1]});
        }
    }
    return sizes;
}

}  // namespace

Result<GridPriors> grid_priors(const HeadRequest& request, std::span<const PriorLevel> published,
                               bool pools) {
    std::vector<int> strides = request.info.strides;
    if (strides.empty()) {
        for (const PriorLevel& level : published) strides.push_back(level.stride);
    }
    auto sizes = sizes_of(request, published, strides.size());
    if (!sizes) return std::move(sizes).error();
    GridPriors all;
    std::string strides_text, counts_text;
    for (size_t i = 0; i < strides.size(); ++i) {
        const auto stride = static_cast<uint32_t>(strides[i]);
        // The first convolution rounds up, pooling behind it down.
        const auto pooled = [&](uint32_t side) {
            return pools ? (side + 1) / stride * stride : side;
        };
        const Grid grid =
            make_grid(pooled(request.width), pooled(request.height), {&strides[i], 1}, 1);
        for (const Prior& cell : cell_priors(grid, 1, 0.5f)) {
            for (const Size& size : (*sizes)[i])
                all.priors.push_back({cell.cx, cell.cy, size.width, size.height});
        }
        all.levels.push_back({strides[i], grid.positions * (*sizes)[i].size()});
        strides_text += (i ? "," : "") + std::to_string(strides[i]);
        counts_text += (i ? "," : "") + std::to_string((*sizes)[i].size());
    }
    const bool ours = request.info.strides.empty() && request.info.anchors.empty();
    all.origin = "the strides " + strides_text + " and " + counts_text + " anchors of " +
                 (ours ? "the published models" : source_of(request.info));
    return all;
}

void cut_to_input(std::vector<Prior>& priors, const HeadRequest& request) {
    const auto width = static_cast<float>(request.width);
    const auto height = static_cast<float>(request.height);
    for (Prior& prior : priors) {
        prior = {std::min(prior.cx, width), std::min(prior.cy, height),
                 std::min(prior.width, width), std::min(prior.height, height)};
    }
}

Result<unsigned> anchors_per_cell(const HeadRequest& request, unsigned published, size_t levels) {
    const size_t pairs = request.info.anchors.size() / 2;
    if (pairs == 0) return published;
    if (pairs % levels == 0) return static_cast<unsigned>(pairs / levels);
    return anchors_error(request, anchors_text(pairs, levels), "as many for each stride");
}

bool fits_anchored(const HeadRequest& request, FindForm find) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find(silent);
    return form && outputs_in(form->parts) == request.outputs.size();
}

Result<std::unique_ptr<Head>> create_anchored(const HeadRequest& request, FindForm find) {
    auto form = find(request);
    if (!form) return std::move(form).error();
    const size_t scores = form->parts.front().outputs[form->scores];
    // Where the sidecar counts the background as a class, so does the check.
    const unsigned background = form->first_class_id > 0 ? 1 : 0;
    auto checked = check_classes(request, request.outputs[scores].name, form->classes + background);
    if (!checked) return checked.error();
    if (form->logits.empty()) form->logits = form->first_class ? "softmax" : "sigmoid";
    form->activation = std::string(
        activation_for(request, request.outputs[scores], form->logits, form->activation));
    form->width = static_cast<float>(request.width);
    form->height = static_cast<float>(request.height);
    return std::unique_ptr<Head>(std::make_unique<AnchoredHead>(std::move(*form)));
}

}  // namespace vartml::vision
