// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/passes/rewrite.h"

#include <algorithm>

#include "lib/graph/numbers.h"

namespace vartml::compiler {

using graph::Node;
using graph::none;
using graph::ValueId;

Node* Rewriter::producer(ValueId id, std::string_view kind) {
    if (id == none) return nullptr;
    const int32_t index = producer_index(id);
    if (index < 0) return nullptr;
    Node& node = graph_.nodes[static_cast<size_t>(index)];
    return kind.empty() || (node.kind == kind && node.fused.empty()) ? &node : nullptr;
}

ValueId Rewriter::add_constant(std::string_view stem, graph::Type type,
                               std::span<const double> numbers) {
    graph::Constant constant = graph::write_numbers<double>(type.data_type, numbers);
    const ValueId id =
        graph_.add_constant(graph_.unique_name(stem), std::move(type), std::move(constant));
    refresh();
    return id;
}

void Rewriter::merge_sources(Node& into, const Node& from) {
    for (const std::string& source : from.sources) {
        if (std::ranges::find(into.sources, source) == into.sources.end())
            into.sources.push_back(source);
    }
}

void Rewriter::remove(Node& node) {
    node.kind.clear();
    node.inputs.clear();
    node.outputs.clear();
    refresh();
}

void Rewriter::insert(size_t index, Node node) {
    graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(index), std::move(node));
    refresh();
}

bool Rewriter::bypass(Node& node, ValueId same) {
    const ValueId gone = node.outputs[0];
    ValueId kept = same;
    if (is_output(gone)) {
        Node* maker = producer(same);
        if (!maker || is_output(same)) return false;
        std::ranges::replace(maker->outputs, same, gone);
        kept = gone;
    }
    const ValueId dropped = kept == gone ? same : gone;
    node.kind.clear();
    node.inputs.clear();
    node.outputs.clear();
    for (Node& reader : graph_.nodes) std::ranges::replace(reader.inputs, dropped, kept);
    refresh();
    return true;
}

PassStats rewrite_nodes(graph::Graph& graph, const std::function<bool(Rewriter&, size_t)>& rule) {
    PassStats stats;
    Rewriter rewriter(graph);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < graph.nodes.size(); ++i) {
            if (graph.nodes[i].kind.empty() || !rule(rewriter, i)) continue;
            rewriter.refresh();
            changed = true;
            ++stats.rewrites;
        }
    }
    std::erase_if(graph.nodes, [](const Node& node) { return node.kind.empty(); });
    if (stats.rewrites) graph::remove_dead(graph);
    return stats;
}

std::optional<double> scalar(const Rewriter& rewriter, ValueId id) {
    if (!rewriter.is_constant(id)) return std::nullopt;
    return graph::uniform_number(rewriter.value(id));
}

ValueId operand_beside(const Rewriter& rewriter, const Node& node, double& constant) {
    if (node.inputs.size() != 2) return none;
    const bool commutes = node.kind == "Add" || node.kind == "Mul";
    for (const size_t at : {size_t{1}, size_t{0}}) {
        if (at == 0 && !commutes) break;
        const auto number = scalar(rewriter, node.inputs[at]);
        const ValueId other = node.inputs[1 - at];
        // The constant must not widen the shape, nor one that is smaller in a run.
        if (!number || rewriter.type(other).shape != rewriter.type(node.outputs[0]).shape ||
            (rewriter.value(other).data_dependent &&
             rewriter.type(node.inputs[at]).elements() != 1))
            continue;
        constant = *number;
        return other;
    }
    return none;
}

}  // namespace vartml::compiler
