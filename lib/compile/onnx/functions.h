// SPDX-License-Identifier: Apache-2.0
// Functions that a model brings along become the nodes that they stand for.
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {

// Leaves a model without functions; those that nothing calls go without a look. `file` is for
// messages. Errors: bad_model for functions without end and for what cannot be inlined; unsupported
// for a function that uses another operator set than the model, where that makes a difference.
Result<void> inline_functions(const std::string& file, pb::ModelProto& model);

}  // namespace vartml::onnx
