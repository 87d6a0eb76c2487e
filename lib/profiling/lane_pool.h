// SPDX-License-Identifier: Apache-2.0
// Where slices of a trace lie: numbers and names of processes and lanes, and overflow lanes for
// slices that would cross others.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/profiling/trace_file.h"

namespace vartml::profiling {

// Numbers above those of Linux, whose ids stay below 2^22: a file may hold both.
inline constexpr uint64_t first_device_pid = uint64_t{1} << 30;
inline constexpr uint64_t first_job_tid = uint64_t{1} << 22;
inline constexpr uint32_t max_devices = 192, max_cores = 4095, max_lanes = 4096;

inline uint64_t device_pid(uint32_t device) {
    return first_device_pid + (uint64_t{device} << 24);
}
inline Track device_track(uint32_t device, uint16_t core, uint32_t lane) {
    return {device_pid(device), device_pid(device) + 1 + (uint64_t{core} << 12) + lane};
}

// Lanes of one core, or of the host: gives numbers, names the lanes in the file.
class LanePool {
public:
    // Lanes are numbered from `first`; `reserved` of them are given by lane_at alone. `order`:
    // place of the first among the lanes of its process.
    LanePool(TraceFile& file, Track first, uint32_t reserved, uint64_t order)
        : file_(&file), first_(first), next_(reserved), order_(order) {}
    // Lane `number` below `reserved`.
    Track lane_at(uint32_t number, const std::string& name);
    // Absent where the core has as many lanes as there are numbers.
    std::optional<Track> next(const std::string& name);

private:
    Track named(uint32_t number, const std::string& name);
    TraceFile* file_;
    Track first_;
    uint32_t next_;
    uint64_t order_;
};

// A lane with its overflow lanes `<name>~2`, `~3`, …: slices on one of them nest or are disjoint.
class NestingLane {
public:
    NestingLane(LanePool& pool, Track lane, std::string name);
    // The track of a slice; slices come in the order of their starts. A slice that comes too late
    // is treated as one that crosses. Absent: there are no lanes left.
    std::optional<Track> place(uint64_t start_ns, uint64_t end_ns);
    // Without overflow.
    Track track() const { return levels_[0].track; }

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

// Lanes of one core, or of one activation on the host, which its inferences share.
class SharedLanes {
public:
    explicit SharedLanes(LanePool pool) : pool_(pool) {}
    SharedLanes(const SharedLanes&) = delete;
    SharedLanes& operator=(const SharedLanes&) = delete;
    // The lane of that name; a new one gets the reserved `number`, else the next. nullptr: none is
    // left.
    NestingLane* lane(const std::string& name, std::optional<uint32_t> number = std::nullopt);

private:
    LanePool pool_;
    std::map<std::string, NestingLane> lanes_;
};

// All of a trace, by their first number.
class LaneBook {
public:
    SharedLanes& at(TraceFile& file, Track first, uint32_t reserved, uint64_t order);

private:
    std::map<uint64_t, SharedLanes> lanes_;
};

}  // namespace vartml::profiling
