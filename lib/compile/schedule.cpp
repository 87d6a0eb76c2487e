// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/schedule.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "lib/base/saturating.h"
#include "lib/graph/memory_plan.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr uint64_t alignment = 64;

uint64_t divide_up(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

// "LeakyRelu" → "leaky_relu", "PRelu" → "prelu".
std::string snake_case(std::string_view name) {
    std::string out;
    for (size_t i = 0; i < name.size(); ++i) {
        const bool upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
        if (upper && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) &&
            name != "SiLU")
            out += '_';
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
    }
    return out;
}

uint64_t bytes_of(const Graph& graph, const std::vector<ValueId>& ids) {
    uint64_t bytes = 0;
    for (const ValueId id : std::set(ids.begin(), ids.end()))
        if (id != graph::none) bytes += graph.value(id).type.size_bytes();
    return bytes;
}

// At the target's rates, and one cycle more.
uint64_t cycles_of(const artifact::Layer& layer, const Node& node, const device::Target& target) {
    const uint64_t arithmetic = has_trait(node, graph::Trait::matrix_work)
                                    ? divide_up(layer.ops, 2 * target.macs_per_cycle)
                                    : divide_up(layer.ops, target.elements_per_cycle);
    const uint64_t movement =
        divide_up(layer.bytes_read + layer.bytes_written, target.bytes_per_cycle);
    return std::max<uint64_t>({arithmetic, movement, 1}) + 1;
}

}  // namespace

Arena plan_arena(const Graph& graph) {
    const graph::Uses uses = find_uses(graph);
    std::vector<graph::Block> blocks;
    std::vector<size_t> values;
    for (size_t i = 0; i < graph.values.size(); ++i) {
        if (uses.producer[i] < 0 || uses.is_output[i]) continue;
        int32_t last = uses.producer[i];
        for (const int32_t consumer : uses.consumers[i]) last = std::max(last, consumer);
        blocks.push_back({graph.values[i].type.size_bytes(), uses.producer[i], last});
        values.push_back(i);
    }
    const graph::MemoryPlan plan = graph::plan_memory(blocks, alignment);
    Arena arena;
    arena.offsets.assign(graph.values.size(), 0);
    for (size_t i = 0; i < values.size(); ++i) arena.offsets[values[i]] = plan.offsets[i];
    arena.size_bytes = plan.size_bytes;
    return arena;
}

uint64_t estimate_cycles(const Graph& graph, const Node& node, const device::Target& target) {
    artifact::Layer layer;
    layer.ops = count_ops(graph, node);
    layer.bytes_read = bytes_of(graph, node.inputs);
    layer.bytes_written = bytes_of(graph, node.outputs);
    return cycles_of(layer, node, target);
}

Schedule plan_layers(const Graph& graph, const device::Target& target, const std::string& prefix) {
    Schedule schedule;
    uint64_t start = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        artifact::Layer layer;
        layer.name = prefix + layer_kind(graph, node) + '_' + std::to_string(i);
        layer.ops = count_ops(graph, node);
        layer.bytes_read = bytes_of(graph, node.inputs);
        layer.bytes_written = bytes_of(graph, node.outputs);
        layer.start_cycle = start;
        layer.end_cycle = saturating_sum(start, cycles_of(layer, node, target) - 1);
        start = saturating_sum(layer.end_cycle, 1);
        schedule.layers.push_back(std::move(layer));
        schedule.node_layers.push_back(static_cast<int32_t>(i));
    }
    return schedule;
}

std::string layer_kind(const Graph& graph, const Node& node) {
    std::string out;
    for (const std::string_view part : node.kinds()) {
        out += (out.empty() ? "" : "_") + snake_case(part);
        if (!graph::has_trait(part, graph::Trait::convolution) || node.inputs.empty()) continue;
        const size_t rank = graph.value(node.inputs[0]).type.shape.size();
        if (rank > 2) out += std::to_string(rank - 2) + 'd';
    }
    return out;
}

uint64_t weight_bytes(const Graph& graph) {
    uint64_t bytes = 0;
    for (const graph::Value& value : graph.values)
        if (value.constant) bytes += divide_up(value.constant->bytes.size(), alignment) * alignment;
    return bytes;
}

}  // namespace vartml::compiler
