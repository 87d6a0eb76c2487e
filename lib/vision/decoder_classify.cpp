// SPDX-License-Identifier: Apache-2.0
// Classification: [1,C] or [1,C,1,1] of scores, softmaxed here when the model leaves that to
// others.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

// given: upstream's tensor id of scores before softmax
constexpr std::string_view logits_id = "classification-generic-out";

// ours: how far scores may lie outside of 0 to 1, or their sum from 1, for the sake of rounding
constexpr float rounding = 0.02f, sum_rounding = 0.05f;
// ours: of coordinates; scores of labels that may hold together are mostly near 0
constexpr float least_mean = 0.2f;
// ours: of pixels; training keeps the mean of the logits of a softmax where it was, near 0. Those
// of texts and pictures are all positive, but nearer to each other.
constexpr double least_lopsided = 0.6;  // mean, in standard deviations
constexpr float least_range = 50;       // between the least and the greatest
constexpr unsigned least_pixels = 16;   // numbers that tell

class Classify : public Head {
public:
    // `certain`: there is more than the name of the decoder to say that these are scores of
    // classes.
    Classify(size_t output, unsigned classes, std::string_view activation, bool certain)
        : output_(output),
          classes_(classes),
          softmax_(activation == "softmax"),
          by_values_(activation.empty()),
          certain_(certain),
          activation_(activation) {
        values_.resize(classes);
    }

    unsigned classes() const override { return classes_; }
    std::string_view activation() const override {
        return softmax_                   ? "softmax"
               : by_values_               ? ""
               : activation_.is_sigmoid() ? "sigmoid"
                                          : "none";
    }

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
        look_at_values(greatest);
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

    std::string doubt() const override {
        if (certain_) return {};
        if (unit_length_)
            return "the " + std::to_string(classes_) +
                   " numbers have the length 1 and negative ones among them: that is an embedding";
        if (in_units_)
            return "the " + std::to_string(classes_) +
                   " numbers lie between 0 and 1, but are neither probabilities, which sum up to "
                   "1, nor logits, of which some are negative: such are landmarks";
        if (in_pixels_)
            return "the " + std::to_string(classes_) +
                   " numbers are far apart and mostly positive, neither probabilities nor logits, "
                   "whose mean is near 0: such are landmarks in pixels";
        if (classes_ == 1) return "one number is no choice between classes";
        return {};
    }

private:
    // Numbers beyond 0 to 1 are no scores yet; the first such frame decides for all that follow.
    void look_at_values(float greatest) {
        if (certain_ && !by_values_) return;
        double sum = 0, squares = 0;
        float least = INFINITY;
        for (const float value : values_) {
            if (!std::isfinite(value)) continue;
            sum += value;
            squares += double(value) * value;
            least = std::min(least, value);
        }
        const bool inside = least >= -rounding && greatest <= 1 + rounding;
        if (by_values_ && !inside) softmax_ = true;
        const bool bare = softmax_ || by_values_;  // the model has no activation that we know of
        unit_length_ =
            bare && least < -rounding && classes_ >= 16 && std::abs(squares - 1) < rounding;
        in_units_ = bare && inside && classes_ >= 8 && std::abs(sum - 1) > sum_rounding &&
                    sum > least_mean * classes_;
        const double mean = sum / classes_,
                     deviation = std::sqrt(std::max(0., squares / classes_ - mean * mean));
        in_pixels_ = bare && classes_ >= least_pixels && greatest - least > least_range &&
                     mean > least_lopsided * deviation;
    }

    size_t output_;
    unsigned classes_;
    bool softmax_, by_values_, certain_;
    bool unit_length_ = false, in_units_ = false, in_pixels_ = false;  // the last numbers
    Activation activation_;
    std::vector<float> values_;
};

// Sizes of the classifications that models are published for.
constexpr uint32_t published_classes[] = {1000, 1001, 21841, 21843};
constexpr std::string_view class_hints[] = {"class",   "prob",    "logit",
                                            "softmax", "categor", "label"};

bool says_classes(std::string text) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return std::ranges::any_of(class_hints,
                               [&](std::string_view hint) { return text.find(hint) != text.npos; });
}

// Whether model or sidecar say so, beside the name of the decoder.
bool hold_class_scores(const HeadRequest& request, const TensorInfo& output) {
    const std::string_view end = ends_in(request, output);
    return promised_classes(request.info) || !request.info.activation.empty() ||
           output_with_role(request, "scores") == &output || end == "softmax" ||
           end == "log-softmax" || end == "sigmoid" ||
           std::ranges::find(published_classes, output.cpu.shape[1]) !=
               std::ranges::end(published_classes) ||
           says_classes(output.name) || says_classes(std::string(tensor_id(request, output)));
}

}  // namespace

bool are_classes(const HeadRequest& request, const TensorInfo& output) {
    return request.info.decoder == "classify" || hold_class_scores(request, output);
}

bool may_be_other_than_classes(const HeadRequest& request, const TensorInfo& vector) {
    constexpr uint32_t least_numbers = 64;  // ours: of embeddings and faces that are published
    const std::string_view end = ends_in(request, vector);
    return request.outputs.size() == 1 && is_class_vector(vector.cpu.shape) &&
           vector.cpu.shape[1] >= least_numbers && (is_linear(end) || end == "relu") &&
           !are_classes(request, vector);
}

bool fits_classify(const HeadRequest& request) {
    const bool something_else =
        output_with_role(request, "embedding") || output_with_role(request, "landmarks");
    return request.outputs.size() == 1 && is_class_vector(request.outputs[0].cpu.shape) &&
           request.outputs[0].cpu.shape[1] > 1 && !something_else &&
           ends_in(request, request.outputs[0]) != "unit-length";
}

Result<std::unique_ptr<Head>> create_classify(const HeadRequest& request) {
    const TensorInfo* chosen = output_with_role(request, "scores");
    const TensorInfo* number = nullptr;  // no choice between classes, where there is a vector
    for (const TensorInfo& output : request.outputs) {
        if (!is_class_vector(output.cpu.shape)) continue;
        const TensorInfo*& first = output.cpu.shape[1] > 1 ? chosen : number;
        if (!first) first = &output;
    }
    if (!chosen) chosen = number;
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
    const bool logits = tensor_id(request, *chosen) == logits_id;
    return std::unique_ptr<Head>(std::make_unique<Classify>(
        static_cast<size_t>(chosen - request.outputs.data()), classes,
        activation_for(request, *chosen, "softmax", logits ? "softmax" : ""),
        hold_class_scores(request, *chosen)));
}

}  // namespace vartml::vision
