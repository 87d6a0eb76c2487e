// SPDX-License-Identifier: Apache-2.0
// A line of text read by connectionist temporal classification (PaddleOCR's recognisers,
// chineseocr_lite's CRNN, HyperLPR): scores of each character at each step along the line, [1,T,C]
// or [T,1,C]. The best character of a step counts where it is neither that of the step before nor
// the blank. The labels are the dictionary.
// given: Graves et al., "Connectionist Temporal Classification", best path decoding.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

struct Steps {
    size_t output = 0;
    uint32_t steps = 0, classes = 0;
};

bool is_sequence(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    return shape.size() == 3 && (shape[0] == 1 || shape[1] == 1) && shape[2] > 1 &&
           !is_whole(output);
}

uint32_t steps_of(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    return shape[0] == 1 ? shape[1] : shape[0];
}

std::optional<Steps> find_steps(const HeadRequest& request) {
    const TensorInfo* found = find_output(request, "scores", {}, is_sequence);
    if (!found) return std::nullopt;
    return Steps{static_cast<size_t>(found - request.outputs.data()), steps_of(*found),
                 found->cpu.shape[2]};
}

// The text of each class of the tensor, that of the blank empty; empty where the numbers differ.
// Dictionaries list characters without the blank, as a rule, and PaddleOCR adds a space behind.
std::vector<std::string> characters(const ModelInfo& info, uint32_t classes, uint32_t blank) {
    std::vector<std::string> texts = info.labels;
    if (texts.size() + 2 == classes) texts.emplace_back(" ");
    if (texts.size() + 1 == classes) texts.insert(texts.begin() + blank, std::string());
    if (texts.size() != classes) return {};
    texts[blank].clear();
    return texts;
}

class CtcText final : public Head {
public:
    CtcText(const Steps& form, std::vector<std::string> texts, uint32_t blank,
            std::string_view activation)
        : form_(form), texts_(std::move(texts)), blank_(blank), activation_(activation) {}

    unsigned classes() const override { return form_.classes; }
    std::string_view activation() const override { return activation_; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto values = view_.read(tensors[form_.output]);
        if (!values) return std::move(values).error();
        const size_t all = size_t{form_.steps} * form_.classes;
        if (activation_.empty()) activation_ = activation_of({*values, all});
        std::string& text = out.picture.text;
        double sum = 0;
        unsigned count = 0;
        uint32_t before = blank_;
        for (uint32_t step = 0; step < form_.steps; ++step) {
            const std::span row(*values + size_t{step} * form_.classes, form_.classes);
            const auto best = best_of(row, out.not_finite);
            const uint32_t now = best.value_or(blank_);
            if (now != blank_ && now != before) {
                text += texts_[now];
                sum += score_of(row, now);
                ++count;
            }
            before = now;
        }
        const double mean = count ? sum / count : 0;
        out.picture.text_score = static_cast<float>(mean);
        if (!(mean >= context.threshold)) text.clear();
        return {};
    }

private:
    // None in a step with numbers that are not finite.
    static std::optional<uint32_t> best_of(std::span<const float> row, unsigned& not_finite) {
        uint32_t best = 0;
        bool finite = true;
        for (uint32_t c = 0; c < row.size(); ++c) {
            finite &= std::isfinite(row[c]);
            if (row[c] > row[best]) best = c;
        }
        if (finite) return best;
        ++not_finite;
        return std::nullopt;
    }

    // Probabilities of a step lie in 0 to 1 and sum up to 1; others are logits.
    std::string_view activation_of(std::span<const float> values) const {
        for (size_t first = 0; first < values.size(); first += form_.classes) {
            double sum = 0;
            for (const float value : values.subspan(first, form_.classes)) {
                if (value < -0.001f) return "softmax";
                sum += value;
            }
            if (std::abs(sum - 1) > 0.05) return "softmax";
        }
        return "none";
    }

    double score_of(std::span<const float> row, uint32_t best) const {
        if (activation_ == "sigmoid") return 1 / (1 + std::exp(-double{row[best]}));
        if (activation_ != "softmax") return row[best];
        double sum = 0;
        for (const float value : row) sum += std::exp(double{value} - row[best]);
        return 1 / sum;
    }

    Steps form_;
    std::vector<std::string> texts_;
    uint32_t blank_;
    std::string_view activation_;  // "": the numbers of the first frame will show it
    FloatView view_;
};

std::string_view lasting(std::string_view activation) {
    for (const std::string_view known : {"softmax", "sigmoid", "none"})
        if (known == activation) return known;
    return {};
}

}  // namespace

namespace {

// The steps of CTC are columns of a map; those of a decoder with attention are as many as the
// longest text has characters, whatever the width. given: PARSeq, ViTSTR and TRBA take 25 and the
// mark of the end; where these are columns of a usual stride nothing tells.
bool are_characters(size_t steps, uint32_t width) {
    if (steps != 25 && steps != 26) return false;
    for (const uint32_t stride : {2U, 4U, 8U, 16U})
        if (steps + 1 >= width / stride && steps <= width / stride + 1) return false;
    return true;
}

}  // namespace

// Scores along a wide picture, one step for two columns of pixels at most. A detector's positions
// are scores along nothing.
bool fits_ctc_text(const HeadRequest& request) {
    if (request.outputs.size() != 1 || request.width < 2 * request.height) return false;
    const auto form = find_steps(request);
    if (!form || form->classes <= 10 || form->steps < 4 || form->steps > request.width / 2 ||
        are_characters(form->steps, request.width))
        return false;
    const std::string_view end = ends_in(request, request.outputs[0]);
    const bool scores = end == "softmax" || end == "log-softmax" || is_linear(end);
    return scores && !is_grid(request, form->steps) && !is_grid(request, form->classes);
}

Result<std::unique_ptr<Head>> create_ctc_text(const HeadRequest& request) {
    const auto form = find_steps(request);
    if (!form) return role_error(request, "scores", "[1,T,C] or [T,1,C]");
    const TensorInfo& output = request.outputs[form->output];
    const std::string tensor = "tensor '" + output.name + "' " + shape_text(output.cpu.shape);
    const std::string found = std::to_string(form->classes);
    const int said = request.info.blank.value_or(0);
    const uint32_t blank = said < 0 ? form->classes - 1 : static_cast<uint32_t>(said);
    if (blank >= form->classes) {
        return head_error(request, "dec-classes",
                          tensor + " has " + found + " characters, but " + source_of(request.info) +
                              " says x-vartml-blank=" + std::to_string(said) +
                              "; correct that line",
                          std::to_string(said), "less than " + found, "x-vartml-blank=…");
    }
    const std::string expected = std::to_string(form->classes - 1) +
                                 " lines (without the blank), " + found + " (with it), or " +
                                 std::to_string(form->classes - 2) + " (without blank and space)";
    if (request.info.labels.empty()) {
        return head_error(request, "dec-classes",
                          tensor + " scores " + found +
                              " characters at each step, but nobody says which they are; give the "
                              "dictionary that the model was trained with, a character per line, "
                              "by the property label-file or x-vartml-labels: " +
                              expected,
                          found, expected, "x-vartml-labels=…");
    }
    auto texts = characters(request.info, form->classes, blank);
    if (texts.empty()) {
        const std::string lines = std::to_string(request.info.labels.size());
        return head_error(request, "dec-classes",
                          tensor + " scores " + found + " characters, but the dictionary has " +
                              lines +
                              " lines; give the one that the model was trained with: " + expected,
                          found, expected, "x-vartml-labels=…");
    }
    return std::unique_ptr<Head>(std::make_unique<CtcText>(
        *form, std::move(texts), blank, lasting(activation_for(request, output, "softmax", ""))));
}

}  // namespace vartml::vision
