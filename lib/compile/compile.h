// SPDX-License-Identifier: Apache-2.0
// From an ONNX file to a compiled model on disk: joins importer, passes, target and writer, and
// keeps the cache.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <vartml/log.h>
#include <vartml/postprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/compile/embed_preprocess.h"
#include "lib/compile/int8_model.h"
#include "lib/compile/stats_descriptor.h"
#include "lib/model/compiled_model.h"

namespace vartml::compiler {

struct CompileRequest {
    std::string model;  // path as the user gave it; it appears in the summary

    // What is compiled. All of it decides whether a result is up to date.
    std::string device = "softnpu";
    int optimize_level = 2;
    bool cpu_partition = true;          // false: standard compilation, the NPU alone
    unsigned batch_size = 1;            // desired; the largest up to it that fits is taken
    unsigned dp_size = 1, tp_size = 1;  // times the columns of one program; results are the same
    double threshold_gops_percent = 20;
    uint64_t device_memory_limit = 0;  // bytes for one NPU partition; 0 = the device's
    // Bytes for one CPU partition, and for one tensor of it; 0 = those of lib/graph/dynamic.h.
    uint64_t cpu_memory_limit = 0;
    std::map<std::string, std::vector<int64_t>> input_shapes;
    std::map<std::string, Layout> layouts;
    std::vector<EmbeddedPreprocess> embed;
    QuantiseRequest quantise;  // nothing where `measure` is empty
    bool onnxruntime = true;   // operators that are none of ours run in ONNX Runtime
    bool npu = true;           // false: every operator in a CPU partition
    std::string tessellate;    // "", "default" or a JSON file: HW layouts of inputs and outputs
    bool quantised_inputs = false, quantised_outputs = false;  // codes at quantised edges
    bool convert_floats = true;                                // false: --numerics f32
    std::string decoder, labels;
    std::vector<std::string> read_files;  // what else it is made from, which is never replaced
    ModelInfo::Input pixels;    // mean, scale and channels of the picture, where they are said
    std::string name;           // what the model is called; "" = its default cache key
    StatsRequest stats;         // what runs of the result can be measured by
    bool perf_metrics = false;  // adds perf-metrics.json

    // Where it goes: a directory `cache_dir`/`cache_key`, or `output`: a single file if it ends in
    // .rai or .tar.gz, else a directory; or `archive`.
    std::string cache_dir = "vartml-cache";
    std::string cache_key;  // "" = name of the model
    std::string output;     // "" = the cache
    std::string archive;    // one .rai of just this name, instead of either; "" = none
    // Of "dir", "rai", "tar"; empty = dir, and rai in the cache with CPU partitions.
    std::vector<std::string> formats;
    bool require_full_offload = false;
    bool keep_outputs = false;  // also <partition>/0/debug: the graph before and after the passes
    bool force = false;
    bool perf_warnings = false;

    std::function<void(int percent, const char* stage)> progress;
    std::function<void(LogLevel, const std::string&)> message;
};

// Nothing of the kind is left behind after an error: the place holds the old or the new result.
struct CompileOutcome {
    bool up_to_date = false;
    // --require-full-offload was asked for and is not met: the sentence; nothing was written.
    std::string not_offloaded;
    artifact::Count npu, cpu;
    std::string onnxruntime;  // what of the CPU's ONNX Runtime runs: "DFT, Loop x2"
    uint32_t desired_batch_size = 1, actual_batch_size = 1;
    std::string model_path;                  // what to run
    std::string summary_path;                // "" where the summary is only inside a single file
    std::string perf_metrics;                // lines, where they were asked for
    std::vector<std::string> perf_warnings;  // the same
};

// Errors: invalid_argument for the request and for side files, unsupported and bad_model for the
// model, not_found, io, out_of_memory, internal.
Result<CompileOutcome> compile(const CompileRequest& request);

// The compiled model in memory; `compile` without cache and files. `log` gets a line per step with
// its time, `debug` the files of keep_outputs.
Result<artifact::CompiledModel> compile_in_memory(const CompileRequest& request,
                                                  std::string* not_offloaded,
                                                  std::vector<std::string>* log,
                                                  std::vector<artifact::File>* debug = nullptr);

// What the model is called: --name, else its default cache key.
std::string model_name(const CompileRequest& request);

// The default cache key of a model: its file name without extension, characters outside
// [A-Za-z0-9._-] replaced by '_'.
std::string default_cache_key(const std::string& model);

}  // namespace vartml::compiler
