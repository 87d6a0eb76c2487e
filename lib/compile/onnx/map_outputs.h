// SPDX-License-Identifier: Apache-2.0
// Outputs of a model that are no tensors: maps of names to numbers.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml::onnx {

struct MapOutputs {
    // Output and the tensor of its numbers, in the order of the names that ZipMap lists; a map
    // itself is in the order of its keys.
    std::map<std::string, std::string> numbers;
    std::vector<std::string> inside;  // such tensors that are no outputs themselves
};

// Errors: as import_onnx for a file that cannot be read or parsed.
Result<MapOutputs> map_outputs(const std::string& path);

}  // namespace vartml::onnx
