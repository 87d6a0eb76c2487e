// SPDX-License-Identifier: Apache-2.0
// Counters of the processor for the calling thread, through perf_event and getrusage. What the
// system refuses keeps its place with the reason; nothing here fails a run.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

struct perf_event_attr;

namespace vartml::profiling {

// Of PmuEvent::perf_type: figures of getrusage(RUSAGE_THREAD); config 0 context switches, 1 page
// faults. Under a filter for user mode perf_event counts them as a false 0.
inline constexpr uint32_t rusage_type = 65536;

// The counters of a recipe, or of raw events; empty for HmxMacs and for an empty choice.
std::vector<PmuEvent> pmu_events_of(const Pmu& pmu);
// Why there are none: "" where there are.
std::string no_pmu_reason(const Pmu& pmu);
// A sentence for PmuEvent::status.
std::string pmu_reason(int status);

// Of the calling thread, for this program alone; errno as perf_event_open sets it.
int open_counter(perf_event_attr& attributes, int group);

// Counters of one thread from its construction on. Thread-safety: all members on that thread.
class PmuCounters {
public:
    explicit PmuCounters(const Pmu& pmu);
    PmuCounters(const PmuCounters&) = delete;
    ~PmuCounters();

    // Those of the calling thread, which keeps them until it ends: opening takes long.
    static PmuCounters& of_this_thread(const Pmu& pmu);

    const std::vector<PmuEvent>& events() const { return events_; }  // with status
    int cycles_status() const { return cycles_status_; }
    // Cycles in user mode so far; not_captured where refused or multiplexed.
    uint64_t cycles() const;
    bool has_cycles() const { return cycles_ >= 0; }
    // The events so far; not_captured where refused.
    PmuCount read() const;
    // What was counted since; not_captured where the group was not on the processor all the time.
    PmuCount since(const PmuCount& before) const;

private:
    int open(uint32_t type, uint64_t config, int group, int& status) const;

    const Pmu pmu_;
    std::vector<PmuEvent> events_;
    std::vector<int> descriptors_;  // by event; -1: refused, or of getrusage
    int leader_ = -1;               // of the group
    int cycles_ = -1, cycles_status_ = 0;
};

}  // namespace vartml::profiling
