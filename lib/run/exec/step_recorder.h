// SPDX-License-Identifier: Apache-2.0
// The stamps of one program in one run: a row per thread that took part in it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/trace/capture.h"
#include "lib/trace/clock.h"
#include "lib/trace/pmu.h"

namespace vartml::device {

// What a run is to leave behind beside start, end and CPU time of each thread.
struct RecordRequest {
    bool steps = false;                   // start and end of each step
    const profiling::Pmu* pmu = nullptr;  // cycles and these events of each thread
    bool cycles_of_steps = false;         // on the thread of the task
    bool pmu_of_steps = false;
};

// Row 0 is the thread that runs the task, row 1 + i the executor's thread number i: a seat among
// the helpers may change its thread within a run, a number never does.
// Thread-safety: a row is written by its own thread; reset() and the readers by none beside a run.
class StepRecorder {
public:
    using PmuValues = std::array<uint64_t, profiling::max_pmu_events>;

    struct Row {
        bool is_used = false;
        uint32_t os_tid = 0;
        uint64_t start = 0, end = 0;  // first and last moment of the thread in the program
        uint64_t cpu_ns = 0;
        uint64_t records = 0;  // stamps taken
        // First start and last end of what the thread did for a step.
        std::vector<profiling::Stamp> steps;
        // Null where none were asked for.
        const profiling::PmuCounters* counters = nullptr;
        uint64_t cycles = profiling::not_captured;
        profiling::PmuCount pmu;
        std::vector<uint64_t> cycles_of_steps;  // empty where not counted
        std::vector<PmuValues> pmu_of_steps;

        void begin_item(size_t step) {
            if (steps[step].start != 0) return;
            if (counts_steps_) begin_counts(step);
            steps[step].start = profiling::monotonic_ns();
        }
        void end_item(size_t step) {
            steps[step].end = profiling::monotonic_ns();
            ++records;
            if (counts_steps_) end_counts(step);
        }

    private:
        friend class StepRecorder;
        void begin_counts(size_t step);
        void end_counts(size_t step);
        bool counts_steps_ = false;
        uint64_t cpu_begin_ = 0, cycles_begin_ = 0, cycles_of_step_ = 0;
        profiling::PmuCount pmu_begin_, pmu_of_step_;
    };

    // For a program of `steps` steps on the thread of a task and up to `helpers` others.
    StepRecorder(size_t steps, unsigned helpers);

    // Before a run. Allocates where counters of steps are asked for the first time.
    void reset(const RecordRequest& request);

    // ---- on the thread that runs the task; a batch may go through the program in several turns,
    // of which the first has stamps of steps
    void begin();
    void end();
    // ---- on a helper, around its part
    Row& enter(unsigned thread);
    void leave(Row& row);

    // Rows stamp steps in this turn.
    bool has_steps() const { return request_.steps && turns_ == 1; }
    Row& task_row() { return rows_[0]; }
    std::span<const Row> rows() const { return rows_; }
    unsigned turns() const { return turns_; }
    uint64_t first_end() const { return first_end_; }  // of the first turn

private:
    void open(Row& row);
    void close(Row& row);

    std::vector<Row> rows_;
    RecordRequest request_;
    unsigned turns_ = 0;
    uint64_t first_end_ = 0;
};

}  // namespace vartml::device
