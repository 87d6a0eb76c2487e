// SPDX-License-Identifier: Apache-2.0
// Shapes of the model's inputs: open axes get their numbers.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/graph/graph.h"

namespace vartml::onnx {

struct BoundInput {
    std::string name;
    graph::Type type;
    int32_t elem_type = 0;  // as the file has it
};

// Where the numbers of open axes come from, besides the file's own.
struct BindOptions {
    std::map<std::string, std::vector<int64_t>> shapes;  // by input: what the user said
    // For every axis that is still open; 0 = none, which is an error.
    int64_t example = 0;
    int64_t batch = 1;  // of first axes that nothing else binds
};

// The inputs that are no initialisers, in the order of the file. An axis without a number is open.
// Axes of one name are one symbol, which is bound everywhere once it is bound; axes without a name
// (also "?", "None" and the like) are independent. In this order an axis gets its number from
//   - `shapes`;
//   - the size that Ultralytics writes into the metadata (imgsz), for a picture's height and width;
//   - `batch`, for a first axis that is no picture's height or width;
//   - `example`.
// INFO lines say what came from the second and the third. Errors: invalid_argument for an option
// that does not fit; unsupported for an input that is no tensor, and for axes that stay open: the
// sentence has the options to give, with <name> where a number is missing. `open`, if given, tells
// that it is the latter.
Result<std::vector<BoundInput>> bind_inputs(const std::string& file, const pb::ModelProto& model,
                                            const BindOptions& options,
                                            std::vector<Message>& messages, bool* open = nullptr);

// The refusal of a model with open axes: what to type, with `example` in their places, or <name>
// where it is 0.
Error refuse_open_axes(const std::string& file, const pb::ModelProto& model,
                       const BindOptions& options);

// What to give to bind as `options` do, with the numbers in full: "--input-shape x:2,3,64,64".
std::string shape_options(const std::string& file, const pb::ModelProto& model,
                          const BindOptions& options);

// Sizes to try for open axes, the likeliest first.
std::vector<int64_t> example_sizes(const pb::ModelProto& model);

}  // namespace vartml::onnx
