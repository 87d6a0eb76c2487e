// SPDX-License-Identifier: Apache-2.0
// A model ready to run: its runner, the tensors it takes and gives, what its sidecar says, and how
// long a run takes here.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/convert.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "gst/infer/feed.h"
#include "gst/infer/settings.h"
#include "gst/support/error.h"
#include "gst/support/inference.h"
#include "gst/support/output_pool.h"
#include "gst/support/vart_runner.h"

namespace vartml::gst::infer {

struct Instance {
    vartml::ModelDescription description;
    std::shared_ptr<vart::Runner> runner;
    std::vector<RunnerTensor> inputs, outputs;
    size_t picture = 0;                      // which of the inputs
    std::vector<std::optional<Feed>> feeds;  // one per input, nothing for the picture
    vartml::PreprocessOptions preprocess;
    std::shared_ptr<const InferenceRecord> record;
    std::vector<GstBufferPool*> output_pools;  // one per output
    // Of an output whose CPU view is attached and differs from what the runner writes; else empty.
    struct CpuView {
        vartml::TensorConversion conversion;
        GstBufferPool* pool;
    };
    std::vector<std::optional<CpuView>> cpu_views;
    std::shared_ptr<std::atomic<unsigned>> output_buffers;
    uint64_t load_us = 0, warmup_us = 0;
    uint64_t run_p99_us = 0;
    bool cache_hit = false;

    Instance() = default;
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
    ~Instance();
};

struct LoadProgress {
    const std::atomic<bool>* cancel;  // set from another thread: give up soon
    std::function<void(int percent, const std::string& stage)> compile;
};

// Compiles `settings.model` where it is an .onnx, opens it, finds its sidecar, makes the runner and
// warms it up. Blocks. On failure returns nullptr and fills `failure`.
std::shared_ptr<Instance> load_instance(const Settings& settings, const std::string& infer_id,
                                        const LoadProgress& progress, Failure& failure);

// Whether loading has to compile first, which takes seconds.
bool needs_compiler(const std::string& model);

}  // namespace vartml::gst::infer
