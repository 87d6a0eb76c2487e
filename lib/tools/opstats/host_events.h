// SPDX-License-Identifier: Apache-2.0
// Reads the events of a host trace one after another: a file of any size takes the same memory.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/trace_file.h"

namespace vartml::profiling {

// What the event `vartml_capture` says; empty where it does not.
struct HostClock {
    std::string clock, boot_id;
};

struct HostEvent {
    char phase = 0;
    std::string name, category;
    uint64_t pid = 0, tid = 0;
    std::string id;  // as JSON
    std::optional<int64_t> start_ns;
    uint64_t duration_ns = 0;
    std::string job_key;              // "P/A/I"
    std::vector<std::string> frames;  // "<stream>:<number>"
    std::optional<HostClock> clock;   // of vartml_capture
    std::string members;              // of the event as JSON, without ts and dur

    // The event with its times moved.
    std::string json(int64_t offset_ns) const;
};

// Calls `fn` for each event until it returns false. Takes the array and the object form, and both
// cut off at any place. Errors: not_found, io; bad_model for what is no trace.
Result<void> for_each_host_event(const std::string& path,
                                 const std::function<bool(const HostEvent&)>& fn);

// Takes from a host trace what belongs to the inference of a trace.

// Names of the arrows that follow a frame, also in a host trace.
inline constexpr const char *frame_category = "frame", *frame_arrow_name = "frame";

// The number of a frame in the arrows: stream index · 2^40 + frame number.
std::string frame_text(uint64_t flow_id);

struct FrameEnds {
    bool has_start = false, has_finish = false;  // of the arrow, in the host trace
};

// What a trace shows of an inference.
struct MergedJobs {
    uint64_t begin_ns = 0, end_ns = 0;
    std::set<std::string> job_keys;          // their slices come from buffers, not the host trace
    std::map<uint64_t, FrameEnds> flow_ids;  // of its frames
};

// What moves the times of a host trace to CLOCK_MONOTONIC. Errors: unsupported for another clock
// and another boot; invalid_argument for a trace without clock and without offset, and for an
// offset where the clock is known.
Result<int64_t> host_clock_shift(const std::string& path, const std::array<uint8_t, 16>& boot_id,
                                 std::optional<double> offset_us);

// Writes metadata, what overlaps the inference and what has the key of one of its frames; notes in
// `jobs` which arrows are there.
Result<void> merge_host_trace(const std::string& path, int64_t shift_ns, MergedJobs& jobs,
                              TraceFile& out);

}  // namespace vartml::profiling
