// SPDX-License-Identifier: Apache-2.0
// The head that YOLO families share: one matrix of positions by box, perhaps objectness, class
// scores, perhaps more. A family says its form and how it writes a box.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/vision/families.h"
#include "lib/vision/plausibility.h"

namespace vartml::vision {

// Some exports write boxes in units of the picture. In pixels, the last cell of every level would
// have its box in the corner where the first cell is, and of no size.
inline BoxUnit box_unit(const Matrix& m, const DenseHead& head) {
    constexpr float greatest_unit = 2;
    const std::vector<Level>& levels = head.grid.levels;
    for (size_t i = 0; i < levels.size(); ++i) {
        const size_t end = i + 1 < levels.size() ? levels[i + 1].first : head.grid.positions;
        const auto last = static_cast<uint32_t>(end - 1);
        for (const size_t column : {0, 1, 2, 3}) {
            const float value = m.value(last, column);
            if (!(std::abs(value) <= greatest_unit)) return {};
            // Rows of zeros are no boxes; a size that coarse numbers round to 0 is one.
            const bool is_size = column >= 2;
            if (is_size && !(value > 0 || (value == 0 && m.value(last, column - 2) > 0))) return {};
        }
    }
    const Level& finest = levels.front();
    return {static_cast<float>(finest.width) * static_cast<float>(finest.stride),
            static_cast<float>(finest.height) * static_cast<float>(finest.stride)};
}

// What the boxes of one frame are made of.
struct DenseFrame {
    const Matrix& matrix;
    const DenseHead& head;
    BoxUnit unit;
};

// A row of centre and size, as final boxes are written.
inline Candidate final_box(const DenseFrame& frame, uint32_t position, float score,
                           int32_t class_id) {
    Candidate box = centred_box(frame.matrix, position, score, class_id);
    const BoxUnit unit = frame.unit;
    box.x0 *= unit.x, box.x1 *= unit.x, box.y0 *= unit.y, box.y1 *= unit.y;
    return box;
}

// Family: `static constexpr DenseForm form`, 4 box attributes, with a fifth for objectness;
// `static Candidate box(const DenseFrame&, uint32_t position, float score, int32_t class_id)`.
// The score is class, or objectness * class. `static constexpr float reach`: cells from its own
// that the centre of a box is away at most, of published models.
template <typename Family>
class DenseDetector : public Head {
public:
    static constexpr bool has_objectness = Family::form.box_attributes == 5;
    std::string_view logits() const override { return "sigmoid"; }

    // `extra` columns lie behind the classes.
    DenseDetector(DenseHead head, std::string_view activation, unsigned extra = Family::form.extra)
        : head_(std::move(head)),
          activation_(activation),
          extra_(extra),
          found_(head_.grid.positions) {}

    static Result<std::unique_ptr<Head>> create(const HeadRequest& request) {
        auto head = find_dense_head(request, Family::form);
        if (!head) return std::move(head).error();
        // Exported without their last activation, scores are logits.
        const std::string_view activation =
            activation_of_table(request, request.outputs[head->output]);
        return std::unique_ptr<Head>(std::make_unique<DenseDetector>(std::move(*head), activation));
    }

    unsigned classes() const override {
        return static_cast<unsigned>(head_.attributes - Family::form.box_attributes) - extra_;
    }

    bool exchanged() const override {
        return head_.attributes_first != Family::form.attributes_first;
    }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = dense_matrix(tensors, head_);
        if (!matrix) return std::move(matrix).error();
        const Matrix& m = *matrix;
        unit_ = box_unit(m, head_);
        const DenseFrame frame{m, head_, unit_};
        const kernels::Scores class_scores =
            scores_of(m, static_cast<unsigned>(Family::form.box_attributes), classes());
        const kernels::Scores first = has_objectness ? scores_of(m, 4, 1) : class_scores;
        const size_t count =
            kernels::positions_above(first, activation_.stored_threshold(threshold), found_.data());
        float greatest = 0;  // score of a class
        for (size_t i = 0; i < count; ++i) {
            const uint32_t position = found_[i];
            const kernels::BestClass best = best_class(class_scores, position);
            greatest = std::max(greatest, activation_(best.score));
            const float object = has_objectness ? activation_(m.value(position, 4)) : 1;
            const float score = object * activation_(best.score);
            if (!std::isfinite(score) || !best.finite) {
                ++out.not_finite;
            } else if (object >= threshold && score >= threshold) {
                out.add(Family::box(frame, position, score, best.class_id));
            }
        }
        if (std::isinf(threshold)) {
            doubt_ = has_objectness ? doubt_of_class_score(greatest) : std::string();
            if (doubt_.empty()) doubt_ = doubt_of_places(out.boxes, head_.grid, Family::reach);
        }
        return {};
    }

    std::string doubt() const override { return doubt_; }

protected:
    // The matrix of a run, and the first column behind the classes.
    Result<Matrix> matrix(std::span<const OutputTensor> tensors) const {
        return dense_matrix(tensors, head_);
    }
    BoxUnit unit() const { return unit_; }  // of the last run
    size_t first_extra() const { return head_.attributes - extra_; }

private:
    DenseHead head_;
    Activation activation_;
    unsigned extra_;
    BoxUnit unit_;
    std::string doubt_;  // of the last run that took all positions
    std::vector<uint32_t> found_;
};

}  // namespace vartml::vision
