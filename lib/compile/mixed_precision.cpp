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

// Picoseconds that int8 saves on a multiply-add and loses on a result, which must be rounded; what
// a tensor costs that floats and codes meet at, and each of its elements, or that of an input,
// whose layout is another. Measured on one thread of Zen 4 beside bf16, rounded. Where floats are
// f32 int8 saves more. A filter per channel saves nothing.
constexpr double saved_per_mac = 4, lost_per_result = 50, lost_per_tensor = 400'000,
                 lost_per_element = 100, lost_per_input = 300;

struct Tensors {
    std::vector<CodedTensors> coded;
    double loss = 0;  // of their codes alone
};

std::vector<Tensors> tensors_of(const graph::Graph& graph) {
    const std::vector<CodedTensors> all = coded_tensors(graph);
    const size_t length = (all.size() + most_judged - 1) / most_judged;
    std::vector<Tensors> tensors;
    for (size_t i = 0; i < all.size(); ++i) {
        if (i % length == 0) tensors.emplace_back();
        tensors.back().coded.push_back(all[i]);
    }
    return tensors;
}

// What is kept after a step, and what the others are expected to lose.
struct Step {
    std::set<size_t> kept;
    double left = 0;
};

// Tensors lose their codes, one after the other, with all products around them: first those that
// lose most for the time that they save. With each go parts of the model that save none.
class Steps {
public:
    Steps(const graph::Graph& graph, const std::vector<Tensors>& tensors)
        : graph_(graph), tensors_(tensors) {}

    std::vector<Step> all() const {
        std::vector<Step> steps;
        Products kept;
        while (const auto next = next_tensors(kept)) {
            kept.insert(next->begin(), next->end());
            drop_what_saves_nothing(kept);
            steps.push_back({kept, left(kept)});
        }
        return steps;
    }

private:
    using Products = std::set<size_t>;

    static bool has_codes(const CodedTensors& coded, const Products& kept) {
        return std::ranges::any_of(coded.products, [&](size_t i) { return !kept.contains(i); });
    }
    static Products with(Products kept, const Tensors& more) {
        for (const CodedTensors& coded : more.coded)
            kept.insert(coded.products.begin(), coded.products.end());
        return kept;
    }
    double left(const Products& kept) const {
        double sum = 0;
        for (const Tensors& t : tensors_)
            if (std::ranges::any_of(t.coded, [&](const auto& c) { return has_codes(c, kept); }))
                sum += t.loss;
        return sum;
    }

    // The time that int8 saves, in picoseconds.
    double saved(const Products& kept) const {
        double sum = 0;
        Products in_int8;
        for (const Tensors& t : tensors_) {
            for (const CodedTensors& coded : t.coded) {
                if (!has_codes(coded, kept)) continue;
                double lost = 0;
                for (const size_t i : coded.products)
                    if (kept.contains(i))
                        lost = lost_per_element;
                    else
                        in_int8.insert(i);
                int64_t elements = 0;
                for (const graph::ValueId id : coded.values)
                    elements = std::max(elements, graph_.value(id).type.elements());
                if (coded.are_input) lost = lost_per_input;
                if (lost > 0) sum -= lost_per_tensor + lost * static_cast<double>(elements);
            }
        }
        for (const size_t i : in_int8) {
            const graph::Node& node = graph_.nodes[i];
            if (!has_filter_per_channel(node))
                sum += saved_per_mac * static_cast<double>(graph::count_macs(graph_, node));
            sum -= lost_per_result *
                   static_cast<double>(graph_.value(node.outputs[0]).type.elements());
        }
        return sum;
    }
    bool has_filter_per_channel(const graph::Node& node) const {
        const int64_t groups = node.get("group", int64_t{1});
        return groups > 1 && groups == graph_.value(node.inputs[1]).type.shape[0];
    }

    // The products around the tensors that lose most for the time that their codes save.
    std::optional<Products> next_tensors(const Products& kept) const {
        std::optional<Products> best;
        double most = -1;
        const double now = saved(kept), loss = left(kept);
        for (const Tensors& t : tensors_) {
            Products more = with(kept, t);
            if (more.size() == kept.size()) continue;
            const double costs = std::max(now - saved(more), 1.0);
            const double gain = (loss - left(more)) / costs;
            if (gain <= most) continue;
            most = gain;
            best = std::move(more);
        }
        return best;
    }

    // Products that tensors of codes connect.
    std::vector<Products> islands(const Products& kept) const {
        std::vector<Products> result;
        for (const Tensors& t : tensors_) {
            for (const CodedTensors& coded : t.coded) {
                Products island;
                for (const size_t i : coded.products)
                    if (!kept.contains(i)) island.insert(i);
                if (island.empty()) continue;
                std::erase_if(result, [&](const Products& other) {
                    if (std::ranges::none_of(other, [&](size_t i) { return island.contains(i); }))
                        return false;
                    island.insert(other.begin(), other.end());
                    return true;
                });
                result.push_back(std::move(island));
            }
        }
        return result;
    }
    void drop_what_saves_nothing(Products& kept) const {
        for (bool changed = true; changed;) {
            changed = false;
            std::vector<Products> candidates = islands(kept);
            for (const Tensors& t : tensors_) candidates.push_back(with({}, t));
            for (const Products& candidate : candidates) {
                Products more = kept;
                more.insert(candidate.begin(), candidate.end());
                if (more.size() == kept.size() || saved(more) < saved(kept)) continue;
                kept = std::move(more);
                changed = true;
            }
        }
    }

    const graph::Graph& graph_;
    const std::vector<Tensors>& tensors_;
};

}  // namespace

Result<std::set<std::string>> choose_floats(const graph::Graph& graph, std::optional<double> target,
                                            const Judge& judge) {
    const auto all_int8 = judge.all_but({});
    if (!all_int8) return all_int8.error();
    const auto agrees = [&](const Verdict& verdict) {
        return target ? verdict.agreement >= *target : verdict.excess <= 1;
    };
    if (agrees(*all_int8)) return std::set<std::string>();
    std::vector<Tensors> tensors = tensors_of(graph);
    double sum = 0;
    for (Tensors& t : tensors) {
        std::vector<graph::ValueId> values;
        for (const CodedTensors& coded : t.coded)
            values.insert(values.end(), coded.values.begin(), coded.values.end());
        const auto verdict = judge.codes_at(values);
        if (!verdict) return verdict.error();
        t.loss = std::max(verdict->loss, 0.0);
        sum += t.loss;
    }
    const std::vector<Step> steps = Steps(graph, tensors).all();
    // Losses add up, about: where the agreement is what is not lost, the first trial leaves
    // somewhat more than may be lost.
    const bool is_loss = std::abs(1 - all_int8->agreement - all_int8->loss) < 1e-9;
    const double part = target ? (1 - *target) / all_int8->loss : 1 / all_int8->excess;
    const double most = is_loss ? 1.25 * part * sum : sum;
    size_t first = 0;
    while (first + 1 < steps.size() && steps[first].left > most) ++first;
    const size_t stride = std::max<size_t>((steps.size() - first) / most_trials, 1);
    std::set<std::string> names;
    for (size_t i = first; i < steps.size(); i += stride) {
        names.clear();
        for (const size_t product : steps[i].kept) names.insert(graph.nodes[product].name);
        const auto verdict = judge.all_but(names);
        if (!verdict) return verdict.error();
        if (agrees(*verdict)) return names;
    }
    for (const Step& step : steps)
        for (const size_t product : step.kept) names.insert(graph.nodes[product].name);
    return names;
}

}  // namespace vartml::compiler
