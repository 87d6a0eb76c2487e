// SPDX-License-Identifier: Apache-2.0
// YOLOX: [1,N,5+C] of raw boxes on a grid: centre (xy + g) * s, size exp(wh) * s, score objectness
// * class.
#include <algorithm>

#include "lib/vision/dense_detector.h"
#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr size_t nanodet_bins = 32;
// given: the pre-processing of YOLOX 0.1.0, which its later releases call legacy; a border of 114.
constexpr PreprocessOptions normalised_pixels = {.resize = ResizeMode::letterbox_top_left,
                                                 .mean = {123.675f, 116.28f, 103.53f},
                                                 .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}};

struct Yolox {
    static constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 1};
    static constexpr float reach = 8;
    static Candidate box(const DenseFrame& frame, uint32_t position, float score,
                         int32_t class_id) {
        const Matrix& m = frame.matrix;
        const DenseHead& head = frame.head;
        const Level* level = head.grid.levels.data();
        const Level* const last = level + head.grid.levels.size() - 1;
        while (level < last && position >= level[1].first) ++level;
        const auto cell = static_cast<uint32_t>(position - level->first);
        const auto stride = static_cast<float>(level->stride);
        const float cx = (m.value(position, 0) + static_cast<float>(cell % level->width)) * stride;
        const float cy = (m.value(position, 1) + static_cast<float>(cell / level->width)) * stride;
        const float w = std::exp(m.value(position, 2)) * stride;
        const float h = std::exp(m.value(position, 3)) * stride;
        return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, class_id, position};
    }
};

}  // namespace

// Published models have three levels; a head of two has its anchors' boxes and objectness in one
// row (YOLO-FastestV2), which has the same shape. With four, so has NanoDet-Plus: classes, and
// eight bins for each of four sides. Who counts the classes or names the strides tells them apart.
bool fits_yolox(const HeadRequest& request) {
    if (!fits_dense_form(request, Yolox::form)) return false;
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto head = locate_dense_head(silent, Yolox::form);
    if (!head) return false;
    const size_t levels = head->grid.levels.size();
    const bool other = levels < 3 || (levels > 3 && head->attributes > nanodet_bins);
    const auto promised = tensor_classes(request.info);
    return !other || !request.info.strides.empty() ||
           promised == head->attributes - Yolox::form.box_attributes;
}

const PreprocessOptions* input_of_yolox(const HeadRequest& request) {
    const bool units = std::ranges::any_of(request.info.inputs, [](const ModelInfo::Input& input) {
        return input.weights_for == "units";
    });
    return units ? &normalised_pixels : nullptr;
}

Result<std::unique_ptr<Head>> create_yolox(const HeadRequest& request) {
    return DenseDetector<Yolox>::create(request);
}

}  // namespace vartml::vision
