// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/capture_fill.h"

#include <algorithm>

#include "lib/runtime/capture_missing.h"

namespace vartml::runtime {
namespace {

using device::StepRecorder;
using profiling::Capture;
using profiling::not_captured;
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
        add_frames();
        if (setup_.has_traffic)
            capture_.traffic.push_back({.core = static_cast<uint16_t>(recording_.core),
                                        .read_bytes = setup_.traffic.read_bytes,
                                        .write_bytes = setup_.traffic.write_bytes});
        count_records();
    }

private:
    void fill_head() {
        capture_.program_index = setup_.numbers.program;
        capture_.activation_index = setup_.numbers.activation;
        capture_.inference_index = recording_.index;
        capture_.captured_level = static_cast<uint16_t>(recording_.level);
        capture_.core_count = setup_.threads;
        capture_.is_first_of_core = recording_.is_first_of_core;
        const auto& host = recording_.host;
        capture_.begin_ns = host[Recording::entered];
        capture_.end_ns = host[Recording::released] != not_captured
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
        capture_.pmu_events.clear();
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
                const bool is_first = recording_.thread_at[partition.group * rows_ + r] < 0;
                ThreadCapture& thread = thread_of(partition.group, r, rows[r]);
                thread.start = std::min(thread.start, rows[r].start);
                // A helper may leave after the program was complete.
                thread.end = std::max(thread.end, std::min(rows[r].end, rows[0].end));
                thread.cpu_ns += rows[r].cpu_ns;
                add_counts(thread, rows[r], is_first);
                // The task's thread loads, helpers do not.
                thread.activate_ns =
                    r == 0 ? setup_.activate_ns[setup_.partitions[p].is_cpu ? 1 : 0] : 0;
                if (thread.ops.empty()) continue;
                for (size_t s = 0; s < partition.op_of_step.size(); ++s)
                    merge(thread, partition.op_of_step[s], rows[r], s);
            }
        }
    }

    // A counter that is refused for a part is refused for the whole.
    static void add(uint64_t& sum, uint64_t value, bool is_first) {
        if (is_first)
            sum = value;
        else
            sum = sum == not_captured || value == not_captured ? not_captured : sum + value;
    }

    void add_counts(ThreadCapture& thread, const StepRecorder::Row& row, bool is_first) {
        add(thread.pcycles, row.cycles, is_first);
        if (!setup_.has_pmu() || !row.counters) return;
        thread.pmu.enabled_ns += row.pmu.enabled_ns;
        thread.pmu.running_ns += row.pmu.running_ns;
        for (size_t i = 0; i < thread.pmu.values.size(); ++i)
            add(thread.pmu.values[i], row.pmu.values[i], is_first);
        if (capture_.pmu_events.empty()) capture_.pmu_events = row.counters->events();
    }

    static void merge(ThreadCapture& thread, int32_t op, const StepRecorder::Row& row,
                      size_t step) {
        const Stamp& from = row.steps[step];
        if (op < 0 || from.start == 0) return;
        const auto at = static_cast<size_t>(op);
        Stamp& stamp = thread.ops[at];
        const bool is_first = stamp.start == 0;
        stamp.start = is_first ? from.start : std::min(stamp.start, from.start);
        stamp.end = std::max(stamp.end, from.end);
        const size_t num_ops = thread.ops.size();
        if (!row.cycles_of_steps.empty() && row.cycles != not_captured) {
            if (thread.pcycles_of_ops.empty()) thread.pcycles_of_ops.assign(num_ops, not_captured);
            add(thread.pcycles_of_ops[at], row.cycles_of_steps[step], is_first);
        }
        if (row.pmu_of_steps.empty()) return;
        if (thread.pmu_of_ops.empty()) {
            StepRecorder::PmuValues none;
            none.fill(not_captured);
            thread.pmu_of_ops.assign(num_ops, none);
        }
        for (size_t i = 0; i < profiling::max_pmu_events; ++i)
            add(thread.pmu_of_ops[at][i], row.pmu_of_steps[step][i], is_first);
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

    void add_frames() {
        capture_.frames.clear();
        for (size_t slot = 0; slot < recording_.frame_keys.size(); ++slot) {
            const TraceFrame& frame = recording_.frame_keys[slot];
            if (!frame.key) continue;
            const bool is_counted = frame.frame_seq != TraceFrame::no_seq;
            capture_.frames.push_back(
                {.batch_slot = static_cast<uint32_t>(slot),
                 .stream_index = frame.key.stream(),
                 .frame_number = is_counted ? frame.frame_seq : frame.key.number(),
                 .pts_ns = frame.pts_ns,
                 .flow_id = frame.key.flow_id});
        }
        const auto is_of_none = [this](const profiling::StreamName& stream) {
            return std::ranges::find(capture_.frames, stream.index,
                                     &profiling::FrameRecord::stream_index) ==
                   capture_.frames.end();
        };
        std::erase_if(capture_.streams, is_of_none);
        for (const auto& frame : capture_.frames)
            if (std::ranges::find(capture_.streams, frame.stream_index,
                                  &profiling::StreamName::index) == capture_.streams.end())
                capture_.streams.push_back(
                    {frame.stream_index, HostTrace::stream_id(frame.stream_index)});
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

}  // namespace

void fill_capture(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording) {
    Filler(setup, map, recording).fill();
    fill_missing(setup, map, recording);
}

}  // namespace vartml::runtime
