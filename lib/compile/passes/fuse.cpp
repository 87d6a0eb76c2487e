// SPDX-License-Identifier: Apache-2.0
// Passes that merge a node into the linear operator or window next to it.
#include <algorithm>
#include <cmath>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

bool is_activation(const graph::Operation& operation) {
    return graph::has_trait(operation.kind, graph::Trait::activation);
}

// The index of a node that may take another part: linear, its result read by one node only.
std::optional<size_t> host(Rewriter& rewriter, ValueId result) {
    const Node* node = rewriter.producer(result);
    if (!node || !has_trait(*node, graph::Trait::product) || !rewriter.has_one_use(result))
        return std::nullopt;
    if (!graph::is_float(rewriter.type(result).data_type)) return std::nullopt;
    return static_cast<size_t>(rewriter.producer_index(result));
}

// Puts `part` behind the parts of the node at `host`, which moves to the place of the node at
// `index`: all operands are known there.
void append_part(Rewriter& rewriter, size_t host, size_t index, ValueId operand) {
    Node fused = rewriter.node(host);
    Node& part = rewriter.node(index);
    fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 3), none);
    fused.fused.push_back(part);
    if (operand != none) fused.inputs.push_back(operand);
    fused.outputs = part.outputs;
    Rewriter::merge_sources(fused, part);
    part = std::move(fused);
    rewriter.remove(rewriter.node(host));
}

bool fuse_activation_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (!is_activation(node) || node.inputs.size() != 1) return false;
    const auto found = host(rewriter, node.inputs[0]);
    if (!found) return false;
    // One activation per operator, and at the end.
    if (std::ranges::any_of(rewriter.node(*found).fused, is_activation)) return false;
    append_part(rewriter, *found, index, none);
    return true;
}

bool fuse_residual_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (node.kind != "Add" || node.inputs[0] == node.inputs[1]) return false;
    const Type& type = rewriter.type(node.outputs[0]);
    std::optional<size_t> best;
    ValueId operand = none;
    for (size_t i = 0; i < 2; ++i) {
        if (rewriter.type(node.inputs[i]) != type || rewriter.value(node.inputs[i]).data_dependent)
            return false;
        const auto found = host(rewriter, node.inputs[i]);
        if (!found || (best && *found < *best)) continue;
        const auto& fused = rewriter.node(*found).fused;
        if (std::ranges::find(fused, "Add", &graph::Operation::kind) != fused.end()) continue;
        best = found;
        operand = node.inputs[1 - i];
    }
    if (!best || rewriter.is_constant(operand)) return false;
    append_part(rewriter, *best, index, operand);
    return true;
}

// Mul or Add of a constant per channel behind a fused activation, as a part with one number per
// channel in the rank of the result.
bool fuse_scale_bias_at(Rewriter& rewriter, size_t index) {
    // What folds away is no part.
    if (fold_scale_bias_at(rewriter, index)) return true;
    const Node& node = rewriter.node(index);
    if ((node.kind != "Add" && node.kind != "Mul") || node.inputs.size() != 2) return false;
    for (size_t i = 0; i < 2; ++i) {
        const auto found = host(rewriter, node.inputs[i]);
        const Type type = rewriter.type(node.inputs[i]);
        if (!found || type != rewriter.type(node.outputs[0]) ||
            rewriter.node(*found).fused.size() > 2)
            continue;
        const Node& linear = rewriter.node(*found);
        if (linear.kind != "Conv" && linear.kind != "ConvTranspose") continue;
        const size_t axis = channel_axis(rewriter, linear);
        const auto numbers = per_channel(rewriter, node.inputs[1 - i], type.shape, axis);
        if (numbers.empty()) continue;
        Type operand{type.data_type, Ints(type.shape.size(), 1)};
        operand.shape[axis] = type.shape[axis];
        const std::string stem = rewriter.value(node.inputs[1 - i]).name;
        append_part(rewriter, *found, index, rewriter.add_constant(stem, operand, numbers));
        return true;
    }
    return false;
}

bool bias_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (node.kind != "Add") return false;
    for (size_t i = 0; i < 2; ++i) {
        const ValueId product = node.inputs[i], bias = node.inputs[1 - i];
        Node* matmul = rewriter.producer(product, "MatMul");
        if (!matmul || matmul->inputs.size() > 2 || !rewriter.has_one_use(product)) continue;
        const Type& type = rewriter.type(product);
        if (!rewriter.is_constant(bias) || type.shape.empty() ||
            type != rewriter.type(node.outputs[0]))
            continue;
        if (rewriter.type(matmul->inputs[1]).shape.size() < 2) continue;
        const int64_t columns = type.shape.back();
        const Type& row = rewriter.type(bias);
        if (row.elements() != columns || (!row.shape.empty() && row.shape.back() != columns))
            continue;
        ValueId one_axis = bias;
        if (row.shape.size() != 1) {
            const auto numbers = graph::read_numbers<double>(rewriter.value(bias));
            const std::string stem = rewriter.value(bias).name;
            one_axis = rewriter.add_constant(stem, {row.data_type, {columns}}, numbers);
        }
        Node& host = *rewriter.producer(product);
        host.inputs.push_back(one_axis);
        host.outputs = rewriter.node(index).outputs;
        Rewriter::merge_sources(host, rewriter.node(index));
        rewriter.remove(rewriter.node(index));
        return true;
    }
    return false;
}

// ---- views in front of activations

// Whether a chain of views that nobody else reads leads up to an operator without activation.
bool leads_to_host(Rewriter& rewriter, ValueId id) {
    while (const Node* node = rewriter.producer(id)) {
        if (!rewriter.has_one_use(id) || rewriter.value(id).data_dependent) return false;
        const bool view = node->kind == "Reshape" || node->kind == "Transpose";
        if (!view) return host(rewriter, id) && std::ranges::none_of(node->fused, is_activation);
        if (node->inputs.size() != 1) return false;
        id = node->inputs[0];
    }
    return false;
}

bool hoist_activation_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (!is_activation(node) || node.inputs.size() != 1) return false;
    const Node* above = rewriter.producer(node.inputs[0]);
    if (!above || (above->kind != "Reshape" && above->kind != "Transpose") ||
        !leads_to_host(rewriter, node.inputs[0]))
        return false;
    // The activation takes the place of the view and the view that of the activation.
    const auto place = static_cast<size_t>(rewriter.producer_index(node.inputs[0]));
    const ValueId between = node.inputs[0];
    rewriter.graph().value(between).type = rewriter.type(above->inputs[0]);
    Node activation = node, view = *above;
    activation.inputs = view.inputs;
    view.outputs = activation.outputs;
    activation.outputs = view.inputs = {between};
    rewriter.node(place) = std::move(activation);
    rewriter.node(index) = std::move(view);
    rewriter.refresh();
    return true;
}

// ---- padding

// Whether the padding is of zeros, at the spatial axes only and not negative.
bool pads_space_with(const Node& pad, double value) {
    const Ints pads = pad.get("pads", Ints());
    const size_t rank = pads.size() / 2;
    if (pad.inputs.size() != 1 || rank < 3 || pad.get("mode", "constant") != "constant" ||
        static_cast<double>(pad.get("value", 0.0F)) != value) {
        return false;
    }
    for (size_t i = 0; i < pads.size(); ++i) {
        if (pads[i] < 0 || (i % rank < 2 && pads[i] != 0)) return false;
    }
    return true;
}

// Looks `depth` nodes back at most: branches that meet again would double the way each time.
bool never_negative(Rewriter& rewriter, ValueId id, int depth = 8) {
    const Node* node = rewriter.producer(id);
    if (!node || depth == 0) return false;
    const graph::Operation& last = node->last();
    if (graph::has_trait(last.kind, graph::Trait::never_negative)) return true;
    if (last.kind == "Clip") return last.get("min", -INFINITY) >= 0;
    if (last.kind == "MaxPool" || last.kind == "Concat") {
        return std::ranges::all_of(node->inputs, [&](ValueId input) {
            return never_negative(rewriter, input, depth - 1);
        });
    }
    return false;
}

bool pads_nothing(const Node& node) {
    return std::ranges::all_of(node.get("pads", Ints()), [](int64_t v) { return v == 0; });
}

bool fuse_pad_at(Rewriter& rewriter, size_t index) {
    Node& node = rewriter.node(index);
    if (node.kind != "Conv" && node.kind != "AveragePool" && node.kind != "MaxPool") return false;
    Node* pad = rewriter.producer(node.inputs[0], "Pad");
    if (!pad || !rewriter.has_one_use(node.inputs[0]) ||
        rewriter.value(node.inputs[0]).data_dependent)
        return false;
    if (node.kind == "MaxPool") {
        // Indices count the elements of the picture with its padding.
        if (node.outputs.size() > 1 && node.outputs[1] != none) return false;
        // Padding of a MaxPool never wins: the same as zeros where nothing is below them.
        const bool minus_infinity = pads_space_with(*pad, -INFINITY);
        // The least whole number is its own absolute value.
        const bool zeros = pads_space_with(*pad, 0) &&
                           graph::is_float(rewriter.value(pad->inputs[0]).type.data_type) &&
                           never_negative(rewriter, pad->inputs[0]);
        if ((!minus_infinity && !zeros) || node.get("ceil_mode", int64_t{0})) return false;
        // An end so wide that a window lies wholly in it, with the padding that the pool has
        // itself, would have no element at all; taps with gaps may miss a small picture.
        const Ints kernel = node.get("kernel_shape", Ints()), pads = pad->get("pads", Ints());
        const size_t space = kernel.size(), rank = space + 2;
        const Ints own = node.get("pads", Ints(2 * space, 0));
        const Ints dilations = node.get("dilations", Ints(space, 1));
        for (size_t i = 0; i < space; ++i) {
            if (own[i] + pads[i + 2] >= kernel[i] || dilations[i] != 1 ||
                own[space + i] + pads[rank + i + 2] >= kernel[i])
                return false;
        }
    } else if (!pads_space_with(*pad, 0)) {
        return false;
    }
    if (node.kind == "AveragePool") {
        // The padding counts as elements; so must any padding that the pool has itself.
        const bool counts = node.get("count_include_pad", int64_t{0}) != 0;
        if (node.get("ceil_mode", int64_t{0}) || (!counts && !pads_nothing(node))) return false;
        node.attributes["count_include_pad"] = int64_t{1};
    }
    const Ints outer = pad->get("pads", Ints());
    const size_t rank = outer.size() / 2, space = rank - 2;
    Ints pads = node.get("pads", Ints(2 * space, 0));
    for (size_t i = 0; i < space; ++i) {
        pads[i] += outer[i + 2];
        pads[space + i] += outer[rank + i + 2];
    }
    node.attributes["pads"] = pads;
    Rewriter::merge_sources(node, *pad);
    node.inputs[0] = pad->inputs[0];
    rewriter.refresh();
    return true;
}

}  // namespace

Result<PassStats> fuse_activation(graph::Graph& graph) {
    return rewrite_nodes(graph, fuse_activation_at);
}
Result<PassStats> fuse_residual(graph::Graph& graph) {
    return rewrite_nodes(graph, fuse_residual_at);
}
Result<PassStats> fuse_scale_bias(graph::Graph& graph) {
    return rewrite_nodes(graph, fuse_scale_bias_at);
}
Result<PassStats> hoist_activation(graph::Graph& graph) {
    return rewrite_nodes(graph, hoist_activation_at);
}
Result<PassStats> gemm_from_matmul(graph::Graph& graph) {
    return rewrite_nodes(graph, bias_at);
}
Result<PassStats> fuse_pad(graph::Graph& graph) {
    return rewrite_nodes(graph, fuse_pad_at);
}

}  // namespace vartml::compiler
