// SPDX-License-Identifier: Apache-2.0
// The frames of `vartml verify`: pictures, stored tensors, random numbers.
#pragma once
#include <string>
#include <vector>

#include <vartml/model.h>
#include <vartml/result.h>

#include "lib/verify/verify.h"

namespace vartml::tools {

class SampleList {
public:
    // Each place is a picture, or a folder: one with input_<i>.npy or .pb (and output_<i>, where
    // there are stored outputs) is a frame, another one holds pictures and such folders. Without
    // places one frame of fixed random numbers. Errors: not_found, invalid_argument for a place
    // without frames.
    static Result<SampleList> open(const std::vector<std::string>& places);

    size_t size() const { return sources_.size(); }
    std::string kind() const;  // verify::Report::kind
    bool is_random() const { return random_; }
    // Errors: those of reading; invalid_argument.
    Result<verify::Sample> load(size_t i, const ModelDescription& model) const;

private:
    struct Source {
        std::string name;
        std::string picture;                       // or
        std::vector<std::string> inputs, outputs;  // files
    };
    Result<void> add(const std::string& place);

    std::vector<Source> sources_;
    bool random_ = false;
};

}  // namespace vartml::tools
