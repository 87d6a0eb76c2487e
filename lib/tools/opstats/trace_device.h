// SPDX-License-Identifier: Apache-2.0
// The lanes of one device in a trace: executions, operators, barriers, waits.
#pragma once
#include <cstdint>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/trace_file.h"

namespace vartml::profiling {

// Numbers that are unique in a trace.
struct TraceIds {
    uint64_t next_job = 0;
    // Of async pairs; above those of a host trace that counts from 0.
    uint64_t next_pair = uint64_t{1} << 52;
};

// A slice that the arrow of a frame may touch.
struct ArrowPoint {
    uint64_t ns = 0;
    Track track;
};

struct DeviceTrace {
    const TraceSource& source;
    const TraceOptions& options;
    TraceFile& out;
    TraceLanes& lanes;
    TraceIds& ids;
    std::vector<ArrowPoint> executions = {};  // the result
};

// Cores of the buffer that are selected.
std::vector<uint16_t> selected_cores(const TraceSource& source, const TraceOptions& options);

Result<void> write_device(DeviceTrace& trace);

}  // namespace vartml::profiling
