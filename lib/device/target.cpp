// SPDX-License-Identifier: Apache-2.0
#include "lib/device/target.h"

#include <algorithm>
#include <iterator>

namespace vartml::device {
namespace {

using graph::Graph;
using graph::Node;

constexpr Target targets[] = {
    {.device = "softnpu",
     .program = "softnpu-1",
     .columns = 36,
     .footprint = 4,
     .memory_bytes = uint64_t{2} << 30,
     .max_rank = 6,
     .clock_hz = 1e9,
     .macs_per_cycle = 256,
     .elements_per_cycle = 16,
     .bytes_per_cycle = 64},
};

// Why a node with a supported operator and supported types is not run all the same.
using Reason = std::optional<Unsupported>;

Unsupported bad_attribute(const std::string& key, const std::string& value,
                          const std::string& accepted) {
    return {"unsupported-attribute", key + " is " + value + ", supported: " + accepted};
}
Unsupported not_known(const std::string& what) {
    return {"unsupported-attribute", what + " is known only at run time"};
}

bool has_input(const Node& node, size_t input) {
    return input < node.inputs.size() && node.inputs[input] != graph::none;
}
bool is_constant(const Graph& graph, const Node& node, size_t input) {
    return has_input(node, input) && graph.value(node.inputs[input]).constant.has_value();
}
size_t rank(const Graph& graph, const Node& node, size_t input) {
    return graph.value(node.inputs[input]).type.shape.size();
}

Reason check_spatial_rank(const Graph& graph, const Node& node) {
    const size_t spatial = rank(graph, node, 0) - 2;
    if (spatial == 1 || spatial == 2) return std::nullopt;
    return bad_attribute("the number of spatial dimensions", std::to_string(spatial), "1 and 2");
}

Reason check_conv(const Graph& graph, const Node& node) {
    if (auto reason = check_spatial_rank(graph, node)) return reason;
    if (!is_constant(graph, node, 1) || (has_input(node, 2) && !is_constant(graph, node, 2)))
        return not_known("its weight or bias");
    return std::nullopt;
}

Reason check_pool(const Graph& graph, const Node& node) {
    if (auto reason = check_spatial_rank(graph, node)) return reason;
    if (node.outputs.size() > 1 && node.outputs[1] != graph::none)
        return bad_attribute("output Indices", "asked for", "output Y alone");
    if (node.get("ceil_mode", int64_t{0}) != 0 && node.get("count_include_pad", int64_t{0}) != 0)
        return bad_attribute("count_include_pad", "1 together with ceil_mode", "one of the two");
    return std::nullopt;
}

Reason check_matmul(const Graph& graph, const Node& node) {
    for (const size_t i : {0, 1})
        if (rank(graph, node, i) < 2)
            return Unsupported{"unsupported-rank",
                               "an operand is a vector, supported are matrices"};
    return std::nullopt;
}

Reason check_gemm(const Graph& graph, const Node& node) {
    if (node.get("alpha", 1.0f) != 1 && !is_constant(graph, node, 1))
        return bad_attribute("alpha", "not 1", "1 where B is not constant");
    if (node.get("beta", 1.0f) != 1 && has_input(node, 2) && !is_constant(graph, node, 2))
        return bad_attribute("beta", "not 1", "1 where C is not constant");
    return std::nullopt;
}

Reason check_resize(const Graph& graph, const Node& node) {
    const std::string mode = node.get("mode", "nearest");
    const std::string coordinates = node.get("coordinate_transformation_mode", "half_pixel");
    if (!node.has("sizes")) return not_known("its size");
    if (mode == "cubic") return bad_attribute("mode", mode, "nearest and linear");
    if (coordinates == "tf_crop_and_resize")
        return bad_attribute("coordinate_transformation_mode", coordinates, "all others");
    if (node.get("antialias", int64_t{0}) != 0) return bad_attribute("antialias", "1", "0");
    const auto& from = graph.value(node.inputs[0]).type.shape;
    const auto& to = graph.value(node.outputs[0]).type.shape;
    if (from.size() != 4 || from[0] != to[0] || from[1] != to[1])
        return bad_attribute("the resized part", "more than height and width",
                             "the last two of four axes");
    return std::nullopt;
}

Reason check_pad(const Graph& graph, const Node& node) {
    if (!node.has("pads")) return not_known("its padding");
    if (node.get("mode", "constant") != "constant")
        return bad_attribute("mode", node.get("mode", ""), "constant");
    if (node.get("value", 0.0f) != 0 && size_bytes(graph.value(node.inputs[0]).type.data_type) != 1)
        return bad_attribute("the value", "not 0", "0");
    return std::nullopt;
}

Reason check_slice(const Graph&, const Node& node) {
    return node.has("starts") ? std::nullopt : Reason(not_known("the part that it takes"));
}
Reason check_axes(const Graph&, const Node& node) {
    return node.has("axes") ? std::nullopt : Reason(not_known("the list of axes"));
}
Reason check_clip(const Graph&, const Node& node) {
    return node.inputs.size() == 1 ? std::nullopt : Reason(not_known("a bound"));
}

// Element types of the tensors of a node: f float32, float16, bfloat16; q int8, uint8; i int16,
// int32, int64; b bool.
struct Row {
    std::string_view kind, types;
    Reason (*check)(const Graph&, const Node&) = nullptr;
};
// Sorted by kind; a test compares it with the operators of lib/device/softnpu.
constexpr Row rows[] = {
    {"Abs", "f"},
    {"Add", "f"},
    {"AveragePool", "f", check_pool},
    {"Clip", "fq", check_clip},
    {"Concat", "fiqb"},
    {"Conv", "f", check_conv},
    {"ConvInteger", "qi"},
    {"ConvTranspose", "f", check_conv},
    {"DepthToSpace", "fiqb"},
    {"DequantizeLinear", "fq"},
    {"Div", "f"},
    {"Elu", "f"},
    {"Exp", "f"},
    {"Expand", "fiqb"},
    {"Gelu", "f"},
    {"Gemm", "f", check_gemm},
    {"GlobalAveragePool", "f", check_pool},
    {"GlobalMaxPool", "f", check_pool},
    {"HardSigmoid", "f"},
    {"HardSwish", "f"},
    {"Identity", "fiqb"},
    {"LeakyRelu", "f"},
    {"Log", "f"},
    {"LogSoftmax", "f"},
    {"MatMul", "f", check_matmul},
    {"MatMulInteger", "qi"},
    {"Max", "f"},
    {"MaxPool", "fq", check_pool},
    {"Min", "f"},
    {"Mish", "f"},
    {"Mul", "f"},
    {"Neg", "f"},
    {"PRelu", "f"},
    {"Pad", "fq", check_pad},
    {"Pow", "f"},
    {"QLinearAdd", "fq"},
    {"QLinearAveragePool", "fq"},
    {"QLinearConcat", "fq"},
    {"QLinearConv", "fiq"},
    {"QLinearGlobalAveragePool", "fq"},
    {"QLinearLeakyRelu", "fq"},
    {"QLinearMatMul", "fiq"},
    {"QLinearMul", "fq"},
    {"QLinearSigmoid", "fq"},
    {"QuantizeLinear", "fq"},
    {"QuickGelu", "f"},
    {"Reciprocal", "f"},
    {"ReduceMax", "f", check_axes},
    {"ReduceMean", "f", check_axes},
    {"ReduceMin", "f", check_axes},
    {"ReduceSum", "f", check_axes},
    {"Relu", "f"},
    {"Reshape", "fiqb"},
    {"Resize", "fq", check_resize},
    {"Round", "f"},
    {"SiLU", "f"},
    {"Sigmoid", "f"},
    {"Slice", "fiqb", check_slice},
    {"Softmax", "f"},
    {"Softplus", "f"},
    {"SpaceToDepth", "fiqb"},
    {"Split", "fiqb"},
    {"Sqrt", "f"},
    {"Sub", "f"},
    {"Sum", "f"},
    {"Tanh", "f"},
    {"Transpose", "fiqb"},
};

const Row* find_row(std::string_view kind) {
    const auto row = std::ranges::lower_bound(rows, kind, {}, &Row::kind);
    return row != std::end(rows) && row->kind == kind ? row : nullptr;
}

char type_class(DataType type) {
    switch (type) {
        case DataType::float32:
        case DataType::fp16:
        case DataType::bf16:
            return 'f';
        case DataType::int8:
        case DataType::uint8:
            return 'q';
        case DataType::int16:
        case DataType::int32:
        case DataType::int64:
            return 'i';
        case DataType::boolean:
            return 'b';
        default:
            return '?';
    }
}

std::optional<Unsupported> check_values(const Target& target, const Graph& graph, const Node& node,
                                        const Row& row) {
    auto ids = node.inputs;
    ids.insert(ids.end(), node.outputs.begin(), node.outputs.end());
    for (const graph::ValueId id : ids) {
        if (id == graph::none) continue;
        const graph::Value& value = graph.value(id);
        const std::string what = "tensor '" + value.name + "' ";
        if (value.data_dependent)
            return Unsupported{"data-dependent-shape",
                               what + "has a shape that is known only at run time"};
        if (value.type.shape.size() > target.max_rank)
            return Unsupported{"unsupported-rank",
                               what + "has " + std::to_string(value.type.shape.size()) +
                                   " dimensions, at most " + std::to_string(target.max_rank) +
                                   " are supported"};
        if (row.types.find(type_class(value.type.data_type)) == std::string_view::npos)
            return Unsupported{"unsupported-type",
                               what + "is " + std::string(to_string(value.type.data_type)) +
                                   ", which " + std::string(row.kind) + " does not take"};
    }
    return std::nullopt;
}

}  // namespace

const Target* find_target(std::string_view device) {
    const auto found = std::ranges::find(targets, device, &Target::device);
    return found == std::end(targets) ? nullptr : found;
}

std::vector<std::string_view> target_names() {
    std::vector<std::string_view> names;
    for (const Target& target : targets) names.push_back(target.device);
    return names;
}

bool runs_operator(const Target&, std::string_view kind) {
    return find_row(kind) != nullptr;
}

std::optional<Unsupported> why_unsupported(const Target& target, const Graph& graph,
                                           const Node& node) {
    for (const std::string_view part : node.parts())
        if (!find_row(part))
            return Unsupported{"unsupported-operator", "not implemented on the NPU"};
    const Row& row = *find_row(node.base());
    if (auto reason = check_values(target, graph, node, row)) return reason;
    return row.check ? row.check(graph, node) : std::nullopt;
}

}  // namespace vartml::device
