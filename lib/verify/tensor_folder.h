// SPDX-License-Identifier: Apache-2.0
// Tensors in a folder, which is how processes hand them to each other: `request` or `outputs` has a
// line per tensor, its bytes are in `input_<i>` or `output_<i>`; ort.cpp says the form.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/verify/compare.h"

namespace vartml::verify {

struct NamedTensor {
    std::string name;
    TensorData data;
};

// A line "1 1,3,416,416 images" without the bytes; false for what is no such line.
bool parse_tensor_line(std::string_view line, NamedTensor& tensor);

// `keep`: tensors inside the model to give, too. Errors: io.
Result<void> write_request(const std::string& folder, const std::vector<NamedTensor>& inputs,
                           const std::vector<std::string>& keep = {});
// Errors: not_found, io.
Result<std::vector<NamedTensor>> read_request(const std::string& folder);
Result<std::map<std::string, TensorData>> read_outputs(const std::string& folder);

// What an output that is a map is called (`maps`: output and tensor of its numbers) becomes a name
// of that tensor, where it is there.
void name_numbers_of_maps(const std::map<std::string, std::string>& maps,
                          std::map<std::string, TensorData>& outputs);

}  // namespace vartml::verify
