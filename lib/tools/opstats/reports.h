// SPDX-License-Identifier: Apache-2.0
// The reports of a run: a summary of each raw buffer and one trace of all, under the names that
// `vartml run --profiling-type` gives them.
#pragma once
#include <functional>
#include <span>
#include <string>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct RunReports {
    std::span<const std::string> buffers;  // paths of raw buffers, in the order of the trace
    const Descriptor& descriptor;
    std::string out_dir;
    // Gets each path before it is written.
    std::function<void(const std::string& path)> announce;
    uint64_t ucycle_hz = default_ucycle_hz;  // of the summaries
};

class BufferFile;

// Where the summary of a buffer goes: the slices of an inference have the same path.
std::string run_summary_path(const RunReports& reports, const BufferFile& buffer);
// "aic-profiling-program-<P>-activation-<A>-inf-<I>.txt" of each buffer, with a note on the stages
// of the job on the host. Errors: io; those of reading a buffer.
Result<void> write_run_summaries(const RunReports& reports);
// "aic-profiling-program-<P>-trace.json". Errors as above.
Result<void> write_run_trace(const RunReports& reports, const TraceOptions& options = {});

}  // namespace vartml::profiling
