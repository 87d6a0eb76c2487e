// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/stats_descriptor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/saturating.h"
#include "lib/compile/perf_metrics.h"
#include "lib/graph/ops.h"
#include "lib/graph/text.h"
#include "lib/model/derived.h"

namespace vartml::compiler {
namespace {

using artifact::Partition;
using artifact::PartitionKind;
using graph::Node;
using graph::ValueId;
using profiling::Descriptor;
using profiling::Op;

constexpr size_t max_text = 4096;  // of a reader

const TensorView& border_view(const TensorInfo& tensor) {
    return tensor.hw ? *tensor.hw : tensor.cpu;
}

bool is_blocked(Layout layout) {
    return layout == Layout::HCWNC4 || layout == Layout::HCWNC8 || layout == Layout::HCWNC16;
}

// Channels in more than one block.
bool has_channel_groups(const TensorView& view) {
    return is_blocked(view.layout) && view.shape[1] > 1;
}

// Elements that no element of the tensor fills.
bool has_padding(const TensorInfo& tensor) {
    return border_view(tensor).size != tensor.cpu.size;
}

std::array<uint8_t, 16> signature_bytes(const std::string& hex) {
    std::array<uint8_t, 16> bytes{};
    const auto digit = [](char c) {
        return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    };
    for (size_t i = 0; i < bytes.size() && 2 * i + 1 < hex.size(); ++i)
        bytes[i] = static_cast<uint8_t>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
    return bytes;
}

// Texts, each once, in the order of first use.
class Texts {
public:
    explicit Texts(std::vector<std::string>& list) : list_(list) {}
    uint32_t of(const std::string& text) {
        const auto [at, is_new] = index_.try_emplace(text, static_cast<uint32_t>(list_.size()));
        if (is_new) list_.push_back(text);
        return at->second;
    }

private:
    std::vector<std::string>& list_;
    std::map<std::string, uint32_t> index_;
};

class DescriptorMaker {
public:
    DescriptorMaker(const artifact::CompiledModel& model, const device::Target& target,
                    const StatsRequest& request)
        : model_(model), target_(target), request_(request) {}

    Descriptor make() {
        fill_head();
        profiling::Core core;
        for (const auto& [kind, engine] : {std::pair{PartitionKind::npu, profiling::npu_engine},
                                           std::pair{PartitionKind::cpu, profiling::cpu_engine}})
            add_group(core, kind, engine);
        d_.cores.push_back(std::move(core));
        if (has_operators()) connect_partitions();
        return std::move(d_);
    }

private:
    // What connects a partition to others.
    struct Ends {
        uint32_t sync = 0, last = 0;                    // operators
        std::map<std::string, uint32_t> reads, writes;  // first reader and writer, by tensor
    };

    bool has_operators() const { return request_.level >= profiling::level_operators; }

    void fill_head() {
        d_.network = model_.model_name;
        d_.model_signature = signature_bytes(model_.model_signature);
        d_.compiled_level = static_cast<uint16_t>(request_.level);
        d_.batch = model_.actual_batch_size;
        d_.stats_batchsize = request_.batchsize != 0 ? request_.batchsize : d_.batch;
        d_.ddr_stats = request_.ddr;
        d_.pmu = request_.pmu;
        d_.target = model_.target;
        d_.nominal_clock_hz = static_cast<uint64_t>(target_.clock_hz);
        memories_.of(profiling::system_memory);
        for (const Partition& p : model_.partitions) {
            d_.partitions.push_back(p.name);
            if (p.kind == PartitionKind::npu)
                d_.estimate_entries.push_back(artifact::estimate_entry(model_, p));
        }
    }

    void add_group(profiling::Core& core, PartitionKind kind, const char* engine) {
        const auto is_of_kind = [&](uint32_t p) { return model_.partitions[p].kind == kind; };
        if (std::ranges::none_of(model_.execution_order, is_of_kind)) return;
        group_ = &core.groups.emplace_back();
        group_->engine = engines_.of(engine);
        if (!has_operators()) return;
        for (const uint32_t p : model_.execution_order)
            if (is_of_kind(p)) add_partition(p);
    }

    // ---- one partition

    void add_partition(uint32_t index) {
        partition_ = &model_.partitions[index];
        partition_index_ = index;
        uses_ = graph::find_uses(partition_->graph);
        values_.clear();
        writers_.clear();
        Ends& ends = ends_[index];
        ends.sync = append(profiling::sync_kind).id;
        last_ = ends.sync;
        add_inputs(ends);
        for (size_t n = 0; n < partition_->graph.nodes.size(); ++n) add_node(n, ends);
        add_outputs(ends);
        ends.last = last_;
    }

    Op& append(const std::string& kind) {
        Op& op = group_->ops.emplace_back();
        op.id = next_id_++;
        op.kind = kinds_.of(kind);
        op.partition = partition_index_;
        return op;
    }

    // Behind what stands last; its own barrier follows.
    void order(uint32_t id) {
        d_.edges.push_back({last_, id, false});
        const uint32_t barrier = append(profiling::barrier_kind).id;
        d_.edges.push_back({id, barrier, false});
        last_ = barrier;
    }

    void add_inputs(Ends& ends) {
        const graph::Graph& graph = partition_->graph;
        const std::vector<bool> has_step = inputs_with_layout_step(*partition_);
        for (size_t i = 0; i < graph.inputs.size(); ++i) {
            const TensorInfo& info = partition_->inputs[i];
            const uint32_t outside = add_tensor(info);
            values_[graph.inputs[i]] = outside;
            if (!has_step[i]) continue;
            const uint32_t inside = add_tensor(graph.value(graph.inputs[i]));
            values_[graph.inputs[i]] = inside;
            const uint32_t id = add_layout_step("/in/", info, outside, inside);
            writers_[graph.inputs[i]] = id;
            ends.reads.try_emplace(info.name, id);
        }
    }

    void add_outputs(Ends& ends) {
        const graph::Graph& graph = partition_->graph;
        const std::vector<bool> has_step = outputs_with_layout_step(*partition_);
        for (size_t i = 0; i < graph.outputs.size(); ++i) {
            if (!has_step[i]) continue;
            const TensorInfo& info = partition_->outputs[i];
            const uint32_t inside = tensor_of(graph.outputs[i]);
            const auto writer = writers_.find(graph.outputs[i]);
            const uint32_t id = add_layout_step("/out/", info, inside, add_tensor(info));
            if (writer != writers_.end()) d_.edges.push_back({writer->second, id, true});
            ends.writes[info.name] = id;
        }
    }

    uint32_t add_layout_step(const char* way, const TensorInfo& info, uint32_t from, uint32_t to) {
        Op& op = append(profiling::layout_kind);
        op.name = partition_->name + way + info.name;
        op.data_movement = true;
        op.inputs = {from};
        op.outputs = {to};
        fill_sizes(op);
        const uint32_t id = op.id;
        order(id);
        return id;
    }

    void add_node(size_t index, Ends& ends) {
        const Node& node = partition_->graph.nodes[index];
        Op& op = append(layer_kind(partition_->graph, node));
        op.name = node.name;
        if (!partition_->node_layers.empty()) op.layer = partition_->node_layers[index];
        op.onnx_nodes = node.sources;
        op.attributes = graph::print(node.attributes);
        if (op.attributes.size() > max_text) op.attributes.clear();
        const std::set<ValueId> inputs(node.inputs.begin(), node.inputs.end());
        for (const ValueId id : node.inputs)
            if (id != graph::none) op.inputs.push_back(tensor_of(id));
        for (const ValueId id : node.outputs)
            if (id != graph::none) op.outputs.push_back(tensor_of(id));
        fill_sizes(op);
        op.macs = per_batch(count_macs(partition_->graph, node));
        op.ops = per_batch(count_ops(partition_->graph, node));
        const uint32_t id = op.id;
        for (const ValueId input : inputs) {
            if (input == graph::none) continue;
            const auto writer = writers_.find(input);
            if (writer != writers_.end())
                d_.edges.push_back({writer->second, id, true});
            else
                ends.reads.try_emplace(partition_->graph.value(input).name, id);
        }
        for (const ValueId output : node.outputs) {
            if (output == graph::none) continue;
            writers_[output] = id;
            ends.writes[partition_->graph.value(output).name] = id;
        }
        order(id);
    }

    // ---- tensors

    uint32_t add_tensor(const graph::Value& value) {
        d_.tensors.push_back({.name = value.name,
                              .dtype = static_cast<uint16_t>(value.type.data_type),
                              .layout = static_cast<uint16_t>(Layout::GENERIC),
                              .shape = value.type.shape,
                              .bytes = value.type.size_bytes(),
                              .constant = value.constant.has_value()});
        return static_cast<uint32_t>(d_.tensors.size() - 1);
    }

    uint32_t add_tensor(const TensorInfo& info) {
        const TensorView& view = border_view(info);
        d_.tensors.push_back({.name = info.name,
                              .dtype = static_cast<uint16_t>(view.data_type),
                              .layout = static_cast<uint16_t>(view.layout),
                              .shape = {view.shape.begin(), view.shape.end()},
                              .bytes = view.size_bytes,
                              .constant = false});
        return static_cast<uint32_t>(d_.tensors.size() - 1);
    }

    // What operators write straight to the border has its view.
    uint32_t tensor_of(ValueId id) {
        const auto found = values_.find(id);
        if (found != values_.end()) return found->second;
        const graph::Graph& graph = partition_->graph;
        const auto output = std::ranges::find(graph.outputs, id);
        const auto at = static_cast<size_t>(output - graph.outputs.begin());
        const bool is_border =
            output != graph.outputs.end() && !outputs_with_layout_step(*partition_)[at];
        return values_[id] =
                   is_border ? add_tensor(partition_->outputs[at]) : add_tensor(graph.value(id));
    }

    uint64_t per_batch(uint64_t of_frame) const { return saturating_product(of_frame, d_.batch); }

    // Bytes and types from the tensors; each counts once.
    void fill_sizes(Op& op) {
        const auto bytes = [&](const std::vector<uint32_t>& list) {
            uint64_t sum = 0;
            for (const uint32_t t : std::set(list.begin(), list.end())) {
                const profiling::Tensor& tensor = d_.tensors[t];
                sum = saturating_sum(sum, tensor.constant ? tensor.bytes : per_batch(tensor.bytes));
            }
            return sum;
        };
        op.read_bytes = bytes(op.inputs);
        op.write_bytes = op.out_bytes = bytes(op.outputs);
        for (const auto* list : {&op.outputs, &op.inputs})
            for (const uint32_t t : *list) {
                const auto type = static_cast<DataType>(d_.tensors[t].dtype);
                const auto dtype = static_cast<uint16_t>(dtypes_.of(std::string(to_string(type))));
                if (std::ranges::find(op.dtypes, dtype) == op.dtypes.end())
                    op.dtypes.push_back(dtype);
            }
    }

    // ---- between partitions

    void connect_partitions() {
        std::set<std::pair<uint32_t, uint32_t>> waits;
        for (const artifact::Edge& edge : model_.edges) {
            if (edge.source < 0 || edge.destination < 0) continue;
            const Ends& from = ends_.at(static_cast<uint32_t>(edge.source));
            const Ends& to = ends_.at(static_cast<uint32_t>(edge.destination));
            if (waits.insert({from.last, to.sync}).second)
                d_.edges.push_back({from.last, to.sync, false});
            const auto writer = from.writes.find(edge.tensor_name);
            const auto reader = to.reads.find(edge.tensor_name);
            if (writer != from.writes.end() && reader != to.reads.end())
                d_.edges.push_back({writer->second, reader->second, true});
        }
    }

    const artifact::CompiledModel& model_;
    const device::Target& target_;
    const StatsRequest& request_;
    Descriptor d_;
    Texts kinds_{d_.kinds}, memories_{d_.memories}, engines_{d_.engines}, dtypes_{d_.dtypes};
    std::map<uint32_t, Ends> ends_;  // by partition
    uint32_t next_id_ = 0;
    // The one at hand.
    profiling::Group* group_ = nullptr;
    const Partition* partition_ = nullptr;
    uint32_t partition_index_ = 0;
    graph::Uses uses_;
    std::map<ValueId, uint32_t> values_;   // tensors
    std::map<ValueId, uint32_t> writers_;  // operators
    uint32_t last_ = 0;                    // operator
};

}  // namespace

std::vector<bool> inputs_with_layout_step(const Partition& partition) {
    std::vector<bool> out;
    for (const TensorInfo& info : partition.inputs)
        out.push_back(info.data_dependent || has_channel_groups(border_view(info)));
    return out;
}

std::vector<bool> outputs_with_layout_step(const Partition& partition) {
    const graph::Graph& graph = partition.graph;
    const graph::Uses uses = graph::find_uses(graph);
    std::vector<bool> out;
    std::set<ValueId> seen;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const auto id = static_cast<size_t>(graph.outputs[i]);
        const TensorInfo& info = partition.outputs[i];
        // Who makes a value that nobody else reads writes it where it belongs.
        const bool in_place = uses.producer[id] >= 0 && uses.consumers[id].empty() &&
                              seen.insert(graph.outputs[i]).second;
        out.push_back(!in_place || info.data_dependent || has_padding(info) ||
                      has_channel_groups(border_view(info)));
    }
    return out;
}

Descriptor make_descriptor(const artifact::CompiledModel& model, const device::Target& target,
                           const StatsRequest& request) {
    return DescriptorMaker(model, target, request).make();
}

}  // namespace vartml::compiler
