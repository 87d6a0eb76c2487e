// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/cut.h"

#include <algorithm>

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

class Cutter {
public:
    Cutter(const Graph& graph, const std::vector<size_t>& nodes)
        : graph_(graph),
          nodes_(nodes),
          inside_(graph.nodes.size(), false),
          made_(graph.values.size(), false),
          read_(graph.values.size(), false) {}

    Graph run() {
        for (const size_t n : nodes_) inside_[n] = true;
        for (const size_t n : nodes_) {
            mark(graph_.nodes[n].outputs, made_);
            mark(graph_.nodes[n].inputs, read_);
        }
        Graph part;
        part.name = graph_.name;
        const std::vector<ValueId> inputs = border(graph_.inputs, [&](size_t v) {
            return read_[v] && !made_[v] && !graph_.values[v].constant;
        });
        const std::vector<bool> wanted = read_outside();
        const std::vector<ValueId> outputs =
            border(graph_.outputs, [&](size_t v) { return made_[v] && wanted[v]; });
        copy_values(part);
        for (const size_t n : nodes_) {
            part.nodes.push_back(graph_.nodes[n]);
            renumber(part.nodes.back().inputs);
            renumber(part.nodes.back().outputs);
        }
        part.inputs = inputs;
        part.outputs = outputs;
        renumber(part.inputs);
        renumber(part.outputs);
        return part;
    }

private:
    static void mark(const std::vector<ValueId>& ids, std::vector<bool>& marks) {
        for (const ValueId id : ids)
            if (id != graph::none) marks[static_cast<size_t>(id)] = true;
    }

    std::vector<bool> read_outside() const {
        std::vector<bool> wanted(graph_.values.size(), false);
        mark(graph_.outputs, wanted);
        for (size_t n = 0; n < graph_.nodes.size(); ++n)
            if (!inside_[n]) mark(graph_.nodes[n].inputs, wanted);
        return wanted;
    }

    template <typename Belongs>
    std::vector<ValueId> border(const std::vector<ValueId>& first, Belongs belongs) const {
        std::vector<ValueId> ids;
        std::vector<bool> taken(graph_.values.size(), false);
        const auto take = [&](size_t v) {
            if (taken[v] || !belongs(v)) return;
            taken[v] = true;
            ids.push_back(static_cast<ValueId>(v));
        };
        for (const ValueId id : first) take(static_cast<size_t>(id));
        for (size_t v = 0; v < graph_.values.size(); ++v) take(v);
        return ids;
    }

    void copy_values(Graph& part) {
        numbers_.assign(graph_.values.size(), graph::none);
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            if (!made_[v] && !read_[v]) continue;
            numbers_[v] = static_cast<ValueId>(part.values.size());
            part.values.push_back(graph_.values[v]);
        }
    }
    void renumber(std::vector<ValueId>& ids) const {
        for (ValueId& id : ids)
            if (id != graph::none) id = numbers_[static_cast<size_t>(id)];
    }

    const Graph& graph_;
    const std::vector<size_t>& nodes_;
    std::vector<bool> inside_;       // per node
    std::vector<bool> made_, read_;  // per value, by the nodes inside
    std::vector<ValueId> numbers_;   // in the part
};

}  // namespace

Graph cut(const Graph& graph, const std::vector<size_t>& nodes) {
    return Cutter(graph, nodes).run();
}

}  // namespace vartml::compiler
