// SPDX-License-Identifier: Apache-2.0
// Runs in flight: each has input tensors of its own, takes output buffers from the pools, and comes
// back when both the stream and the runtime have let go of it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "gst/infer/instance.h"

namespace vartml::gst::infer {

using Clock = std::chrono::steady_clock;

// What the stream and the jobs wait on together.
struct Signal {
    std::mutex mutex;  // guards the stream's queue and the jobs' state; nothing is taken, pushed or
                       // called while it is held
    std::condition_variable changed;
};

class JobPool;

struct Job {
    JobPool* pool = nullptr;
    std::vector<TensorMemory> memory;                   // of the inputs
    std::vector<std::vector<vart::NpuTensor>> inputs;   // [1][input], made once
    std::vector<std::vector<vart::NpuTensor>> outputs;  // [1][output], of the buffers in `data`
    std::vector<GstBuffer*> data;  // one per output; the stream takes them when done
    uint32_t last_job_id = 0;      // record at the runner that is let go before the next run
    // guarded by the signal's mutex
    bool done = false, abandoned = false;
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    Clock::time_point submitted, started, finished;
};

// Thread-safety: as noted; the members may be called from the chain, the task and the runtime's
// threads.
class JobPool {
public:
    explicit JobPool(Signal& signal) : signal_(signal) {}

    // Makes `count` jobs for a model. Errors: out_of_memory.
    vartml::Result<void> create(const std::shared_ptr<Instance>& instance, unsigned count);
    // Waits for all jobs, then frees them.
    void destroy();

    // A free job or nullptr; with the mutex held.
    Job* take();

    // Takes output buffers and submits; waits and tries again while the runtime has no slot, until
    // `flow` (guarded by the mutex) is no longer OK. On failure the job is free again and `error`
    // says why.
    bool submit(Job* job, const GstFlowReturn& flow, vartml::Error& error);

    // The stream does not need the job any more; output buffers that it left go back. Without the
    // mutex.
    void release(Job* job);
    // The stream gives up a job that may still run: it comes back when the runtime is done. Without
    // the mutex.
    void abandon(Job* job);

private:
    void finished(Job* job, const vart::JobHandle& handle);
    void put_back(Job* job);
    bool acquire_outputs(Job* job, vartml::Error& error);

    Signal& signal_;
    std::shared_ptr<Instance> instance_;
    std::vector<std::unique_ptr<Job>> jobs_;
    std::vector<Job*> free_;           // guarded by the mutex; capacity for all
    Clock::time_point last_finished_;  // guarded by the mutex
};

}  // namespace vartml::gst::infer
