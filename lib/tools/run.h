// SPDX-License-Identifier: Apache-2.0
// The parts of `vartml run`: its command line, tensors, measurement and files of profiles.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_npu_tensor.hpp>
#include <vart/vart_runner_factory.hpp>

#include "lib/tools/opstats/collector.h"
#include "lib/tools/run_report.h"
#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

namespace vartml::tools {

// Files that profiling writes.
enum class ProfileType : uint8_t { stats, trace, latency, raw_device_stats };
inline constexpr size_t profile_type_count = 4;

struct ProfileOptions {
    std::array<bool, profile_type_count> types{};
    std::string out_dir = ".";
    uint64_t num_samples = 1, start_iteration = 0, start_delay_ms = 0, duration_ms = 0;
    unsigned every = 1;             // inferences per profiled one
    std::optional<unsigned> level;  // else the compiled one
    bool overhead = false;
    std::optional<double> overhead_limit;

    bool wants(ProfileType type) const { return types[static_cast<size_t>(type)]; }
    bool wants_files() const;
    // Whether inferences are captured: the figures of the console need no file.
    bool is_on() const { return wants_files() || level; }
};

struct RunOptions {
    std::string model;
    std::vector<std::string> input_files;  // NAME=FILE
    std::string inputs_dir, expect_dir, save_dir, json_file;
    std::optional<double> tolerance;
    std::string numerics = "auto", view = "auto", device;
    unsigned warmup = 5, iterations = 40, in_flight = 1, threads = 0, activations = 1;
    double seconds = 0;
    bool steps = false;
    ProfileOptions profile;
    // Of `view`, once the model is known.
    vart::TensorType input_view = vart::TensorType::HW, output_view = vart::TensorType::HW;
};

// Parses and checks what can be checked without the model; the folder of profiles is one of it.
// A value: the exit status of a program that is done, with or without help or a sentence.
std::optional<int> parse_run_options(int argc, const char* const* argv, RunOptions& options);

// Tensors of `vartml run`: inputs from files or pseudo-random, outputs compared with files.

using TensorBatch = std::vector<std::vector<vart::NpuTensor>>;

// Of one job; by frame of the batch.
struct RunBuffers {
    TensorBatch inputs, outputs;
};

// The file for each input that has one: --inputs, then --input.
Result<std::map<std::string, std::string>> input_files(const RunOptions& o,
                                                       const vart::Runner& runner);

// That --save-outputs and --json write over none of the files that are read: those of inputs, and
// the expected outputs. Errors: invalid_argument naming the option.
Result<void> check_written(const RunOptions& o, const vart::Runner& runner,
                           const std::map<std::string, std::string>& inputs);

// A whole batch with the same data in each frame: of the files, else pseudo-random and the same
// each time.
Result<RunBuffers> make_buffers(const RunOptions& o, const vart::Runner& runner,
                                const std::map<std::string, std::string>& files);

// Prints a line per output of --expect; whether all are as expected.
Result<bool> check_outputs(const RunOptions& o, const std::string& path, vart::Runner& runner,
                           TensorBatch& outputs);

// Writes each output to <--save-outputs>/output_<i>.npy, as --expect reads them, and prints a line
// per output of the compiled model at `path`. Makes the folder where it is missing. Errors: io.
Result<void> save_outputs(const RunOptions& o, const std::string& path, const vart::Runner& runner,
                          TensorBatch& outputs);

// The measurement of `vartml run`: jobs submitted and waited for, on each activation.

struct Activation {
    std::shared_ptr<profiling::Collector> collector;  // nullptr: nothing is captured
    std::shared_ptr<vart::Runner> runner;
    std::vector<RunBuffers> buffers;  // one per job in flight
    uint64_t submitted = 0;           // so far: the index of the next inference
};

struct JobTimes {
    std::vector<double> round_trip_us;
    unsigned most_in_flight = 0;
};

// Keeps as many jobs submitted as there are buffers until `is_enough`, which gets their number;
// then waits for all.
Result<JobTimes> run_jobs(Activation& activation, const std::function<bool(uint64_t)>& is_enough);

// The runs before any measurement.
Result<void> warm_up(const RunOptions& o, Activation& activation);

// Warms up and measures, all activations at once. Profiling, and with it what counts, begins when
// start iteration and start delay are over.
Result<RunMeasurement> measure(const RunOptions& o, std::vector<Activation>& activations);

// From the MODEL of `vartml run` to runners of it.

// The compiled model's path: `model` itself, or what an ONNX file was compiled to, with these
// options of `vartml compile`.
Result<std::string> compiled_model(const std::string& model,
                                   const std::vector<std::string>& arguments = {});

// What to call a model of that path: its file's name without ending; "model" says nothing, so such
// a file is called like its folder.
std::string title_of(const std::string& model);

// Fills the views of `o` that --view leaves to the model: HW where every tensor of that direction
// has it.
Result<void> choose_views(RunOptions& o, const std::string& path);

// `sink` gets the captures of this runner; nullptr: there are none.
Result<std::shared_ptr<vart::Runner>> open_runner(
    const std::string& path, const RunOptions& o,
    const std::shared_ptr<profiling::CaptureSink>& sink);

template <typename T>
T property(const vart::Runner& runner, const char* key) {
    return std::any_cast<T>(runner.get_property(key));
}

// Why the last job failed.
Error run_error(const vart::Runner& runner);

// `vartml run --profiling-overhead`: blocks of jobs with and without recording, in turn.

// Of the median round trip. The activation's collector decides the level, which is `level`.
Result<Overhead> measure_overhead(const RunOptions& o, Activation& activation, unsigned level);

// What `vartml run` records of inferences, and the files that it makes of them.

// What the model says of recording it.
struct ProfileModel {
    std::string path;
    profiling::Descriptor descriptor;
    std::array<uint8_t, 16> descriptor_id{};
    unsigned level = 0;  // at which samples are recorded
};

// Errors: those of reading a model; invalid_argument for a level that it was not compiled for.
Result<ProfileModel> open_profile_model(const std::string& path, const ProfileOptions& options);

// The collector of one activation.
std::shared_ptr<profiling::Collector> make_collector(const ProfileModel& model,
                                                     const ProfileOptions& options,
                                                     unsigned activation);

// Waits for the captures of all activations, writes the files that are asked for, and fills what
// `m` says of the device: figures, reasons and verdict. Errors: io; not_found when nothing was
// recorded.
Result<void> finish_profile(const ProfileModel& model, const RunOptions& o,
                            std::vector<Activation>& activations, RunMeasurement& m);

// The same, but as raw buffers in `folder` and without a word; their paths. Errors: the same.
Result<std::vector<std::string>> write_raw_buffers(const ProfileModel& model, const RunOptions& o,
                                                   std::vector<Activation>& activations,
                                                   RunMeasurement& m, const std::string& folder);

// Why a run without recording has no figures of the device, and which option gives them.
void explain_no_profile(const vart::Runner& runner, RunMeasurement& m);

}  // namespace vartml::tools
