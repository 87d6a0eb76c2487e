// SPDX-License-Identifier: Apache-2.0
// A compiled model beside what ONNX Runtime gave before, in the process that runs it.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/verify/agreement.h"

namespace vartml::verify {

// What ONNX Runtime gave lies in folders of these names; only the first must be there. "nudged" is
// the graph as it is written, with an input that differs by one in a million.
inline constexpr const char* reference_levels[] = {"disabled", "basic", "extended", "all"};
inline constexpr const char* nudged_reference = "nudged";
inline constexpr const char* rounded_reference = "rounded";

struct FolderCheck {
    std::string model;  // the ONNX file, beside which a sidecar may lie
    std::string compiled;
    std::string folder;  // with a request (tensor_folder.h), and a folder of outputs per reference
    std::string numerics = "auto";
    Rule rule = Rule::standard;
};

struct FolderVerdict {
    bool agrees = false;
    std::string text;    // what differs most, or how near it is
    double seconds = 0;  // of a run
};

// Errors: those of Session; invalid_argument where the request does not fit the model.
Result<FolderVerdict> check_folder(const FolderCheck& check);

std::string to_json(const FolderVerdict& verdict);
// Errors: bad_model.
Result<FolderVerdict> verdict_of_json(const std::string& text);

}  // namespace vartml::verify
