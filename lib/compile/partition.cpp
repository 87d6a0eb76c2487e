// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/partition.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>

#include "lib/graph/onnxruntime.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using artifact::PartitionKind;
using graph::Graph;
using graph::Node;

// One ONNX node: what it became stands side by side in the graph.
struct Unit {
    std::string name;
    std::vector<size_t> nodes;
    uint64_t ops = 0;
    std::optional<device::Unsupported> reason;  // why the target does not run it
    bool onnxruntime = false;
    int32_t candidate = -1;
};

// Why a whole subgraph is not on the NPU.
struct Rejection {
    std::string code, text;
};

std::string format(const char* pattern, double value) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}

class Partitioner {
public:
    Partitioner(const Graph& graph, const onnx::Origins& origins, const device::Target& target,
                const PartitionPolicy& policy)
        : graph_(graph),
          origins_(origins),
          target_(target),
          policy_(policy),
          unit_of_(graph.nodes.size()) {}

    Partitioning run() {
        find_units();
        find_candidates();
        reject_small();
        reject_surplus();
        reject_uncompiled();
        make_parts();
        list_fallbacks();
        return std::move(out_);
    }

private:
    void find_units();
    std::vector<Item> make_items() const;
    void find_candidates();
    void reject(size_t candidate, std::string code, const std::string& text);
    void reject_small();
    void reject_surplus();
    void reject_uncompiled();
    bool is_kept(size_t unit) const {
        const int32_t candidate = units_[unit].candidate;
        return candidate >= 0 && !rejections_.contains(static_cast<size_t>(candidate));
    }
    void add(Part& part, const Unit& unit) const;
    void join_for_onnxruntime(const std::vector<Item>& units);
    void make_parts();
    void list_fallbacks();

    const Graph& graph_;
    const onnx::Origins& origins_;
    const device::Target& target_;
    const PartitionPolicy& policy_;
    std::vector<size_t> unit_of_;  // per node
    std::vector<Unit> units_;
    std::vector<Part> candidates_;  // in execution order
    std::map<size_t, Rejection> rejections_;
    std::vector<size_t>
        group_of_;  // per unit, the candidate that is kept or a group of ONNX Runtime's
    std::vector<int32_t> part_of_;  // per unit, -1: none
    Partitioning out_;
};

void Partitioner::find_units() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        const Node& node = graph_.nodes[n];
        const std::string& name = node.sources.empty() ? node.name : node.sources[0];
        if (units_.empty() || units_.back().name != name)
            units_.push_back({.name = name, .nodes = {}, .reason = {}});
        Unit& unit = units_.back();
        unit_of_[n] = units_.size() - 1;
        unit.nodes.push_back(n);
        unit.ops += graph::count_ops(graph_, node);
        if (graph::is_onnxruntime(node)) {
            unit.onnxruntime = true;
            unit.reason = {"onnxruntime", node.get("why", "") + "; ONNX Runtime runs it"};
            continue;
        }
        if (!unit.reason) unit.reason = device::why_unsupported(target_, graph_, node);
        if (!policy_.use_npu)
            unit.reason = {"excluded-by-config", "the whole model was asked for on the CPU"};
    }
    out_.total.operators = static_cast<uint32_t>(units_.size());
    for (const Unit& unit : units_) out_.total.ops += unit.ops;
}

// The units, none of which joins another.
std::vector<Item> Partitioner::make_items() const {
    const graph::Uses uses = graph::find_uses(graph_);
    std::vector<Item> items(units_.size());
    for (size_t u = 0; u < units_.size(); ++u)
        for (const size_t n : units_[u].nodes)
            for (const graph::ValueId id : graph_.nodes[n].inputs) {
                const int32_t maker =
                    id == graph::none ? -1 : uses.producer[static_cast<size_t>(id)];
                if (maker >= 0 && unit_of_[static_cast<size_t>(maker)] != u)
                    items[u].before.push_back(unit_of_[static_cast<size_t>(maker)]);
            }
    return items;
}

void Partitioner::add(Part& part, const Unit& unit) const {
    part.nodes.insert(part.nodes.end(), unit.nodes.begin(), unit.nodes.end());
    ++part.operators;
    part.ops += unit.ops;
}

void Partitioner::find_candidates() {
    std::vector<Item> items = make_items();
    for (size_t u = 0; u < units_.size(); ++u) items[u].joins = !units_[u].reason;
    const std::vector<size_t> groups = convex_groups(items);
    std::map<size_t, int32_t> numbers;
    for (const size_t leader : execution_order(items, groups))
        if (groups[leader] != no_group)
            numbers.emplace(groups[leader], static_cast<int32_t>(numbers.size()));
    candidates_.resize(numbers.size());
    for (size_t u = 0; u < units_.size(); ++u) {
        if (groups[u] == no_group) continue;
        units_[u].candidate = numbers[groups[u]];
        Part& part = candidates_[static_cast<size_t>(units_[u].candidate)];
        part.candidate = units_[u].candidate;
        add(part, units_[u]);
        ++out_.supported.operators;
        out_.supported.ops += units_[u].ops;
    }
    out_.supported.subgraphs = static_cast<uint32_t>(candidates_.size());
}

void Partitioner::reject(size_t candidate, std::string code, const std::string& text) {
    rejections_[candidate] = {std::move(code),
                              "candidate_" + std::to_string(candidate) + ' ' + text};
}

void Partitioner::reject_small() {
    const auto total = static_cast<double>(out_.total.ops);
    if (out_.total.ops == 0) return;
    for (size_t c = 0; c < candidates_.size(); ++c) {
        const double percent = 100.0 * static_cast<double>(candidates_[c].ops) / total;
        if (percent >= policy_.threshold_gops_percent) continue;
        reject(c, "below-threshold",
               "holds " + format("%.3f", percent) + "% of the GOPs, threshold " +
                   format("%g", policy_.threshold_gops_percent) + '%');
        ++out_.below_threshold;
    }
}

void Partitioner::reject_surplus() {
    std::vector<size_t> left;
    for (size_t c = 0; c < candidates_.size(); ++c)
        if (!rejections_.contains(c)) left.push_back(c);
    if (left.size() <= policy_.max_subgraphs) return;
    std::ranges::stable_sort(left, std::greater<>(), [&](size_t c) { return candidates_[c].ops; });
    for (size_t i = policy_.max_subgraphs; i < left.size(); ++i) {
        reject(left[i], "above-max-subgraphs",
               "is not among the " + std::to_string(policy_.max_subgraphs) +
                   " subgraphs with most operations");
        ++out_.above_max;
    }
}

void Partitioner::reject_uncompiled() {
    if (!policy_.compile) return;
    for (size_t c = 0; c < candidates_.size(); ++c) {
        if (rejections_.contains(c)) continue;
        if (const auto why = policy_.compile(candidates_[c])) {
            reject(c, "compile-error", *why);
            ++out_.compile_errors;
        }
    }
}

// Units of which some stand together already, in `group_of` (no_group: alone): one item for each
// group and for each unit outside of them, in an order in which they can run.
struct Contracted {
    std::vector<size_t> first;    // unit of each item
    std::vector<size_t> item_of;  // item of each unit
    std::vector<Item> items;      // none of which joins
};
Contracted contract(const std::vector<Item>& units, const std::vector<size_t>& group_of) {
    Contracted c;
    c.first = execution_order(units, group_of);
    std::map<size_t, size_t> item_of_group;
    c.item_of.resize(units.size());
    for (size_t i = 0; i < c.first.size(); ++i) {
        c.item_of[c.first[i]] = i;
        if (group_of[c.first[i]] != no_group) item_of_group[group_of[c.first[i]]] = i;
    }
    for (size_t u = 0; u < units.size(); ++u)
        if (group_of[u] != no_group) c.item_of[u] = item_of_group[group_of[u]];
    c.items.resize(c.first.size());
    for (size_t u = 0; u < units.size(); ++u)
        for (const size_t before : units[u].before)
            if (c.item_of[before] != c.item_of[u])
                c.items[c.item_of[u]].before.push_back(c.item_of[before]);
    return c;
}

// What ONNX Runtime runs joins around the subgraphs that are kept: groups behind the candidates.
void Partitioner::join_for_onnxruntime(const std::vector<Item>& units) {
    Contracted c = contract(units, group_of_);
    for (size_t i = 0; i < c.items.size(); ++i) c.items[i].joins = units_[c.first[i]].onnxruntime;
    const std::vector<size_t> groups = convex_groups(c.items);
    for (size_t i = 0; i < c.items.size(); ++i)
        if (groups[i] != no_group) group_of_[c.first[i]] = candidates_.size() + groups[i];
}

// Kept subgraphs stay as they are; what the NPU does not run joins around them.
void Partitioner::make_parts() {
    const std::vector<Item> units = make_items();
    group_of_.assign(units_.size(), no_group);
    for (size_t u = 0; u < units_.size(); ++u)
        if (is_kept(u)) group_of_[u] = static_cast<size_t>(units_[u].candidate);
    join_for_onnxruntime(units);
    Contracted c = contract(units, group_of_);
    for (size_t i = 0; i < c.items.size(); ++i)
        c.items[i].joins = group_of_[c.first[i]] == no_group && policy_.cpu_parts;

    const std::vector<size_t> groups = convex_groups(c.items);
    std::vector<int32_t> part_of_item(c.items.size(), -1), part_of_group;
    for (const size_t item : execution_order(c.items, groups)) {
        const Unit& unit = units_[c.first[item]];
        if (group_of_[c.first[item]] == no_group && groups[item] == no_group) continue;
        const auto number = static_cast<int32_t>(out_.parts.size());
        part_of_item[item] = number;
        if (groups[item] != no_group) {
            part_of_group.resize(std::max(part_of_group.size(), groups[item] + 1), -1);
            part_of_group[groups[item]] = number;
        }
        const bool npu = group_of_[c.first[item]] < candidates_.size();
        out_.parts.push_back({.kind = npu ? PartitionKind::npu : PartitionKind::cpu,
                              .nodes = {},
                              .onnxruntime = unit.onnxruntime,
                              .candidate = npu ? unit.candidate : -1});
    }
    part_of_.assign(units_.size(), -1);
    for (size_t u = 0; u < units_.size(); ++u) {
        const size_t item = c.item_of[u];
        part_of_[u] = groups[item] == no_group ? part_of_item[item] : part_of_group[groups[item]];
        if (part_of_[u] >= 0) add(out_.parts[static_cast<size_t>(part_of_[u])], units_[u]);
    }
    for (const Part& part : out_.parts) {
        if (part.kind != PartitionKind::npu) continue;
        out_.offloaded.operators += part.operators;
        out_.offloaded.ops += part.ops;
        ++out_.offloaded.subgraphs;
    }
    out_.total.subgraphs = static_cast<uint32_t>(out_.parts.size());
}

void Partitioner::list_fallbacks() {
    for (size_t u = 0; u < units_.size(); ++u) {
        if (is_kept(u)) continue;
        const Unit& unit = units_[u];
        const auto origin = origins_.find(unit.name);
        artifact::Fallback f;
        f.node = unit.name;
        f.op_type = origin == origins_.end() ? std::string(graph_.nodes[unit.nodes[0]].kind)
                                             : origin->second.op_type;
        f.domain = origin == origins_.end() ? "" : origin->second.domain;
        f.partition = part_of_[u];
        f.candidate = unit.candidate;
        if (unit.reason) {
            f.code = unit.reason->code;
            f.text = unit.reason->text;
        } else {
            const Rejection& why = rejections_.at(static_cast<size_t>(unit.candidate));
            f.code = why.code;
            f.text = why.text;
        }
        out_.fallbacks.push_back(std::move(f));
    }
}

}  // namespace

Partitioning partition(const Graph& graph, const onnx::Origins& origins,
                       const device::Target& target, const PartitionPolicy& policy) {
    return Partitioner(graph, origins, target, policy).run();
}

namespace {

// Numbers of groups.
class GroupSet {
public:
    bool contains(size_t group) const {
        return group / 64 < words_.size() && ((words_[group / 64] >> (group % 64)) & 1) != 0;
    }
    void insert(size_t group) {
        if (group / 64 >= words_.size()) words_.resize(group / 64 + 1);
        words_[group / 64] |= uint64_t{1} << (group % 64);
    }
    void erase(size_t group) {
        if (group / 64 < words_.size()) words_[group / 64] &= ~(uint64_t{1} << (group % 64));
    }
    // Whether anything is new.
    bool insert(const GroupSet& other) {
        if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
        uint64_t added = 0;
        for (size_t i = 0; i < other.words_.size(); ++i) {
            added |= other.words_[i] & ~words_[i];
            words_[i] |= other.words_[i];
        }
        return added != 0;
    }

private:
    std::vector<uint64_t> words_;
};

class Grouping {
public:
    explicit Grouping(const std::vector<Item>& items)
        : items_(items), groups_(items.size(), no_group), earlier_(items.size()) {}

    std::vector<size_t> run() {
        for (size_t i = 0; i < items_.size(); ++i) {
            for (const size_t p : items_[i].before) {
                earlier_[i].insert(earlier_of(p));
                if (groups_[p] != no_group) earlier_[i].insert(groups_[p]);
            }
            if (items_[i].joins) join(i);
        }
        return std::move(groups_);
    }

private:
    // Groups from which a path leads to the item, not its own.
    const GroupSet& earlier_of(size_t item) const {
        return groups_[item] == no_group ? earlier_[item] : earlier_groups_[groups_[item]];
    }

    // Whether no path leaves the group and comes back with the item.
    bool may_enter(size_t item, size_t group) const {
        for (const size_t p : items_[item].before)
            if (groups_[p] != group && earlier_of(p).contains(group)) return false;
        return true;
    }

    void join(size_t item) {
        size_t group = 0;
        while (group < earlier_groups_.size() && !may_enter(item, group)) ++group;
        if (group == earlier_groups_.size()) earlier_groups_.emplace_back();
        groups_[item] = group;
        GroupSet more = std::move(earlier_[item]);
        more.erase(group);
        if (!earlier_groups_[group].insert(more)) return;
        // Whoever waits for the group now waits for these, too.
        const GroupSet& all = earlier_groups_[group];
        for (size_t i = 0; i < item; ++i)
            if (groups_[i] == no_group && earlier_[i].contains(group)) earlier_[i].insert(all);
        for (size_t g = 0; g < earlier_groups_.size(); ++g)
            if (g != group && earlier_groups_[g].contains(group)) earlier_groups_[g].insert(all);
    }

    const std::vector<Item>& items_;
    std::vector<size_t> groups_;
    std::vector<GroupSet> earlier_;         // per item of no group
    std::vector<GroupSet> earlier_groups_;  // per group
};

}  // namespace

std::vector<size_t> convex_groups(const std::vector<Item>& items) {
    return Grouping(items).run();
}

std::vector<size_t> execution_order(const std::vector<Item>& items,
                                    const std::vector<size_t>& groups) {
    std::vector<size_t> leader(items.size()), first_of_group;
    for (size_t i = 0; i < items.size(); ++i) {
        leader[i] = i;
        if (groups[i] == no_group) continue;
        if (groups[i] >= first_of_group.size()) first_of_group.resize(groups[i] + 1, no_group);
        if (first_of_group[groups[i]] == no_group) first_of_group[groups[i]] = i;
        leader[i] = first_of_group[groups[i]];
    }
    std::vector<size_t> waits_for(items.size(), 0);
    std::vector<std::vector<size_t>> readers(items.size());
    for (size_t i = 0; i < items.size(); ++i)
        for (const size_t p : items[i].before) {
            if (leader[p] == leader[i]) continue;
            ++waits_for[leader[i]];
            readers[leader[p]].push_back(leader[i]);
        }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < items.size(); ++i)
        if (leader[i] == i && waits_for[i] == 0) ready.push(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
        const size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const size_t reader : readers[next])
            if (--waits_for[reader] == 0) ready.push(reader);
    }
    return order;
}

namespace {

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
