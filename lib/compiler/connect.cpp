// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/connect.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

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
        for (const int32_t n : uses.consumers[v]) {
            const int32_t reader = part_of[static_cast<size_t>(n)];
            host = host || !is_npu(reader);
            elsewhere = elsewhere || reader != maker;
        }
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

}  // namespace vartml::compiler
