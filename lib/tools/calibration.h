// SPDX-License-Identifier: Apache-2.0
// The inputs that an int8 model is made from: `vartml compile --quantize DIR`.
#pragma once
#include <string>
#include <vector>

#include <vartml/preprocess.h>
#include <vartml/result.h>

#include "lib/compile/compile.h"

namespace vartml::tools {

class CalibrationSet {
public:
    // Each file of `dir` (.npy, .pb, .png, .jpg) is a sample of a model with one input, each folder
    // in it a sample of input_<i>.npy or .pb. Errors: not_found, io, invalid_argument where there
    // is no sample.
    static Result<CalibrationSet> open(const std::string& dir);

    // Stands for the names and bytes of all samples.
    const std::string& key() const { return key_; }

    // compiler::QuantiseRequest::measure. Keeps the model's own outputs for cost().
    Result<compiler::Statistics> measure(const artifact::CompiledModel& probe, size_t own_outputs);

    // What int8 cost on the set: a line per output of the compiled model.
    Result<std::string> cost(const std::string& compiled) const;

private:
    struct Sample {
        std::string name;
        std::vector<std::string> files;  // one per input
    };
    Result<std::vector<std::vector<std::byte>>> load(const Sample& sample,
                                                     const std::vector<TensorInfo>& inputs) const;
    Result<void> choose_preprocess(const artifact::CompiledModel& model);

    std::string dir_, key_;
    std::vector<Sample> samples_;
    std::vector<TensorInfo> inputs_;
    PreprocessOptions preprocess_;
    std::vector<std::string> names_;                       // of the model's own outputs
    std::vector<std::vector<std::vector<float>>> floats_;  // per sample and own output
};

}  // namespace vartml::tools
