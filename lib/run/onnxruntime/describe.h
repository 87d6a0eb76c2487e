// SPDX-License-Identifier: Apache-2.0
// What the outputs of a model are, asked by the compiler; part of the program vartml-onnxruntime.
#pragma once
#include <onnxruntime/onnxruntime_c_api.h>

namespace vartml::onnxruntime {

// Loads the model and writes a line per output to descriptor 3:
//   TYPE fixed D0,D1,…    a tensor; TYPE is the number of ONNX's TensorProto.DataType
//   TYPE varies D0,D1,…   a tensor whose shape follows the data: the largest that was seen
//   TYPE open             a tensor whose shape nothing tells
//   0                     no tensor
// "-" stands for no dimensions. Ends the process: 0, or 1 with ONNX Runtime's sentence on standard
// error.
[[noreturn]] void describe(const OrtApi* api, const char* path);

}  // namespace vartml::onnxruntime
