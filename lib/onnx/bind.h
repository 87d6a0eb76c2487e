// SPDX-License-Identifier: Apache-2.0
// Shapes of the model's inputs: symbolic dimensions get their numbers.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/graph/graph.h"
#include "lib/onnx/import.h"
#include "lib/onnx/proto.h"

namespace vartml::onnx {

struct BoundInput {
    std::string name;
    graph::Type type;
    int32_t elem_type = 0;  // as the file has it
};

// The inputs that are no initialisers, in the order of the file. A symbolic first axis (the batch)
// becomes 1, which one INFO line says; `shapes` binds the others; a symbol that is bound once is
// bound everywhere. Errors: invalid_argument for a dimension without a number and for an option
// that does not fit, unsupported for an input that is no tensor.
Result<std::vector<BoundInput>> bind_inputs(
    const std::string& file, const pb::GraphProto& graph,
    const std::map<std::string, std::vector<int64_t>>& shapes, std::vector<Message>& messages);

}  // namespace vartml::onnx
