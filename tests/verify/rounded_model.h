// SPDX-License-Identifier: Apache-2.0
// An ONNX model as an ideal bf16 device runs it: every float tensor, weights and border included,
// is rounded to bf16 where it is made, and nothing else changes.
#pragma once
#include <string>

#include "lib/onnx/proto.h"

namespace vartml::test {

// Puts a rounding (to nearest) behind every float tensor of the main graph that depends on an
// input, and before every constant that an operator reads as numbers. What only decides about
// shapes stays: scales of Resize and of codes, everything that follows from constants and shapes
// alone. Outputs keep their names. Operators of other domains are left as they are, and so is what
// is inside If and Loop.
void round_to_bf16(onnx::pb::ModelProto& model);

}  // namespace vartml::test
