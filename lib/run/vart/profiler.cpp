// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/profiler.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "lib/run/vart/capture.h"
#include "lib/run/vart/job_trace.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

// What one record costs: a reading of the clock and its place in a row.
uint64_t measure_record_ps() {
    constexpr uint64_t records = 10'000;
    std::vector<profiling::Stamp> row(64);
    const uint64_t start = profiling::monotonic_ns();
    for (uint64_t i = 0; i < records; ++i) row[i % row.size()].end = profiling::monotonic_ns();
    return (profiling::monotonic_ns() - start) * 1000 / records;
}

}  // namespace

Recording::Recording(const std::vector<ProfiledPartition>& partitions, unsigned helpers) {
    for (const ProfiledPartition& p : partitions) {
        recorders_.push_back(
            std::make_unique<device::StepRecorder>(p.program.steps.size(), helpers));
        pointers_.push_back(recorders_.back().get());
    }
}

Profiler::Profiler(ProfilerSetup setup)
    : setup_(std::move(setup)),
      map_(setup_.partitions, setup_.descriptor.get()),
      trace_(std::make_unique<JobTrace>(setup_)),
      cores_(setup_.threads) {
    for (Core& core : cores_) core.ready = setup_.activated_at;
    if (setup_.sink) record_cost_ps_ = measure_record_ps();
}

Profiler::~Profiler() = default;

bool Profiler::is_on() const {
    return setup_.sink || (HostTrace::flags() & job_trace_flags);
}

Recording* Profiler::start(uint64_t entered) noexcept {
    const uint64_t index = next_index_.fetch_add(1, std::memory_order_relaxed);
    const auto frames = FrameScope::take();
    if (entered == 0) return nullptr;  // somebody began to ask within the call
    const unsigned limit = level_limit(setup_);
    const bool asks_sink = setup_.sink && !WarmUpScope::is_open();
    const unsigned for_sink = asks_sink ? std::min(setup_.sink->level_of(index), limit) : 0;
    const unsigned for_trace = std::min(JobTrace::level(), std::max(limit, profiling::level_ports));
    const unsigned level = std::max(for_sink, for_trace);
    if (level < profiling::level_inference) return nullptr;
    Recording* recording = nullptr;
    try {
        recording = take_free();
        recording->frame_keys.assign(frames.begin(), frames.end());
        recording->level = level;
        recording->sink_level = for_sink < profiling::level_inference ? 0 : for_sink;
        recording->trace_level = for_trace;
        recording->index = index;
        prepare(*recording, entered);
    } catch (...) {
        lose();
        if (recording) drop(*recording);
        return nullptr;
    }
    return recording;
}

void Profiler::prepare(Recording& recording, uint64_t entered) const {
    recording.host = {};
    recording.host[Recording::entered] = entered;
    recording.host[Recording::released] = profiling::not_captured;
    recording.bytes_copied = 0;
    recording.turns = 0;
    const unsigned for_sink = recording.sink_level;
    const device::RecordRequest request{
        .steps = recording.level >= profiling::level_operators,
        .pmu = for_sink ? &setup_.pmu : nullptr,
        .cycles_of_steps = for_sink >= profiling::level_operators,
        .pmu_of_steps = for_sink >= profiling::level_pmu_per_operator && setup_.has_pmu()};
    for (device::StepRecorder* recorder : recording.recorders()) recorder->reset(request);
}

Recording* Profiler::take_free() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        free_.reserve(all_.size() + 1);
        all_.push_back(std::make_unique<Recording>(setup_.partitions, setup_.threads));
        free_.push_back(all_.back().get());
    }
    Recording* const recording = free_.back();
    free_.pop_back();
    return recording;
}

void Profiler::show_queued(const Recording& recording) const noexcept {
    if (recording.trace_level) trace_->queued(recording);
}

void Profiler::show_completed(const Recording& recording) const noexcept {
    if (recording.trace_level) trace_->completed(recording);
}

void Profiler::core_takes(unsigned core, Recording& recording) {
    recording.core = core;
    recording.core_ready = cores_[core].ready;
    recording.is_first_of_core = !cores_[core].has_run;
}

void Profiler::core_is_done(unsigned core, const Recording* recording) {
    cores_[core].has_run = true;
    // A job that failed before the device was done has no such stamp.
    const uint64_t completed = recording ? recording->host[Recording::completed] : 0;
    cores_[core].ready = completed ? completed : profiling::monotonic_ns();
}

void Profiler::deliver(Recording& recording) noexcept {
    try {
        if (recording.sink_level) {
            recording.level = recording.sink_level;
            fill_capture(setup_, map_, recording);
            recording.capture.record_cost_ps = record_cost_ps_;
            {
                const std::lock_guard lock(mutex_);
                recording.capture.lost_records = std::exchange(lost_, 0);
            }
            setup_.sink->take(recording.capture);
        }
        if (recording.trace_level) {
            if (recording.trace_level != std::exchange(recording.level, recording.trace_level) ||
                !recording.sink_level)
                fill_capture(setup_, map_, recording);
            trace_->device(recording, HostTrace::flags());
        }
    } catch (...) {
        lose();
    }
    drop(recording);
}

// No memory for a capture: the next one counts its stamps of the host, the least that it had.
void Profiler::lose() noexcept {
    const std::lock_guard lock(mutex_);
    lost_ += std::tuple_size_v<profiling::HostStamps>;
}

void Profiler::drop(Recording& recording) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(&recording);
}

namespace {

using profiling::Descriptor;
using profiling::Op;

const char* engine_of(const ProfiledPartition& partition) {
    return partition.is_cpu ? profiling::cpu_engine : profiling::npu_engine;
}

// Of core 0, which stands for all.
const profiling::Group* group_of(const Descriptor& descriptor, std::string_view engine,
                                 uint16_t& index) {
    if (descriptor.cores.empty()) return nullptr;
    const auto& groups = descriptor.cores[0].groups;
    const auto found = std::ranges::find_if(groups, [&](const profiling::Group& g) {
        return g.engine < descriptor.engines.size() && descriptor.engines[g.engine] == engine;
    });
    if (found == groups.end()) return nullptr;
    index = static_cast<uint16_t>(found - groups.begin());
    return &*found;
}

}  // namespace

OperatorMap::OperatorMap(const std::vector<ProfiledPartition>& partitions,
                         const Descriptor* descriptor) {
    if (descriptor) {
        add_groups(*descriptor);
        for (const auto& partition : partitions)
            partitions_.push_back(place(partition, *descriptor));
        return;
    }
    std::vector<const char*> engines;
    for (const auto& partition : partitions) {
        const char* const engine = engine_of(partition);
        const auto found = std::ranges::find(engines, engine);
        const auto group = static_cast<uint16_t>(found - engines.begin());
        if (found == engines.end()) {
            engines.push_back(engine);
            groups_.push_back({.engine = group, .num_ops = 0, .has_barrier = {}});
        }
        partitions_.push_back(
            {group, none, std::vector<int32_t>(partition.program.steps.size(), none)});
    }
    if (groups_.empty()) groups_.emplace_back();
}

void OperatorMap::add_groups(const Descriptor& descriptor) {
    for (const auto& core : descriptor.cores) {
        for (const profiling::Group& group : core.groups) {
            Group own{.engine = static_cast<uint16_t>(group.engine),
                      .num_ops = group.ops.size(),
                      .has_barrier = std::vector<bool>(group.ops.size(), false)};
            for (size_t i = 0; i + 1 < group.ops.size(); ++i)
                own.has_barrier[i] = descriptor.is_barrier(group.ops[i + 1]);
            groups_.push_back(std::move(own));
        }
        break;  // core 0 stands for all
    }
    if (groups_.empty()) groups_.emplace_back();
}

OperatorMap::Partition OperatorMap::place(const ProfiledPartition& partition,
                                          const Descriptor& descriptor) {
    const auto& [name, steps] = partition.program;
    Partition own;
    own.op_of_step.assign(steps.size(), none);
    const profiling::Group* const group = group_of(descriptor, engine_of(partition), own.group);
    if (!group || group->ops.empty()) return own;
    std::unordered_map<std::string_view, int32_t> index_of;
    for (size_t i = 0; i < group->ops.size(); ++i) {
        const Op& op = group->ops[i];
        if (op.partition >= descriptor.partitions.size() ||
            descriptor.partitions[op.partition] != name)
            continue;
        if (descriptor.is_sync(op))
            own.sync = static_cast<int32_t>(i);
        else if (!descriptor.is_barrier(op))
            index_of.emplace(op.name, static_cast<int32_t>(i));
    }
    size_t unknown = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
        const auto found = index_of.find(steps[s]);
        if (found != index_of.end()) {
            own.op_of_step[s] = found->second;
            continue;
        }
        if (++unknown == 1 && unknown_.empty())
            unknown_ = "the descriptor lists no operator for " + in_quotes(steps[s]) +
                       " of partition " + in_quotes(name) + "; compile the model again";
    }
    return own;
}

Traffic traffic_of(const graph::Graph& graph, uint64_t batch) {
    const auto bytes = [&](const std::vector<graph::ValueId>& ids) {
        uint64_t sum = 0;
        for (const graph::ValueId id : std::set(ids.begin(), ids.end())) {
            if (id == graph::none) continue;
            const graph::Value& value = graph.value(id);
            sum += value.type.size_bytes() * (value.constant ? 1 : batch);
        }
        return sum;
    };
    Traffic traffic;
    for (const graph::Node& node : graph.nodes) {
        traffic.read_bytes += bytes(node.inputs);
        traffic.write_bytes += bytes(node.outputs);
    }
    return traffic;
}

Traffic traffic_of(const profiling::Descriptor& descriptor) {
    Traffic traffic;
    if (descriptor.cores.empty()) return traffic;
    for (const profiling::Group& group : descriptor.cores[0].groups)
        for (const profiling::Op& op : group.ops) {
            traffic.read_bytes += op.read_bytes;
            traffic.write_bytes += op.write_bytes;
        }
    return traffic;
}

}  // namespace vartml::runtime
