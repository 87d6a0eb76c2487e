// SPDX-License-Identifier: Apache-2.0
// The entry `modelinfo` of a compiled model: which decoder reads the outputs and how pictures
// become the input.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::compiler {

struct SidecarRequest {
    std::string model;                                   // path of the ONNX file
    std::string decoder;                                 // nick, or ""
    std::string labels;                                  // file, or ""
    const std::map<std::string, std::string>& metadata;  // metadata_props of the model
    std::span<const TensorInfo> inputs, outputs;
    std::vector<ModelInfo::Output> meanings = {};  // of outputs, as output_meanings gives them
    std::optional<unsigned> class_count = {};      // as class_count gives it
    std::vector<ModelInfo::Input> weights = {};    // of inputs, as input_meanings gives them
    ModelInfo::Input pixels = {};  // mean, scale and channels of the picture, where they are said
};

// The text of the entry, "" where nothing is known. From the decoder and labels asked for; else the
// file MODEL.modelinfo or MODEL without its ending .modelinfo beside the model; else the metadata
// that Ultralytics writes (names, task). What the graph itself shows of the outputs stands behind
// it. What `pixels` says stands in the section of the picture. Something odd that is no failure
// goes to `warnings`. Errors: invalid_argument for a decoder that does not exist or does not fit
// the outputs, for a file that is wrong, and for pixels that it contradicts or that no input takes.
Result<std::string> make_modelinfo(const SidecarRequest& request,
                                   std::vector<std::string>& warnings);

// What `decoder` may be, as in "classify, ssd".
std::string decoder_nicks();

// Files that make_modelinfo reads, as bytes: what decides whether a compiled model is up to date.
Result<std::string> sidecar_inputs(const std::string& model, const std::string& labels);

// Reads the Python literals that training tools leave in a model's metadata.

// "{0: 'person', 1: \"bicycle\"}" or "['person', 'bicycle']": the strings by index. Nothing for any
// other text, for indices that do not run from 0 without a gap, and for more than 65536 entries.
std::optional<std::vector<std::string>> parse_python_names(std::string_view text);

// "[640, 640]", "(640, 640)", "640": the numbers.
std::optional<std::vector<int64_t>> parse_python_ints(std::string_view text);

}  // namespace vartml::compiler
