// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/passes/quantised_edges.h"

#include <algorithm>
#include <optional>

#include "lib/compile/passes/quantisation.h"

namespace vartml::compiler {
namespace {

using graph::Node;
using graph::ValueId;

EdgeCodes codes_of(DataType real, const Coding& coding) {
    return {real, {static_cast<double>(coding.scale), coding.zero}};
}

// The one coding that all readers of a value give it.
std::optional<Coding> coding_of_readers(Rewriter& rewriter, ValueId id) {
    std::optional<Coding> found;
    for (const int32_t reader : rewriter.readers(id)) {
        const Node& node = rewriter.node(static_cast<size_t>(reader));
        const auto coding =
            node.kind == "QuantizeLinear" ? coding_of(rewriter, &node) : std::nullopt;
        const bool given = coding && !rewriter.is_output(node.outputs[0]);
        if (!given || (found && !(*found == *coding))) return std::nullopt;
        found = coding;
    }
    return found;
}

void take_input(Rewriter& rewriter, ValueId id, QuantisedEdges& edges) {
    const auto coding = rewriter.is_output(id) ? std::nullopt : coding_of_readers(rewriter, id);
    if (!coding) return;
    graph::Value& value = rewriter.graph().value(id);
    edges[value.name] = codes_of(value.type.data_type, *coding);
    const std::vector<int32_t> readers(rewriter.readers(id).begin(), rewriter.readers(id).end());
    value.type.data_type = coding->type;
    for (const int32_t reader : readers)
        rewriter.bypass(rewriter.node(static_cast<size_t>(reader)), id);
}

void take_output(Rewriter& rewriter, ValueId& output, QuantisedEdges& edges) {
    Node* const node = rewriter.producer(output, "DequantizeLinear");
    const auto coding = coding_of(rewriter, node);
    const auto& outputs = rewriter.graph().outputs;
    if (!coding || !rewriter.readers(output).empty() || std::ranges::count(outputs, output) != 1)
        return;
    const ValueId codes = node->inputs[0];
    // Only what a node makes can be an output, and only once.
    if (rewriter.producer_index(codes) < 0 || rewriter.is_output(codes)) return;
    graph::Graph& graph = rewriter.graph();
    edges[graph.value(output).name] = codes_of(graph.value(output).type.data_type, *coding);
    std::swap(graph.value(codes).name, graph.value(output).name);
    rewriter.remove(*node);
    output = codes;
    rewriter.refresh();
}

}  // namespace

QuantisedEdges quantise_edges(graph::Graph& graph, bool inputs, bool outputs,
                              const std::set<std::string>& keep) {
    QuantisedEdges edges;
    Rewriter rewriter(graph);
    if (inputs)
        for (const ValueId id : graph.inputs)
            if (!keep.contains(graph.value(id).name)) take_input(rewriter, id, edges);
    if (outputs)
        for (ValueId& id : graph.outputs)
            if (!keep.contains(graph.value(id).name)) take_output(rewriter, id, edges);
    if (!edges.empty()) {
        std::erase_if(graph.nodes, [](const Node& node) { return node.kind.empty(); });
        graph::remove_dead(graph);
    }
    return edges;
}

}  // namespace vartml::compiler
