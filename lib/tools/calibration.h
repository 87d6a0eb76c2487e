// SPDX-License-Identifier: Apache-2.0
// The inputs that an int8 model is made from: `vartml compile --quantize DIR`.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <vartml/result.h>

#include "lib/compile/compile.h"
#include "lib/model/entries.h"
#include "lib/tools/calibration_cache.h"

namespace vartml::tools {

class CalibrationSet {
public:
    // Each file of `dir` (.npy, .pb, .png, .jpg) is a sample of a model with one input, each folder
    // in it a sample of input_<i>.npy or .pb; a clip (.mp4, .mkv, .webm, .mov, .avi) is many
    // pictures, which GStreamer decodes. `dir` may be one such file. Errors: not_found, io,
    // invalid_argument where there is no sample.
    static Result<CalibrationSet> open(const std::string& dir);

    // Stands for the names and bytes of all samples.
    const std::string& key() const { return key_; }

    // compiler::QuantiseRequest::remember.
    Result<std::string> remember(const std::string& key,
                                 const std::function<Result<std::string>()>& make) const {
        return cache_.get(key, make);
    }

    // compiler::QuantiseRequest::measure. Keeps the model's own outputs for cost().
    Result<compiler::Statistics> measure(const artifact::CompiledModel& probe, size_t own_outputs);

    // compiler::QuantiseRequest::run_both, behind measure().
    Result<void> run_both(const artifact::CompiledModel& exact,
                          const artifact::CompiledModel& found, size_t most_samples,
                          const compiler::Take& take);

    // compiler::QuantiseRequest::judge, behind measure(): on some of the samples. Where the model
    // has a decoder of boxes that finds some, the agreement is that of the objects, else the least
    // one of an output.
    Result<compiler::Verdict> judge(const artifact::CompiledModel& trial);

    // What int8 cost on the set, or on as much of it as memory may keep the outputs of: a line per
    // output of the compiled model, and one for boxes.
    Result<std::string> cost(const std::string& compiled);

private:
    struct Comparison;
    struct Sample {
        std::string name;
        std::vector<std::string> files;  // one per input
    };
    // What the model reads of a sample, an entry per input.
    using Inputs = std::vector<std::vector<std::byte>>;
    Result<std::shared_ptr<const Inputs>> load(size_t sample);
    Result<std::shared_ptr<const Inputs>> read_shared(size_t sample,
                                                      const std::vector<TensorInfo>& inputs) const;
    Result<Inputs> read(const Sample& sample, const std::vector<TensorInfo>& inputs) const;
    Result<Inputs> read_picture(const std::string& file,
                                const std::vector<TensorInfo>& inputs) const;
    static bool is_picture(const Sample& sample);
    Result<void> add_clip(const std::string& clip);
    Result<void> choose_preprocess(const artifact::CompiledModel& model);
    void choose_decoder(const artifact::CompiledModel& model, size_t own_outputs);
    void choose_compared();
    Result<std::string> run_probe(const std::string& probe, size_t own_outputs);
    bool take_measured(std::string_view bytes, compiler::Statistics& statistics);
    Result<compiler::Verdict> judge_file(const std::string& path);
    // `takes_pixels`: the inputs of a model with an embedded pre-process, else null.
    Result<Comparison> compare(const std::string& compiled, size_t most_samples,
                               const std::vector<TensorInfo>* takes_pixels);
    Decoded decode(std::span<const std::span<const float>> outputs);

    std::string dir_, key_;
    CalibrationCache cache_{""};
    bool was_known_ = true;  // no sample had to be run to measure
    std::vector<Sample> samples_;
    std::shared_ptr<artifact::ExtractionFolder> frames_;  // of clips, gone with the last set
    std::vector<TensorInfo> inputs_;
    std::vector<std::shared_ptr<const Inputs>> loaded_;  // per sample, as many as memory may take
    size_t loaded_bytes_ = 0;
    size_t picture_ = 0;  // the input that pictures become
    PreprocessOptions preprocess_;
    std::vector<std::string> names_;                       // of the model's own outputs
    std::vector<size_t> compared_;                         // samples, in their order
    std::vector<std::vector<std::vector<float>>> floats_;  // per compared sample and own output
    std::vector<TensorInfo> outputs_;                      // the model's own
    ModelInfo info_;
    std::shared_ptr<Decoder> decoder_;  // of boxes; nullptr: the model has none
    uint32_t width_ = 0, height_ = 0;   // of the picture that it decodes for
};

}  // namespace vartml::tools
