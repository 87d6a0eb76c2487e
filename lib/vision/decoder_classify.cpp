// SPDX-License-Identifier: Apache-2.0
// Classification: [1,C] or [1,C,1,1] of scores, softmaxed here when the model leaves that to
// others.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

// given: upstream's tensor id of scores before softmax
constexpr std::string_view logits_id = "classification-generic-out";

class Classify : public Head {
public:
    Classify(size_t output, unsigned classes, std::string_view activation)
        : output_(output),
          classes_(classes),
          softmax_(activation == "softmax"),
          activation_(activation) {
        values_.resize(classes);
    }

    unsigned classes() const override { return classes_; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const float threshold = context.threshold;
        auto matrix = vector_of(tensors[output_]);
        if (!matrix) return std::move(matrix).error();
        float greatest = -INFINITY;
        for (unsigned c = 0; c < classes_; ++c) {
            values_[c] = matrix->value(0, c);
            if (std::isfinite(values_[c])) greatest = std::max(greatest, values_[c]);
        }
        float sum = 0;
        for (unsigned c = 0; softmax_ && c < classes_; ++c) {
            if (!std::isfinite(values_[c])) continue;
            values_[c] = std::exp(values_[c] - greatest);
            sum += values_[c];
        }
        for (unsigned c = 0; c < classes_; ++c) {
            const float score = softmax_ ? values_[c] / sum : activation_(values_[c]);
            if (!std::isfinite(values_[c])) {
                ++out.not_finite;
            } else if (score >= threshold) {
                out.classes.push_back({static_cast<int32_t>(c), score});
            }
        }
        return {};
    }

private:
    size_t output_;
    unsigned classes_;
    bool softmax_;
    Activation activation_;
    std::vector<float> values_;
};

}  // namespace

bool fits_classify(const HeadRequest& request) {
    const bool something_else =
        output_with_role(request, "embedding") || output_with_role(request, "landmarks");
    return request.outputs.size() == 1 && is_class_vector(request.outputs[0].cpu.shape) &&
           request.outputs[0].cpu.shape[1] > 1 && !something_else;
}

Result<std::unique_ptr<Head>> create_classify(const HeadRequest& request) {
    const TensorInfo* chosen = output_with_role(request, "scores");
    for (const TensorInfo& output : request.outputs) {
        if (!chosen && is_class_vector(output.cpu.shape)) chosen = &output;
    }
    if (!chosen || !is_class_vector(chosen->cpu.shape)) {
        const std::string found = outputs_text(request.outputs);
        return head_error(request, "dec-role",
                          "no output has the shape [1,C] or [1,C,1,1] of class scores, found " +
                              found + "; choose another decoder",
                          found, "[1,C]", "decoder=…");
    }
    const unsigned classes = chosen->cpu.shape[1];
    auto checked = check_classes(request, chosen->name, classes);
    if (!checked) return checked.error();
    const bool logits = request.info.activation.empty() && tensor_id(request, *chosen) == logits_id;
    return std::unique_ptr<Head>(std::make_unique<Classify>(
        static_cast<size_t>(chosen - request.outputs.data()), classes,
        logits ? std::string_view("softmax") : std::string_view(request.info.activation)));
}

}  // namespace vartml::vision
