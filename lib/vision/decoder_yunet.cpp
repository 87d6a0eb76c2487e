// SPDX-License-Identifier: Apache-2.0
// YuNet. Since 2023: per stride s a class score, an objectness, a box and five landmarks; centre
// (g + d) * s, size exp(d) * s, landmarks (g + d) * s. Before: box and landmarks in one tensor
// [1,N,14] relative to priors, scores of background and face [1,N,2], overlap with the face
// [1,N,1]. The score is the geometric mean of both scores in either form.
#include <algorithm>

#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column cell_columns[] = {
    {"scores", 1}, {"objectness", 1}, {"boxes", 4}, {"landmarks", 10}};
constexpr Column prior_columns[] = {{"scores", 2}, {"objectness", 1}, {"boxes", 14}};

bool is_older(const HeadRequest& request) {
    return std::ranges::any_of(request.outputs, [](const TensorInfo& output) {
        const auto table = table_of(output);
        return table && table->columns == 14;
    });
}

Result<AnchoredForm> older_form(const HeadRequest& request) {
    const PriorLevel published[] = {
        {8, {10, 16, 24}}, {16, {32, 48}}, {32, {64, 96}}, {64, {128, 192, 256}}};
    auto priors = grid_priors(request, published, true);
    if (!priors) return std::move(priors).error();
    const Rows all[] = {{0, priors->priors.size()}};
    auto parts = find_parts(request, prior_columns, all, priors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = std::move(priors->priors);
    form.parts = std::move(*parts);
    form.quality = 1;
    form.boxes = form.landmarks = 2;
    form.first_class = 1;
    form.first_landmark = 4;
    return form;
}

Result<AnchoredForm> newer_form(const HeadRequest& request) {
    constexpr int published[] = {8, 16, 32};
    const std::span<const int> strides =
        request.info.strides.empty() ? std::span<const int>(published) : request.info.strides;
    auto per_cell = anchors_per_cell(request, 1, strides.size());
    if (!per_cell) return std::move(per_cell).error();
    const Grid grid = make_grid(request.width, request.height, strides, *per_cell);
    auto parts = find_parts(request, cell_columns, rows_of_levels(grid),
                            std::to_string(*per_cell) + " position per cell");
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = cell_priors(grid, *per_cell, 0);
    form.parts = std::move(*parts);
    form.quality = 1;
    form.boxes = 2;
    form.landmarks = 3;
    form.centre_variance = form.size_variance = 1;
    return form;
}

Result<AnchoredForm> find_form(const HeadRequest& request) {
    auto form = is_older(request) ? older_form(request) : newer_form(request);
    if (!form) return form;
    form->landmark_count = 5;
    return form;
}

}  // namespace

bool fits_yunet(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_yunet(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
