// SPDX-License-Identifier: Apache-2.0
#include "lib/device/target.h"

#include <algorithm>
#include <iterator>

#include "lib/graph/ops.h"

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

// Element types of the tensors of a node: f float32, float16, bfloat16; q int8, uint8; i int16,
// int32, int64; b bool.
struct Row {
    std::string_view kind, types;
};
// Sorted by kind.
constexpr Row rows[] = {
    {"Abs", "fi"},
    {"Add", "fi"},
    {"And", "b"},
    {"ArgMax", "fi"},
    {"ArgMin", "fi"},
    {"AveragePool", "f"},
    {"BatchNormalization", "f"},
    {"Cast", "fiqb"},
    {"Ceil", "f"},
    {"Celu", "f"},
    {"Clip", "fi"},
    {"Concat", "fiqb"},
    {"Conv", "f"},
    {"ConvInteger", "qi"},
    {"ConvTranspose", "f"},
    {"Cos", "f"},
    {"CumSum", "fi"},
    {"DepthToSpace", "fiqb"},
    {"DequantizeLinear", "fqi"},
    {"Div", "fi"},
    {"Einsum", "f"},
    {"Elu", "f"},
    {"Equal", "fib"},
    {"Erf", "f"},
    {"Exp", "f"},
    {"Expand", "fiqb"},
    {"Floor", "f"},
    {"Gather", "fiqb"},
    {"GatherElements", "fiqb"},
    {"GatherND", "fiqb"},
    {"Gelu", "f"},
    {"Gemm", "f"},
    {"GlobalAveragePool", "f"},
    {"GlobalMaxPool", "f"},
    {"Greater", "fib"},
    {"GreaterOrEqual", "fib"},
    {"GridSample", "f"},
    {"GroupNormalization", "f"},
    {"HardSigmoid", "f"},
    {"HardSwish", "f"},
    {"Identity", "fiqb"},
    {"InstanceNormalization", "f"},
    {"LRN", "f"},
    {"LayerNormalization", "f"},
    {"LeakyRelu", "f"},
    {"Less", "fib"},
    {"LessOrEqual", "fib"},
    {"Log", "f"},
    {"LogSoftmax", "f"},
    {"LpNormalization", "f"},
    {"MatMul", "f"},
    {"MatMulInteger", "qi"},
    {"Max", "fi"},
    {"MaxPool", "fiq"},
    {"Mean", "f"},
    {"Min", "fi"},
    {"Mish", "f"},
    {"Mod", "fi"},
    {"Mul", "fi"},
    {"Neg", "fi"},
    {"Not", "b"},
    {"Or", "b"},
    {"PRelu", "f"},
    {"Pad", "fiqb"},
    {"Pow", "f"},
    {"QLinearAdd", "fq"},
    {"QLinearAveragePool", "fq"},
    {"QLinearConcat", "fq"},
    {"QLinearConv", "fqi"},
    {"QLinearGlobalAveragePool", "fq"},
    {"QLinearLeakyRelu", "fq"},
    {"QLinearMatMul", "fq"},
    {"QLinearMul", "fq"},
    {"QLinearSigmoid", "fq"},
    {"QLinearSoftmax", "fq"},
    {"QuantizeLinear", "fqi"},
    {"QuickGelu", "f"},
    {"RMSNormalization", "f"},
    {"Range", "fi"},
    {"Reciprocal", "f"},
    {"ReduceL1", "fi"},
    {"ReduceL2", "f"},
    {"ReduceLogSum", "f"},
    {"ReduceLogSumExp", "f"},
    {"ReduceMax", "fi"},
    {"ReduceMean", "f"},
    {"ReduceMin", "fi"},
    {"ReduceProd", "fi"},
    {"ReduceSum", "fi"},
    {"ReduceSumSquare", "fi"},
    {"Relu", "f"},
    {"Reshape", "fiqb"},
    {"Resize", "f"},
    {"Round", "f"},
    {"ScatterElements", "fib"},
    {"ScatterND", "fib"},
    {"Selu", "f"},
    {"SiLU", "f"},
    {"Sigmoid", "f"},
    {"Sign", "fi"},
    {"Sin", "f"},
    {"Slice", "fiqb"},
    {"Softmax", "f"},
    {"Softplus", "f"},
    {"Softsign", "f"},
    {"SpaceToDepth", "fiqb"},
    {"Split", "fiqb"},
    {"Sqrt", "f"},
    {"Sub", "fi"},
    {"Sum", "f"},
    {"Tan", "f"},
    {"Tanh", "f"},
    {"ThresholdedRelu", "f"},
    {"Tile", "fiqb"},
    {"TopK", "fi"},
    {"Transpose", "fiqb"},
    {"Where", "fiqb"},
    {"Xor", "b"},
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

Unsupported bad_attribute(const std::string& key, const std::string& value,
                          const std::string& accepted) {
    return {"unsupported-attribute", key + " is " + value + ", supported are " + accepted};
}

std::optional<Unsupported> check_attributes(const Graph& graph, const Node& node) {
    const std::string_view base = node.base();
    const std::string mode = node.get("mode", "");
    const bool window = base.ends_with("Conv") || base == "ConvTranspose" ||
                        base == "ConvInteger" || base.ends_with("Pool");
    if (window && !node.inputs.empty() && graph.value(node.inputs[0]).type.shape.size() > 4)
        return bad_attribute("the number of spatial dimensions",
                             std::to_string(graph.value(node.inputs[0]).type.shape.size() - 2),
                             "1 and 2");
    if (base == "Resize" && mode == "cubic")
        return bad_attribute("mode", "cubic", "nearest and linear");
    if (base == "GridSample" && mode == "cubic")
        return bad_attribute("mode", "cubic", "linear and nearest");
    if (base == "Pad" && mode == "wrap")
        return bad_attribute("mode", "wrap", "constant, edge and reflect");
    if (base.starts_with("Scatter") && node.get("reduction", "none") != "none")
        return bad_attribute("reduction", node.get("reduction", "none"), "none");
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

std::optional<Unsupported> why_unsupported(const Target& target, const Graph& graph,
                                           const Node& node) {
    for (const std::string_view part : node.parts())
        if (!find_row(part))
            return Unsupported{"unsupported-operator", "not implemented on the NPU"};
    const Row& row = *find_row(node.base());
    if (auto reason = check_values(target, graph, node, row)) return reason;
    return check_attributes(graph, node);
}

}  // namespace vartml::device
