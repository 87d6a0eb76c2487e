// SPDX-License-Identifier: Apache-2.0
#include "lib/device/step_recorder.h"

#include <unistd.h>

#include <algorithm>

namespace vartml::device {
namespace {

uint32_t this_thread_id() {
    thread_local const auto id = static_cast<uint32_t>(::gettid());
    return id;
}

}  // namespace

StepRecorder::StepRecorder(size_t steps, unsigned helpers) : rows_(helpers + 1) {
    for (Row& row : rows_) row.steps.resize(steps);
}

void StepRecorder::reset(bool with_steps) {
    with_steps_ = with_steps;
    turns_ = 0;
    for (Row& row : rows_) row.is_used = false;
}

void StepRecorder::open(Row& row) {
    const uint64_t now = profiling::monotonic_ns();
    if (!row.is_used) {
        row.is_used = true;
        row.os_tid = this_thread_id();
        row.start = now;
        row.cpu_ns = row.records = 0;
        if (with_steps_) std::ranges::fill(row.steps, profiling::Stamp{});
    }
    row.cpu_begin_ = profiling::thread_cpu_ns();
}

void StepRecorder::close(Row& row) {
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
