// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/late.h"

#include <algorithm>

#include "lib/graph/canonical.h"
#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

// Operators whose canonical attributes follow from the shape of the data.
bool relates_to_shape(const Node& node) {
    constexpr std::string_view always[] = {"Expand", "Reshape", "Resize", "Slice", "Upsample"};
    if (std::ranges::find(always, node.kind) != std::end(always)) return true;
    if (node.kind == "Split") return !node.has("split") && node.inputs.size() < 2;
    return node.get("auto_pad", "NOTSET").starts_with("SAME") || node.has("output_shape");
}

// A part of each axis: as large as the input where the start counts from an end that is not known.
void widen_slice(const Graph& graph, const Node& settled, Type& type) {
    const auto axes = settled.get("axes", std::vector<int64_t>());
    const Type& x = input_type(graph, settled, 0);
    for (const int64_t axis : axes) {
        const auto i = static_cast<size_t>(axis);
        if (i < type.shape.size()) type.shape[i] = x.shape[i];
    }
}

bool same_rank_and_type(const Type& a, const Type& b) {
    return a.shape.size() == b.shape.size() && a.data_type == b.data_type;
}

}  // namespace

std::string op_type(const Node& node) {
    return is_late(node) ? node.get("op", "") : node.kind;
}

bool must_be_late(const Graph& graph, const Node& node) {
    // What the constants of these say, their inference takes as it is.
    constexpr std::string_view from_values[] = {"ConstantOfShape", "Range"};
    if (std::ranges::find(from_values, node.kind) != std::end(from_values))
        return std::ranges::any_of(
            node.inputs, [&](ValueId id) { return id != none && !graph.value(id).constant; });
    if (has_parameters(node) && !has_constant_parameters(graph, node)) return true;
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
    Types types = inferred ? *inferred : Types(node.outputs.size());
    if (inferred && settled.kind == "Slice") widen_slice(graph, settled, types[0]);
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

void make_late(Node& node) {
    node.attributes["op"] = node.kind;
    node.kind = std::string(late_kind);
}

void settle(Node& node) {
    node.kind = node.get("op", "");
    node.attributes.erase("op");
}

}  // namespace vartml::graph
