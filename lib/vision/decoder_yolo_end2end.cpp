// SPDX-License-Identifier: Apache-2.0
// YOLO v10 and 26 with selection in the model: [1,N,6] of x0, y0, x1, y1 in model pixels, score,
// class. No NMS.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr uint32_t columns = 6;

class YoloEnd2end : public Head {
public:
    YoloEnd2end(size_t output, size_t positions, bool transposed, std::optional<unsigned> promised)
        : output_(output), transposed_(transposed), promised_(promised), found_(positions) {}

    unsigned classes() const override { return 0; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = matrix_of(tensors[output_]);
        if (!matrix) return std::move(matrix).error();
        const Matrix m = transposed_ ? transposed(*matrix) : *matrix;
        const size_t count = kernels::positions_above(scores_of(m, 4, 1), threshold, found_.data());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = found_[i];
            std::array<float, columns> v;
            for (uint32_t k = 0; k < columns; ++k) v[k] = m.value(row, k);
            if (std::ranges::all_of(v, [](float value) { return value == 0; })) {
                continue;  // a row that only fills the tensor
            }
            const float class_value = std::nearbyint(v[5]);
            if (std::isfinite(class_value) && !known(class_value)) {
                return class_error(tensors[output_].name, row, class_value, promised_);
            }
            const bool finite = std::isfinite(class_value);
            out.add({v[0], v[1], v[2], v[3], finite ? v[4] : class_value,
                     finite ? static_cast<int32_t>(class_value) : 0, row});
        }
        return {};
    }

private:
    bool known(float class_value) const {
        return class_value >= 0 && class_value < static_cast<float>(promised_.value_or(1'000'000));
    }

    size_t output_;
    bool transposed_;
    std::optional<unsigned> promised_;  // classes of the tensor
    std::vector<uint32_t> found_;
};

// Whether the shape is [1,N,6], or its transpose.
std::optional<bool> transposition(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    if (shape.size() != 3 || shape[0] != 1) return std::nullopt;
    if (shape[2] == columns) return false;
    if (shape[1] == columns) return true;
    return std::nullopt;
}

}  // namespace

// The number of rows is whatever the export asked for, as a rule 300; a number that is exactly the
// cells of a grid is a raw head.
bool fits_yolo_end2end(const HeadRequest& request) {
    if (request.outputs.size() != 1 || transposition(request.outputs[0]) != false) return false;
    const uint32_t rows = request.outputs[0].cpu.shape[1];
    return rows <= 1000 && !is_grid(request, rows);
}

Result<std::unique_ptr<Head>> create_yolo_end2end(const HeadRequest& request) {
    const TensorInfo* named = output_with_role(request, "boxes");
    for (const TensorInfo& output : request.outputs) {
        const auto transposed = transposition(output);
        if (!transposed || (named && named != &output)) continue;
        return std::unique_ptr<Head>(std::make_unique<YoloEnd2end>(
            static_cast<size_t>(&output - request.outputs.data()),
            output.cpu.shape[*transposed ? 2 : 1], *transposed, tensor_classes(request.info)));
    }
    const std::string found = outputs_text(request.outputs);
    return head_error(request, "dec-role",
                      "no output has the shape [1,N,6] of x0, y0, x1, y1, score and class, found " +
                          found + "; choose another decoder",
                      found, "[1,N,6]", "decoder=…");
}

}  // namespace vartml::vision
