// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/connect.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "lib/compile/onnx/import.h"
#include "lib/compile/perf_metrics.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using artifact::Edge;
using artifact::PartitionKind;

constexpr int32_t border = -1;

// Partition that makes each tensor; `border` for the model's inputs.
std::map<std::string, int32_t> find_makers(const CompiledModel& model) {
    std::map<std::string, int32_t> makers;
    for (const TensorInfo& t : model.inputs) makers[t.name] = border;
    for (size_t p = 0; p < model.partitions.size(); ++p)
        for (const TensorInfo& t : model.partitions[p].outputs)
            makers[t.name] = static_cast<int32_t>(p);
    return makers;
}

}  // namespace

TensorPlaces find_tensor_places(const graph::Graph& graph, const std::vector<Part>& parts) {
    constexpr int32_t nowhere = -1;
    std::vector<int32_t> part_of(graph.nodes.size(), nowhere);
    for (size_t p = 0; p < parts.size(); ++p)
        for (const size_t n : parts[p].nodes) part_of[n] = static_cast<int32_t>(p);
    const auto is_npu = [&](int32_t part) {
        return part != nowhere && parts[static_cast<size_t>(part)].kind == PartitionKind::npu;
    };
    const graph::Uses uses = graph::find_uses(graph);
    std::set<graph::ValueId> inputs(graph.inputs.begin(), graph.inputs.end());
    TensorPlaces places;
    for (size_t v = 0; v < graph.values.size(); ++v) {
        const graph::Value& value = graph.values[v];
        if (value.constant) continue;
        const bool is_input = inputs.contains(static_cast<graph::ValueId>(v));
        const int32_t maker =
            uses.producer[v] < 0 ? nowhere : part_of[static_cast<size_t>(uses.producer[v])];
        bool host = !is_input && !is_npu(maker), elsewhere = false;
        std::set<int32_t> readers;
        for (const int32_t n : uses.consumers[v]) {
            const int32_t reader = part_of[static_cast<size_t>(n)];
            host = host || !is_npu(reader);
            elsewhere = elsewhere || reader != maker;
            readers.insert(reader);
        }
        if (is_input && readers.size() > 1) places.shared.insert(value.name);
        if (is_input ? host : elsewhere) places.inner.insert(value.name);
        if ((is_input || uses.is_output[v]) && host) places.on_host.insert(value.name);
    }
    return places;
}

void connect(CompiledModel& model) {
    model.execution_order.clear();
    for (size_t p = 0; p < model.partitions.size(); ++p)
        model.execution_order.push_back(static_cast<uint32_t>(p));
    const auto makers = find_makers(model);
    std::vector<Edge> edges;
    const auto add = [&](const TensorInfo& t, int32_t destination) {
        if (const auto maker = makers.find(t.name); maker != makers.end())
            edges.push_back({maker->second,
                             destination,
                             {},
                             t.name,
                             t.cpu.shape,
                             t.cpu.data_type,
                             t.data_dependent});
    };
    for (size_t p = 0; p < model.partitions.size(); ++p)
        for (const TensorInfo& t : model.partitions[p].inputs) add(t, static_cast<int32_t>(p));
    for (const TensorInfo& t : model.outputs) add(t, border);

    std::ranges::sort(edges, {}, [](const Edge& e) {
        const int32_t last = std::numeric_limits<int32_t>::max();
        return std::tuple(e.source, e.destination == border ? last : e.destination,
                          std::string_view(e.tensor_name));
    });
    std::map<std::string, std::string> buffers;  // a tensor has one maker
    for (Edge& edge : edges)
        edge.temp_buffer_name =
            buffers.try_emplace(edge.tensor_name, "buf_" + std::to_string(buffers.size()))
                .first->second;
    model.edges = std::move(edges);
}

namespace {

using Sources = std::set<std::string>;

// The ONNX nodes that tensors, by name, were made by from the inputs on.
class Ancestors {
public:
    // Graphs in execution order; a tensor that a later one reads is known by its name.
    void add(const graph::Graph& graph) {
        for (const graph::Node& node : graph.nodes) {
            Sources all(node.sources.begin(), node.sources.end());
            for (const graph::ValueId id : node.inputs)
                if (id != graph::none)
                    if (const auto it = of_.find(graph.value(id).name); it != of_.end())
                        all.insert(it->second.begin(), it->second.end());
            for (const graph::ValueId id : node.outputs)
                if (id != graph::none) of_[graph.value(id).name] = all;
            everywhere_.insert(node.sources.begin(), node.sources.end());
        }
    }
    const Sources* find(const std::string& tensor) const {
        const auto it = of_.find(tensor);
        return it == of_.end() ? nullptr : &it->second;
    }
    const Sources& everywhere() const { return everywhere_; }

private:
    std::map<std::string, Sources> of_;
    Sources everywhere_;
};

// Whether the tensor is made by the same ONNX nodes before and after the passes: none came before
// it, none went behind it. Nodes that the compiler added count for nothing.
bool is_same(const std::string& tensor, const Ancestors& before, const Ancestors& after) {
    const Sources *a = before.find(tensor), *b = after.find(tensor);
    if (!a || !b) return false;
    const bool came = std::ranges::any_of(*b, [&](const std::string& source) {
        return !a->contains(source) && before.everywhere().contains(source);
    });
    const bool went = std::ranges::any_of(*a, [&](const std::string& source) {
        return !b->contains(source) && after.everywhere().contains(source);
    });
    return !came && !went;
}

// Whether the runtime has tensors of the kind.
bool can_leave(const graph::Value& value) {
    return value.type.data_type != DataType::float64 && value.type.elements() > 0 &&
           value.type.shape.size() <= 8 && !value.data_dependent;
}

TensorInfo plain_info(const graph::Value& value, bool on_npu) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    if (shape.empty()) shape = {1};  // a scalar
    TensorInfo info;
    info.name = value.name;
    info.cpu = make_view(value.type.data_type, Layout::GENERIC, std::move(shape));
    if (on_npu) info.hw = info.cpu;
    return info;
}

Result<graph::Graph> import_for(const artifact::CompiledModel& model,
                                const std::string& onnx_file) {
    auto imported = onnx::import_onnx(onnx_file, {.input_shapes = {}, .find_example = false});
    if (!imported) {  // perhaps for symbolic dimensions, which are known by now
        onnx::ImportOptions options;
        for (const TensorInfo& input : model.inputs)
            options.input_shapes[input.name].assign(input.cpu.shape.begin(), input.cpu.shape.end());
        imported = onnx::import_onnx(onnx_file, options);
    }
    if (!imported) return imported.error();
    return std::move(imported->graph);
}

// Makes outputs of the partition's tensors that are wanted.
void keep(artifact::CompiledModel& model, artifact::Partition& p,
          const std::function<bool(const graph::Value&)>& wanted,
          std::vector<KeptTensor>& tensors) {
    graph::Graph& graph = p.graph;
    const std::set<graph::ValueId> border(graph.outputs.begin(), graph.outputs.end());
    for (const graph::Node& node : graph.nodes)
        for (const graph::ValueId id : node.outputs) {
            if (id == graph::none || !wanted(graph.value(id))) continue;
            const graph::Value& value = graph.value(id);
            tensors.push_back({value.name, node.name, node.type(), node.sources});
            const TensorInfo info = plain_info(value, p.kind == artifact::PartitionKind::npu);
            if (!border.contains(id)) {
                graph.outputs.push_back(id);
                p.outputs.push_back(info);
            }
            const bool at_border = std::ranges::find(model.outputs, value.name,
                                                     &TensorInfo::name) != model.outputs.end();
            if (!at_border) model.outputs.push_back(info);
        }
    Arena arena = plan_arena(graph);
    p.arena_offsets = std::move(arena.offsets);
    p.arena_size_bytes = arena.size_bytes;
}

bool has_codes(const graph::Graph& graph) {
    return std::ranges::any_of(
        graph.nodes, [](const graph::Node& node) { return has_trait(node, graph::Trait::codes); });
}

}  // namespace

bool computes_on_codes(const artifact::CompiledModel& model) {
    return std::ranges::any_of(model.partitions, [](const auto& p) { return has_codes(p.graph); });
}

Result<bool> was_quantised(const artifact::CompiledModel& model, const std::string& onnx_file) {
    if (!computes_on_codes(model)) return false;
    const auto original = import_for(model, onnx_file);
    if (!original) return original.error();
    return !has_codes(*original);
}

Result<ModelWithTensors> keep_tensors(artifact::CompiledModel model, const std::string& onnx_file) {
    const auto names = onnx::tensor_names(onnx_file);
    if (!names) return names.error();
    const auto original = import_for(model, onnx_file);
    if (!original) return original.error();
    Ancestors before, after;
    before.add(*original);
    for (const uint32_t p : model.execution_order) after.add(model.partitions[p].graph);

    ModelWithTensors result;
    for (const graph::Node& node : original->nodes)
        for (const graph::ValueId id : node.outputs) result.in_onnx += id != graph::none ? 1 : 0;
    const auto wanted = [&](const graph::Value& value) {
        return names->contains(value.name) && can_leave(value) &&
               is_same(value.name, before, after);
    };
    const std::vector<uint32_t> order = model.execution_order;
    for (const uint32_t p : order) keep(model, model.partitions[p], wanted, result.tensors);
    connect(model);
    model.execution_order = order;
    result.model = std::move(model);
    return result;
}

}  // namespace vartml::compiler
