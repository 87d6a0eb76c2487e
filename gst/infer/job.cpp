// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/job.h"

#include <algorithm>

namespace vartml::gst::infer {

vartml::Result<void> JobPool::create(const std::shared_ptr<Instance>& instance, unsigned count) {
    instance_ = instance;
    for (unsigned i = 0; i < count; ++i) {
        auto job = std::make_unique<Job>();
        job->pool = this;
        job->inputs.resize(1);
        job->outputs.resize(1);
        for (const RunnerTensor& tensor : instance->inputs) {
            auto memory = allocate_tensor(*instance->runner, tensor);
            if (!memory) {
                jobs_.clear();
                return memory.error();
            }
            job->inputs[0].push_back(memory->tensor);
            job->memory.push_back(*std::move(memory));
        }
        job->outputs[0].resize(instance->outputs.size());
        job->data.resize(instance->outputs.size(), nullptr);
        jobs_.push_back(std::move(job));
    }
    const std::lock_guard lock(signal_.mutex);
    free_.reserve(count);
    for (const auto& job : jobs_) free_.push_back(job.get());
    return {};
}

void JobPool::destroy() {
    {
        std::unique_lock lock(signal_.mutex);
        signal_.changed.wait(lock, [this] { return free_.size() == jobs_.size(); });
        free_.clear();
    }
    jobs_.clear();
    instance_.reset();
}

Job* JobPool::take() {
    if (free_.empty()) return nullptr;
    Job* job = free_.back();
    free_.pop_back();
    job->done = job->abandoned = false;
    return job;
}

bool JobPool::acquire_outputs(Job* job, vartml::Error& error) {
    for (size_t i = 0; i < job->data.size(); ++i) {
        if (gst_buffer_pool_acquire_buffer(instance_->output_pools[i], &job->data[i], nullptr) !=
            GST_FLOW_OK) {
            job->data[i] = nullptr;
            error = {vartml::ErrorCode::out_of_memory,
                     "no memory for output '" + instance_->outputs[i].info.name + "' of " +
                         std::to_string(instance_->outputs[i].info.size_in_bytes) + " bytes"};
            return false;
        }
        job->outputs[0][i] = output_buffer_tensor(job->data[i]);
    }
    return true;
}

bool JobPool::submit(Job* job, const GstFlowReturn& flow, vartml::Error& error) {
    vart::Runner& runner = *instance_->runner;
    // The runner keeps the record of a finished job until it is waited for, once.
    if (job->last_job_id) {
        (void)runner.wait({vart::StatusCode::SUCCESS, job->last_job_id},
                          std::chrono::milliseconds(0));
        job->last_job_id = 0;
    }
    if (!acquire_outputs(job, error)) {
        release(job);
        return false;
    }
    for (;;) {
        {
            const std::lock_guard lock(signal_.mutex);
            job->submitted = Clock::now();
        }
        const vart::JobHandle handle = runner.execute_async(
            job->inputs, job->outputs,
            [job](const vart::JobHandle& done) { job->pool->finished(job, done); });
        if (handle.status == vart::StatusCode::SUCCESS) return true;
        if (handle.status != vart::StatusCode::RESOURCE_UNAVAILABLE) {
            const auto text = runner_property<std::string>(runner, "last_error");
            error =
                status_error(handle.status,
                             text && !text->empty() ? *text + ";" : "the runtime refused the run");
            release(job);
            return false;
        }
        // All slots are taken: by a run of ours, whose end wakes us, or by others.
        std::unique_lock lock(signal_.mutex);
        signal_.changed.wait_for(lock, std::chrono::milliseconds(2));
        if (flow != GST_FLOW_OK) {
            lock.unlock();
            error = {vartml::ErrorCode::busy, "flushing"};
            release(job);
            return false;
        }
    }
}

// On a thread of the runtime.
void JobPool::finished(Job* job, const vart::JobHandle& handle) {
    bool abandoned;
    {
        const std::lock_guard lock(signal_.mutex);
        job->finished = Clock::now();
        // Runs are served in order: this one began when it was submitted or when the one before it
        // ended.
        job->started = std::max(job->submitted, last_finished_);
        last_finished_ = job->finished;
        job->status = handle.status;
        job->last_job_id = handle.job_id;
        job->done = true;
        abandoned = job->abandoned;
        if (!abandoned)
            signal_.changed.notify_all();  // under the mutex: afterwards the stream may be gone
    }
    if (abandoned) release(job);
}

void JobPool::release(Job* job) {
    for (GstBuffer*& data : job->data) gst_clear_buffer(&data);
    put_back(job);
}

void JobPool::abandon(Job* job) {
    {
        const std::lock_guard lock(signal_.mutex);
        job->abandoned = true;
        if (!job->done) return;
    }
    release(job);
}

// The last look at the job and the pool: once the mutex is let go, destroy() may free both.
void JobPool::put_back(Job* job) {
    const std::lock_guard lock(signal_.mutex);
    free_.push_back(job);
    signal_.changed.notify_all();
}

}  // namespace vartml::gst::infer
