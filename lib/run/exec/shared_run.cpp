// SPDX-License-Identifier: Apache-2.0
#include "lib/run/exec/shared_run.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <thread>

#include "lib/run/exec/executor.h"

namespace vartml::device {
namespace {

// The thread that holds the last item may have lost its processor; then it needs ours.
constexpr unsigned looks_before_yield = 4000;

void pause_processor() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

SharedRun::SharedRun(Work& work, const std::vector<uint32_t>& items, unsigned threads)
    : work_(work), threads_(threads) {
    first_.reserve(items.size() + 1);
    first_.push_back(0);
    for (const uint32_t n : items) {
        first_.push_back(first_.back() + n);
        can_share_ = can_share_ || n > 1;
    }
    claims_ = std::make_unique<std::atomic<uint32_t>[]>(first_.back());
}

SharedRun::~SharedRun() {
    if (executor_) executor_->forget(*this);
}

void SharedRun::run(StepRecorder* recorder) {
    const size_t steps = first_.size() - 1;
    Executor* const executor = threads_ > 1 && can_share_ ? Executor::current() : nullptr;
    StepRecorder::Row* const row =
        recorder && recorder->has_steps() ? &recorder->task_row() : nullptr;
    if (!executor || executor->num_threads() == 1) {
        run_alone(row);
        return;
    }
    executor_ = executor;
    finished_.store(0, std::memory_order_relaxed);
    recorder_.store(recorder, std::memory_order_release);
    const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
    epoch_.store(epoch, std::memory_order_release);
    executor->offer(*this, std::min(threads_, executor->num_threads()) - 1);
    const Part part{.epoch = epoch, .row = row};
    for (size_t s = 0; s < steps; ++s) run_step(s, part);
    executor->withdraw();
    // Who helped has its last stamp still to take.
    if (recorder) executor->forget(*this);
}

void SharedRun::run_alone(StepRecorder::Row* row) {
    for (size_t s = 0; s + 1 < first_.size(); ++s)
        for (size_t i = 0; i < first_[s + 1] - first_[s]; ++i) run_item(s, i, row);
}

void SharedRun::help(unsigned seat, unsigned thread, const Executor& executor) {
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    const uint32_t done = finished_.load(std::memory_order_acquire);
    // Where this thread is late it is that of a later run: which then waits for the row, and has
    // no item left for an earlier epoch.
    StepRecorder* const recorder = recorder_.load(std::memory_order_acquire);
    StepRecorder::Row* const row = recorder ? &recorder->enter(thread) : nullptr;
    const Part part{epoch, seat, &executor, row && recorder->has_steps() ? row : nullptr};
    // The first step that is not complete.
    size_t step = static_cast<size_t>(std::ranges::upper_bound(first_, done) - first_.begin()) - 1;
    while (step + 1 < first_.size() && run_step(step, part)) ++step;
    if (row) recorder->leave(*row);
}

bool SharedRun::claim(size_t item, uint32_t epoch) {
    std::atomic<uint32_t>& claimed = claims_[item];
    uint32_t before = epoch - 1;
    return claimed.load(std::memory_order_relaxed) == before &&
           claimed.compare_exchange_strong(before, epoch, std::memory_order_acq_rel);
}

void SharedRun::run_item(size_t step, size_t item, StepRecorder::Row* row) {
    if (row) row->begin_item(step);
    work_.run_item(step, item);
    if (row) row->end_item(step);
}

bool SharedRun::run_step(size_t step, const Part& part) {
    const uint32_t first = first_[step], end = first_[step + 1], count = end - first;
    // Small steps stay on one thread: the next one finds the result in that processor's cache.
    if (count > 1 || !part.helper_of) {
        // Each thread begins at its own part, where the step before left what it needs.
        const uint32_t start = static_cast<uint32_t>(uint64_t{count} * part.seat / threads_);
        for (uint32_t k = 0; k < count; ++k) {
            const uint32_t i = start + k < count ? start + k : start + k - count;
            if (!claim(first + i, part.epoch)) continue;
            run_item(step, i, part.row);
            finished_.fetch_add(1, std::memory_order_acq_rel);
        }
    }
    for (unsigned looks = 1; finished_.load(std::memory_order_acquire) < end; ++looks) {
        if (part.helper_of && (epoch_.load(std::memory_order_relaxed) != part.epoch ||
                               part.helper_of->wants_helpers_back()))
            return false;
        if (looks % looks_before_yield == 0)
            std::this_thread::yield();
        else
            pause_processor();
    }
    return !part.helper_of || !part.helper_of->wants_helpers_back();
}

}  // namespace vartml::device
