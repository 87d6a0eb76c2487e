// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime, behind its child program, says of a model while another one is compiled.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/onnx/import.h"

namespace vartml::compiler {

// For onnx::ForeignOptions::ask.
Result<std::vector<onnx::ForeignOutput>> ask_onnxruntime(const std::string& model);

}  // namespace vartml::compiler
