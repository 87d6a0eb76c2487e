// SPDX-License-Identifier: Apache-2.0
// FastestDet: one map of stride 16, [1,5+C,h,w] or [1,h*w,5+C]: objectness, x, y, width, height,
// classes. Score objectness^0.6 * class^0.4; centre (g + tanh) * s, size sigmoid of the input.
// Some exports make the boxes inside the model: centre and size in pixels, objectness, classes. No
// shape tells which it is, but each centre of those lies beside its cell.
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr int published_stride = 16;
constexpr size_t box_columns = 5;
constexpr float object_weight = 0.6f, class_weight = 0.4f;

struct Form {
    size_t output;
    Level level;
    unsigned classes;
};

class FastestDet final : public Head {
public:
    FastestDet(const HeadRequest& request, const Form& form)
        : form_(form),
          width_(static_cast<float>(request.width)),
          height_(static_cast<float>(request.height)),
          found_(size_t{form.level.width} * form.level.height) {}

    unsigned classes() const override { return form_.classes; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto m = cells_.read(tensors[form_.output]);
        if (!m) return std::move(m).error();
        const bool is_final = has_final_boxes(*m);
        const size_t objectness = is_final ? 4 : 0;
        const kernels::Scores list = scores_of(*m, box_columns, form_.classes);
        // A class counts at most 1: the objectness alone must reach this, or a little less.
        const float least = context.threshold > 0
                                ? 0.9999f * std::pow(context.threshold, 1 / object_weight)
                                : context.threshold;
        const size_t count =
            kernels::positions_above(scores_of(*m, objectness, 1), least, found_.data());
        for (size_t i = 0; i < count; ++i) {
            const kernels::BestClass best = best_class(list, found_[i]);
            const float object = m->value(found_[i], objectness);
            if (!best.finite || !std::isfinite(object)) {
                ++out.not_finite;
                continue;
            }
            const float score = std::pow(std::max(object, 0.f), object_weight) *
                                std::pow(std::max(best.score, 0.f), class_weight);
            if (score < context.threshold) continue;
            out.add(is_final ? centred_box(*m, found_[i], score, best.class_id)
                             : box(*m, found_[i], score, best.class_id));
        }
        return {};
    }

private:
    // Centres in pixels, each at most a cell from the corner of its own. What is from 0 to 1 in
    // place of the first is not beside the cells from the third column on.
    bool has_final_boxes(const Matrix& m) const {
        const auto side = static_cast<float>(form_.level.stride);
        const float most = 1.25f * side;  // for the sake of bf16 and int8
        for (uint32_t cell = 0; cell < m.rows; ++cell) {
            const auto x = static_cast<float>(cell % form_.level.width) * side;
            const auto y = static_cast<float>(cell / form_.level.width) * side;
            if (!(std::abs(m.value(cell, 0) - x) <= most) ||
                !(std::abs(m.value(cell, 1) - y) <= most))
                return false;
        }
        return form_.level.width > 2 && form_.level.height > 2;
    }

    Candidate box(const Matrix& m, uint32_t cell, float score, int32_t class_id) const {
        const auto side = static_cast<float>(form_.level.stride);
        const auto x = static_cast<float>(cell % form_.level.width);
        const auto y = static_cast<float>(cell / form_.level.width);
        const float cx = (x + std::tanh(m.value(cell, 1))) * side;
        const float cy = (y + std::tanh(m.value(cell, 2))) * side;
        const float a = m.value(cell, 3), b = m.value(cell, 4);
        const float w = width_ / (1 + std::exp(-a)), h = height_ / (1 + std::exp(-b));
        // The sigmoid and tanh of an infinite number are finite.
        const bool finite = std::isfinite(a) && std::isfinite(b) &&
                            std::isfinite(m.value(cell, 1)) && std::isfinite(m.value(cell, 2));
        return {cx - w / 2,           cy - h / 2, cx + w / 2, cy + h / 2,
                finite ? score : NAN, class_id,   cell};
    }

    Form form_;
    float width_, height_;
    Cells cells_;
    std::vector<uint32_t> found_;
};

// Channels of an output over the cells of a level; 0 where it is no such map.
size_t channels_of(const TensorInfo& output, const Level& level) {
    const auto& shape = output.cpu.shape;
    if (shape.empty() || shape[0] != 1) return 0;
    if (shape.size() == 4 && shape[2] == level.height && shape[3] == level.width) return shape[1];
    if (shape.size() == 3 && shape[1] == size_t{level.width} * level.height) return shape[2];
    return 0;
}

Result<Form> find_form(const HeadRequest& request) {
    const auto& strides = request.info.strides;
    const int stride = strides.size() == 1 ? strides.front() : published_stride;
    const Level level = make_grid(request.width, request.height, {&stride, 1}, 1).levels.front();
    std::optional<Form> form;
    for (size_t i = 0; strides.size() < 2 && i < request.outputs.size(); ++i) {
        const size_t channels = channels_of(request.outputs[i], level);
        if (channels <= box_columns) continue;
        if (form) return role_error(request, "boxes", "[1,5+C,h,w]");
        form = Form{i, level, static_cast<unsigned>(channels - box_columns)};
    }
    if (form) return *form;
    const std::string found = outputs_text(request.outputs);
    const std::string expected = std::to_string(size_t{level.width} * level.height);
    return head_error(request, "dec-positions",
                      "an input of " + std::to_string(request.width) + "x" +
                          std::to_string(request.height) + " has " + expected +
                          " cells of the one stride " + std::to_string(stride) +
                          ", but no output is [1,5+C," + std::to_string(level.height) + "," +
                          std::to_string(level.width) + "] or [1," + expected + ",5+C], found " +
                          found + "; check x-vartml-strides, or choose another decoder",
                      found, expected, "x-vartml-strides=…");
}

}  // namespace

// A map of any number of channels could be anything: only the classes of COCO, or those that the
// sidecar promises, make it one.
bool fits_fastestdet(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find_form(silent);
    return form && request.outputs.size() == 1 &&
           form->classes == tensor_classes(request.info).value_or(80);
}

Result<std::unique_ptr<Head>> create_fastestdet(const HeadRequest& request) {
    auto form = find_form(request);
    if (!form) return std::move(form).error();
    auto checked = check_classes(request, request.outputs[form->output].name, form->classes);
    if (!checked) return checked.error();
    return std::unique_ptr<Head>(std::make_unique<FastestDet>(request, *form));
}

}  // namespace vartml::vision
