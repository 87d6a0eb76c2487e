// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/profiler.h"

#include <algorithm>

#include "lib/runtime/capture_fill.h"

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
      cores_(setup_.threads) {
    for (Core& core : cores_) core.ready = setup_.activated_at;
    if (setup_.sink) record_cost_ps_ = measure_record_ps();
}

Recording* Profiler::start(uint64_t entered) {
    const uint64_t index = next_index_.fetch_add(1, std::memory_order_relaxed);
    const unsigned level = std::min(setup_.sink->level_of(index), level_limit(setup_));
    if (level < profiling::level_inference) return nullptr;
    Recording* recording = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            free_.reserve(all_.size() + 1);
            all_.push_back(std::make_unique<Recording>(setup_.partitions, setup_.threads));
            free_.push_back(all_.back().get());
        }
        recording = free_.back();
        free_.pop_back();
    }
    recording->level = level;
    recording->index = index;
    recording->host = {};
    recording->host[Recording::entered] = entered;
    recording->host[Recording::released] = profiling::not_captured;
    recording->bytes_copied = 0;
    recording->turns = 0;
    for (device::StepRecorder* recorder : recording->recorders())
        recorder->reset(level >= profiling::level_operators);
    return recording;
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
        fill_capture(setup_, map_, recording);
        recording.capture.record_cost_ps = record_cost_ps_;
        {
            const std::lock_guard lock(mutex_);
            recording.capture.lost_records = std::exchange(lost_, 0);
        }
        setup_.sink->take(recording.capture);
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
