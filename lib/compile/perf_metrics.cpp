// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/perf_metrics.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "lib/base/json.h"
#include "lib/base/saturating.h"
#include "lib/compile/stats_descriptor.h"
#include "lib/graph/memory_plan.h"
#include "lib/graph/ops.h"
#include "lib/model/derived.h"

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

namespace {

using artifact::Partition;
using artifact::PartitionKind;
using Json = nlohmann::ordered_json;

struct Figure {
    const char* key;
    const char* title;
    uint64_t PerfFigures::* value;
};
constexpr Figure figures[] = {
    {"operators", "operators", &PerfFigures::operators},
    {"macs", "multiply-accumulates", &PerfFigures::macs},
    {"other_operations", "other operations", &PerfFigures::other_operations},
    {"constant_bytes", "constant bytes", &PerfFigures::constant_bytes},
    {"first_read_bytes", "bytes read, first inference", &PerfFigures::first_read_bytes},
    {"first_written_bytes", "bytes written, first inference", &PerfFigures::first_written_bytes},
    {"read_bytes", "bytes read, later ones", &PerfFigures::read_bytes},
    {"written_bytes", "bytes written, later ones", &PerfFigures::written_bytes},
    {"arena_bytes", "arena bytes", &PerfFigures::arena_bytes},
    {"conversions", "layout conversions", &PerfFigures::conversions},
    {"barriers", "barriers", &PerfFigures::barriers},
    {"cycles", "cycles on the NPU", &PerfFigures::cycles},
};

void add(uint64_t& sum, uint64_t value) {
    sum = saturating_sum(sum, value);
}

PerfFigures head_of(const Partition& p, uint32_t batch) {
    PerfFigures f;
    f.name = p.name;
    f.kind = p.kind == PartitionKind::npu ? "npu" : "cpu";
    for (const graph::Value& value : p.graph.values)
        if (value.constant) add(f.constant_bytes, value.constant->bytes.size());
    f.arena_bytes = saturating_product(p.arena_size_bytes, batch);
    for (const artifact::Layer& layer : p.layers)
        add(f.cycles, saturating_product(layer.end_cycle - layer.start_cycle + 1, batch));
    return f;
}

void add_operator(PerfFigures& f, const profiling::Descriptor& d, const profiling::Op& op) {
    if (d.is_sync(op)) return;
    if (d.is_barrier(op)) {
        add(f.barriers, 1);
        return;
    }
    add(d.kind(op) == profiling::layout_kind ? f.conversions : f.operators, 1);
    add(f.macs, op.macs);
    add(f.other_operations, op.ops == beyond_count ? beyond_count : op.ops - 2 * op.macs);
    add(f.read_bytes, op.read_bytes);
    add(f.written_bytes, op.write_bytes);
}

Json to_json(const PerfFigures& f) {
    Json j;
    if (!f.kind.empty()) {
        j["name"] = f.name;
        j["kind"] = f.kind;
    }
    for (const Figure& figure : figures) {
        const uint64_t value = f.*figure.value;
        j[figure.key] = value == beyond_count ? Json() : Json(value);
    }
    return j;
}

}  // namespace

PerfMetrics measure(const artifact::CompiledModel& model, const device::Target& target) {
    StatsRequest operators;
    operators.level = profiling::level_operators;
    const profiling::Descriptor d = make_descriptor(model, target, operators);
    PerfMetrics m;
    m.device = model.device;
    m.clock_hz = d.nominal_clock_hz;
    m.requested_batch_size = model.desired_batch_size;
    m.actual_batch_size = model.actual_batch_size;
    std::vector<size_t> place(model.partitions.size());
    for (const uint32_t p : model.execution_order) {
        place[p] = m.partitions.size();
        m.partitions.push_back(head_of(model.partitions[p], model.actual_batch_size));
    }
    for (const profiling::Group& group : d.cores.front().groups)
        for (const profiling::Op& op : group.ops)
            add_operator(m.partitions[place[op.partition]], d, op);
    m.total.name = "total";
    for (PerfFigures& f : m.partitions) {
        f.first_read_bytes = saturating_sum(f.read_bytes, f.constant_bytes);
        f.first_written_bytes = saturating_sum(f.written_bytes, f.constant_bytes);
        for (const Figure& figure : figures) add(m.total.*figure.value, f.*figure.value);
    }
    return m;
}

std::string metrics_json(const PerfMetrics& metrics) {
    Json j;
    j["format_version"] = 1;
    j["source"] = "compiler estimates";
    j["device"] = metrics.device;
    j["nominal_clock_hz"] = metrics.clock_hz;
    j["requested_batch_size"] = metrics.requested_batch_size;
    j["actual_batch_size"] = metrics.actual_batch_size;
    j["partitions"] = Json::array();
    for (const PerfFigures& f : metrics.partitions) j["partitions"].push_back(to_json(f));
    j["total"] = to_json(metrics.total);
    return json_file_text(j);
}

std::string metrics_text(const PerfMetrics& metrics) {
    std::string text = "compiler estimates for " + metrics.device + ", batch size requested " +
                       std::to_string(metrics.requested_batch_size) + ", actual " +
                       std::to_string(metrics.actual_batch_size) + "\n";
    const auto print = [&](const PerfFigures& f) {
        text +=
            "compiler estimates: " + f.name + (f.kind.empty() ? "" : " (" + f.kind + ")") + "\n";
        for (const Figure& figure : figures) {
            const uint64_t value = f.*figure.value;
            const std::string shown =
                value == beyond_count ? "more than 64 bits" : std::to_string(value);
            char line[96];
            std::snprintf(line, sizeof line, "  %-32s%20s\n", figure.title, shown.c_str());
            text += line;
        }
    };
    for (const PerfFigures& f : metrics.partitions) print(f);
    print(metrics.total);
    return text;
}

// What costs speed, by the code of the rule that finds it.
namespace {

using artifact::CompiledModel;

constexpr double most_padding = 0.25;  // of the bytes
constexpr double least_seconds = 1e-6;

struct Warning {
    uint64_t cost = 0;  // estimated cycles
    const char* code = "";
    std::string subject, sentence;
};
using Warnings = std::vector<Warning>;

bool is_float(DataType type) {
    return type == DataType::float32 || type == DataType::bf16 || type == DataType::fp16;
}

std::string percent(double share) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

std::string describe(const TensorView& view) {
    return std::string(to_string(view.data_type)) + ' ' + std::string(to_string(view.layout));
}

// What every rule gets.
struct Subject {
    const CompiledModel& model;
    const device::Target& target;
    uint64_t moved(uint64_t bytes) const { return bytes / target.bytes_per_cycle; }
    uint64_t per_batch(uint64_t of_frame) const {
        return saturating_product(of_frame, model.actual_batch_size);
    }
};

template <typename Call>
void each_npu_partition(const Subject& s, Call call) {
    for (const Partition& p : s.model.partitions)
        if (p.kind == PartitionKind::npu) call(p);
}

void fallbacks(const Subject& s, Warnings& out) {
    std::map<std::string_view, uint64_t> cycles;  // by ONNX node
    for (const Partition& p : s.model.partitions)
        for (const Node& node : p.graph.nodes)
            for (const std::string& source : node.sources)
                cycles[source] = estimate_cycles(p.graph, node, s.target);
    for (const artifact::Fallback& f : s.model.summary.fallbacks) {
        if (f.partition < 0) continue;
        const auto found = cycles.find(f.node);
        out.push_back({s.per_batch(found == cycles.end() ? 0 : found->second), "PW01", f.node,
                       f.op_type + " runs on the CPU in " +
                           s.model.partitions[static_cast<size_t>(f.partition)].name + ": " +
                           f.text + " (" + f.code + ")"});
    }
}

void conversions(const Subject& s, Warnings& out) {
    each_npu_partition(s, [&](const Partition& p) {
        const auto convert = [&](const TensorInfo& t, bool in, bool has_step) {
            const TensorView& hw = t.hw ? *t.hw : t.cpu;
            const bool differs = hw.data_type != t.cpu.data_type || hw.layout != t.cpu.layout;
            if (!differs && !has_step) return;
            const uint64_t bytes = s.per_batch(t.cpu.size_bytes + hw.size_bytes);
            const std::string from = describe(in ? t.cpu : hw), to = describe(in ? hw : t.cpu);
            const std::string what =
                differs ? "is converted, " + from + " to " + to + ',' : "is copied";
            out.push_back({s.moved(bytes), "PW02", t.name,
                           what + " at the border of " + p.name +
                               (has_step ? ", by a step of its own: " : ": ") +
                               std::to_string(bytes) + " bytes per inference"});
        };
        const std::vector<bool> in = inputs_with_layout_step(p), out_ = outputs_with_layout_step(p);
        for (size_t i = 0; i < p.inputs.size(); ++i) convert(p.inputs[i], true, in[i]);
        for (size_t i = 0; i < p.outputs.size(); ++i) convert(p.outputs[i], false, out_[i]);
    });
}

void padding(const Subject& s, Warnings& out) {
    each_npu_partition(s, [&](const Partition& p) {
        for (const auto* tensors : {&p.inputs, &p.outputs})
            for (const TensorInfo& t : *tensors) {
                if (!t.hw || t.hw->size == 0) continue;
                const double share =
                    1 - static_cast<double>(t.cpu.size) / static_cast<double>(t.hw->size);
                if (share <= most_padding) continue;
                const auto bytes = static_cast<uint64_t>(
                    share * static_cast<double>(s.per_batch(t.hw->size_bytes)));
                out.push_back({s.moved(bytes), "PW03", t.name,
                               percent(share) + " of its bytes in layout " +
                                   std::string(to_string(t.hw->layout)) + " are padding"});
            }
    });
}

void partitions(const Subject& s, Warnings& out) {
    size_t count = 0;
    uint64_t bytes = 0;
    each_npu_partition(s, [&](const Partition&) { ++count; });
    for (const artifact::Edge& edge : s.model.edges) {
        if (edge.source < 0 || edge.destination < 0) continue;
        uint64_t size = size_bytes(edge.data_type);
        for (const uint32_t n : edge.shape) size = saturating_product(size, n);
        bytes = saturating_sum(bytes, s.per_batch(size));
    }
    if (count > 1)
        out.push_back({s.moved(bytes), "PW04", s.model.model_name,
                       "has " + std::to_string(count) + " NPU partitions; " +
                           std::to_string(bytes) + " bytes pass between partitions per inference"});
}

void batch(const Subject& s, Warnings& out) {
    const uint32_t wanted = s.model.desired_batch_size, actual = s.model.actual_batch_size;
    if (actual >= wanted) return;
    uint64_t cycles = 0;
    each_npu_partition(s, [&](const Partition& p) {
        if (!p.layers.empty()) cycles = saturating_sum(cycles, p.layers.back().end_cycle + 1);
    });
    out.push_back({saturating_product(cycles, wanted - actual), "PW05", s.model.model_name,
                   "has batch size " + std::to_string(actual) + ", " + std::to_string(wanted) +
                       " were requested: more do not fit the device's memory"});
}

// Float work whose result is narrow: a convolution or matrix product, what one of them reads,
// however far behind, and what leaves the partition narrow. Devices keep the rest in f32.
std::vector<bool> narrow_nodes(const Partition& p) {
    const graph::Graph& graph = p.graph;
    std::vector<bool> is_needed(graph.values.size());
    for (size_t i = 0; i < graph.outputs.size(); ++i)
        if (p.outputs[i].hw && size_bytes(p.outputs[i].hw->data_type) == 2)
            is_needed[static_cast<size_t>(graph.outputs[i])] = true;
    std::vector<bool> narrow(graph.nodes.size());
    for (size_t n = graph.nodes.size(); n-- > 0;) {
        const Node& node = graph.nodes[n];
        const bool multiplies = has_trait(node, graph::Trait::product);
        narrow[n] = multiplies || std::ranges::any_of(node.outputs, [&](graph::ValueId id) {
                        return id != graph::none && is_needed[static_cast<size_t>(id)];
                    });
        for (const graph::ValueId id : node.inputs)
            if (id != graph::none && narrow[n]) is_needed[static_cast<size_t>(id)] = true;
    }
    return narrow;
}

// Float work that stays in f32 where the rest is narrower.
void float_islands(const Subject& s, Warnings& out) {
    const std::string& types = s.model.summary.device_data_type;
    const bool has_narrow = types.find("float16") != types.npos;  // "bfloat16" too
    if (!has_narrow && types.find("int8") == types.npos) return;
    each_npu_partition(s, [&](const Partition& p) {
        const std::vector<bool> narrow = narrow_nodes(p);
        for (size_t n = 0; n < p.graph.nodes.size(); ++n) {
            const Node& node = p.graph.nodes[n];
            const DataType type = p.graph.value(node.outputs[0]).type.data_type;
            const bool reads_float = !node.inputs.empty() && node.inputs[0] != graph::none &&
                                     is_float(p.graph.value(node.inputs[0]).type.data_type);
            const bool is_work = is_float(type) && reads_float &&
                                 !has_trait(node, graph::Trait::coding) &&
                                 graph::count_ops(p.graph, node) != 0;
            if (!is_work || (has_narrow && narrow[n])) continue;
            out.push_back(
                {s.per_batch(estimate_cycles(p.graph, node, s.target)), "PW06", node.name,
                 node.type() + " works in float32, the model's device data type is " + types});
        }
    });
}

void small_operators(const Subject& s, Warnings& out) {
    each_npu_partition(s, [&](const Partition& p) {
        for (size_t n = 0; n < p.graph.nodes.size(); ++n) {
            const Node& node = p.graph.nodes[n];
            const uint64_t cycles = s.per_batch(estimate_cycles(p.graph, node, s.target));
            const double seconds = static_cast<double>(cycles) / s.target.clock_hz;
            if (seconds >= least_seconds) continue;
            char text[64];
            std::snprintf(text, sizeof text, " has %.3f us of estimated work", 1e6 * seconds);
            out.push_back({cycles, "PW07", node.name, node.type() + text});
        }
    });
}

constexpr void (*rules[])(const Subject&, Warnings&) = {
    fallbacks, conversions, padding, partitions, batch, float_islands, small_operators};

}  // namespace

std::vector<std::string> perf_warnings(const CompiledModel& model, const device::Target& target) {
    Warnings found;
    for (const auto rule : rules) rule({model, target}, found);
    std::ranges::stable_sort(found, [](const Warning& a, const Warning& b) {
        return std::tuple(b.cost, std::string_view(a.code), std::string_view(a.subject)) <
               std::tuple(a.cost, std::string_view(b.code), std::string_view(b.subject));
    });
    std::vector<std::string> lines;
    for (const Warning& w : found)
        lines.push_back(std::string("performance warning ") + w.code + ": " + w.subject + ": " +
                        w.sentence);
    return lines;
}

}  // namespace vartml::compiler
