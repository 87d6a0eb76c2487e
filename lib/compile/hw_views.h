// SPDX-License-Identifier: Apache-2.0
// How the border tensors of a program look to an application (CPU view) and to the NPU (HW view).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/compile/passes/passes.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

struct ViewOptions {
    // NCHW or NHWC by tensor name, for 4-D tensors; others are detected.
    std::map<std::string, Layout> layouts = {};
    bool convert_floats = true;  // false: float tensors stay float32 on the NPU
    // Layout of the model's first 4-D input, which outputs follow; absent: found in the graph.
    std::optional<Layout> picture_layout = {};
    // Tensors between partitions: dense and of the CPU type in both views, layout GENERIC.
    std::set<std::string> inner = {};
    // Inputs that lead to indices, comparisons or coordinates: float32 on the NPU, too.
    std::set<std::string> exact = {};
    std::map<std::string, Layout> hw_layouts = {};     // that are asked for instead, by tensor name
    std::map<std::string, std::string> pictures = {};  // inputs of bytes: the order of a pixel's
    QuantisedEdges quantised = {};  // tensors of codes, whose CPU view is another type
    bool on_host = false;           // the graph runs on the CPU: no HW views
};

struct BorderViews {
    std::vector<TensorInfo> inputs, outputs;  // in the graph's order
};

// Layout of the first 4-D input; nothing where there is none.
std::optional<Layout> find_picture_layout(const graph::Graph& graph, const ViewOptions& options);

// The views of all inputs and outputs, decided by shape, type and the operators before an output:
// deterministic, whatever the host. Layout of the HW view: NHWC for N > 1 or C = 1, HCWNC4 for 2 to
// 4 channels, HCWNC8 for more, NHW for 3-D, GENERIC else. Type: as the CPU view, except that
// float32 becomes bf16 at inputs (but those in `exact`, and those that are only quantised) and at
// outputs that come straight from a convolution or matrix product.
BorderViews make_border_views(const graph::Graph& graph, const ViewOptions& options);

// Whether an output comes straight from a convolution or matrix product: behind it only its bias,
// one of Relu, LeakyRelu and Clip, and operators that move elements without changing them.
bool is_straight_after_matrix_work(const graph::Graph& graph, graph::ValueId output);

// --tessellate: the layouts in which the NPU exchanges the model's inputs and outputs.

struct Tessellation {
    std::map<std::string, Layout> hw_layouts;  // by tensor, where one is asked for
    std::set<std::string> without_hw;          // tensors that the host converts
};

// What `wish` asks for: "" nothing, "default" HWC for 4-D inputs and HWC16 for 4-D outputs with
// N = 1, else the name of a JSON file: an object from tensor to tile_shape, enable_mla and
// dram_layout. `device` is for messages. Errors: invalid_argument naming file, tensor and what is
// accepted.
Result<Tessellation> read_tessellation(const std::string& wish, const graph::Graph& graph,
                                       std::string_view device);

// What decides the result, for the cache: the wish, and the file's text. Errors: invalid_argument.
Result<std::string> tessellation_key(const std::string& wish);

}  // namespace vartml::compiler
