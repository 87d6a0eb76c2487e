// SPDX-License-Identifier: Apache-2.0
// A run in steps that idle threads of the executor take part in.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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
    // one thread at a time. No allocation, no lock.
    void run();

private:
    friend class Executor;
    void help(unsigned seat, const Executor& executor);
    bool claim(size_t item, uint32_t epoch);
    // False: a helper should leave.
    bool run_step(size_t step, uint32_t epoch, unsigned seat, const Executor* helper_of);

    Work& work_;
    std::vector<uint32_t> first_;  // number of the first item of each step, and of the end
    // Number of the run that claimed the item last. Every run claims every item once, so a helper
    // that comes late from an earlier run finds nothing to claim.
    std::unique_ptr<std::atomic<uint32_t>[]> claims_;
    bool can_share_ = false;
    const unsigned threads_;
    const Executor* executor_ = nullptr;  // of the last run
    alignas(64) std::atomic<uint32_t> epoch_{0};
    alignas(64) std::atomic<uint32_t> finished_{0};  // items of this run
};

}  // namespace vartml::device
