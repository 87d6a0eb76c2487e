// SPDX-License-Identifier: Apache-2.0
// From the outputs of a model to detections: the code under test beside its reference.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>

#include "lib/tools/verify/compare.h"
#include "lib/vision/families.h"
#include "lib/vision/output_views.h"

namespace vartml::verify {

// What was fed: the size of the frame, and the way of boxes to it.
struct Frame {
    uint32_t width = 0, height = 0;
    Affine to_frame;
};

class DecodePath {
public:
    // `width` and `height` of the model's picture input. Errors: those of Decoder::create.
    static Result<DecodePath> create(const ModelInfo& info, const std::vector<TensorInfo>& outputs,
                                     uint32_t width, uint32_t height, const std::string& decoder);
    DecodePath(DecodePath&&) = default;

    std::string_view family() const { return decoder_->family(); }
    // Whether the model itself selects boxes and orders them by score.
    bool lists_boxes() const;
    float score_threshold() const { return threshold_; }
    std::string label(int32_t class_id) const { return decoder_->label(class_id); }
    std::string doubt() const { return decoder_->doubt(); }
    std::string suspicion() const { return decoder_->suspicion(); }

    // Under test: what a pipeline runs.
    Result<vision::Candidates> candidates(std::span<const OutputTensor> tensors,
                                          const Frame& frame);
    Result<Decoded> decode(std::span<const OutputTensor> tensors, const Frame& frame);

    // The reference, from values that are dense in their CPU views. Families with a formula of
    // their own here: yolox, yolo-v5, yolo-v8, ultraface; the others run their decoder on floats.
    Result<vision::Candidates> reference_candidates(const std::vector<TensorData>& values,
                                                    const Frame& frame);
    // Greedy NMS and the limits in plain loops. `iou_shift` is added to the threshold.
    Decoded reference_select(vision::Candidates candidates, const Frame& frame,
                             double iou_shift = 0) const;

private:
    DecodePath() = default;
    vision::HeadRequest request() const { return {*info_, *outputs_, width_, height_, nullptr}; }

    std::unique_ptr<ModelInfo> info_;
    std::unique_ptr<std::vector<TensorInfo>> outputs_;
    std::unique_ptr<vision::CodedOutputs> coded_;
    std::optional<vision::BatchAxis> batch_axis_;  // where the heads are made for outputs with one
    uint32_t width_ = 0, height_ = 0;
    std::unique_ptr<Decoder> decoder_;
    const vision::Family* family_ = nullptr;
    std::unique_ptr<vision::Head> head_, float_head_;
    float threshold_ = 0;
    double iou_ = 0;
};

// Descriptions of tensors in their CPU views.
std::vector<OutputTensor> cpu_tensors(const std::vector<TensorInfo>& infos,
                                      const std::vector<TensorData>& values);

}  // namespace vartml::verify
