// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/perf_metrics.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/artifact/derived.h"
#include "lib/common/saturating.h"
#include "lib/compiler/stats_descriptor.h"

namespace vartml::compiler {
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
    return artifact::to_file(j);
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

}  // namespace vartml::compiler
