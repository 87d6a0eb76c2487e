// SPDX-License-Identifier: Apache-2.0
// A model ready to run: its runner, the tensors it takes and gives, and how long a run takes here.
// One element has it alone, or several share it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <vartml/model.h>

#include "gst/infer/scheduler.h"
#include "gst/infer/settings.h"
#include "gst/support/error.h"
#include "gst/support/vart_runner.h"

namespace vartml::gst::infer {

struct Instance {
    std::string model;  // as the property names it; the description's path is that of the artefact
    vartml::ModelDescription description;
    std::shared_ptr<vart::Runner> runner;
    std::vector<RunnerTensor> inputs, outputs;  // HW views where all of a direction have one
    uint64_t load_us = 0, warmup_us = 0;
    uint64_t run_p50_us = 0;         // of a full batch
    uint64_t run_promise_us = 0;     // the same, as a live pipeline is told
    bool shares_processors = false;  // runs are made by the host's
    bool cache_hit = false;
    std::unique_ptr<Scheduler> scheduler;  // goes before the runner

    Instance() = default;
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
};

struct LoadProgress {
    const std::atomic<bool>* cancel;  // set from another thread: give up soon
    std::function<void(int percent, const std::string& stage)> compile;
};

// Compiles `settings.model` where it is an .onnx, opens it, makes the runner and warms it up.
// Blocks. On failure returns nullptr and fills `failure`.
std::shared_ptr<Instance> load_instance(const Settings& settings, const LoadProgress& progress,
                                        Failure& failure);

// Whether loading has to compile first, which takes seconds.
bool needs_compiler(const std::string& model);

// The property async-depth, or its default for a batch size.
unsigned frames_in_flight(const Settings& settings, unsigned batch);

}  // namespace vartml::gst::infer
