// SPDX-License-Identifier: Apache-2.0
// The first tensor inside a model that differs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/report.h"
#include "lib/tools/verify/session.h"

namespace vartml::verify {

// Runs the compiled model once more with what its operators hand to one another as outputs, beside
// ONNX Runtime with the same. `inputs` in the order of the model; `was_quantised` of
// connect.h. Errors: those of keep_tensors,
// Session and OnnxRuntime.
Result<Layers> compare_layers(const std::string& onnx_file, const std::string& compiled,
                              const Session::Options& options, const OnnxRuntime& reference,
                              const std::vector<TensorData>& inputs,
                              std::optional<double> tolerance, bool was_quantised);

}  // namespace vartml::verify
