// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/passes/passes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/graph/numbers.h"

namespace vartml::compiler {

using graph::Node;
using graph::none;
using graph::ValueId;
using Ints = std::vector<int64_t>;

namespace {

ValueId input_or_none(const Node& node, size_t index) {
    return index < node.inputs.size() ? node.inputs[index] : none;
}

// Elements of a parameter along the axes of the data: its strides, 0 where it repeats, and how many
// neighbours share one.
struct Spread {
    size_t axis = 0;
    int64_t block = 1;  // elements of the axis that share a parameter
    bool whole = true;  // one parameter for everything
};

}  // namespace

int32_t Coding::code(double real) const {
    const double nearest = std::nearbyint(real / scale) + zero;
    return static_cast<int32_t>(
        std::clamp<double>(nearest, static_cast<double>(lowest()), static_cast<double>(highest())));
}

std::optional<Coding> coding_of(const Rewriter& rewriter, const Node* node) {
    if (!node || node->inputs.size() < 2) return std::nullopt;
    const bool quantises = node->kind == "QuantizeLinear";
    if (!quantises && node->kind != "DequantizeLinear") return std::nullopt;
    Coding coding;
    coding.type = rewriter.type(quantises ? node->outputs[0] : node->inputs[0]).data_type;
    if (coding.type != DataType::int8 && coding.type != DataType::uint8) return std::nullopt;
    coding.scale_id = node->inputs[1];
    coding.zero_id = input_or_none(*node, 2);
    for (const ValueId id : {coding.scale_id, coding.zero_id}) {
        if (id == none) continue;
        if (!rewriter.is_constant(id) || rewriter.type(id).elements() != 1) return std::nullopt;
    }
    coding.scale = graph::read_numbers<float>(rewriter.value(coding.scale_id))[0];
    if (!(coding.scale > 0) || !std::isfinite(coding.scale)) return std::nullopt;
    if (coding.zero_id != none)
        coding.zero =
            static_cast<int32_t>(graph::read_numbers<int64_t>(rewriter.value(coding.zero_id))[0]);
    return coding;
}

std::optional<Coding> codes_behind(Rewriter& rewriter, ValueId real, ValueId& codes) {
    const Node* node = rewriter.producer(real, "DequantizeLinear");
    const auto coding = coding_of(rewriter, node);
    if (coding) codes = node->inputs[0];
    return coding;
}

ValueId scale_operand(Rewriter& rewriter, const Coding& coding) {
    const graph::Type wanted{DataType::float32, {}};
    if (rewriter.type(coding.scale_id) == wanted) return coding.scale_id;
    const double number[] = {coding.scale};
    return rewriter.add_constant(rewriter.value(coding.scale_id).name, wanted, number);
}

ValueId zero_operand(Rewriter& rewriter, const Coding& coding) {
    const graph::Type wanted{coding.type, {}};
    if (coding.zero_id != none && rewriter.type(coding.zero_id) == wanted) return coding.zero_id;
    const double number[] = {static_cast<double>(coding.zero)};
    return rewriter.add_constant(rewriter.value(coding.scale_id).name + ".zero", wanted, number);
}

std::vector<double> dequantised(const Rewriter& rewriter, const Node& node) {
    const ValueId zero_id = input_or_none(node, 2);
    for (const ValueId id : {node.inputs[0], node.inputs[1], zero_id})
        if (id != none && !rewriter.is_constant(id)) return {};
    const Ints& shape = rewriter.type(node.inputs[0]).shape;
    const Ints& parameters = rewriter.type(node.inputs[1]).shape;
    Spread spread;
    spread.whole = rewriter.type(node.inputs[1]).elements() == 1;
    if (!spread.whole) {
        spread.axis = static_cast<size_t>(node.get("axis", int64_t{1}));
        spread.block = std::max<int64_t>(node.get("block_size", int64_t{0}), 1);
    }
    auto numbers = graph::read_numbers<double>(rewriter.value(node.inputs[0]));
    const auto scales = graph::read_numbers<float>(rewriter.value(node.inputs[1]));
    const auto zeros =
        zero_id == none ? Ints() : graph::read_numbers<int64_t>(rewriter.value(zero_id));
    int64_t inner = 1;  // elements behind the axis
    for (size_t i = spread.axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const bool blocked = parameters.size() == shape.size() && parameters.size() > 1;
    const int64_t size = shape.empty() ? 1 : shape[spread.axis];
    const int64_t groups = blocked && !spread.whole ? parameters[spread.axis] : size / spread.block;
    for (size_t i = 0; i < numbers.size(); ++i) {
        size_t at = 0;
        if (!spread.whole) {
            const auto index = static_cast<int64_t>(i);
            const int64_t group = index / inner % size / spread.block;
            at = static_cast<size_t>(blocked ? (index / (inner * size) * groups + group) * inner +
                                                   index % inner
                                             : group);
        }
        if (at >= scales.size() || (!zeros.empty() && at >= zeros.size())) return {};
        const double zero = zeros.empty() ? 0 : static_cast<double>(zeros[at]);
        numbers[i] = static_cast<double>(static_cast<float>(numbers[i] - zero) * scales[at]);
    }
    return numbers;
}

namespace {

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
