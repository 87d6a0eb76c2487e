// SPDX-License-Identifier: Apache-2.0
// Turns raw stats buffers into summaries, traces, layer tables and pages.
#pragma once
#include <string>
#include <vector>

#include "lib/profiling/summary/summary_text.h"
#include "lib/profiling/trace/buffer_trace.h"
#include "lib/tools/opstats_files.h"
#include "lib/tools/opstats_model.h"

namespace vartml::tools {

struct OpstatsRequest {
    std::string model, input_dir, output_dir = ".";
    bool summary = false, trace = false, layers = false, html = false, verbose = false;
    bool merge_devices = true;
    std::vector<std::string> estimates;  // files; empty or "auto": the model's own
    std::string infix = "qaic-opstats";
    profiling::TraceOptions trace_options;
};

// Prints what was written to standard output and what failed to standard error. The exit status.
int run_opstats(const OpstatsRequest& request);

}  // namespace vartml::tools
