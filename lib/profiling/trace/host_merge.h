// SPDX-License-Identifier: Apache-2.0
// Takes from a host trace what belongs to the inference of a trace.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <vartml/result.h>

#include "lib/profiling/trace/trace_file.h"

namespace vartml::profiling {

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
