// SPDX-License-Identifier: Apache-2.0
// Puts the conversion and normalisation of a picture input into the program.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What `--embed-preprocess NAME:u8,rgb,hwc,mean=…,scale=…` says.
struct EmbeddedPreprocess {
    std::string input;
    std::string order;               // of the bytes: rgb, bgr, rgbx, bgrx, gray
    std::vector<float> mean, scale;  // per channel in that order; one number stands for all
};

// Errors: invalid_argument, a sentence that begins with the option.
Result<EmbeddedPreprocess> parse_embedded_preprocess(const std::string& text);

// The input becomes uint8 [1, H, W, bytes per pixel]; the model goes on with
// (byte - mean) * scale. Errors: invalid_argument where the model has no such input, or one of
// another shape or type.
Result<void> embed_preprocess(graph::Graph& graph, const EmbeddedPreprocess& preprocess);

}  // namespace vartml::compiler
