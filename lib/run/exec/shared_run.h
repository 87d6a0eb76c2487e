// SPDX-License-Identifier: Apache-2.0
// A run in steps that idle threads of the executor take part in.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/run/exec/step_recorder.h"

namespace vartml::device {

class Executor;

// Part `i` of `n` of the range [0, size).
inline std::pair<int64_t, int64_t> part_of(int64_t size, int64_t i, int64_t n) {
    return {size * i / n, size * (i + 1) / n};
}

// Steps run one after another, the items of a step in any order on any thread: who is free claims
// the next one. A thread that is late, or that the system takes away, delays no more than the item
// it holds, and a run is complete without any helper.
class SharedRun {
public:
    struct Work {
        virtual void run_item(size_t step, size_t item) noexcept = 0;

    protected:
        ~Work() = default;
    };

    // `items[s]` is how many items step s has, at least 1; up to `threads` - 1 others help. `work`
    // outlives this object.
    SharedRun(Work& work, const std::vector<uint32_t>& items, unsigned threads);
    SharedRun(const SharedRun&) = delete;
    SharedRun& operator=(const SharedRun&) = delete;
    ~SharedRun();  // waits for helpers

    // Runs everything; idle threads of the executor whose task the calling thread is in help. By
    // one thread at a time. No allocation, no lock. `recorder`, whose steps are those of this run,
    // gets the stamps of all threads; without it no clock is read.
    void run(StepRecorder* recorder = nullptr);

private:
    friend class Executor;
    // A thread's part in a run.
    struct Part {
        uint32_t epoch = 0;
        unsigned seat = 0;
        const Executor* helper_of = nullptr;  // null: the thread of the task
        StepRecorder::Row* row = nullptr;     // null: steps are not stamped
    };

    void help(unsigned seat, unsigned thread, const Executor& executor);
    void run_alone(StepRecorder::Row* row);
    void run_item(size_t step, size_t item, StepRecorder::Row* row);
    bool claim(size_t item, uint32_t epoch);
    // False: a helper should leave.
    bool run_step(size_t step, const Part& part);

    Work& work_;
    std::vector<uint32_t> first_;  // number of the first item of each step, and of the end
    // Number of the run that claimed the item last. Every run claims every item once, so a helper
    // that comes late from an earlier run finds nothing to claim.
    std::unique_ptr<std::atomic<uint32_t>[]> claims_;
    bool can_share_ = false;
    const unsigned threads_;
    const Executor* executor_ = nullptr;            // of the last run
    std::atomic<StepRecorder*> recorder_{nullptr};  // of this run
    alignas(64) std::atomic<uint32_t> epoch_{0};
    alignas(64) std::atomic<uint32_t> finished_{0};  // items of this run
};

}  // namespace vartml::device
