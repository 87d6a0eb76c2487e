// SPDX-License-Identifier: Apache-2.0
// One output element from one element of each input.
#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

Result<Types> infer_compare(const Graph& graph, const Node& node) {
    auto types = infer_broadcast(graph, node);
    if (types) types->front().data_type = DataType::boolean;
    return types;
}

Result<Types> infer_predicate(const Graph& graph, const Node& node) {
    return Types{{DataType::boolean, input_type(graph, node, 0).shape}};
}

Result<Types> infer_shift(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    auto shape = broadcast(x.shape, input_type(graph, node, 1).shape);
    if (!shape) {
        return bad_node(node, "has inputs " + to_string(x) + " and " +
                                  to_string(input_type(graph, node, 1)) +
                                  ", which do not broadcast");
    }
    return Types{{x.data_type, std::move(*shape)}};
}

Result<Types> infer_prelu(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (broadcast(x.shape, input_type(graph, node, 1).shape) != x.shape) {
        return bad_node(node, "has the slope " + to_string(input_type(graph, node, 1)) +
                                  ", which does not broadcast to " + to_string(x));
    }
    return Types{x};
}

Result<Types> infer_where(const Graph& graph, const Node& node) {
    const Type &condition = input_type(graph, node, 0), &a = input_type(graph, node, 1),
               &b = input_type(graph, node, 2);
    auto shape = broadcast(a.shape, b.shape);
    if (shape) shape = broadcast(*shape, condition.shape);
    if (!shape || a.data_type != b.data_type || condition.data_type != DataType::boolean) {
        return bad_node(node, "has inputs " + to_string(condition) + ", " + to_string(a) + " and " +
                                  to_string(b) +
                                  ", expected a bool and two of one type that broadcast");
    }
    return Types{{a.data_type, std::move(*shape)}};
}

Result<Types> infer_clip(const Graph& graph, const Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (has_input(node, i) && input_type(graph, node, i).elements() != 1) {
            return bad_node(node, "has the bound " + to_string(input_type(graph, node, i)) +
                                      ", expected a scalar");
        }
    }
    return infer_same(graph, node);
}

Result<Types> infer_cast(const Graph& graph, const Node& node) {
    const std::string to = node.get("to", "");
    const auto type = parse_short_name(to);
    if (!type) return bad_node(node, "casts to '" + to + "', expected a type such as f32 or i64");
    return Types{{*type, input_type(graph, node, 0).shape}};
}

constexpr OpInfo unary(std::string_view kind, std::string_view attributes = "") {
    return {kind, 1, 1, 1, 1, attributes, infer_same, count_output};
}
constexpr OpInfo binary(std::string_view kind, std::string_view attributes = "") {
    return {kind, 2, 2, 1, 1, attributes, infer_broadcast, count_output};
}
constexpr OpInfo variadic(std::string_view kind) {
    return {kind, 1, -1, 1, 1, "", infer_broadcast, count_output};
}
constexpr OpInfo compare(std::string_view kind) {
    return {kind, 2, 2, 1, 1, "", infer_compare, count_output};
}

constexpr OpInfo ops[] = {
    unary("Abs"),
    unary("Acos"),
    unary("Acosh"),
    unary("Asin"),
    unary("Asinh"),
    unary("Atan"),
    unary("Atanh"),
    unary("BitwiseNot"),
    unary("Ceil"),
    unary("Celu", "alpha:f"),
    unary("Cos"),
    unary("Cosh"),
    unary("Elu", "alpha:f"),
    unary("Erf"),
    unary("Exp"),
    unary("Floor"),
    unary("Gelu", "approximate:s"),
    unary("HardSigmoid", "alpha:f beta:f"),
    unary("HardSwish"),
    unary("LeakyRelu", "alpha:f"),
    unary("Log"),
    unary("Mish"),
    unary("Neg"),
    unary("Not"),
    unary("QuickGelu", "alpha:f"),
    unary("Reciprocal"),
    unary("Relu"),
    unary("Round"),
    unary("Selu", "alpha:f gamma:f"),
    unary("Shrink", "bias:f lambd:f"),
    unary("SiLU"),
    unary("Sigmoid"),
    unary("Sign"),
    unary("Sin"),
    unary("Sinh"),
    unary("Softplus"),
    unary("Softsign"),
    unary("Sqrt"),
    unary("Tan"),
    unary("Tanh"),
    unary("ThresholdedRelu", "alpha:f"),
    {"Identity", 1, 1, 1, 1, "", infer_same, count_none},
    {"Clip", 1, 3, 1, 1, "min:f max:f", infer_clip, count_output},
    {"Cast", 1, 1, 1, 1, "to:s*", infer_cast, count_output},
    {"IsInf", 1, 1, 1, 1, "detect_negative:i detect_positive:i", infer_predicate, count_output},
    {"IsNaN", 1, 1, 1, 1, "", infer_predicate, count_output},
    binary("Add"),
    binary("Sub"),
    binary("Mul"),
    binary("Div"),
    binary("Mod", "fmod:i"),
    binary("And"),
    binary("Or"),
    binary("Xor"),
    binary("BitwiseAnd"),
    binary("BitwiseOr"),
    binary("BitwiseXor"),
    {"BitShift", 2, 2, 1, 1, "direction:s*", infer_shift, count_output},
    {"Pow", 2, 2, 1, 1, "", infer_shift, count_output},
    {"PRelu", 2, 2, 1, 1, "", infer_prelu, count_output},
    {"Where", 3, 3, 1, 1, "", infer_where, count_output},
    compare("Equal"),
    compare("Greater"),
    compare("GreaterOrEqual"),
    compare("Less"),
    compare("LessOrEqual"),
    variadic("Max"),
    variadic("Mean"),
    variadic("Min"),
    variadic("Sum"),
};

}  // namespace

std::span<const OpInfo> elementwise_ops() {
    return ops;
}

}  // namespace vartml::graph
