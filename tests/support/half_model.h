// SPDX-License-Identifier: Apache-2.0
// The twin of an ONNX model with floats of 16 bits, as exporters and converters make it.
#pragma once
#include "lib/compile/onnx/model_file.h"

namespace vartml::test {

enum class Border { fp16, f32 };

// All floats become fp16: weights, constants, Cast to float. With Border::f32 the model's inputs
// and outputs stay float, with a Cast behind and before them. What ONNX has in float only stays so:
// scales and regions of Resize, boxes and scores of NonMaxSuppression.
::onnx::ModelProto half_twin(::onnx::ModelProto model, Border border);

// The model of floats with the weights and constants that its twin has.
::onnx::ModelProto with_half_weights(::onnx::ModelProto model);

}  // namespace vartml::test
