// SPDX-License-Identifier: Apache-2.0
// What `vartml verify` found: plain words first, then a table, or the same as JSON.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vartml::verify {

// In the order of a frame. Each is judged by itself: it gets what the reference gave before it.
enum class Stage { preprocess, model, dequantise, decode, suppress };
std::string_view to_string(Stage stage);  // pre-process, model, dequantisation, decode, NMS

// What was found at a stage for one tensor or decoder: the worst of all samples.
struct Finding {
    Stage stage = Stage::model;
    std::string subject;  // "output 'boxes'"
    bool is_good = true;
    std::string text;           // "cosine 0.99987, at least 0.999"
    double excess = 0;          // the difference as a part of the tolerance
    double of_range = 0;        // Stage::model: largest difference as a part of the output's range
    std::string sample;         // where it was worst
    bool is_empty = false;      // no sample had anything to compare
    bool is_undecided = false;  // not good, and no fault: the reference is too far from itself
};

// What a family gives of the whole picture that is neither box nor class: the worst of all frames.
struct PictureEffect {
    size_t maps = 0;         // class maps of the reference
    double same_pixels = 1;  // part of a map's pixels that have the same class
    size_t points = 0;       // key points of the reference
    double point_shift = 0;  // pixels of the model's input
    size_t embeddings = 0;
    double cosine = 1;
    size_t texts = 0, same_texts = 0;  // frames where either side reads one
};

// What all stages together do to what is found in the frames. A detection is found again where the
// other side has one of the same class and an IoU of at least 0.5.
struct Effect {
    double least_iou = 0.9, most_score = 0.1;
    std::string decoder;
    size_t expected = 0, found = 0;  // detections of the reference, and those found again
    size_t missing = 0, added = 0;   // without those at the threshold
    size_t at_threshold = 0;         // missing or added, nearer to it than most_score
    double worst_iou = 1, worst_score = 0;
    size_t classified = 0, same_class = 0;  // frames with a class of the whole picture
    PictureEffect picture;                  // told, not judged: the outputs are
    std::string sample;                     // of the first that is not good
    bool is_good() const {
        return missing + added == 0 && same_class == classified && worst_iou >= least_iou &&
               worst_score <= most_score;
    }
};

// Which tensors inside the model differ.
struct LayerFinding {
    std::string tensor, node, kind;
    std::vector<std::string> sources;
    std::string text;
    double excess = 0;
    bool is_good = true;
};
struct Layers {
    size_t compared = 0, in_onnx = 0;
    size_t beyond = 0;                  // tolerance
    std::optional<LayerFinding> first;  // in execution order
    std::optional<LayerFinding> worst;
    bool ends_agree = false;  // the outputs of the model that gives its inner tensors are good
    std::string sample;
};

struct Report {
    std::string model, compiled, reference, device, compute_type;
    std::string kind;  // what the samples are: "picture", "stored input", "frame of random numbers"
    size_t samples = 0;
    std::vector<Finding> findings;  // by stage
    std::optional<Effect> effect;
    bool judge_effect = true;
    std::optional<Layers> layers;
    std::vector<std::string> notes;  // what was not checked, and why

    // What is undecided only where there is no other; null where every stage is good.
    const Finding* first_fault() const;
    bool is_good() const;
};

std::string console_text(const Report& report);
std::string json_text(const Report& report);

}  // namespace vartml::verify
