// SPDX-License-Identifier: Apache-2.0
// The measurement of `vartml run`: jobs submitted and waited for, on each activation.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/tools/opstats/collector.h"
#include "lib/tools/run_options.h"
#include "lib/tools/run_report.h"
#include "lib/tools/run_tensors.h"
#include "lib/trace/capture.h"

namespace vartml::tools {

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

// The compiled model's path: `model` itself, or what an ONNX file was compiled to.
Result<std::string> compiled_model(const std::string& model);

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

}  // namespace vartml::tools
