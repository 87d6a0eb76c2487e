// SPDX-License-Identifier: Apache-2.0
// YOLO v3, v4, v5, v7 with the boxes decoded in the model: [1,N,5+C] of centre and size in model
// pixels, objectness, classes; score objectness * class.
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 3};

class YoloV5 : public Head {
public:
    YoloV5(DenseHead head, std::string_view activation)
        : head_(std::move(head)), activation_(activation), found_(head_.grid.positions) {}

    unsigned classes() const override { return static_cast<unsigned>(head_.attributes - 5); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = dense_matrix(tensors, head_);
        if (!matrix) return std::move(matrix).error();
        const Matrix& m = *matrix;
        const kernels::Scores class_scores = scores_of(m, 5, classes());
        const size_t count = kernels::positions_above(
            scores_of(m, 4, 1), activation_.stored_threshold(threshold), found_.data());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t position = found_[i];
            const kernels::BestClass best = best_class(class_scores, position);
            const float object = activation_(m.value(position, 4));
            const float score = object * activation_(best.score);
            if (!std::isfinite(score) || !best.finite) {
                ++out.not_finite;
            } else if (object >= threshold && score >= threshold) {
                out.add(centred_box(m, position, score, best.class_id));
            }
        }
        return {};
    }

private:
    DenseHead head_;
    Activation activation_;
    std::vector<uint32_t> found_;
};

}  // namespace

bool fits_yolo_v5(const HeadRequest& request) {
    return fits_dense_form(request, form);
}

Result<std::unique_ptr<Head>> create_yolo_v5(const HeadRequest& request) {
    auto head = find_dense_head(request, form);
    if (!head) return std::move(head).error();
    return std::unique_ptr<Head>(
        std::make_unique<YoloV5>(std::move(*head), request.info.activation));
}

}  // namespace vartml::vision
