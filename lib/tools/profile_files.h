// SPDX-License-Identifier: Apache-2.0
// Files of recorded inferences: raw buffers, summaries, a trace, a table of latencies.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/buffer/stats_buffer.h"
#include "lib/profiling/capture.h"
#include "lib/tools/run_options.h"

namespace vartml::tools {

inline constexpr uint32_t program_index = 0;  // in load order; `vartml run` loads one model

struct ProfileSamples {
    const profiling::Descriptor& descriptor;
    const ProfileOptions& options;
    profiling::BufferContext context;
    uint64_t realtime_offset_ns = 0;                // of CLOCK_REALTIME to CLOCK_MONOTONIC
    uint64_t requested = 0;                         // of all activations
    std::vector<profiling::Capture> captures = {};  // by activation and inference
};

// Prints each name before it writes the file. A file that cannot be written leaves nothing of
// itself. Errors: io.
Result<void> write_profile_files(const ProfileSamples& samples);

}  // namespace vartml::tools
