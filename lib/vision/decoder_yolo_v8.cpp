// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v9, v11, v12: [1,4+C,N] of centre and size in model pixels and class scores.
#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr DenseForm form{.attributes_first = true, .box_attributes = 4, .per_cell = 1};

class YoloV8 : public Head {
public:
    YoloV8(DenseHead head, std::string_view activation)
        : head_(std::move(head)), activation_(activation), found_(head_.grid.positions) {}

    unsigned classes() const override { return static_cast<unsigned>(head_.attributes - 4); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = dense_matrix(tensors, head_);
        if (!matrix) return std::move(matrix).error();
        const kernels::Scores scores = scores_of(*matrix, 4, classes());
        const size_t count = kernels::positions_above(
            scores, activation_.stored_threshold(threshold), found_.data());
        for (size_t i = 0; i < count; ++i) {
            const kernels::BestClass best = best_class(scores, found_[i]);
            const float score = activation_(best.score);
            if (!best.finite) {
                ++out.not_finite;
            } else if (score >= threshold) {
                out.add(centred_box(*matrix, found_[i], score, best.class_id));
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

bool fits_yolo_v8(const HeadRequest& request) {
    return fits_dense_form(request, form);
}

Result<std::unique_ptr<Head>> create_yolo_v8(const HeadRequest& request) {
    auto head = find_dense_head(request, form);
    if (!head) return std::move(head).error();
    return std::unique_ptr<Head>(
        std::make_unique<YoloV8>(std::move(*head), request.info.activation));
}

}  // namespace vartml::vision
