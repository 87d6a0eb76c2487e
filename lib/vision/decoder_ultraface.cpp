// SPDX-License-Identifier: Apache-2.0
// UltraFace with the boxes decoded in the model: scores [1,N,2] of background and face, corners
// [1,N,4] in 0 to 1.
#include <array>
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

// Anchors per cell of the published models, by stride.
constexpr std::array<int, 4> strides{8, 16, 32, 64};
constexpr std::array<unsigned, 4> anchors{3, 2, 2, 3};

size_t published_positions(uint32_t width, uint32_t height) {
    size_t positions = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
        positions += make_grid(width, height, {&strides[i], 1}, anchors[i]).positions;
    }
    return positions;
}

class UltraFace : public Head {
public:
    UltraFace(size_t scores, size_t boxes, size_t positions, uint32_t width, uint32_t height)
        : scores_(scores),
          boxes_(boxes),
          width_(static_cast<float>(width)),
          height_(static_cast<float>(height)),
          found_(positions) {}

    unsigned classes() const override { return 1; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto scores = matrix_of(tensors[scores_]);
        if (!scores) return std::move(scores).error();
        auto boxes = matrix_of(tensors[boxes_]);
        if (!boxes) return std::move(boxes).error();
        const size_t count =
            kernels::positions_above(scores_of(*scores, 1, 1), threshold, found_.data());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t p = found_[i];
            out.add({boxes->value(p, 0) * width_, boxes->value(p, 1) * height_,
                     boxes->value(p, 2) * width_, boxes->value(p, 3) * height_, scores->value(p, 1),
                     0, p});
        }
        return {};
    }

private:
    size_t scores_, boxes_;  // indices of the outputs
    float width_, height_;
    std::vector<uint32_t> found_;
};

// The output with the role, else the only one of shape [1,N,columns].
const TensorInfo* output_of(const HeadRequest& request, std::string_view role, uint32_t columns) {
    if (const TensorInfo* named = output_with_role(request, role)) return named;
    const TensorInfo* only = nullptr;
    for (const TensorInfo& output : request.outputs) {
        const auto& shape = output.cpu.shape;
        if (shape.size() != 3 || shape[0] != 1 || shape[2] != columns) continue;
        if (only) return nullptr;
        only = &output;
    }
    return only;
}

}  // namespace

bool fits_ultraface(const HeadRequest& request) {
    const TensorInfo* scores = output_of(request, "scores", 2);
    const TensorInfo* boxes = output_of(request, "boxes", 4);
    return request.outputs.size() == 2 && scores && boxes &&
           scores->cpu.shape[1] == boxes->cpu.shape[1] &&
           boxes->cpu.shape[1] == published_positions(request.width, request.height);
}

Result<std::unique_ptr<Head>> create_ultraface(const HeadRequest& request) {
    const TensorInfo* scores = output_of(request, "scores", 2);
    const TensorInfo* boxes = output_of(request, "boxes", 4);
    const auto has_columns = [](const TensorInfo* output, uint32_t columns) {
        return output && output->cpu.shape.size() == 3 && output->cpu.shape[0] == 1 &&
               output->cpu.shape[2] == columns;
    };
    const bool no_scores = !has_columns(scores, 2);
    if (no_scores || !has_columns(boxes, 4)) {
        const std::string role = no_scores ? "scores [1,N,2]" : "boxes [1,N,4]";
        const std::string found = outputs_text(request.outputs);
        return head_error(
            request, "dec-role",
            "no single output is the " + role + ", found " + found +
                "; name it in the sidecar with x-vartml-role, or choose another decoder",
            found, role, no_scores ? "x-vartml-role=scores" : "x-vartml-role=boxes");
    }
    const size_t expected = published_positions(request.width, request.height);
    for (const TensorInfo* output : {scores, boxes}) {
        const size_t found = output->cpu.shape[1];
        if (found == expected) continue;
        return head_error(request, "dec-positions",
                          "tensor '" + output->name + "' has " + std::to_string(found) +
                              " positions, but an input of " + std::to_string(request.width) + "x" +
                              std::to_string(request.height) + " gives " +
                              std::to_string(expected) +
                              " with the strides 8,16,32,64 and 3,2,2,3 anchors of UltraFace; "
                              "choose another decoder",
                          std::to_string(found), std::to_string(expected), "decoder=…");
    }
    auto checked = check_classes(request, scores->name, 1);
    if (!checked) return checked.error();
    const auto index = [&](const TensorInfo* output) {
        return static_cast<size_t>(output - request.outputs.data());
    };
    return std::unique_ptr<Head>(std::make_unique<UltraFace>(index(scores), index(boxes), expected,
                                                             request.width, request.height));
}

}  // namespace vartml::vision
