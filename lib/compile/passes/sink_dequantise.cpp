// SPDX-License-Identifier: Apache-2.0
// sink_dequantise: what only moves elements works on the codes.
#include <algorithm>

#include "lib/compile/passes/passes.h"
#include "lib/graph/fold.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Trait;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

// Whether each output element is one element of the first input, or the largest of several.
bool is_mover(const Rewriter& rewriter, const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == none) return false;
    if (node.kind == "Resize") {
        if (node.get("mode", "nearest") != "nearest" || node.has("roi") || node.inputs.size() > 1)
            return false;
    } else if (node.kind == "MaxPool") {
        if (node.outputs.size() > 1 && node.outputs[1] != none) return false;
    } else if (!has_trait(node,
                          Trait::reshapes | Trait::permutes | Trait::repeats | Trait::picks)) {
        return false;
    }
    return std::ranges::none_of(
        node.outputs, [&](ValueId id) { return id != none && rewriter.value(id).data_dependent; });
}

// A value for the codes of a float value.
ValueId add_codes(Rewriter& rewriter, ValueId real, DataType type) {
    graph::Graph& graph = rewriter.graph();
    const std::string stem = graph.value(real).name + "_quantised";
    const Type like{type, graph.value(real).type.shape};
    const ValueId codes = graph.add_value(graph.unique_name(stem), like);
    graph.value(codes).data_dependent = graph.value(real).data_dependent;
    rewriter.refresh();
    return codes;
}

// `like`, a DequantizeLinear, of other codes.
Node dequantise(Rewriter& rewriter, const Node& like, ValueId codes, ValueId real) {
    Node node = like;
    node.name = rewriter.graph().unique_name(rewriter.value(real).name + "_dequantised");
    node.inputs[0] = codes;
    node.outputs = {real};
    return node;
}

bool sink_below_mover(Rewriter& rewriter, size_t index) {
    if (!is_mover(rewriter, rewriter.node(index))) return false;
    const Node* above = rewriter.producer(rewriter.node(index).inputs[0], "DequantizeLinear");
    const auto coding = coding_of(rewriter, above);
    if (!coding) return false;
    const Node like = *above;
    const std::vector<ValueId> reals = rewriter.node(index).outputs;
    rewriter.node(index).inputs[0] = like.inputs[0];
    for (size_t i = 0; i < reals.size(); ++i) {
        if (reals[i] == none) continue;
        const ValueId codes = add_codes(rewriter, reals[i], coding->type);
        rewriter.node(index).outputs[i] = codes;
        rewriter.insert(index + 1, dequantise(rewriter, like, codes, reals[i]));
    }
    return true;
}

bool sink_below_concat(Rewriter& rewriter, size_t index) {
    if (rewriter.node(index).kind != "Concat") return false;
    std::optional<Coding> first;
    std::vector<ValueId> codes;
    for (const ValueId real : rewriter.node(index).inputs) {
        const auto coding = codes_behind(rewriter, real, codes.emplace_back());
        if (!coding || (first && *coding != *first)) return false;
        first = coding;
    }
    const ValueId real = rewriter.node(index).outputs[0];
    const Node like = *rewriter.producer(rewriter.node(index).inputs[0]);
    const ValueId joined = add_codes(rewriter, real, first->type);
    rewriter.node(index).inputs = codes;
    rewriter.node(index).outputs = {joined};
    rewriter.insert(index + 1, dequantise(rewriter, like, joined, real));
    return true;
}

// Padding with a number that has a code.
bool sink_below_pad(Rewriter& rewriter, size_t index) {
    const Node& pad = rewriter.node(index);
    if (pad.kind != "Pad" || pad.inputs.size() != 1) return false;
    const Node* above = rewriter.producer(pad.inputs[0], "DequantizeLinear");
    const auto coding = coding_of(rewriter, above);
    if (!coding) return false;
    const int32_t code = coding->code(pad.get("value", 0.0F));
    if (pad.get("mode", "constant") == "constant" &&
        static_cast<float>(coding->real(code)) != pad.get("value", 0.0F))
        return false;
    const Node like = *above;
    const ValueId real = pad.outputs[0];
    const ValueId codes = add_codes(rewriter, real, coding->type);
    Node& sunk = rewriter.node(index);
    sunk.inputs[0] = like.inputs[0];
    sunk.outputs = {codes};
    sunk.attributes["value"] = static_cast<float>(code);
    rewriter.insert(index + 1, dequantise(rewriter, like, codes, real));
    return true;
}

// Weights with a scale per channel: the Transpose of the codes is a constant, too.
bool sink_weights(Rewriter& rewriter, size_t index) {
    const Node& transpose = rewriter.node(index);
    if (transpose.kind != "Transpose") return false;
    const Node* above = rewriter.producer(transpose.inputs[0], "DequantizeLinear");
    if (!above || !rewriter.is_constant(above->inputs[0]) ||
        rewriter.type(above->inputs[1]).shape.size() != 1 ||
        above->get("block_size", int64_t{0}) != 0)
        return false;
    const Ints perm = transpose.get("perm", Ints());
    const auto axis = std::ranges::find(perm, above->get("axis", int64_t{1}));
    if (axis == perm.end()) return false;
    const Node like = *above;
    const ValueId real = transpose.outputs[0];
    const ValueId codes = add_codes(rewriter, real, rewriter.type(like.inputs[0]).data_type);
    Node& sunk = rewriter.node(index);
    sunk.inputs[0] = like.inputs[0];
    sunk.outputs = {codes};
    Node below = dequantise(rewriter, like, codes, real);
    below.attributes["axis"] = static_cast<int64_t>(axis - perm.begin());
    rewriter.insert(index + 1, std::move(below));
    return true;
}

// The mean of whole pictures without its axes of size 1 is one with them and a Reshape.
bool split_mean(Rewriter& rewriter, size_t index) {
    const Node& mean = rewriter.node(index);
    if (mean.kind != "ReduceMean" || mean.inputs.size() != 1 ||
        mean.get("keepdims", int64_t{1}) != 0 || rewriter.value(mean.outputs[0]).data_dependent ||
        !coding_of(rewriter, rewriter.producer(mean.inputs[0], "DequantizeLinear")))
        return false;
    const ValueId result = mean.outputs[0];
    Type kept = rewriter.type(mean.inputs[0]);
    for (const int64_t axis : mean.get("axes", Ints())) kept.shape[static_cast<size_t>(axis)] = 1;
    graph::Graph& graph = rewriter.graph();
    const ValueId whole =
        graph.add_value(graph.unique_name(graph.value(result).name + "_kept"), kept);
    Node reshape;
    reshape.kind = "Reshape";
    reshape.name = graph.unique_name(graph.value(result).name + "_reshape");
    reshape.inputs = {whole};
    reshape.outputs = {result};
    reshape.attributes["shape"] = graph.value(result).type.shape;
    Node& node = rewriter.node(index);
    node.attributes["keepdims"] = int64_t{1};
    node.outputs = {whole};
    rewriter.insert(index + 1, std::move(reshape));
    return true;
}

// Codes that are constant stay so below a mover, at every level.
bool fold_mover(Rewriter& rewriter, size_t index) {
    Node& node = rewriter.node(index);
    if (!is_mover(rewriter, node) || !rewriter.is_constant(node.inputs[0]) ||
        node.outputs.size() != 1 || rewriter.is_output(node.outputs[0]) ||
        graph::is_float(rewriter.type(node.outputs[0]).data_type))
        return false;
    const auto folded = cpu::fold_node(rewriter.graph(), node);
    if (!folded || !*folded) return false;
    rewriter.remove(node);
    return true;
}

// The QuantizeLinear behind a mover goes in front of it.
bool raise_quantise(Rewriter& rewriter, size_t index) {
    const auto coding = coding_of(rewriter, &rewriter.node(index));
    if (!coding || rewriter.node(index).kind != "QuantizeLinear") return false;
    const ValueId between = rewriter.node(index).inputs[0];
    const Node* above = rewriter.producer(between);
    if (!above || above->inputs.size() != 1 || above->outputs.size() != 1 ||
        !rewriter.has_one_use(between) || rewriter.is_constant(above->inputs[0]))
        return false;
    // In front of what picks some elements it would be more work.
    if (!is_mover(rewriter, *above) || has_trait(*above, Trait::picks)) return false;
    const auto place = static_cast<size_t>(rewriter.producer_index(between));
    const ValueId real = above->inputs[0];
    const ValueId codes = add_codes(rewriter, real, coding->type);
    Node quantise = rewriter.node(index), moved = rewriter.node(place);
    moved.outputs = quantise.outputs;
    moved.inputs = {codes};
    quantise.inputs[0] = real;
    quantise.outputs = {codes};
    rewriter.node(place) = std::move(quantise);
    rewriter.node(index) = std::move(moved);
    return true;
}

bool cancel(Rewriter& rewriter, size_t index) {
    Node& node = rewriter.node(index);
    if (node.kind != "QuantizeLinear") return false;
    ValueId codes = none;
    const auto from = codes_behind(rewriter, node.inputs[0], codes);
    const auto to = coding_of(rewriter, &node);
    return from && to && *from == *to && rewriter.bypass(node, codes);
}

bool sink_at(Rewriter& rewriter, size_t index) {
    return cancel(rewriter, index) || fold_mover(rewriter, index) ||
           sink_below_mover(rewriter, index) || sink_below_concat(rewriter, index) ||
           sink_below_pad(rewriter, index) || sink_weights(rewriter, index) ||
           split_mean(rewriter, index) || raise_quantise(rewriter, index);
}

}  // namespace

Result<PassStats> sink_dequantise(graph::Graph& graph) {
    return rewrite_nodes(graph, sink_at);
}

// fold_dequantise: what stays float reads its weights as floats.

Result<PassStats> fold_dequantise(graph::Graph& graph) {
    return rewrite_nodes(graph, [](Rewriter& rewriter, size_t index) {
        graph::Node& node = rewriter.node(index);
        if (node.kind != "DequantizeLinear" || rewriter.is_output(node.outputs[0])) return false;
        const std::vector<double> numbers = dequantised(rewriter, node);
        if (numbers.empty()) return false;
        graph::Value& result = rewriter.graph().value(node.outputs[0]);
        result.constant = graph::write_numbers<double>(result.type.data_type, numbers);
        rewriter.remove(node);
        return true;
    });
}

}  // namespace vartml::compiler
