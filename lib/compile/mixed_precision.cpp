// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/compile/quantise.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

// Judging one runs the model over the set: in a large model neighbours are judged together.
constexpr size_t most_judged = 96;
// Steps from one trial of what is kept to the next, at least: the last trials cost no more than the
// first ones.
constexpr size_t most_trials = 24;

struct Tensors {
    std::vector<graph::ValueId> values;
    std::set<size_t> products;
    double loss = 0;  // of their codes alone
};

std::vector<Tensors> tensors_of(const graph::Graph& graph) {
    const std::vector<CodedTensors> all = coded_tensors(graph);
    const size_t length = (all.size() + most_judged - 1) / most_judged;
    std::vector<Tensors> tensors;
    for (size_t i = 0; i < all.size(); ++i) {
        if (i % length == 0) tensors.emplace_back();
        Tensors& last = tensors.back();
        last.values.insert(last.values.end(), all[i].values.begin(), all[i].values.end());
        last.products.insert(all[i].products.begin(), all[i].products.end());
    }
    return tensors;
}

// What is kept after each step, and what the others are expected to lose.
struct Step {
    size_t product = 0;
    double left = 0;
};

// Tensors lose their codes, one after the other, with all products around them.
std::vector<Step> steps_of(const graph::Graph& graph, std::vector<Tensors> tensors) {
    std::vector<Step> steps;
    double left = 0;
    for (const Tensors& t : tensors) left += t.loss;
    while (true) {
        // Those with nothing int8 around them have no codes.
        std::erase_if(tensors, [&](const Tensors& t) {
            if (t.products.empty()) left -= t.loss;
            return t.products.empty();
        });
        if (!steps.empty()) steps.back().left = left;
        const auto gain = [&](const Tensors& t) {
            uint64_t macs = 1;
            for (const size_t i : t.products) macs += count_macs(graph, graph.nodes[i]);
            return t.loss / static_cast<double>(macs);
        };
        const auto next = std::ranges::max_element(tensors, {}, gain);
        if (next == tensors.end()) return steps;
        const std::set<size_t> products = next->products;
        for (const size_t i : products) {
            steps.push_back({i, left});
            for (Tensors& t : tensors) t.products.erase(i);
        }
    }
}

}  // namespace

Result<std::set<std::string>> choose_floats(const graph::Graph& graph, std::optional<double> target,
                                            const Judge& judge) {
    const auto all_int8 = judge.all_but({});
    if (!all_int8) return all_int8.error();
    const double wanted = target.value_or(all_int8->usual);
    if (all_int8->agreement >= wanted) return std::set<std::string>();
    std::vector<Tensors> tensors = tensors_of(graph);
    double sum = 0;
    for (Tensors& t : tensors) {
        const auto verdict = judge.codes_at(t.values);
        if (!verdict) return verdict.error();
        t.loss = std::max(verdict->loss, 0.0);
        sum += t.loss;
    }
    const std::vector<Step> steps = steps_of(graph, std::move(tensors));
    // Losses add up, about: where the agreement is what is not lost, the first trial leaves
    // somewhat more than may be lost.
    const bool is_loss = std::abs(1 - all_int8->agreement - all_int8->loss) < 1e-9;
    const double most = is_loss ? 1.25 * (1 - wanted) / all_int8->loss * sum : sum;
    size_t kept = 0;
    while (kept + 1 < steps.size() && steps[kept].left > most) ++kept;
    const size_t stride = std::max<size_t>((steps.size() - kept) / most_trials, 1);
    std::set<std::string> names;
    for (size_t i = 0; i < steps.size(); ++i) {
        names.insert(graph.nodes[steps[i].product].name);
        if (i < kept || (i - kept) % stride != 0) continue;
        const auto verdict = judge.all_but(names);
        if (!verdict) return verdict.error();
        if (verdict->agreement >= wanted) break;
    }
    return names;
}

}  // namespace vartml::compiler
