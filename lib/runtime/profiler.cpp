// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/profiler.h"

#include <algorithm>

#include "lib/runtime/capture_fill.h"
#include "lib/runtime/capture_missing.h"
#include "lib/runtime/job_trace.h"

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

Recording* Profiler::start(uint64_t entered) {
    const uint64_t index = next_index_.fetch_add(1, std::memory_order_relaxed);
    const auto frames = FrameScope::take();
    if (entered == 0) return nullptr;  // somebody began to ask within the call
    const unsigned limit = level_limit(setup_);
    const unsigned for_sink = setup_.sink ? std::min(setup_.sink->level_of(index), limit) : 0;
    const unsigned for_trace = std::min(JobTrace::level(), std::max(limit, profiling::level_ports));
    const unsigned level = std::max(for_sink, for_trace);
    if (level < profiling::level_inference) return nullptr;
    Recording* recording = take_free();
    recording->level = level;
    recording->sink_level = for_sink < profiling::level_inference ? 0 : for_sink;
    recording->trace_level = for_trace;
    recording->index = index;
    recording->frame_keys.assign(frames.begin(), frames.end());
    recording->host = {};
    recording->host[Recording::entered] = entered;
    recording->host[Recording::released] = profiling::not_captured;
    recording->bytes_copied = 0;
    recording->turns = 0;
    const device::RecordRequest request{
        .steps = level >= profiling::level_operators,
        .pmu = recording->sink_level ? &setup_.pmu : nullptr,
        .cycles_of_steps = recording->sink_level >= profiling::level_operators,
        .pmu_of_steps =
            recording->sink_level >= profiling::level_pmu_per_operator && setup_.has_pmu()};
    for (device::StepRecorder* recorder : recording->recorders()) recorder->reset(request);
    return recording;
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
    cores_[core].ready =
        recording ? recording->host[Recording::completed] : profiling::monotonic_ns();
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
    } catch (...) {  // no memory: the next capture says that there was one more
        const std::lock_guard lock(mutex_);
        lost_ += recording.host.size();
    }
    drop(recording);
}

void Profiler::drop(Recording& recording) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(&recording);
}

}  // namespace vartml::runtime
