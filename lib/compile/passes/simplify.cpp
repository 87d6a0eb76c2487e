// SPDX-License-Identifier: Apache-2.0
// fold_constants and remove_identity.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "lib/compile/passes/passes.h"
#include "lib/graph/canonical.h"
#include "lib/graph/fold.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

// ---- constants
// -----------------------------------------------------------------------------------------------------

// The node with its newly constant parameters as attributes, if that leaves the types of its
// outputs alone.
bool take_parameters(graph::Graph& graph, Node& node) {
    if (!graph::has_constant_parameters(graph, node)) return false;
    Node taken = node;
    if (!graph::canonicalise(graph, taken)) return false;
    const auto types = graph::infer_types(graph, taken);
    if (!types || graph::has_data_dependent_shape(graph, taken) !=
                      graph::has_data_dependent_shape(graph, node))
        return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != none && (*types)[i] != graph.value(node.outputs[i]).type)
            return false;
    }
    node = std::move(taken);
    return true;
}

// ---- identities
// ----------------------------------------------------------------------------------------------------

bool all_equal(const Ints& values, int64_t value) {
    return std::ranges::all_of(values, [value](int64_t v) { return v == value; });
}

bool is_sorted_from_zero(const Ints& perm) {
    for (size_t i = 0; i < perm.size(); ++i) {
        if (perm[i] != static_cast<int64_t>(i)) return false;
    }
    return true;
}

// Each element is its input, given that the shape is the same.
bool keeps_elements(const Node& node) {
    if (node.inputs.size() != 1) return false;
    if (has_trait(node, graph::Trait::neutral)) return true;
    if (node.kind == "Transpose") return is_sorted_from_zero(node.get("perm", Ints()));
    if (node.kind == "Pad") return all_equal(node.get("pads", Ints()), 0);
    if (node.kind == "Slice") return all_equal(node.get("steps", Ints()), 1);
    if (node.kind == "Clip") return !node.has("min") && !node.has("max");
    if (node.kind == "DepthToSpace" || node.kind == "SpaceToDepth")
        return node.get("blocksize", int64_t{0}) == 1;
    if (node.kind == "Resize") {
        // With equal sizes every mode but a cropping one samples exactly at the elements.
        const auto scales = node.get("scales", std::vector<float>());
        return !node.has("roi") && std::ranges::all_of(scales, [](float s) { return s == 1; });
    }
    if (node.kind == "MaxPool" || node.kind == "AveragePool") {
        return node.outputs.size() == 1 && all_equal(node.get("kernel_shape", Ints()), 1) &&
               all_equal(node.get("strides", Ints()), 1) && all_equal(node.get("pads", Ints()), 0);
    }
    return false;
}

// The operand that adding nothing or multiplying by one leaves; none otherwise.
ValueId neutral_operand(const Rewriter& rewriter, const Node& node) {
    double constant = 0;
    const ValueId other = operand_beside(rewriter, node, constant);
    if (other == none) return none;
    const bool sum = node.kind == "Add" || node.kind == "Sub";
    const bool product = node.kind == "Mul" || node.kind == "Div" || node.kind == "Pow";
    return (sum && constant == 0) || (product && constant == 1) ? other : none;
}

// The second power is a product.
bool make_square(Rewriter& rewriter, Node& node) {
    if (node.kind != "Pow") return false;
    double exponent = 0;
    const ValueId base = operand_beside(rewriter, node, exponent);
    if (base == none || exponent != 2 || !graph::is_float(rewriter.type(base).data_type))
        return false;
    node.kind = "Mul";
    node.inputs = {base, base};
    return true;
}

// Relu and Clip behind Relu or Clip: one of the two does nothing, or both are one Clip.
bool join_clips(Rewriter& rewriter, Node& node) {
    const auto bounds = [](const Node& n, float& low, float& high) {
        if (n.inputs.size() != 1 || !has_trait(n, graph::Trait::cuts_off)) return false;
        low = n.kind == "Relu" ? 0 : n.get("min", -std::numeric_limits<float>::infinity());
        high = n.kind == "Relu" ? std::numeric_limits<float>::infinity()
                                : n.get("max", std::numeric_limits<float>::infinity());
        return true;
    };
    float low = 0, high = 0, inner_low = 0, inner_high = 0;
    if (!bounds(node, low, high)) return false;
    const Node* inner = rewriter.producer(node.inputs[0]);
    if (!inner || !bounds(*inner, inner_low, inner_high)) return false;
    if (low <= inner_low && high >= inner_high) return rewriter.bypass(node, node.inputs[0]);
    // Exact only while the intervals overlap; otherwise everything becomes one bound, which no
    // exporter writes.
    const float new_low = std::max(low, inner_low), new_high = std::min(high, inner_high);
    if (new_low > new_high || !rewriter.has_one_use(node.inputs[0])) return false;
    node.kind = "Clip";
    node.attributes.clear();
    if (std::isfinite(new_low)) node.attributes["min"] = new_low;
    if (std::isfinite(new_high)) node.attributes["max"] = new_high;
    Rewriter::merge_sources(node, *inner);
    node.inputs[0] = inner->inputs[0];
    return true;
}

// Reshape of Reshape reads the first input; Transpose of Transpose, too, with both permutations.
bool join_views(Rewriter& rewriter, Node& node) {
    if (node.kind != "Reshape" && node.kind != "Transpose") return false;
    if (node.inputs.size() != 1 || rewriter.value(node.outputs[0]).data_dependent) return false;
    const Node* inner = rewriter.producer(node.inputs[0], node.kind);
    if (!inner || inner->inputs.size() != 1) return false;
    if (node.kind == "Transpose") {
        const Ints outer = node.get("perm", Ints()), first = inner->get("perm", Ints());
        Ints perm;
        for (const int64_t axis : outer) perm.push_back(first[static_cast<size_t>(axis)]);
        node.attributes["perm"] = perm;
    }
    Rewriter::merge_sources(node, *inner);
    node.inputs[0] = inner->inputs[0];
    return true;
}

bool remove_identity_at(Rewriter& rewriter, size_t index) {
    Node& node = rewriter.node(index);
    if (node.inputs.empty() || node.inputs[0] == none || node.outputs.size() != 1) return false;
    const ValueId input = node.inputs[0];
    const bool same_type =
        rewriter.type(input) == rewriter.type(node.outputs[0]) &&
        rewriter.value(input).data_dependent == rewriter.value(node.outputs[0]).data_dependent;
    if (same_type && keeps_elements(node)) return rewriter.bypass(node, input);
    if (const ValueId operand = neutral_operand(rewriter, node); operand != none)
        return rewriter.bypass(node, operand);
    return join_views(rewriter, node) || join_clips(rewriter, node) || make_square(rewriter, node);
}

}  // namespace

Result<PassStats> fold_constants(graph::Graph& graph) {
    PassStats stats;
    const std::set<ValueId> given(graph.outputs.begin(), graph.outputs.end());
    for (Node& node : graph.nodes) {
        if (take_parameters(graph, node)) ++stats.rewrites;
        if (std::ranges::any_of(node.outputs, [&](ValueId id) { return given.contains(id); }))
            continue;
        auto folded = cpu::fold_node(graph, node);
        if (!folded) return folded.error();
        if (!*folded) continue;
        node.outputs.clear();  // nobody makes a constant
        ++stats.rewrites;
    }
    std::erase_if(graph.nodes, [](const Node& node) { return node.outputs.empty(); });
    if (stats.rewrites) graph::remove_dead(graph);
    return stats;
}

Result<PassStats> remove_identity(graph::Graph& graph) {
    return rewrite_nodes(graph, remove_identity_at);
}

}  // namespace vartml::compiler
