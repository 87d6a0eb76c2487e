// SPDX-License-Identifier: Apache-2.0
// The stamps of one program in one run: a row per thread that took part in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/profiling/capture.h"
#include "lib/profiling/clock.h"

namespace vartml::device {

// Row 0 is the thread that runs the task, row 1 + i the executor's thread number i: a seat among
// the helpers may change its thread within a run, a number never does.
// Thread-safety: a row is written by its own thread; reset() and the readers by none beside a run.
class StepRecorder {
public:
    struct Row {
        bool is_used = false;
        uint32_t os_tid = 0;
        uint64_t start = 0, end = 0;  // first and last moment of the thread in the program
        uint64_t cpu_ns = 0;
        uint64_t records = 0;  // stamps taken
        // First start and last end of what the thread did for a step; empty below level 70.
        std::vector<profiling::Stamp> steps;

        void begin_item(size_t step) {
            if (steps[step].start == 0) steps[step].start = profiling::monotonic_ns();
        }
        void end_item(size_t step) {
            steps[step].end = profiling::monotonic_ns();
            ++records;
        }

    private:
        friend class StepRecorder;
        uint64_t cpu_begin_ = 0;
    };

    // For a program of `steps` steps on the thread of a task and up to `helpers` others. Allocates
    // everything.
    StepRecorder(size_t steps, unsigned helpers);

    // Before a run: what it is to stamp.
    void reset(bool with_steps);

    // ---- on the thread that runs the task; a batch may go through the program in several turns,
    // of which the first has stamps of steps
    void begin();
    void end();
    // ---- on a helper, around its part
    Row& enter(unsigned thread);
    void leave(Row& row);

    // Rows stamp steps in this turn.
    bool has_steps() const { return with_steps_ && turns_ == 1; }
    Row& task_row() { return rows_[0]; }
    std::span<const Row> rows() const { return rows_; }
    unsigned turns() const { return turns_; }
    uint64_t first_end() const { return first_end_; }  // of the first turn

private:
    void open(Row& row);
    void close(Row& row);

    std::vector<Row> rows_;
    bool with_steps_ = false;
    unsigned turns_ = 0;
    uint64_t first_end_ = 0;
};

}  // namespace vartml::device
