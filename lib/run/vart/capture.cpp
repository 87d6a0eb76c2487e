// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/capture.h"

#include <algorithm>
#include <string_view>

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
        add_traffic();
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

    // Computed from the tensors; measured beside it where the recipe counts what misses the last
    // cache and the system lets it: a miss moves a line.
    void add_traffic() {
        if (!setup_.has_traffic) return;
        const auto core = static_cast<uint16_t>(recording_.core);
        capture_.traffic.push_back({.core = core,
                                    .read_bytes = setup_.traffic.read_bytes,
                                    .write_bytes = setup_.traffic.write_bytes});
        const profiling::MemoryTraffic measured{.core = core,
                                                .is_measured = true,
                                                .read_bytes = missed_bytes("LLC-load-misses"),
                                                .write_bytes = missed_bytes("LLC-store-misses")};
        if (measured.read_bytes != not_captured || measured.write_bytes != not_captured)
            capture_.traffic.push_back(measured);
    }

    uint64_t missed_bytes(std::string_view counter) const {
        constexpr uint64_t line_bytes = 64;
        const auto& events = capture_.pmu_events;
        const auto event = std::ranges::find(events, counter, &profiling::PmuEvent::name);
        if (event == events.end()) return not_captured;
        const auto at = static_cast<size_t>(event - events.begin());
        uint64_t lines = 0;
        for (const ThreadCapture& thread : capture_.threads) {
            const uint64_t count = thread.pmu.values[at];
            if (count == not_captured) return not_captured;
            lines += count;
        }
        return lines * line_bytes;
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
                add(thread.cpu_ns, rows[r].cpu_ns, is_first);
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

    // What is not known of a part is not known of the whole.
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
        // An index that another capture had may be another stream's now.
        for (profiling::StreamName& stream : capture_.streams)
            HostTrace::stream_id(stream.index, stream.id);
        for (const auto& frame : capture_.frames)
            if (std::ranges::find(capture_.streams, frame.stream_index,
                                  &profiling::StreamName::index) == capture_.streams.end()) {
                auto& added = capture_.streams.emplace_back();
                added.index = frame.stream_index;
                HostTrace::stream_id(added.index, added.id);
            }
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

namespace {

namespace field = profiling::field;
using profiling::Capture;
using profiling::not_captured;

struct Section {
    const char* field;
    unsigned level;
};

constexpr Section sections[] = {
    {field::port_waits, profiling::level_ports},
    {field::doorbells, profiling::level_ports},
    {field::hand_overs, profiling::level_ports},
    {field::operators, profiling::level_operators},
    {field::pcycles_of_operators, profiling::level_operators},
    {field::pmu_of_operators, profiling::level_pmu_per_operator},
};

std::string level_reason(const ProfilerSetup& setup, unsigned needed, unsigned level) {
    if (needed > setup.compiled_level)
        return "the model was compiled with --stats-level=" + std::to_string(setup.compiled_level) +
               "; compile it again with " + std::to_string(needed);
    if (needed >= profiling::level_operators && !has_operators(setup))
        return (setup.descriptor_fault.empty() ? "the model has no operator descriptor"
                                               : setup.descriptor_fault) +
               "; compile it again with --stats-level=" + std::to_string(needed);
    return "recorded from level " + std::to_string(needed) + ", captured at level " +
           std::to_string(level);
}

// What differs between captures of a level.
struct Circumstances {
    explicit Circumstances(const Recording& recording) {
        const Capture& capture = recording.capture;
        in_turns = recording.turns > 1;
        is_released = recording.host[Recording::released] != not_captured;
        has_frames = !capture.frames.empty();
        const auto recorders = recording.recorders();
        if (recorders.empty() || !recorders[0]->rows()[0].counters) return;
        const auto& row = recorders[0]->rows()[0];
        has_cycles = row.cycles != not_captured;
        cycles_status = row.counters->cycles_status();
        is_multiplexed = row.pmu.running_ns < row.pmu.enabled_ns;
    }
    uint64_t key(const Recording& recording) const {
        uint64_t key = 1 + recording.level;
        const auto add = [&key](uint64_t value) { key = key * 1031 + value; };
        add(in_turns + 2U * is_released + 4U * has_frames + 8U * has_cycles + 16U * is_multiplexed);
        add(static_cast<uint64_t>(cycles_status));
        for (const auto& event : recording.capture.pmu_events)
            add(static_cast<uint64_t>(event.status));
        return key;
    }
    bool in_turns = false, is_released = true, has_frames = false;
    bool has_cycles = false, is_multiplexed = false;
    int cycles_status = 0;
};

constexpr const char* multiplexed =
    "multiplexed: other users of the counters took part of the time";

class Missing {
public:
    Missing(const ProfilerSetup& setup, const OperatorMap& map, const Recording& recording,
            const Circumstances& now)
        : setup_(setup),
          map_(map),
          capture_(recording.capture),
          now_(now),
          level_(recording.level) {}

    std::vector<profiling::NotCaptured> list() {
        for (const Section& s : sections)
            if (level_ < s.level) add(s.field, level_reason(setup_, s.level, level_));
        add_device();
        add_counters();
        if (!setup_.has_traffic)
            add(field::ddr, setup_.descriptor ? "the model was compiled without --ddr-stats"
                                              : "the model has no descriptor");
        if (now_.in_turns)
            add(field::later_frames,
                "the batch went through the program in groups of frames; operators and "
                "hand-overs are those of the first");
        if (!now_.is_released) add(field::released, "nobody waited for the job");
        if (!now_.has_frames) add(field::frames, "the application gave no frame keys");
        return std::move(missing_);
    }

private:
    bool at(unsigned level) const { return level_ >= level; }
    void add(std::string name, std::string reason) {
        missing_.push_back({std::move(name), std::move(reason)});
    }

    void add_device() {
        if (at(profiling::level_ports) && setup_.partitions.size() < 2)
            add(field::hand_overs, "the model has one partition");
        if (at(profiling::level_operators) && !map_.unknown().empty())
            add(field::unlisted_operators, map_.unknown());
        if (!setup_.partitions.empty()) return;
        const std::string none = "the device reports none";
        add(field::cpu_time, none);
        if (at(profiling::level_ports)) add(field::output_wait, none);
        if (at(profiling::level_operators)) add(field::operators, none);
    }

    void add_counters() {
        if (!now_.has_cycles) {
            const std::string reason = setup_.partitions.empty() ? "the device reports none"
                                       : now_.cycles_status == 0
                                           ? multiplexed
                                           : profiling::pmu_reason(now_.cycles_status);
            add(field::pcycles, reason);
            if (at(profiling::level_operators)) add(field::pcycles_of_operators, reason);
        }
        if (!setup_.has_pmu()) {
            add(field::pmu, profiling::no_pmu_reason(setup_.pmu));
            if (at(profiling::level_pmu_per_operator))
                add(field::pmu_of_operators, profiling::no_pmu_reason(setup_.pmu));
            return;
        }
        for (const auto& event : capture_.pmu_events)
            if (event.status != 0) add(event.name, profiling::pmu_reason(event.status));
        if (now_.is_multiplexed) add(field::pmu, multiplexed);
    }

    const ProfilerSetup& setup_;
    const OperatorMap& map_;
    const Capture& capture_;
    const Circumstances& now_;
    const unsigned level_;
    std::vector<profiling::NotCaptured> missing_;
};

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

void fill_missing(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording) {
    const Circumstances now(recording);
    const uint64_t key = now.key(recording);
    if (recording.missing_kind == key) return;
    recording.capture.missing = Missing(setup, map, recording, now).list();
    recording.missing_kind = key;
}

}  // namespace vartml::runtime
