// SPDX-License-Identifier: Apache-2.0
// A compiled model beside what ONNX Runtime gave before, in the process that runs it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/verify/agreement.h"
#include "lib/tools/verify/compare.h"

namespace vartml::verify {

// What ONNX Runtime gave lies in folders of these names; only the first must be there. "nudged" is
// the graph as it is written, with an input that differs by one in a million.
inline constexpr const char* reference_levels[] = {"disabled", "basic", "extended", "all"};
inline constexpr const char* nudged_reference = "nudged";
inline constexpr const char* rounded_reference = "rounded";

struct FolderCheck {
    std::string model;  // the ONNX file, beside which a sidecar may lie
    std::string compiled;
    std::string folder;  // with a request, and a folder of outputs per reference
    std::string numerics = "auto";
    Rule rule = Rule::standard;
};

struct FolderVerdict {
    bool agrees = false;
    bool is_undecided = false;  // what does not agree cannot be judged
    std::string text;           // what differs most, or how near it is
    double seconds = 0;         // of a run
};

// Errors: those of Session; invalid_argument where the request does not fit the model.
Result<FolderVerdict> check_folder(const FolderCheck& check);

std::string to_json(const FolderVerdict& verdict);
// Errors: bad_model.
Result<FolderVerdict> verdict_of_json(const std::string& text);

// Tensors in a folder, which is how processes hand them to each other: `request` or `outputs` has a
// line per tensor, its bytes are in `input_<i>` or `output_<i>`; ort.cpp says the form.

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
