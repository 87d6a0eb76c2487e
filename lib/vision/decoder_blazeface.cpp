// SPDX-License-Identifier: Apache-2.0
// BlazeFace (front, back and full range camera) and BlazePalm: scores [1,N,1] before their sigmoid,
// and regressors [1,N,4+2K] of centre, size and K points in pixels of the input, centre and points
// relative to an anchor that is a place only. Overlapping boxes become their weighted mean.
// Scores are clipped to +-100 before the sigmoid where it was published; in float it is 0 or 1
// there anyway.
#include <algorithm>

#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column face_columns[] = {{"scores", 1}, {"boxes", 16}};
constexpr Column palm_columns[] = {{"scores", 1}, {"boxes", 18}};

// given: MediaPipe's graphs of palm detection, but for the first, of 256x256, which took -1 to 1 as
// the models of faces do.
constexpr PreprocessOptions palm_pixels = {
    .resize = ResizeMode::letterbox, .scale = {1 / 255.f, 1 / 255.f, 1 / 255.f}, .pad = {0, 0, 0}};
constexpr uint32_t first_palms = 256;

// Layers of the published models; layers of one stride share their cells.
struct Published {
    uint32_t side;  // of the input
    uint32_t columns;
    std::vector<int> layers;
    unsigned per_layer;  // anchors of a cell
};
const Published* find_published(const HeadRequest& request, size_t columns) {
    static const Published table[] = {
        {128, 16, {8, 16, 16, 16}, 2},      // front camera
        {256, 16, {16, 32, 32, 32}, 2},     // back camera
        {192, 16, {4}, 1},                  // full range
        {256, 18, {8, 16, 32, 32, 32}, 2},  // palms of 256
        {192, 18, {8, 16, 16, 16}, 2},      // palms of 192
    };
    for (const Published& row : table) {
        if (row.side == request.width && row.side == request.height && row.columns == columns)
            return &row;
    }
    return nullptr;
}

struct Anchors {
    std::vector<Prior> priors;
    std::vector<Rows> levels;
    std::string origin;
};
Anchors anchors_of(const HeadRequest& request, std::span<const int> layers, unsigned per_layer) {
    Anchors anchors;
    for (size_t i = 0; i < layers.size();) {
        size_t end = i;
        while (end < layers.size() && layers[end] == layers[i]) ++end;
        const auto per_cell = static_cast<unsigned>(end - i) * per_layer;
        const Grid grid = make_grid(request.width, request.height, {&layers[i], 1}, per_cell);
        auto priors = cell_priors(grid, per_cell, 0.5f);
        for (Prior& prior : priors) prior.width = prior.height = 1;
        anchors.priors.insert(anchors.priors.end(), priors.begin(), priors.end());
        anchors.levels.push_back({layers[i], grid.positions});
        i = end;
    }
    for (const int layer : layers)
        anchors.origin += (anchors.origin.empty() ? "" : ",") + std::to_string(layer);
    anchors.origin =
        std::to_string(per_layer) + " anchors for each of the strides " + anchors.origin;
    return anchors;
}

// Layers of the sidecar's x-vartml-strides, one per stride named, else of the published models.
// x-vartml-anchors says how many anchors a layer has.
Result<Anchors> find_anchors(const HeadRequest& request, size_t columns) {
    static const std::vector<int> front{8, 16, 16, 16};
    const Published* published = find_published(request, columns);
    const auto& strides = request.info.strides;
    const std::vector<int>& layers = !strides.empty() ? strides
                                     : published      ? published->layers
                                                      : front;
    const bool single = published && strides.empty() && published->per_layer == 1;
    auto per_layer = anchors_per_cell(request, single ? 1 : 2, layers.size());
    if (!per_layer) return std::move(per_layer).error();
    return anchors_of(request, layers, *per_layer);
}

bool has_palms(const HeadRequest& request) {
    return std::ranges::any_of(request.outputs, [](const TensorInfo& output) {
        const auto table = table_of(output);
        return table && table->columns == palm_columns[1].columns;
    });
}

Result<AnchoredForm> find_form(const HeadRequest& request) {
    const bool palm = has_palms(request);
    const std::span<const Column> columns = palm ? palm_columns : face_columns;
    auto anchors = find_anchors(request, columns[1].columns);
    if (!anchors) return std::move(anchors).error();
    auto parts = find_parts(request, columns, anchors->levels, anchors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = std::move(anchors->priors);
    form.parts = std::move(*parts);
    form.code = BoxCode::linear;
    form.centre_variance = 1;
    form.landmarks = form.boxes;
    form.first_landmark = 4;
    form.landmark_count = static_cast<unsigned>(columns[1].columns - 4) / 2;
    form.activation = "sigmoid";
    form.class_name = palm ? "palm" : "face";
    return form;
}

}  // namespace

bool fits_blazeface(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

const PreprocessOptions* input_of_blazeface(const HeadRequest& request) {
    const bool first = request.width == first_palms && request.height == first_palms;
    return has_palms(request) && !first ? &palm_pixels : nullptr;
}

Result<std::unique_ptr<Head>> create_blazeface(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
