// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v11 with masks: [1,4+C+M,N], the last M columns being coefficients, and prototypes
// [1,M,h,w]; the mask of a box is sigmoid(coefficients * prototypes), cut to the box.
#include <algorithm>
#include <limits>

#include "kernels/postprocess/masks.h"
#include "lib/vision/maps.h"
#include "lib/vision/yolo_v8.h"

namespace vartml::vision {

namespace {

// Cells whose centres lie in [low, high); at least the one that the middle is in.
struct Cells {
    uint32_t first, count;
};
Cells cells_in(float low, float high, uint32_t cells, uint32_t pixels) {
    const double scale = double(cells) / pixels, limit = cells;
    const double first = std::clamp(std::ceil(low * scale - 0.5), 0., limit);
    const double last = std::clamp(std::ceil(high * scale - 0.5), 0., limit);
    if (first < last) return {static_cast<uint32_t>(first), static_cast<uint32_t>(last - first)};
    const double middle = std::floor((double(low) + high) / 2 * scale);
    return {static_cast<uint32_t>(std::clamp(middle, 0., limit - 1)), 1};
}

// The least sum whose sigmoid reaches the threshold.
float logit(float threshold) {
    if (threshold <= 0) return -std::numeric_limits<float>::infinity();
    if (threshold >= 1) return std::numeric_limits<float>::infinity();
    return static_cast<float>(std::log(double(threshold) / (1 - double(threshold))));
}

class YoloV8Seg final : public DenseDetector<YoloV8> {
public:
    YoloV8Seg(DenseHead head, const HeadRequest& request, const MapForm& prototypes)
        : DenseDetector(std::move(head), request.info.activation, prototypes.channels),
          width_(request.width),
          height_(request.height),
          form_(prototypes),
          coefficients_(prototypes.channels) {}

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        prototypes_ = nullptr;
        return DenseDetector::run(tensors, context, out);
    }

    Result<void> add_details(std::span<const OutputTensor> tensors, const RunContext& context,
                             const Candidate& box, BoxDetails& details) override {
        auto m = matrix(tensors);
        if (!m) return std::move(m).error();
        if (!prototypes_) {  // of the first box of a run
            auto read = prototypes_view_.read(tensors[form_.output]);
            if (!read) return std::move(read).error();
            prototypes_ = *read;
        }
        for (size_t k = 0; k < coefficients_.size(); ++k) {
            coefficients_[k] = m->value(box.position, first_extra() + k);
            if (std::isfinite(coefficients_[k])) continue;
            ++details.not_finite;
            return {};  // a box without a mask
        }
        const Cells columns = cells_in(box.x0, box.x1, form_.width, width_);
        const Cells rows = cells_in(box.y0, box.y1, form_.height, height_);
        const float cell_x = static_cast<float>(width_) / static_cast<float>(form_.width);
        const float cell_y = static_cast<float>(height_) / static_cast<float>(form_.height);
        details.mask = Mask{.x0 = static_cast<float>(columns.first) * cell_x,
                            .y0 = static_cast<float>(rows.first) * cell_y,
                            .x1 = static_cast<float>(columns.first + columns.count) * cell_x,
                            .y1 = static_cast<float>(rows.first + rows.count) * cell_y,
                            .width = columns.count,
                            .height = rows.count};
        details.mask_pixels.resize(size_t{columns.count} * rows.count);
        const kernels::WeightedMaps maps{prototypes_ + form_.at(0, rows.first, columns.first),
                                         coefficients_.data(),
                                         coefficients_.size(),
                                         form_.channel_stride,
                                         form_.row_stride,
                                         form_.column_stride};
        kernels::mask_above(maps, rows.count, columns.count, logit(context.mask_threshold),
                            details.mask_pixels.data());
        return {};
    }

private:
    uint32_t width_, height_;  // of the model's input
    MapForm form_;             // of the prototypes
    FloatView prototypes_view_;
    const float* prototypes_ = nullptr;  // of this run
    std::vector<float> coefficients_;
};

// The map that can be the prototypes: by role, else the only one of rank 4.
std::optional<MapForm> find_prototypes(const HeadRequest& request) {
    constexpr std::string_view hints[] = {"proto"};
    const TensorInfo* output =
        find_output(request, "prototypes", hints,
                    [](const TensorInfo& info) { return info.cpu.shape.size() == 4; });
    return output ? map_form(request, *output) : std::nullopt;
}

DenseForm form_with(const MapForm& prototypes) {
    DenseForm form = YoloV8::form;
    form.extra = prototypes.channels;
    return form;
}

}  // namespace

bool fits_yolo_v8_seg(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto prototypes = find_prototypes(request);
    if (request.outputs.size() != 2 || !prototypes) return false;
    const auto head = locate_dense_head(silent, YoloV8::form);
    const unsigned others = YoloV8::form.box_attributes + prototypes->channels;
    return head && head->attributes > others;
}

Result<std::unique_ptr<Head>> create_yolo_v8_seg(const HeadRequest& request) {
    const auto prototypes = find_prototypes(request);
    if (!prototypes) return role_error(request, "prototypes", "[1,M,h,w]");
    auto head = find_dense_head(request, form_with(*prototypes));
    if (!head) return std::move(head).error();
    return std::unique_ptr<Head>(
        std::make_unique<YoloV8Seg>(std::move(*head), request, *prototypes));
}

}  // namespace vartml::vision
