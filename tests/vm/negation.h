// SPDX-License-Identifier: Apache-2.0
// The model negation.onnx of models.cpp: what it must give for a picture.
#pragma once
#include <gst/video/video.h>

#include <string>
#include <vector>

namespace vartml::test {

constexpr unsigned negation_width = 64, negation_height = 48;

std::string negation_model();  // path of the compiled model

// Minus the picture as the library's pre-processing gives it for frames in plain, dense memory, in
// bf16; [H, W, C].
std::vector<float> negated(const GstVideoInfo& format, const std::vector<guint8>& pixels);

// The model's output in its HW view, which is HCWNC4 of bf16; [H, W, C].
std::vector<float> values_of_hw_view(const std::vector<guint8>& tensor);

}  // namespace vartml::test
