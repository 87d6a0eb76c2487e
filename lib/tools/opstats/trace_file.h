// SPDX-License-Identifier: Apache-2.0
// Writes events of the Chrome trace format, one after another, to a file that gets its name when it
// is complete.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "lib/base/json.h"
#include "lib/trace/part_file.h"

namespace vartml::profiling {

void append_number(std::string& out, uint64_t value);
// Never in exponent form, which some readers take for text.
void append_fixed(std::string& out, double value, int decimals);

// The members of a JSON object, one after another.
class JsonMembers {
public:
    explicit JsonMembers(std::string& out) : out_(out) {}
    // The member's name; its value is what is appended next.
    std::string& key(std::string_view name);
    void text(std::string_view name, std::string_view value) { append_quoted(key(name), value); }
    void number(std::string_view name, uint64_t value) { append_number(key(name), value); }
    void fixed(std::string_view name, double value, int decimals) {
        append_fixed(key(name), value, decimals);
    }

private:
    std::string& out_;
    bool first_ = true;
};

// Process and thread of an event; both are unique in the file.
struct Track {
    uint64_t pid = 0, tid = 0;
    bool operator==(const Track&) const = default;
};

struct FileEvent {
    char phase = 'X';
    std::string_view name, category = {};
    Track track = {};
    uint64_t start_ns = 0;
    std::optional<uint64_t> duration_ns = {};  // of an X, at least 1
    std::optional<uint64_t> id = {};
    std::string_view args = {};  // members of the object, without its braces
};

class TraceFile {
public:
    // `other_data`: members of the object of that name.
    static Result<TraceFile> create(const std::string& path, std::string_view other_data);
    void add(const FileEvent& event);
    // A whole event, as JSON.
    void add_json(std::string_view event);
    // The first name of a process counts.
    void name_process(uint64_t pid, std::string_view name);
    void name_thread(const Track& track, std::string_view name, uint64_t sort_index);
    Result<void> commit();

private:
    explicit TraceFile(PartFile file) : file_(std::move(file)) {}
    void metadata(const Track& track, std::string_view name, std::string_view args);

    PartFile file_;
    std::set<uint64_t> named_processes_;
    bool is_first_ = true;
    std::string event_;  // reused
};

// Where slices of a trace lie: numbers and names of processes and lanes, and overflow lanes for
// slices that would cross others. The buffers of a trace share their lanes.

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
