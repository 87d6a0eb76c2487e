// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/input_meaning.h"

#include <cmath>
#include <set>
#include <vector>

#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::none;
using graph::Trait;
using graph::ValueId;

// The elements as they are, some of them, or with those of others.
bool is_selection(const Node& node) {
    return node.fused.empty() &&
           (has_trait(node, Trait::reshapes | Trait::permutes) || node.kind == "Cast" ||
            node.kind == "Slice" || node.kind == "Split" || node.kind == "Concat" ||
            node.kind == "SpaceToDepth");
}

// The weights of the only convolution that reads the input; none where anything else does, and
// where a normalisation behind it makes their size mean nothing.
ValueId first_weights(const Graph& graph, ValueId input) {
    const graph::Uses uses = find_uses(graph);
    std::vector<ValueId> open{input};
    std::set<ValueId> seen;
    std::set<int32_t> products;
    while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        if (!seen.insert(id).second) continue;
        for (const int32_t at : uses.consumers[static_cast<size_t>(id)]) {
            const Node& node = graph.nodes[static_cast<size_t>(at)];
            if (is_selection(node))
                open.insert(open.end(), node.outputs.begin(), node.outputs.end());
            else if (node.kind == "Conv" && node.inputs[0] == id)
                products.insert(at);
            else if (node.kind != "Shape")
                return none;
        }
    }
    if (products.size() != 1) return none;
    const Node& product = graph.nodes[static_cast<size_t>(*products.begin())];
    for (const int32_t at : uses.consumers[static_cast<size_t>(product.outputs[0])]) {
        const std::string& kind = graph.nodes[static_cast<size_t>(at)].kind;
        if (kind == "BatchNormalization" || kind == "InstanceNormalization" ||
            kind == "GroupNormalization" || kind == "LayerNormalization")
            return none;
    }
    return product.inputs[1];
}

bool is_for_units(const Graph& graph, ValueId input) {
    const ValueId weights = first_weights(graph, input);
    if (weights == none) return false;
    const graph::Value& value = graph.value(weights);
    if (!value.constant || !graph::is_float(value.type.data_type) || value.type.shape[0] == 0)
        return false;
    double sum = 0;
    for (const double weight : graph::read_numbers<double>(value)) sum += std::abs(weight);
    // measured: 0.5 to 0.8 in six models of YOLOX that take bytes, 33 in two that take normalised
    // pixels, which are about 60 times smaller.
    constexpr double least = 5;
    return sum / static_cast<double>(value.type.shape[0]) > least;
}

}  // namespace

std::vector<ModelInfo::Input> input_meanings(const Graph& graph) {
    std::vector<ModelInfo::Input> meanings;
    for (const ValueId id : graph.inputs) {
        if (!is_for_units(graph, id)) continue;
        ModelInfo::Input& meaning = meanings.emplace_back();
        meaning.name = graph.value(id).name;
        meaning.weights_for = "units";
    }
    return meanings;
}

}  // namespace vartml::compiler
