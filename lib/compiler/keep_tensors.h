// SPDX-License-Identifier: Apache-2.0
// A compiled model that also gives what is between its operators, to look for the first that is
// wrong.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/artifact/compiled_model.h"

namespace vartml::compiler {

// A tensor of the ONNX model, and the node of the program that makes it.
struct KeptTensor {
    std::string name;
    std::string node, kind;            // "Conv_12", "Conv+Relu"
    std::vector<std::string> sources;  // the ONNX nodes that the node came from
};

struct ModelWithTensors {
    artifact::CompiledModel model;
    std::vector<KeptTensor> tensors;  // in execution order, own outputs of the model included
    size_t in_onnx = 0;               // tensors between the ONNX operators that are left of folding
};

// Whether an operator gives codes of 8 bits.
bool computes_on_codes(const artifact::CompiledModel& model);
// Whether a program computes on codes of 8 bits although no operator of `onnx_file` gives any: what
// `vartml compile --quantize` makes. Errors: those of onnx::import_onnx.
Result<bool> was_quantised(const artifact::CompiledModel& model, const std::string& onnx_file);

// The programs of `model`, with every tensor as an output in its CPU view that holds what the
// tensor of that name in `onnx_file` holds. What the passes fused is not there; neither is a tensor
// that an operator was moved past. Errors: those of onnx::import_onnx.
Result<ModelWithTensors> keep_tensors(artifact::CompiledModel model, const std::string& onnx_file);

}  // namespace vartml::compiler
