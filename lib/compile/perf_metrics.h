// SPDX-License-Identifier: Apache-2.0
// What the compiler knows of a program without running it: where values lie, when layers run,
// figures, and what in them costs speed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"
#include "lib/model/target.h"

namespace vartml::compiler {

struct Arena {
    std::vector<uint64_t> offsets;  // per value; 0 for what does not lie in the arena
    uint64_t size_bytes = 0;
};
// Values between nodes share one arena; inputs, outputs and constants have places of their own.
Arena plan_arena(const graph::Graph& graph);

struct Schedule {
    std::vector<artifact::Layer> layers;  // one per node, back to back
    std::vector<int32_t> node_layers;
};
// A static estimate without memory stalls: each layer takes what its arithmetic or its reads and
// writes of local memory take, whichever is more, at the target's rates. `prefix` begins the names:
// "MLA_0/".
Schedule plan_layers(const graph::Graph& graph, const device::Target& target,
                     const std::string& prefix);

// What a layer of that node alone takes, by the same rule.
uint64_t estimate_cycles(const graph::Graph& graph, const graph::Node& node,
                         const device::Target& target);

// "conv2d_add_relu": the parts of a kind in lower snake case, convolutions with their number of
// spatial dimensions.
std::string layer_kind(const graph::Graph& graph, const graph::Node& node);

// Bytes of all constants, each rounded up to a multiple of 64.
uint64_t weight_bytes(const graph::Graph& graph);

inline constexpr const char* metrics_entry = "perf-metrics.json";

// Of one inference of the actual batch. Sums stop at beyond_count (lib/base/saturating.h) and
// never wrap.
struct PerfFigures {
    std::string name, kind;  // of a partition; "total" and "" of all
    uint64_t operators = 0, macs = 0, other_operations = 0;
    uint64_t constant_bytes = 0;
    uint64_t read_bytes = 0, written_bytes = 0;  // per inference, constants included
    // The first inference also brings the constants into the device's form.
    uint64_t first_read_bytes = 0, first_written_bytes = 0;
    uint64_t arena_bytes = 0, conversions = 0, barriers = 0;
    uint64_t cycles = 0;  // of NPU partitions, without memory stalls
};

struct PerfMetrics {
    std::string device;
    uint64_t clock_hz = 0;
    uint32_t requested_batch_size = 1, actual_batch_size = 1;
    std::vector<PerfFigures> partitions;  // in execution order
    PerfFigures total;
};

PerfMetrics measure(const artifact::CompiledModel& model, const device::Target& target);
// The entry perf-metrics.json, and lines for a console. A figure that 64 bits do not hold is null,
// or "more than 64 bits".
std::string metrics_json(const PerfMetrics& metrics);
std::string metrics_text(const PerfMetrics& metrics);

// "performance warning PW01: SUBJECT: SENTENCE", the largest estimated cost first.
std::vector<std::string> perf_warnings(const artifact::CompiledModel& model,
                                       const device::Target& target);

}  // namespace vartml::compiler
