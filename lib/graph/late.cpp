// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/late.h"

#include <algorithm>

#include "lib/graph/canonical.h"
#include "lib/graph/numbers.h"
#include "lib/graph/op_rules.h"
#include "lib/graph/value_bounds.h"

namespace vartml::graph {

namespace {

// Operators whose canonical attributes follow from the shape of the data.
bool relates_to_shape(const Node& node) {
    constexpr std::string_view always[] = {"Expand", "Reshape", "Resize", "Slice", "Upsample"};
    if (std::ranges::find(always, node.kind) != std::end(always)) return true;
    if (node.kind == "Split") return !node.has("split") && node.inputs.size() < 2;
    return node.get("auto_pad", "NOTSET").starts_with("SAME") || node.has("output_shape");
}

// The list that a Slice was given: a constant input or an attribute.
std::vector<int64_t> given_list(const Graph& graph, const Node& node, size_t input,
                                const char* attribute) {
    if (has_input(node, input) && graph.value(node.inputs[input]).constant)
        return read_numbers<int64_t>(graph.value(node.inputs[input]));
    return node.get(attribute, std::vector<int64_t>());
}

// What a Slice takes of fewer elements is at most what it takes of the bound, but for one case: a
// start that counts from the end and an end that counts from the front, x[-10:5].
void widen_slice(const Graph& graph, const Node& node, const Node& settled, Type& type) {
    const auto starts = given_list(graph, node, 1, "starts");
    const auto ends = given_list(graph, node, 2, "ends");
    const Type& x = input_type(graph, settled, 0);
    for (size_t i = 0; i < std::min(starts.size(), ends.size()); ++i) {
        if (starts[i] >= 0 || ends[i] < 0) continue;
        auto axes = given_list(graph, node, 3, "axes");
        const int64_t axis =
            wrap_axis(i < axes.size() ? axes[i] : static_cast<int64_t>(i), x.shape.size());
        if (axis < 0) continue;
        const auto a = static_cast<size_t>(axis);
        // Below -size there is no overflow: the start is cut off first.
        const int64_t most = std::max(starts[i], -x.shape[a]);
        type.shape[a] = std::min({-most, ends[i], x.shape[a]});
    }
}

// A reduction over axes that are not known. With keepdims every axis stays; else an axis of the
// result is one of those from its own place on, as many behind it as axes go.
std::optional<Type> bound_reduction(const Graph& graph, const Node& node) {
    if (!node.kind.starts_with("Reduce") || node.inputs.size() < 2) return std::nullopt;
    Type type = input_type(graph, node, 0);
    if (node.get("keepdims", int64_t{1}) != 0) {
        for (int64_t& size : type.shape) size = std::max<int64_t>(size, 1);
        return type;
    }
    const auto gone = static_cast<size_t>(input_type(graph, node, 1).elements());
    if (gone == 0 || gone > type.shape.size()) return std::nullopt;
    for (size_t i = 0; i + gone < type.shape.size(); ++i) {
        const auto first = type.shape.begin() + static_cast<ptrdiff_t>(i);
        type.shape[i] = *std::max_element(first, first + static_cast<ptrdiff_t>(gone) + 1);
    }
    type.shape.resize(type.shape.size() - gone);
    return type;
}

bool same_rank_and_type(const Type& a, const Type& b) {
    return a.shape.size() == b.shape.size() && a.data_type == b.data_type;
}

}  // namespace

std::string op_type(const Node& node) {
    return is_late(node) ? node.get("op", "") : node.kind;
}

bool must_be_late(const Graph& graph, const Node& node) {
    // Operators whose shape follows from the values of inputs that stay inputs, and the first one.
    struct FromValues {
        std::string_view kind;
        size_t first;
    };
    constexpr FromValues from_values[] = {
        {"Col2Im", 1}, {"ConstantOfShape", 0}, {"MaxUnpool", 2}, {"Range", 0}};
    for (const FromValues& row : from_values)
        for (size_t i = row.first; row.kind == node.kind && i < node.inputs.size(); ++i)
            if (node.inputs[i] != none && !graph.value(node.inputs[i]).constant) return true;
    if (has_computed_parameters(graph, node)) return true;
    const bool follows_data = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != none && graph.value(id).data_dependent; });
    return follows_data && relates_to_shape(node);
}

Result<std::vector<Type>> bound_types(const Graph& graph, const Node& node,
                                      std::span<const std::optional<Type>> declared) {
    Node settled = node;
    Result<Types> inferred = Error{ErrorCode::unsupported, {}};
    if (auto ok = canonicalise(graph, settled); !ok)
        inferred = ok.error();
    else
        inferred = infer_types(graph, settled);
    if (const auto bound = bound_reduction(graph, node); bound && !inferred)
        inferred = Types{*bound};
    if (!inferred)
        if (const auto bound = bound_by_values(graph, node)) inferred = Types{*bound};
    Types types = inferred ? *inferred : Types(node.outputs.size());
    if (inferred && node.kind == "Slice") widen_slice(graph, node, settled, types[0]);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == none) continue;
        const bool said = i < declared.size() && declared[i].has_value();
        if (!inferred && !said) return inferred.error();
        // Both are bounds: the smaller one counts.
        if (said && (!inferred || (same_rank_and_type(types[i], *declared[i]) &&
                                   declared[i]->elements() <= types[i].elements())))
            types[i] = *declared[i];
    }
    return types;
}

namespace {

// Rank and element type of the output; rank -1 where not even that is known.
std::pair<int64_t, DataType> kind_of_output(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto rank = static_cast<int64_t>(x.shape.size());
    const auto length_of = [&](size_t input) {
        if (!has_input(node, input)) return int64_t{-1};
        const Type& list = input_type(graph, node, input);
        return list.shape.size() == 1 ? list.shape[0] : -1;
    };
    if (node.kind == "Range") return {1, x.data_type};
    if (node.kind == "Reshape") return {length_of(1), x.data_type};
    if (node.kind == "ConstantOfShape")
        return {length_of(0),
                has_input(node, 1) ? input_type(graph, node, 1).data_type : DataType::float32};
    if (node.kind == "Expand") return {std::max(rank, length_of(1)), x.data_type};
    constexpr std::string_view same_rank[] = {"CenterCropPad", "Pad", "Resize", "Tile", "Upsample"};
    const bool keeps = std::ranges::find(same_rank, node.kind) != std::end(same_rank);
    return {keeps ? rank : -1, x.data_type};
}

}  // namespace

std::optional<Type> guess_bound(const Graph& graph, const Node& node,
                                std::span<const Type> outputs) {
    if (node.outputs.size() != 1 || !has_input(node, 0)) return std::nullopt;
    const auto [rank, data_type] = kind_of_output(graph, node);
    if (rank < 0) return std::nullopt;
    Type bound{data_type, std::vector<int64_t>(static_cast<size_t>(rank), 1)};
    bool found = false;
    const auto take = [&](const std::vector<int64_t>& shape) {
        if (shape.size() != bound.shape.size()) return;
        for (size_t i = 0; i < shape.size(); ++i)
            bound.shape[i] = std::max(bound.shape[i], shape[i]);
    };
    for (const Type& output : outputs) {
        found = found || output.shape.size() == bound.shape.size();
        take(output.shape);
    }
    take(input_type(graph, node, 0).shape);
    return found && is_reasonable(bound) ? std::optional(bound) : std::nullopt;
}

void make_late(Node& node) {
    node.attributes["op"] = node.kind;
    node.kind = std::string(late_kind);
}

void settle(Node& node) {
    node.kind = node.get("op", "");
    node.attributes.erase("op");
}

}  // namespace vartml::graph
