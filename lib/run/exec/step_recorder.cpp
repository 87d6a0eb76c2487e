// SPDX-License-Identifier: Apache-2.0
#include "lib/run/exec/step_recorder.h"

#include <unistd.h>

#include <algorithm>

namespace vartml::device {
namespace {

using profiling::not_captured;
using profiling::PmuCount;
using profiling::PmuCounters;

uint32_t this_thread_id() {
    thread_local const auto id = static_cast<uint32_t>(::gettid());
    return id;
}

void add(uint64_t& sum, uint64_t value) {
    sum = sum == not_captured || value == not_captured ? not_captured : sum + value;
}

void add(PmuCount& sum, const PmuCount& count) {
    sum.enabled_ns += count.enabled_ns;
    sum.running_ns += count.running_ns;
    for (size_t i = 0; i < sum.values.size(); ++i) add(sum.values[i], count.values[i]);
}

uint64_t difference(uint64_t after, uint64_t before) {
    return after == not_captured || before == not_captured ? not_captured : after - before;
}

}  // namespace

void StepRecorder::Row::begin_counts(size_t) {
    if (!cycles_of_steps.empty()) cycles_of_step_ = counters->cycles();
    if (!pmu_of_steps.empty()) pmu_of_step_ = counters->read();
}

void StepRecorder::Row::end_counts(size_t step) {
    if (!cycles_of_steps.empty())
        cycles_of_steps[step] = difference(counters->cycles(), cycles_of_step_);
    if (!pmu_of_steps.empty()) pmu_of_steps[step] = counters->since(pmu_of_step_).values;
    ++records;
}

StepRecorder::StepRecorder(size_t steps, unsigned helpers) : rows_(helpers + 1) {
    for (Row& row : rows_) row.steps.resize(steps);
}

void StepRecorder::reset(const RecordRequest& request) {
    request_ = request;
    turns_ = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
        Row& row = rows_[i];
        row.is_used = false;
        const size_t steps = row.steps.size();
        row.cycles_of_steps.resize(request.cycles_of_steps && i == 0 ? steps : 0);
        row.pmu_of_steps.resize(request.pmu_of_steps ? steps : 0);
    }
}

void StepRecorder::open(Row& row) {
    const uint64_t now = profiling::monotonic_ns();
    if (!row.is_used) {
        row.is_used = true;
        row.os_tid = this_thread_id();
        row.start = now;
        row.cpu_ns = row.records = 0;
        row.counters = request_.pmu ? &PmuCounters::of_this_thread(*request_.pmu) : nullptr;
        row.cycles = row.counters && row.counters->has_cycles() ? 0 : not_captured;
        row.pmu = {};
        if (request_.steps) std::ranges::fill(row.steps, profiling::Stamp{});
        std::ranges::fill(row.cycles_of_steps, not_captured);
        PmuValues none;
        none.fill(not_captured);
        std::ranges::fill(row.pmu_of_steps, none);
        row.counts_steps_ = row.counters && (!row.pmu_of_steps.empty() ||
                                             (!row.cycles_of_steps.empty() && row.cycles == 0));
    }
    row.cpu_begin_ = profiling::thread_cpu_ns();
    if (!row.counters) return;
    row.cycles_begin_ = row.counters->cycles();
    if (!row.counters->events().empty()) row.pmu_begin_ = row.counters->read();
}

void StepRecorder::close(Row& row) {
    if (row.counters) {
        add(row.cycles, difference(row.counters->cycles(), row.cycles_begin_));
        if (!row.counters->events().empty()) add(row.pmu, row.counters->since(row.pmu_begin_));
    }
    row.cpu_ns += profiling::thread_cpu_ns() - row.cpu_begin_;
    row.end = profiling::monotonic_ns();
    ++row.records;
}

void StepRecorder::begin() {
    ++turns_;
    open(rows_[0]);
}

void StepRecorder::end() {
    close(rows_[0]);
    if (turns_ == 1) first_end_ = rows_[0].end;
}

StepRecorder::Row& StepRecorder::enter(unsigned thread) {
    Row& row = rows_[thread + 1];
    open(row);
    return row;
}

void StepRecorder::leave(Row& row) {
    close(row);
}

}  // namespace vartml::device
