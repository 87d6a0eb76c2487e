// SPDX-License-Identifier: Apache-2.0
// The table behind Runner::get_property.
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "lib/runtime/host_memory.h"
#include "lib/runtime/runner.h"
#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

using State = RunnerState;

struct Row {
    std::string_view key;
    std::any (*value)(const State&);
};

uint32_t count(const State& s, artifact::PartitionKind kind) {
    return static_cast<uint32_t>(
        std::ranges::count(s.model.partitions, kind, &artifact::Partition::kind));
}

std::vector<std::string> partitions(const State& s) {
    std::vector<std::string> names;
    for (const uint32_t i : s.model.execution_order) names.push_back(s.model.partitions[i].name);
    return names;
}

size_t available_memory() {
    return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

uint64_t read(const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
}

std::any supported_keys(const State&);

// Sorted by key.
constexpr Row rows[] = {
    {"actual_batch_size", [](const State& s) { return std::any(s.model.actual_batch_size); }},
    {"backend", [](const State& s) { return std::any(s.device->name()); }},
    {"batch_size_per_core",
     [](const State& s) { return std::any(size_t{s.model.actual_batch_size}); }},
    {"bytes_copied_in",
     [](const State& s) { return std::any(read(s.engine->counters().bytes_copied_in)); }},
    {"bytes_copied_out",
     [](const State& s) { return std::any(read(s.engine->counters().bytes_copied_out)); }},
    {"bytes_weights_private",
     [](const State& s) {
         return std::any(uint64_t{s.engine->executable().private_weight_bytes()});
     }},
    {"compilation",
     [](const State& s) {
         return std::any(std::string(s.model.compilation == artifact::Compilation::standard
                                         ? "standard"
                                         : "cpu_partition"));
     }},
    {"compute_type",
     [](const State& s) { return std::any(s.engine->executable().compute_type()); }},
    {"conversions",
     [](const State& s) { return std::any(read(s.engine->counters().conversions)); }},
    {"ddr_free_bytes",
     [](const State&) { return std::any(std::vector<size_t>(16, available_memory())); }},
    {"desired_batch_size", [](const State& s) { return std::any(s.model.desired_batch_size); }},
    {"device_name", [](const State& s) { return std::any(s.model.device); }},
    {"export_kind", [](const State&) { return std::any(host_export_kind()); }},
    {"input_tensor_type", [](const State& s) { return std::any(s.options.input_tensor_type); }},
    {"jobs_completed", [](const State& s) { return std::any(read(s.jobs->counters().completed)); }},
    {"jobs_failed", [](const State& s) { return std::any(read(s.jobs->counters().failed)); }},
    {"jobs_in_flight", [](const State& s) { return std::any(uint32_t{s.jobs->in_flight()}); }},
    {"jobs_refused", [](const State& s) { return std::any(read(s.jobs->counters().refused)); }},
    {"jobs_submitted", [](const State& s) { return std::any(read(s.jobs->counters().submitted)); }},
    {"last_error", [](const State& s) { return std::any(last_error(s.id)); }},
    {"library_version",
     [](const State&) {
         constexpr int v = VARTML_VERSION;
         return std::any(std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
                         std::to_string(v % 100));
     }},
    {"max_concurrent_runs",
     [](const State& s) { return std::any(static_cast<uint32_t>(s.options.max_concurrent_runs)); }},
    {"memory_provider", [](const State& s) { return std::any(s.options.memory); }},
    {"model_format", [](const State& s) { return std::any(s.model.format); }},
    {"model_name", [](const State& s) { return std::any(s.model.model_name); }},
    {"model_path", [](const State& s) { return std::any(s.model_path); }},
    {"model_signature", [](const State& s) { return std::any(s.model.model_signature); }},
    {"nb_cores_per_system", [](const State&) { return std::any(size_t{1}); }},
    {"nb_ddrs", [](const State&) { return std::any(uint8_t{16}); }},
    {"nb_systems", [](const State&) { return std::any(size_t{1}); }},
    {"num_columns", [](const State& s) { return std::any(s.columns->count()); }},
    {"num_cpu_partitions",
     [](const State& s) { return std::any(count(s, artifact::PartitionKind::cpu)); }},
    {"num_npu_partitions",
     [](const State& s) { return std::any(count(s, artifact::PartitionKind::npu)); }},
    {"output_tensor_type", [](const State& s) { return std::any(s.options.output_tensor_type); }},
    {"partitions", [](const State& s) { return std::any(partitions(s)); }},
    {"start_column", [](const State& s) { return std::any(s.columns->start()); }},
    {"stats_level", [](const State& s) { return std::any(uint32_t{s.model.stats_level}); }},
    {"supported_keys", supported_keys},
    {"target", [](const State& s) { return std::any(s.target); }},
};
static_assert(std::ranges::is_sorted(rows, {}, &Row::key));

std::any supported_keys(const State&) {
    std::vector<std::string> keys;
    for (const Row& row : rows) keys.emplace_back(row.key);
    return keys;
}

// For `vartml run --steps`; no part of the interface, and not in supported_keys.
constexpr Row internal_rows[] = {
    {"vartml_internal_steps",
     [](const State& s) { return std::any(s.engine->executable().describe()); }},
    {"vartml_internal_step_times", [](const State& s) { return std::any(s.jobs->time_steps(20)); }},
};

}  // namespace

Result<std::any> property(const RunnerState& state, const std::string& key) {
    if (const auto row = std::ranges::find(rows, key, &Row::key); row != std::end(rows))
        return row->value(state);
    if (const auto row = std::ranges::find(internal_rows, key, &Row::key);
        row != std::end(internal_rows))
        return row->value(state);
    return Error{ErrorCode::not_found, "get_property: unknown key " + in_quotes(key) +
                                           "; 'supported_keys' lists what there is"};
}

}  // namespace vartml::runtime
