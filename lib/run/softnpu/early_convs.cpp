// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/early_convs.h"

#include <algorithm>
#include <string_view>

namespace vartml::softnpu {
namespace {

bool is_convolution(const graph::Node& node) {
    return node.base() == "Conv" || node.base() == "ConvTranspose";
}

bool is_product(const graph::Node& node) {
    return node.base() == "Gemm" || node.base() == "MatMul";
}

// Multiply-adds of a convolution or matrix product.
int64_t work_of(const graph::Graph& graph, const graph::Node& node) {
    const graph::Value& weights = graph.value(node.inputs[1]);
    if (is_convolution(node)) {
        // Each weight meets all positions of one picture: of the output, or of the input where the
        // convolution is transposed.
        const graph::ValueId id = node.base() == "Conv" ? node.outputs[0] : node.inputs[0];
        const auto& shape = graph.value(id).type.shape;
        return weights.type.elements() *
               (graph.value(id).type.elements() / std::max<int64_t>(shape[1], 1));
    }
    const auto& inner = graph.value(node.inputs[0]).type.shape;
    const bool transposed = node.get("transA", int64_t{0}) != 0;
    return graph.value(node.outputs[0]).type.elements() *
           (transposed ? inner.front() : inner.back());
}

}  // namespace

std::vector<bool> find_early_convs(const graph::Graph& graph) {
    constexpr int64_t share = 10;
    int64_t all = 0, early = 0;
    for (const graph::Node& node : graph.nodes)
        if (is_convolution(node) || is_product(node)) all += work_of(graph, node);
    std::vector<bool> result(graph.nodes.size(), false);
    std::vector<bool> behind(graph.values.size(), false);  // a convolution or product
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const graph::Node& node = graph.nodes[i];
        const bool is_behind = std::ranges::any_of(node.inputs, [&](graph::ValueId in) {
            return in >= 0 && behind[static_cast<size_t>(in)];
        });
        const bool multiplies = is_convolution(node) || is_product(node);
        for (const graph::ValueId out : node.outputs)
            if (out >= 0) behind[static_cast<size_t>(out)] = is_behind || multiplies;
        if (!multiplies || !is_behind) continue;
        early += work_of(graph, node);
        if (node.base() != "Conv" || early > all / share) break;
        result[i] = true;
    }
    return result;
}

}  // namespace vartml::softnpu
