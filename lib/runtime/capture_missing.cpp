// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/capture_missing.h"

#include <algorithm>

namespace vartml::runtime {
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
