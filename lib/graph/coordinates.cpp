// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/coordinates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "lib/graph/late.h"
#include "lib/graph/ops.h"

namespace vartml::graph {
namespace {

bool is_float(DataType type) {
    return type == DataType::float32 || type == DataType::bf16 || type == DataType::fp16;
}

bool is_product(const Node& node) {
    return has_trait(node, Trait::product);
}

// Numbers of a constant in f32; nothing for others.
std::vector<float> numbers_of(const Value& value) {
    if (!value.constant || value.type.data_type != DataType::float32) return {};
    const auto bytes = value.constant->bytes;
    std::vector<float> numbers(bytes.size() / sizeof(float));
    if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
}

// Whether a constant counts evenly: along one axis at least half of its numbers, or those of one of
// two coordinates, follow each other by the same step.
bool counts_evenly(const Value& value, int64_t most_elements) {
    constexpr int64_t least = 4;
    if (!value.constant || value.type.elements() < least || value.type.elements() > most_elements)
        return false;
    const std::vector<float> numbers = numbers_of(value);
    if (numbers.empty()) return false;
    int64_t stride = 1;
    for (size_t axis = value.type.shape.size(); axis-- > 0;) {
        const int64_t size = value.type.shape[axis];
        size_t even = 0, all = 0;
        for (int64_t i = 0; size >= least && i < value.type.elements(); ++i) {
            if (i / stride % size < 2) continue;  // the third of a row and those behind
            const auto at = static_cast<size_t>(i), step = static_cast<size_t>(stride);
            const float next = numbers[at] - numbers[at - step];
            const float before = numbers[at - step] - numbers[at - 2 * step];
            ++all;
            even += next != 0 && std::abs(next - before) <= 1e-3F * std::abs(next);
        }
        if (all != 0 && even * 5 >= all * 2) return true;
        stride *= size;
    }
    return false;
}

bool is_zero(const Value& value) {
    const std::vector<float> numbers = numbers_of(value);
    return !numbers.empty() && std::ranges::all_of(numbers, [](float n) { return n == 0; });
}

class Search {
public:
    explicit Search(const Graph& graph) : graph_(graph) {
        const size_t n = graph.values.size();
        found_.values.assign(n, false);
        found_.products.assign(graph.nodes.size(), false);
        for (auto* flags : {&wanted_, &read_, &carried_}) flags->assign(n, false);
        for (const Node& node : graph.nodes) {
            if (is_product(node)) macs_ += count_macs(graph, node);
            for (const ValueId out : node.outputs)
                if (can_be_kept(out)) elements_ += graph.value(out).type.elements();
        }
    }

    Coordinates run() {
        find_carried();
        for (size_t i = graph_.nodes.size(); i-- > 0;) visit(i);
        for (const ValueId in : graph_.inputs) settle(in);
        std::ranges::reverse(found_.reasons);
        return std::move(found_);
    }

private:
    bool can_be_kept(ValueId id) const {
        return id >= 0 && !graph_.value(id).constant && is_float(graph_.value(id).type.data_type);
    }
    static bool is_set(const std::vector<bool>& flags, ValueId id) {
        return id >= 0 && flags[static_cast<size_t>(id)];
    }
    static void set(std::vector<bool>& flags, ValueId id) { flags[static_cast<size_t>(id)] = true; }
    bool any_output(const Node& node, const std::vector<bool>& flags) const {
        return std::ranges::any_of(node.outputs, [&](ValueId id) { return is_set(flags, id); });
    }

    bool has_even_constant(const Node& node) const {
        const std::string_view base = node.kind;
        if (base != "Add" && base != "Sub" && base != "Mul" && !is_product(node)) return false;
        // Weights that count are those of one channel.
        const int64_t most_elements = is_product(node) ? 1 << 10 : 1 << 20;
        return std::ranges::any_of(node.inputs, [&](ValueId id) {
            return id >= 0 && counts_evenly(graph_.value(id), most_elements);
        });
    }

    // Forwards: coordinates that begin at a constant.
    void find_carried() {
        for (const Node& node : graph_.nodes) {
            const bool begins = has_even_constant(node);
            const bool carries =
                has_trait(node, Trait::carries) &&
                std::ranges::any_of(node.inputs, [&](ValueId id) { return is_set(carried_, id); });
            if (!begins && !carries) continue;
            for (const ValueId out : node.outputs)
                if (can_be_kept(out)) set(carried_, out), set(wanted_, out);
            if (begins) begins_.push_back(&node);
        }
    }

    // All readers of a value are known: is it kept?
    void settle(ValueId id) {
        if (!can_be_kept(id) || !is_set(wanted_, id) || graph_.value(id).data_dependent) return;
        if (is_set(read_, id)) {
            constexpr int64_t share = 20;
            const int64_t size = graph_.value(id).type.elements();
            if ((kept_elements_ + size) * share > elements_) return;
            kept_elements_ += size;
        }
        set(found_.values, id);
    }

    bool multiplies_exactly(const Node& node) {
        constexpr uint64_t share_of_one = 1000, share_of_all = 100;
        const uint64_t macs = count_macs(graph_, node);
        if (node.kind == "ConvTranspose" || macs * share_of_one > macs_ ||
            (exact_macs_ + macs) * share_of_all > macs_)
            return false;
        exact_macs_ += macs;
        return true;
    }

    void want(ValueId id) {
        if (can_be_kept(id)) set(wanted_, id);
    }

    // What the operator itself hangs on.
    void want_exacting_inputs(const Node& node) {
        const std::string kind = is_late(node) ? op_type(node) : node.kind;
        const auto tell = [&] { found_.reasons.push_back(kind + " '" + node.name + '\''); };
        if (std::ranges::find(begins_, &node) != begins_.end()) tell();
        constexpr Trait exact[] = {Trait::exact_0, Trait::exact_1, Trait::exact_2};
        if (has_trait(kind, exact[0] | exact[1] | exact[2])) {
            for (size_t i = 0; i < std::min(node.inputs.size(), std::size(exact)); ++i)
                if (has_trait(kind, exact[i])) want(node.inputs[i]);
            tell();
        }
        const bool to_integer = node.kind == "Cast" && can_be_kept(node.inputs[0]) &&
                                !is_float(graph_.value(node.outputs[0]).type.data_type);
        const bool compares = has_trait(node, Trait::comparison) &&
                              std::ranges::none_of(node.inputs, [&](ValueId id) {
                                  return id < 0 || is_zero(graph_.value(id)) ||
                                         !is_float(graph_.value(id).type.data_type);
                              });
        if (!to_integer && !compares) return;
        for (const ValueId in : node.inputs) want(in);
        tell();
    }

    void visit(size_t index) {
        const Node& node = graph_.nodes[index];
        for (const ValueId out : node.outputs) settle(out);
        const bool kept = any_output(node, found_.values);
        bool exact = false;
        if (is_product(node) && kept) exact = found_.products[index] = multiplies_exactly(node);
        // What a product in bf16 reads, through operators that compute in bf16 because of it.
        bool rounded = is_product(node) && !exact;
        for (const ValueId out : node.outputs)
            rounded = rounded || (is_set(read_, out) && !is_set(found_.values, out));
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId in = node.inputs[i];
            if (in < 0) continue;
            // Operands that are added to the sums of a product.
            const bool is_operand = is_product(node) && i >= 2;
            if (kept && (!is_product(node) || exact || is_operand)) want(in);
            if (rounded) set(read_, in);
        }
        want_exacting_inputs(node);
    }

    const Graph& graph_;
    Coordinates found_;
    std::vector<bool> wanted_, read_, carried_;  // per value; read_: by a product in bf16
    std::vector<const Node*> begins_;
    uint64_t macs_ = 0, exact_macs_ = 0;
    int64_t elements_ = 0, kept_elements_ = 0;
};

}  // namespace

size_t Coordinates::num_values() const {
    return static_cast<size_t>(std::ranges::count(values, true));
}

Coordinates find_coordinates(const Graph& graph) {
    return Search(graph).run();
}

}  // namespace vartml::graph
