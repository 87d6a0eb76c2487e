// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/early_convs.h"

#include <algorithm>

#include "lib/graph/ops.h"

namespace vartml::softnpu {

std::vector<bool> find_early_convs(const graph::Graph& graph) {
    constexpr uint64_t share = 10;
    const auto is_product = [](const graph::Node& node) {
        return has_trait(node, graph::Trait::product);
    };
    uint64_t all = 0, early = 0;
    for (const graph::Node& node : graph.nodes)
        if (is_product(node)) all += count_macs(graph, node);
    std::vector<bool> result(graph.nodes.size(), false);
    std::vector<bool> behind(graph.values.size(), false);  // a product
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const graph::Node& node = graph.nodes[i];
        const bool is_behind = std::ranges::any_of(node.inputs, [&](graph::ValueId in) {
            return in >= 0 && behind[static_cast<size_t>(in)];
        });
        for (const graph::ValueId out : node.outputs)
            if (out >= 0) behind[static_cast<size_t>(out)] = is_behind || is_product(node);
        if (!is_product(node) || !is_behind) continue;
        early += count_macs(graph, node);
        if (early > all / share) break;
        if (node.kind == "QLinearConv") continue;
        if (node.kind != "Conv") break;
        result[i] = true;
    }
    return result;
}

}  // namespace vartml::softnpu
