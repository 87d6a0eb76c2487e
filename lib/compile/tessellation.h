// SPDX-License-Identifier: Apache-2.0
// --tessellate: the layouts in which the NPU exchanges the model's inputs and outputs.
#pragma once
#include <map>
#include <set>
#include <string>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

struct Tessellation {
    std::map<std::string, Layout> hw_layouts;  // by tensor, where one is asked for
    std::set<std::string> without_hw;          // tensors that the host converts
};

// What `wish` asks for: "" nothing, "default" HWC for 4-D inputs and HWC16 for 4-D outputs with
// N = 1, else the name of a JSON file: an object from tensor to tile_shape, enable_mla and
// dram_layout. Errors: invalid_argument naming file, tensor and what is accepted.
Result<Tessellation> read_tessellation(const std::string& wish, const graph::Graph& graph);

// What decides the result, for the cache: the wish, and the file's text. Errors: invalid_argument.
Result<std::string> tessellation_key(const std::string& wish);

}  // namespace vartml::compiler
