// SPDX-License-Identifier: Apache-2.0
// Writes raw stats buffers as a trace for Perfetto and chrome://tracing. Nothing whose size grows
// with the buffers, the host trace or the output is kept in memory.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct TraceOptions {
    std::vector<unsigned> cores = {}, devices = {};  // empty: all
    bool merge_thread_groups = true;  // one lane per thread group, else one per thread
    bool flow_events = false;         // dependencies between operators
    bool barrier_events = false;      // a lane of barriers per thread
    uint64_t ucycle_hz = 19'200'000;
    std::string host_trace = {};                      // file to merge; "": none
    std::optional<double> host_clock_offset_us = {};  // only for a host trace that names no clock
};

// One buffer: of an inference, or with several devices of its part on one. Buffers of one device
// come in the order of their inferences.
struct TraceSource {
    BufferFile* buffer = nullptr;
    const Descriptor* descriptor = nullptr;
    std::string label;  // "", or "slice00" where the inference ran on several devices
};

// Errors: not_found when none of the cores and devices asked for is there; those of
// host_clock_shift; bad_model for a host trace or a buffer that cannot be shown; io.
Result<void> write_trace(std::span<const TraceSource> sources, const TraceOptions& options,
                         const std::string& path);

}  // namespace vartml::profiling
