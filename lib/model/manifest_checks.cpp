// SPDX-License-Identifier: Apache-2.0
// What the tensors, partitions and edges of a model must keep, whoever wrote them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lib/model/manifest.h"

namespace vartml::artifact {
namespace {

constexpr size_t max_rank = 8;

bool is_integer(DataType t) {
    return t == DataType::int8 || t == DataType::uint8 || t == DataType::int16 ||
           t == DataType::uint16 || t == DataType::int32 || t == DataType::uint32;
}

// The rank that a layout demands, 0 for any; -1 for a layout that no tensor of ours has.
int rank_of(Layout layout) {
    switch (layout) {
        case Layout::GENERIC:
            return 0;
        case Layout::NHW:
            return 3;
        case Layout::NHWC:
        case Layout::NCHW:
            return 4;
        case Layout::HCWNC4:
        case Layout::HCWNC8:
        case Layout::HCWNC16:
            return 5;
        default:
            return -1;
    }
}

bool is_blocked(Layout layout) {
    return rank_of(layout) == 5;
}

class ModelChecks {
public:
    ModelChecks(Checks& checks, const CompiledModel& model) : checks_(checks), model_(model) {}

    bool run() {
        return check_tensors(model_.inputs, model_.outputs, "") && check_partitions() &&
               check_order() && check_edge_ranges() && (is_partial() || check_edges());
    }

private:
    bool check_tensors(const std::vector<TensorInfo>& inputs,
                       const std::vector<TensorInfo>& outputs, const std::string& prefix) {
        std::set<std::string_view> names;
        for (const auto* list : {&inputs, &outputs})
            for (const TensorInfo& t : *list) {
                const std::string what =
                    prefix + (list == &inputs ? "input " : "output ") + quoted(t.name);
                if (t.name.empty()) return checks_.fail(what + " has no name");
                if (!names.insert(t.name).second) return checks_.fail(what + " occurs twice");
                if (!check_view(t.cpu, what + ": CPU view")) return false;
                if (is_blocked(t.cpu.layout))
                    return checks_.fail(what + ": CPU view has layout " +
                                        std::string(to_string(t.cpu.layout)) +
                                        ", which only HW views have");
                if (!std::ranges::is_sorted(t.cpu.order))
                    return checks_.fail(what + ": CPU view has the order " + to_text(t.cpu.order) +
                                        ", which only HW views have");
                if (!check_hw(t, what)) return false;
            }
        return true;
    }

    bool check_view(const TensorView& v, const std::string& what) {
        const int rank = rank_of(v.layout);
        if (v.data_type == DataType::unknown) return checks_.fail(what + " has no data type");
        if (rank < 0 || v.shape.size() > max_rank ||
            (rank > 0 && v.shape.size() != static_cast<size_t>(rank)))
            return checks_.fail(what + " of layout " + std::string(to_string(v.layout)) +
                                " has shape " + to_text(v.shape));
        const auto bytes = checked_size_bytes(v.data_type, v.shape);
        if (!bytes || *bytes == 0 || v.size_bytes != *bytes ||
            v.size != *bytes / size_bytes(v.data_type))
            return checks_.fail(what + " of shape " + to_text(v.shape) + " is recorded with " +
                                std::to_string(v.size) + " elements and " +
                                std::to_string(v.size_bytes) + " bytes");
        if (!is_dense(v.shape, v.strides))
            return checks_.fail(what + " of shape " + to_text(v.shape) + " has strides " +
                                to_text(v.strides) + ", expected dense ones");
        std::vector<uint32_t> order = v.order;
        std::ranges::sort(order);
        for (uint32_t i = 0; i < order.size(); ++i)
            if (order[i] != i) return checks_.fail(what + " has the order " + to_text(v.order));
        if (order.size() != (v.layout == Layout::GENERIC ? v.shape.size() : 0))
            return checks_.fail(what + " of layout " + std::string(to_string(v.layout)) +
                                " has the order " + to_text(v.order));
        return true;
    }

    // The HW view must be the one that follows from the CPU view: conversions rely on it.
    bool check_hw(const TensorInfo& t, const std::string& what) {
        if (!t.hw) return true;
        const TensorView& hw = *t.hw;
        if (!check_view(hw, what + ": HW view")) return false;
        const int rank = hw.layout == Layout::GENERIC ? 0 : hw.layout == Layout::NHW ? 3 : 4;
        const bool possible = (rank == 0 || t.cpu.shape.size() == static_cast<size_t>(rank)) &&
                              !(is_blocked(hw.layout) && t.cpu.shape[0] != 1);
        const TensorView expected =
            possible ? hw_view(t.cpu, hw.layout, hw.data_type) : TensorView{};
        if (hw.shape != expected.shape || hw.order != expected.order)
            return checks_.fail(what + ": HW view " + std::string(to_string(hw.layout)) +
                                to_text(hw.shape) + " does not fit the CPU view " +
                                std::string(to_string(t.cpu.layout)) + to_text(t.cpu.shape) +
                                (possible ? ", expected " + to_text(expected.shape) : ""));
        if (hw.quantisation &&
            (!is_integer(hw.data_type) || !std::isfinite(hw.quantisation->scale) ||
             hw.quantisation->scale <= 0))
            return checks_.fail(what + ": a HW view of " + std::string(to_string(hw.data_type)) +
                                " has the quantisation scale " +
                                std::to_string(hw.quantisation->scale));
        return true;
    }

    bool check_partitions() {
        std::set<std::string_view> names;
        for (const Partition& p : model_.partitions) {
            const std::string_view stem =
                p.kind == PartitionKind::npu ? "vaiml_par_" : "vaiml_cpu_subgraph_";
            const std::string_view number = std::string_view(p.name).starts_with(stem)
                                                ? std::string_view(p.name).substr(stem.size())
                                                : std::string_view();
            if (number.empty() || number.size() > 9 ||
                number.find_first_not_of("0123456789") != number.npos ||
                !names.insert(p.name).second)
                return checks_.fail("partition " + quoted(p.name) + " is not named " +
                                    std::string(stem) + "<number>, or occurs twice");
            if (p.kind == PartitionKind::cpu && model_.compilation == Compilation::standard)
                return checks_.fail("partition " + quoted(p.name) +
                                    " is a CPU partition, a standard compilation has none");
            if (p.kind == PartitionKind::npu && p.columns == 0)
                return checks_.fail("partition " + quoted(p.name) +
                                    " has 0 columns, expected 1 or more");
            if (!check_tensors(p.inputs, p.outputs, "partition " + quoted(p.name) + ": "))
                return false;
        }
        return true;
    }

    bool check_order() {
        std::vector<uint32_t> sorted = model_.execution_order;
        std::ranges::sort(sorted);
        bool ok = sorted.size() == model_.partitions.size();
        for (uint32_t i = 0; ok && i < sorted.size(); ++i) ok = sorted[i] == i;
        if (!ok)
            return checks_.fail("the execution order " + to_text(model_.execution_order) +
                                " does not name each of the " +
                                std::to_string(model_.partitions.size()) + " partitions once");
        position_.resize(sorted.size());
        for (size_t i = 0; i < sorted.size(); ++i)
            position_[model_.execution_order[i]] = static_cast<int64_t>(i);
        return true;
    }

    // A standard compilation may leave operators to another runtime; its partitions then have no
    // edges among themselves that anybody could follow.
    bool is_partial() const {
        return model_.compilation == Compilation::standard &&
               model_.summary.offloaded.operators != model_.summary.total.operators;
    }

    std::string end_name(int32_t index, const char* border) const {
        return index < 0 ? border : model_.partitions[static_cast<size_t>(index)].name;
    }
    std::string edge_name(const Edge& e) const {
        return "edge " + quoted(e.tensor_name) + " from " + end_name(e.source, "__graph_input__") +
               " to " + end_name(e.destination, "__graph_output__");
    }

    bool check_edge_ranges() {
        const auto n = static_cast<int32_t>(model_.partitions.size());
        for (const Edge& e : model_.edges)
            if (e.source < -1 || e.source >= n || e.destination < -1 || e.destination >= n)
                return checks_.fail("edge " + quoted(e.tensor_name) + " goes from partition " +
                                    std::to_string(e.source) + " to " +
                                    std::to_string(e.destination) + ", there are " +
                                    std::to_string(n));
        return true;
    }

    bool check_edges() {
        std::map<std::string_view, const Edge*> buffers;
        std::set<std::pair<int32_t, std::string_view>> targets;
        for (const Edge& e : model_.edges) {
            const std::string what = edge_name(e);
            if (e.temp_buffer_name.empty() || e.tensor_name.empty())
                return checks_.fail(what + " has no name or no buffer");
            if (e.source >= 0 && e.destination >= 0 &&
                position_[static_cast<size_t>(e.source)] >=
                    position_[static_cast<size_t>(e.destination)])
                return checks_.fail(what + " goes against the execution order");
            if (!targets.emplace(e.destination, e.tensor_name).second)
                return checks_.fail(what + ": the destination gets this tensor twice");
            const auto [at, fresh] = buffers.emplace(e.temp_buffer_name, &e);
            const Edge& other = *at->second;
            if (!fresh && (other.source != e.source || other.tensor_name != e.tensor_name ||
                           other.shape != e.shape || other.data_type != e.data_type))
                return checks_.fail(what + " shares buffer " + quoted(e.temp_buffer_name) +
                                    " with " + edge_name(other) + ", which is another tensor");
            if (!check_end(e, what, e.source,
                           e.source < 0 ? model_.inputs : outputs_of(e.source)) ||
                !check_end(e, what, e.destination,
                           e.destination < 0 ? model_.outputs : inputs_of(e.destination)))
                return false;
            used_.insert({e.source, true, e.tensor_name});
            used_.insert({e.destination, false, e.tensor_name});
        }
        return check_all_used();
    }

    const std::vector<TensorInfo>& inputs_of(int32_t i) const {
        return model_.partitions[static_cast<size_t>(i)].inputs;
    }
    const std::vector<TensorInfo>& outputs_of(int32_t i) const {
        return model_.partitions[static_cast<size_t>(i)].outputs;
    }

    // The tensor of the edge, as the model or the partition at one of its ends declares it.
    bool check_end(const Edge& e, const std::string& what, int32_t end,
                   const std::vector<TensorInfo>& tensors) {
        const std::string owner =
            end < 0 ? "the model" : model_.partitions[static_cast<size_t>(end)].name;
        const auto t = std::ranges::find(tensors, e.tensor_name, &TensorInfo::name);
        if (t == tensors.end())
            return checks_.fail(what + ": " + owner + " has no such tensor there");
        if (t->cpu.shape != e.shape || t->cpu.data_type != e.data_type)
            return checks_.fail(what + " is " + std::string(to_string(e.data_type)) +
                                to_text(e.shape) + ", " + owner + " says " +
                                std::string(to_string(t->cpu.data_type)) + to_text(t->cpu.shape));
        // At the model's border both declare a HW view: the application's memory is the device's.
        const int32_t partition = e.source < 0 ? e.destination : e.source;
        if (end >= 0 || partition < 0 || !t->hw) return true;
        const auto& list = e.source < 0 ? inputs_of(partition) : outputs_of(partition);
        const auto p = std::ranges::find(list, e.tensor_name, &TensorInfo::name);
        if (p != list.end() && p->hw != t->hw)
            return checks_.fail(what + ": the HW views of the model and of the partition differ");
        return true;
    }

    // Every output comes from somewhere, every partition gets its inputs and is of use.
    bool check_all_used() {
        for (const TensorInfo& t : model_.outputs)
            if (!used_.contains({-1, false, t.name}))
                return checks_.fail("no edge leads to output " + quoted(t.name));
        for (int32_t i = 0; i < static_cast<int32_t>(model_.partitions.size()); ++i) {
            const Partition& p = model_.partitions[static_cast<size_t>(i)];
            for (const TensorInfo& t : p.inputs)
                if (!used_.contains({i, false, t.name}))
                    return checks_.fail("no edge leads to input " + quoted(t.name) +
                                        " of partition " + quoted(p.name));
            if (!std::ranges::any_of(p.outputs, [&](const TensorInfo& t) {
                    return used_.contains({i, true, t.name});
                }))
                return checks_.fail("no edge leaves partition " + quoted(p.name));
        }
        return true;
    }

    Checks& checks_;
    const CompiledModel& model_;
    std::vector<int64_t> position_;  // of each partition in the execution order
    // Ends of edges: partition or -1, whether it is the source, tensor.
    std::set<std::tuple<int32_t, bool, std::string_view>> used_;
};

}  // namespace

bool check_model(Checks& checks, const CompiledModel& model) {
    return ModelChecks(checks, model).run();
}

}  // namespace vartml::artifact
