// SPDX-License-Identifier: Apache-2.0
// Where slices of a trace lie: numbers and names of processes and lanes, and overflow lanes for
// slices that would cross others. The buffers of a trace share their lanes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/profiling/trace/trace_file.h"

namespace vartml::profiling {

// Numbers above those of Linux, whose ids stay below 2^22: a file may hold both.
inline constexpr uint64_t first_device_pid = uint64_t{1} << 30;
inline constexpr uint64_t first_job_tid = uint64_t{1} << 22;
inline constexpr uint32_t max_devices = 192, max_cores = 4095, max_lanes = 4096;

inline uint64_t device_pid(uint32_t device) {
    return first_device_pid + (uint64_t{device} << 24);
}

class LanePool;

// A lane with its overflow lanes `<name>~2`, `~3`, …: slices on one of them nest or are disjoint.
class NestingLane {
public:
    NestingLane(LanePool& pool, Track lane, std::string name);
    const Track& track() const { return levels_[0].track; }
    // The track of a slice; slices come in the order of their starts. A slice that comes too late
    // is treated as one that crosses. Absent: there are no lanes left.
    std::optional<Track> place(uint64_t start_ns, uint64_t end_ns);

private:
    struct Level {
        Track track;
        uint64_t latest_start = 0;
        std::vector<std::pair<uint64_t, uint64_t>> open;  // enclosing slices, outermost first
    };
    static bool fits(Level& level, uint64_t start_ns, uint64_t end_ns);

    LanePool* pool_;
    std::string name_;
    std::vector<Level> levels_;
};

// Lanes of one core, or of the host: gives numbers, names the lanes in the file.
class LanePool {
public:
    // Lanes are numbered from `first`; `order` is the place of the first among those of its
    // process.
    LanePool(TraceFile& file, Track first, uint64_t order)
        : file_(&file), first_(first), order_(order) {}
    LanePool(const LanePool&) = delete;
    // Numbers below are given to those that ask for them.
    void reserve(uint32_t count) { next_ = std::max(next_, count); }
    // The lane of this name, a new one with the number asked for where that is free. nullptr where
    // there are as many lanes as there are numbers.
    NestingLane* lane(const std::string& name, std::optional<uint32_t> number = {});

private:
    friend class NestingLane;
    std::optional<Track> create(const std::string& name, std::optional<uint32_t> number);
    TraceFile* file_;
    Track first_;
    uint64_t order_;
    uint32_t next_ = 1;
    std::set<uint32_t> taken_;
    std::map<std::string, NestingLane> lanes_;
};

// All lanes of a trace.
class TraceLanes {
public:
    explicit TraceLanes(TraceFile& file) : file_(&file) {}
    LanePool& of_core(uint32_t device, uint16_t core);
    LanePool& of_host(uint32_t pid);

private:
    TraceFile* file_;
    std::map<std::pair<uint64_t, uint16_t>, LanePool> pools_;  // by process and core
    uint64_t hosts_ = 0;
};

}  // namespace vartml::profiling
