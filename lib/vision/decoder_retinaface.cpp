// SPDX-License-Identifier: Apache-2.0
// RetinaFace: scores of background and face [1,N,2], boxes [1,N,4] and landmarks [1,N,2K] relative
// to priors of 16 to 512 pixels on the strides 8, 16, 32. Faces have five landmarks, or none; what
// has another number of them was trained for something else, such as plates with four corners.
#include <algorithm>
#include <numeric>

#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr size_t face_points = 5;

// Columns of the landmarks: those of the only kind of outputs that have as many rows as boxes have
// and more columns, two for each point.
size_t landmark_columns(const HeadRequest& request, std::span<const Rows> levels) {
    const size_t all =
        std::accumulate(levels.begin(), levels.end(), size_t{0},
                        [](size_t sum, const Rows& level) { return sum + level.rows; });
    size_t columns = 0;
    for (const TensorInfo& output : request.outputs) {
        const auto table = table_of(output);
        if (!table || table->columns < 6 || table->columns % 2 != 0) continue;
        if (table->rows != all &&
            std::ranges::find(levels, table->rows, &Rows::rows) == levels.end())
            continue;
        if (columns != 0 && columns != table->columns) return 2 * face_points;
        columns = table->columns;
    }
    return columns ? columns : 2 * face_points;
}

Result<AnchoredForm> find_form(const HeadRequest& request) {
    const PriorLevel published[] = {{8, {16, 32}}, {16, {64, 128}}, {32, {256, 512}}};
    auto priors = grid_priors(request, published);
    if (!priors) return std::move(priors).error();
    const Column columns[] = {
        {"scores", 2},
        {"boxes", 4},
        {"landmarks", landmark_columns(request, priors->levels), /*optional=*/true}};
    auto parts = find_parts(request, columns, priors->levels, priors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = std::move(priors->priors);
    form.parts = std::move(*parts);
    form.first_class = 1;
    if (form.parts.front().outputs[2] == absent) return form;
    form.landmarks = 2;
    form.landmark_count = static_cast<unsigned>(columns[2].columns / 2);
    if (form.landmark_count != face_points) form.class_name = "object";
    return form;
}

}  // namespace

bool fits_retinaface(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_retinaface(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
