// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/capture_fill.h"

#include <algorithm>

namespace vartml::runtime {
namespace {

using device::StepRecorder;
using profiling::Capture;
using profiling::Stamp;
using profiling::ThreadCapture;

class Filler {
public:
    Filler(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording)
        : setup_(setup),
          map_(map),
          recording_(recording),
          capture_(recording.capture),
          rows_(setup.threads + 1),
          recorders_(recording.recorders()) {}

    void fill() {
        fill_head();
        clear();
        add_threads();
        if (recorders_.empty()) add_unstamped_thread();
        if (recording_.level >= profiling::level_operators) add_operators();
        if (recording_.level >= profiling::level_ports) add_waits();
        count_records();
    }

private:
    void fill_head() {
        capture_.inference_index = recording_.index;
        capture_.captured_level = static_cast<uint16_t>(recording_.level);
        capture_.core_count = setup_.threads;
        capture_.is_first_of_core = recording_.is_first_of_core;
        const auto& host = recording_.host;
        capture_.begin_ns = host[Recording::entered];
        capture_.end_ns = host[Recording::released] != profiling::not_captured
                              ? host[Recording::released]
                              : host[Recording::outputs_converted];
        capture_.has_host = true;
        capture_.host = host;
        if (!recorders_.empty() && recorders_[0]->turns() > 0)
            capture_.host[Recording::started] = recorders_[0]->rows()[0].start;
        capture_.queue_depth = setup_.queue_depth;
        capture_.jobs_in_queue = recording_.jobs_in_queue;
        capture_.bytes_copied = recording_.bytes_copied;
    }

    void clear() {
        auto& threads = capture_.threads;
        auto& spare = recording_.spare_threads;
        const size_t most = map_.groups().size() * rows_;
        threads.reserve(most);
        spare.reserve(most);
        // So that the memory of their stamps stays.
        while (!threads.empty()) {
            spare.push_back(std::move(threads.back()));
            threads.pop_back();
        }
        capture_.ports.clear();
        capture_.doorbells.clear();
        capture_.semaphores.clear();
        capture_.traffic.clear();
        recording_.thread_at.assign(most, -1);
    }

    ThreadCapture& new_thread(uint16_t group, size_t row) {
        auto& spare = recording_.spare_threads;
        if (spare.empty()) spare.emplace_back();
        ThreadCapture& thread = capture_.threads.emplace_back(std::move(spare.back()));
        spare.pop_back();
        thread.core = static_cast<uint16_t>(recording_.core);
        thread.thread = static_cast<uint16_t>(group * rows_ + row);
        thread.group = group;
        thread.engine = map_.groups()[group].engine;
        thread.os_tid = 0;
        thread.is_stamped = recording_.level >= profiling::level_operators;
        thread.start = thread.end = 0;
        thread.pcycles = profiling::not_captured;
        thread.activate_ns = profiling::not_captured;
        thread.cpu_ns = 0;
        thread.ops.assign(thread.is_stamped ? map_.groups()[group].num_ops : 0, Stamp{});
        thread.pcycles_of_ops.clear();
        thread.pmu_of_ops.clear();
        thread.pmu = {};
        return thread;
    }

    // The thread's entry; partitions of a group share it.
    ThreadCapture& thread_of(uint16_t group, size_t row, const StepRecorder::Row& stamps) {
        int32_t& at = recording_.thread_at[group * rows_ + row];
        if (at >= 0) return capture_.threads[static_cast<size_t>(at)];
        at = static_cast<int32_t>(capture_.threads.size());
        ThreadCapture& thread = new_thread(group, row);
        thread.os_tid = stamps.os_tid;
        thread.start = stamps.start;
        thread.end = stamps.end;
        return thread;
    }

    void add_threads() {
        for (size_t p = 0; p < recorders_.size(); ++p) {
            const auto& partition = map_.partitions()[p];
            const auto rows = recorders_[p]->rows();
            for (size_t r = 0; r < rows.size(); ++r) {
                if (!rows[r].is_used) continue;
                ThreadCapture& thread = thread_of(partition.group, r, rows[r]);
                thread.start = std::min(thread.start, rows[r].start);
                // A helper may leave after the program was complete.
                thread.end = std::max(thread.end, std::min(rows[r].end, rows[0].end));
                thread.cpu_ns += rows[r].cpu_ns;
                // The task's thread loads, helpers do not.
                thread.activate_ns =
                    r == 0 ? setup_.activate_ns[setup_.partitions[p].is_cpu ? 1 : 0] : 0;
                if (thread.ops.empty()) continue;
                for (size_t s = 0; s < partition.op_of_step.size(); ++s)
                    merge(thread, partition.op_of_step[s], rows[r].steps[s]);
            }
        }
    }

    static void merge(ThreadCapture& thread, int32_t op, const Stamp& step) {
        if (op < 0 || step.start == 0) return;
        Stamp& stamp = thread.ops[static_cast<size_t>(op)];
        stamp.start = stamp.start == 0 ? step.start : std::min(stamp.start, step.start);
        stamp.end = std::max(stamp.end, step.end);
    }

    // The device says nothing of its threads: one stands for it, from doorbell to completion.
    void add_unstamped_thread() {
        ThreadCapture& thread = new_thread(0, 0);
        thread.is_stamped = false;
        thread.ops.clear();
        thread.cpu_ns = profiling::not_captured;
        thread.activate_ns = setup_.activate_ns[0];
        thread.start = recording_.host[Recording::doorbell];
        thread.end = recording_.host[Recording::completed];
    }

    // What threads do between the operators: each waits for the last of its team at the end of an
    // operator, and a group for what the others make.
    void add_operators() {
        for (uint16_t g = 0; g < map_.groups().size(); ++g) {
            const auto& group = map_.groups()[g];
            recording_.complete_at.assign(group.num_ops, 0);
            for (const ThreadCapture& thread : capture_.threads)
                for (size_t o = 0; thread.group == g && o < thread.ops.size(); ++o)
                    recording_.complete_at[o] =
                        std::max(recording_.complete_at[o], thread.ops[o].end);
            for (ThreadCapture& thread : capture_.threads)
                for (size_t o = 0; thread.group == g && o < thread.ops.size(); ++o)
                    if (group.has_barrier[o] && thread.ops[o].end != 0)
                        thread.ops[o + 1] = {thread.ops[o].end, recording_.complete_at[o]};
        }
        add_syncs();
    }

    void add_syncs() {
        if (recorders_.empty()) return;
        auto& since = recording_.group_idle_since;
        since.assign(map_.groups().size(), recorders_[0]->rows()[0].start);
        for (size_t p = 0; p < recorders_.size() && recorders_[p]->turns() > 0; ++p) {
            const auto& partition = map_.partitions()[p];
            const auto& row = recorders_[p]->rows()[0];
            auto& ops = thread_of(partition.group, 0, row).ops;
            if (partition.sync >= 0 && !ops.empty())
                ops[static_cast<size_t>(partition.sync)] = {since[partition.group], row.start};
            since[partition.group] = recorders_[p]->first_end();
        }
    }

    void add_waits() {
        const auto& host = recording_.host;
        const auto core = static_cast<uint16_t>(recording_.core);
        const auto after = [](uint64_t end, uint64_t start) {
            return end > start ? end - start : 0;
        };
        capture_.ports.push_back(
            {.core = core,
             .count = 1,
             .wait_ns = after(host[Recording::doorbell], recording_.core_ready)});
        capture_.doorbells.push_back({.core = core,
                                      .sequence = static_cast<uint32_t>(recording_.index),
                                      .at = host[Recording::doorbell]});
        if (recorders_.empty()) return;
        capture_.ports.push_back(
            {.core = core,
             .port = profiling::output_port,
             .is_output = true,
             .count = 1,
             .wait_ns = after(host[Recording::completed], recorders_.back()->rows()[0].end)});
        for (size_t p = 1; p < recorders_.size() && recorders_[p]->turns() > 0; ++p)
            capture_.semaphores.push_back(
                {.core = core,
                 .thread = static_cast<uint16_t>(map_.partitions()[p].group * rows_),
                 .semaphore = static_cast<uint32_t>(p - 1),
                 .start = recorders_[p - 1]->first_end(),
                 .end = recorders_[p]->rows()[0].start});
    }

    void count_records() {
        uint64_t count = capture_.host.size() + capture_.ports.size() + capture_.doorbells.size() +
                         capture_.semaphores.size();
        for (const StepRecorder* recorder : recorders_)
            for (const auto& row : recorder->rows())
                if (row.is_used) count += row.records;
        capture_.record_count = count;
    }

    const ProfilerSetup& setup_;
    const OperatorMap& map_;
    Recording& recording_;
    Capture& capture_;
    const size_t rows_;  // of a group
    const std::span<StepRecorder* const> recorders_;
};

// ---- what is not there --------------------------------------------------------------------------

struct Section {
    const char* field;
    unsigned level;
};

constexpr Section sections[] = {
    {profiling::field::port_waits, profiling::level_ports},
    {profiling::field::doorbells, profiling::level_ports},
    {profiling::field::hand_overs, profiling::level_ports},
    {profiling::field::operators, profiling::level_operators},
    {profiling::field::pcycles_of_operators, profiling::level_operators},
    {profiling::field::pmu_of_operators, profiling::level_pmu_per_operator},
};

std::string level_reason(const ProfilerSetup& setup, unsigned needed, unsigned level) {
    if (needed > setup.compiled_level)
        return "the model was compiled with --stats-level=" + std::to_string(setup.compiled_level) +
               "; compile it again with " + std::to_string(needed);
    if (needed >= profiling::level_operators && !has_operators(setup))
        return "the model has no operator descriptor; compile it again with --stats-level=" +
               std::to_string(needed);
    return "recorded from level " + std::to_string(needed) + ", captured at level " +
           std::to_string(level);
}

// What differs between captures of a level.
enum Circumstance : unsigned { in_turns = 1, never_released = 2, circumstances = 4 };

unsigned circumstances_of(const Recording& recording) {
    const bool released = recording.host[Recording::released] != profiling::not_captured;
    return (recording.turns > 1 ? in_turns : 0U) | (released ? 0U : never_released);
}

std::vector<profiling::NotCaptured> missing_at(const ProfilerSetup& setup, const OperatorMap& map,
                                               unsigned level, unsigned circumstance) {
    std::vector<profiling::NotCaptured> missing;
    for (const Section& s : sections) {
        if (level < s.level) missing.push_back({s.field, level_reason(setup, s.level, level)});
    }
    namespace field = profiling::field;
    if (level >= profiling::level_ports && setup.partitions.size() < 2)
        missing.push_back({field::hand_overs, "the model has one partition"});
    if (setup.partitions.empty()) {
        missing.push_back({field::cpu_time, "the device reports none"});
        if (level >= profiling::level_ports)
            missing.push_back({field::output_wait, "the device reports no end of its operators"});
        if (level >= profiling::level_operators)
            missing.push_back({field::operators, "the device reports none"});
    }
    if (level >= profiling::level_operators && !map.unknown().empty())
        missing.push_back({field::unlisted_operators, map.unknown()});
    if (circumstance & in_turns)
        missing.push_back({field::later_frames,
                           "the batch went through the program in groups of frames; operators and "
                           "hand-overs are those of the first"});
    if (circumstance & never_released)
        missing.push_back({field::released, "nobody waited for the job"});
    missing.push_back({field::frames, "no frame key was passed"});
    return missing;
}

}  // namespace

bool has_operators(const ProfilerSetup& setup) {
    const auto* const d = setup.descriptor.get();
    return d && !d->cores.empty() &&
           std::ranges::any_of(d->cores[0].groups, [](const auto& g) { return !g.ops.empty(); });
}

unsigned level_limit(const ProfilerSetup& setup) {
    const unsigned level = setup.compiled_level;
    if (level < profiling::level_operators || has_operators(setup)) return level;
    return profiling::level_ports;
}

void fill_capture(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording) {
    Filler(setup, map, recording).fill();
    const unsigned circumstance = circumstances_of(recording);
    const unsigned kind = recording.level * circumstances + circumstance;
    if (recording.missing_kind == kind) return;
    recording.capture.missing = missing_at(setup, map, recording.level, circumstance);
    recording.missing_kind = kind;
}

}  // namespace vartml::runtime
