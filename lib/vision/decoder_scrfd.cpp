// SPDX-License-Identifier: Apache-2.0
// SCRFD: per stride s a score, distances left, top, right, bottom and perhaps five landmarks, all
// in units of s from the corner g * s of the cell; two anchors per cell, of five strides one.
// given: insightface/python-package/insightface/model_zoo/scrfd.py.
#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column columns[] = {{"scores", 1}, {"boxes", 4}, {"landmarks", 10, true}};

Grid grid_of(const HeadRequest& request, unsigned per_cell) {
    constexpr int three[] = {8, 16, 32}, five[] = {8, 16, 32, 64, 128};
    std::span<const int> strides = three;
    if (request.outputs.size() == 10 || request.outputs.size() == 15) strides = five;
    if (!request.info.strides.empty()) strides = request.info.strides;
    return make_grid(request.width, request.height, strides, per_cell);
}

Result<AnchoredForm> find_form(const HeadRequest& request) {
    const size_t levels = grid_of(request, 1).levels.size();
    auto per_cell = anchors_per_cell(request, levels == 5 ? 1 : 2, levels);
    if (!per_cell) return std::move(per_cell).error();
    const Grid grid = grid_of(request, *per_cell);
    auto parts = find_parts(request, columns, rows_of_levels(grid),
                            std::to_string(*per_cell) + " anchors per cell");
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = cell_priors(grid, *per_cell, 0);
    form.code = BoxCode::distances;
    form.centre_variance = 1;
    if (parts->front().outputs[2] != absent) {
        form.landmarks = 2;
        form.landmark_count = 5;
    }
    form.parts = std::move(*parts);
    return form;
}

}  // namespace

bool fits_scrfd(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_scrfd(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
