// SPDX-License-Identifier: Apache-2.0
// Turns raw stats buffers into summaries, traces, layer tables and pages.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/layers.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/descriptor.h"
#include "lib/trace/stats_buffer.h"

namespace vartml::tools {

// The raw stats buffers of a folder, in the order in which they are shown.

struct OpstatsFile {
    std::string path;
    profiling::BufferName name;
    std::string base;   // the network's name without "_slice<NN>"
    std::string slice;  // "slice00"; "" for an inference of one device
};

// Sorted by program, activation, inference and name. Errors: not_found with the naming scheme and
// how many files there are; io.
Result<std::vector<OpstatsFile>> find_opstats_files(const std::string& folder);

// "NAME_slice<NN>": a part of an inference on several devices.
void set_slice(OpstatsFile& file);

// What `vartml opstats` needs of a compiled model: its descriptor and its estimates.

struct OpstatsModel {
    std::string path;
    profiling::Descriptor descriptor;
    profiling::format::Id descriptor_id{};
    // Texts of the model's own estimate files, one per NPU partition; empty for a descriptor alone.
    std::vector<std::string> estimates;
};

// `path` is a compiled model in any container, a folder that holds exactly one, or an extracted
// opstatsdesc.bin. Errors: those of reading it; not_found for a model without descriptor.
Result<OpstatsModel> open_opstats_model(const std::string& path);

// From files, or for "auto" the model's own. A file that is not the model's has cycles of a clock
// that nobody knows.
Result<profiling::LayerEstimates> read_layer_estimates(const OpstatsModel& model,
                                                       const std::vector<std::string>& files,
                                                       std::vector<std::string>& warnings);

struct OpstatsRequest {
    std::string model, input_dir, output_dir = ".";
    bool summary = false, trace = false, layers = false, html = false, verbose = false;
    bool merge_devices = true;
    bool run_names = false;  // as `vartml run` names its reports, one trace of all buffers
    std::vector<std::string> estimates;  // files; empty or "auto": the model's own
    std::string infix = "qaic-opstats";
    profiling::TraceOptions trace_options;
};

// Prints what was written to standard output and what failed to standard error. The exit status.
int run_opstats(const OpstatsRequest& request);

}  // namespace vartml::tools
