// SPDX-License-Identifier: Apache-2.0
// YOLOX: [1,N,5+C] of raw boxes on a grid: centre (xy + g) * s, size exp(wh) * s, score objectness
// * class.
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 1};

class Yolox : public Head {
public:
    Yolox(DenseHead head, std::string_view activation)
        : head_(std::move(head)), activation_(activation), found_(head_.grid.positions) {}

    unsigned classes() const override { return static_cast<unsigned>(head_.attributes - 5); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = dense_matrix(tensors, head_);
        if (!matrix) return std::move(matrix).error();
        const kernels::Scores objectness = scores_of(*matrix, 4, 1);
        const kernels::Scores class_scores = scores_of(*matrix, 5, classes());
        const size_t count = kernels::positions_above(
            objectness, activation_.stored_threshold(threshold), found_.data());
        const Level* level = head_.grid.levels.data();
        const Level* last = level + head_.grid.levels.size() - 1;
        for (size_t i = 0; i < count; ++i) {
            const uint32_t position = found_[i];
            while (level < last && position >= level[1].first) ++level;
            const kernels::BestClass best = best_class(class_scores, position);
            const float object = activation_(matrix->value(position, 4));
            const float score = object * activation_(best.score);
            if (!std::isfinite(score) || !best.finite) {
                ++out.not_finite;
            } else if (object >= threshold && score >= threshold) {
                out.add(box(*matrix, *level, position, score, best.class_id));
            }
        }
        return {};
    }

private:
    static Candidate box(const Matrix& m, const Level& level, uint32_t position, float score,
                         int32_t class_id) {
        const auto cell = static_cast<uint32_t>(position - level.first);
        const auto stride = static_cast<float>(level.stride);
        const float cx = (m.value(position, 0) + static_cast<float>(cell % level.width)) * stride;
        const float cy = (m.value(position, 1) + static_cast<float>(cell / level.width)) * stride;
        const float w = std::exp(m.value(position, 2)) * stride;
        const float h = std::exp(m.value(position, 3)) * stride;
        return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, class_id, position};
    }

    DenseHead head_;
    Activation activation_;
    std::vector<uint32_t> found_;
};

}  // namespace

bool fits_yolox(const HeadRequest& request) {
    return fits_dense_form(request, form);
}

Result<std::unique_ptr<Head>> create_yolox(const HeadRequest& request) {
    auto head = find_dense_head(request, form);
    if (!head) return std::move(head).error();
    return std::unique_ptr<Head>(
        std::make_unique<Yolox>(std::move(*head), request.info.activation));
}

}  // namespace vartml::vision
