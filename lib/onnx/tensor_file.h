// SPDX-License-Identifier: Apache-2.0
// A file that holds one TensorProto, as ONNX keeps test data in (input_0.pb).
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/onnx/tensor.h"

namespace vartml::onnx {

// Errors: not_found, io, bad_model, unsupported (external data, strings).
Result<TensorValue> read_tensor_file(const std::string& path);

}  // namespace vartml::onnx
