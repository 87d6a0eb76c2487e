// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/mixed_precision.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lib/compile/quantise.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

// Judging one runs the model over the set: more stretches would take minutes and say little more.
constexpr size_t most_stretches = 32;

struct Stretch {
    std::set<std::string> names;
    uint64_t macs = 0;
    double loss = 0;  // of having it alone in int8
};

// Neighbours in the order of the graph, of about as many nodes each.
std::vector<Stretch> stretches_of(const graph::Graph& graph) {
    const std::vector<size_t> products = products_to_quantise(graph);
    const size_t length = (products.size() + most_stretches - 1) / most_stretches;
    std::vector<Stretch> stretches;
    for (size_t i = 0; i < products.size(); ++i) {
        if (i % length == 0) stretches.emplace_back();
        const graph::Node& node = graph.nodes[products[i]];
        stretches.back().names.insert(node.name);
        stretches.back().macs += count_macs(graph, node);
    }
    return stretches;
}

std::set<std::string> names_of(std::span<const Stretch> stretches) {
    std::set<std::string> names;
    for (const Stretch& stretch : stretches)
        names.insert(stretch.names.begin(), stretch.names.end());
    return names;
}

}  // namespace

Result<std::set<std::string>> choose_floats(const graph::Graph& graph, double target,
                                            const Judge& judge) {
    auto verdict = judge({});
    if (!verdict) return verdict.error();
    if (verdict->agreement >= target) return std::set<std::string>();
    std::vector<Stretch> stretches = stretches_of(graph);
    const std::set<std::string> all = names_of(stretches);
    for (Stretch& stretch : stretches) {
        std::set<std::string> others = all;
        for (const std::string& name : stretch.names) others.erase(name);
        verdict = judge(others);
        if (!verdict) return verdict.error();
        stretch.loss = verdict->loss;
    }
    std::ranges::stable_sort(stretches, std::ranges::greater(), [](const Stretch& s) {
        return s.loss / static_cast<double>(s.macs + 1);
    });
    // One more at a time: what a few more keep may agree less, so that halving finds too many.
    for (size_t kept = 1; kept < stretches.size(); ++kept) {
        const std::set<std::string> names = names_of(std::span(stretches).first(kept));
        verdict = judge(names);
        if (!verdict) return verdict.error();
        if (verdict->agreement >= target) return names;
    }
    return all;
}

}  // namespace vartml::compiler
