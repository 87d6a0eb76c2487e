// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/keep_tensors.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lib/compiler/connect.h"
#include "lib/compiler/schedule.h"
#include "lib/onnx/import.h"

namespace vartml::compiler {
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
            tensors.push_back({value.name, node.name, node.kind, node.sources});
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
    return std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
        return node.kind.starts_with("QLinear") ||
               node.kind.find("QuantizeLinear") != std::string::npos;
    });
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
