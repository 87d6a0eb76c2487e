// SPDX-License-Identifier: Apache-2.0
// What passes share: a graph with its uses, and the small changes of which rewrites consist.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::compiler {

struct PassStats {
    size_t rewrites = 0;
};

// A graph while a pass changes it. Removed nodes stay as empty shells until the pass ends, so that
// indices hold; uses() follows each change.
class Rewriter {
public:
    explicit Rewriter(graph::Graph& graph) : graph_(graph) { refresh(); }

    graph::Graph& graph() { return graph_; }
    graph::Node& node(size_t index) { return graph_.nodes[index]; }
    const graph::Value& value(graph::ValueId id) const { return graph_.value(id); }
    const graph::Type& type(graph::ValueId id) const { return graph_.value(id).type; }
    bool is_constant(graph::ValueId id) const {
        return id != graph::none && graph_.value(id).constant.has_value();
    }
    bool is_output(graph::ValueId id) const { return uses_.is_output[static_cast<size_t>(id)]; }

    // Index of the node that makes the value; -1 for inputs and constants.
    int32_t producer_index(graph::ValueId id) const {
        return uses_.producer[static_cast<size_t>(id)];
    }
    // nullptr for inputs, constants and `none`. With a kind: nullptr, too, if the node is of
    // another kind or has something fused behind it.
    graph::Node* producer(graph::ValueId id, std::string_view kind = {});
    // Nodes that read the value, once per input.
    std::span<const int32_t> readers(graph::ValueId id) const {
        return uses_.consumers[static_cast<size_t>(id)];
    }
    // Read by exactly one input and no output of the graph: whoever reads it may swallow it.
    bool has_one_use(graph::ValueId id) const { return readers(id).size() == 1 && !is_output(id); }

    // A constant of a float or integer type, rounded from these numbers.
    graph::ValueId add_constant(std::string_view stem, graph::Type type,
                                std::span<const double> numbers);
    // Name, sources and outputs of a node that takes over the work of `node` as well.
    static void merge_sources(graph::Node& into, const graph::Node& from);
    void remove(graph::Node& node);
    // Puts a node in front of the one at `index`, which moves behind it.
    void insert(size_t index, graph::Node node);
    // Removes a node whose first output equals `same`: whoever read it reads `same`. Where the
    // output is one of the graph, its name stays: the producer of `same` writes it instead. False
    // where neither is possible (from a graph input or constant to a graph output, or between two
    // outputs).
    bool bypass(graph::Node& node, graph::ValueId same);
    void refresh() { uses_ = graph::find_uses(graph_); }

private:
    graph::Graph& graph_;
    graph::Uses uses_;
};

// Offers each node to the rule until a whole sweep changes nothing; the rule says whether it
// changed the graph. Then removes what nobody needs.
PassStats rewrite_nodes(graph::Graph& graph,
                        const std::function<bool(Rewriter&, size_t index)>& rule);

// The only element of a constant, or of one whose elements are equal; nullopt otherwise.
std::optional<double> scalar(const Rewriter& rewriter, graph::ValueId id);
inline bool near(double a, double b) {
    return a > b - 1e-5 * (1 + (b < 0 ? -b : b)) && a < b + 1e-5 * (1 + (b < 0 ? -b : b));
}

// The other operand of a two-input node whose one operand is that constant scalar; none if it is
// not of this form. For Sub and Div the constant must be the second.
graph::ValueId operand_beside(const Rewriter& rewriter, const graph::Node& node, double& constant);

}  // namespace vartml::compiler
