// SPDX-License-Identifier: Apache-2.0
// Many elements become one.
#include <algorithm>

#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

std::vector<int64_t> reduced(std::vector<int64_t> shape, std::span<const int64_t> axes,
                             bool keep_axes) {
    std::vector<int64_t> result;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) {
            result.push_back(shape[i]);
        } else if (keep_axes) {
            result.push_back(1);
        }
    }
    return result;
}

Result<Types> infer_reduce(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (node.inputs.size() > 1) {
        return Error{
            ErrorCode::unsupported,
            "node '" + node.name + "' (" + node.kind +
                ") takes its axes from a tensor that depends on the input data; export the "
                "model with constant axes"};
    }
    const auto axes = node.get("axes", std::vector<int64_t>());
    for (const int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) {
            return bad_node(
                node, "reduces axes " + to_string(axes) + ", outside of its input " + to_string(x));
        }
    }
    const bool keep = node.get("keepdims", int64_t{1}) != 0;
    return Types{{x.data_type, reduced(x.shape, axes, keep)}};
}

Result<Types> infer_arg(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis[] = {wrap_axis(node.get("axis", int64_t{0}), x.shape.size())};
    if (axis[0] < 0) {
        return bad_node(node, "has the axis " + std::to_string(node.get("axis", int64_t{0})) +
                                  ", outside of its input " + to_string(x));
    }
    const bool keep = node.get("keepdims", int64_t{1}) != 0;
    return Types{{DataType::int64, reduced(x.shape, axis, keep)}};
}

constexpr OpInfo reduction(std::string_view kind) {
    return {kind, 1, 2, 1, 1, "axes:is keepdims:i", infer_reduce, count_input};
}

constexpr OpInfo ops[] = {
    reduction("ReduceL1"),
    reduction("ReduceL2"),
    reduction("ReduceLogSum"),
    reduction("ReduceLogSumExp"),
    reduction("ReduceMax"),
    reduction("ReduceMean"),
    reduction("ReduceMin"),
    reduction("ReduceProd"),
    reduction("ReduceSum"),
    reduction("ReduceSumSquare"),
    {"ArgMax", 1, 1, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg, count_input},
    {"ArgMin", 1, 1, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg, count_input},
    {"CumSum", 1, 2, 1, 1, "axis:i exclusive:i reverse:i", infer_same, count_input},
};

}  // namespace

std::span<const OpInfo> reduction_ops() {
    return ops;
}

}  // namespace vartml::graph
