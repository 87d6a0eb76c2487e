// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/lane.h"

#include <algorithm>
#include <utility>

#include "gst/support/log.h"
#include "gst/support/output_pool.h"

namespace vartml::gst::infer {

Lane::Lane(std::shared_ptr<Instance> instance, std::shared_ptr<Signal> signal)
    : instance_(std::move(instance)), signal_(std::move(signal)) {}

Lane::~Lane() {
    requests_.clear();
    for (std::optional<CpuView>& view : cpu_views_) {
        if (view) output_pools_.push_back(view->pool);
    }
    for (GstBufferPool* pool : output_pools_) {
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
    }
}

void Lane::retire(std::shared_ptr<Lane> lane) {
    if (!lane) return;
    lane->hurry();
    Scheduler& scheduler = *lane->instance_->scheduler;
    const auto limit = Clock::now() + scheduler.limits().deadline;
    bool home;
    {
        std::unique_lock lock(lane->signal_->mutex);
        home = lane->signal_->changed.wait_until(lock, limit,
                                                 [&] { return lane->free_.size() == lane->made_; });
    }
    scheduler.leave(lane->place_);
    if (home) return;
    // The device may still write into these tensors, now or never.
    log_warning("the device did not give back a run of model '" +
                lane->instance_->description.name + "'; its memory stays reserved");
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<Lane>>;
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(lane));
}

Clock::duration Lane::batch_timeout(int milliseconds, GstClockTime frame_duration) const {
    if (instance_->scheduler->limits().batch <= 1) return {};
    if (milliseconds >= 0) return std::chrono::milliseconds(milliseconds);
    return std::chrono::nanoseconds(frame_duration);
}

std::unique_ptr<Request> Lane::make_request(vartml::Error& error) {
    auto request = std::make_unique<Request>();
    request->lane = this;
    for (const RunnerTensor& tensor : instance_->inputs) {
        auto memory = allocate_tensor(*instance_->runner, tensor);
        if (!memory) {
            error = memory.error();
            return nullptr;
        }
        request->inputs.push_back(memory->tensor);
        request->memory.push_back(*std::move(memory));
    }
    request->outputs.resize(instance_->outputs.size());
    request->data.resize(instance_->outputs.size(), nullptr);
    return request;
}

Request* Lane::acquire(vartml::Error& error) {
    {
        const std::lock_guard lock(signal_->mutex);
        if (!free_.empty()) {
            Request* request = free_.back();
            free_.pop_back();
            return request;
        }
        ++made_;
    }
    auto made = make_request(error);
    const std::lock_guard lock(signal_->mutex);
    if (!made) {
        --made_;
        return nullptr;
    }
    Request* request = made.get();
    requests_.push_back(std::move(made));
    return request;
}

void Lane::feed(Request* request, unsigned frame_width, unsigned frame_height) const {
    for (size_t i = 0; i < feeds_.size(); ++i) {
        if (feeds_[i]) feeds_[i]->write(frame_width, frame_height, request->memory[i].data);
    }
}

bool Lane::submit(Request* request, Clock::duration batch_timeout, vartml::Error& error) {
    for (size_t i = 0; i < request->data.size(); ++i) {
        if (gst_buffer_pool_acquire_buffer(output_pools_[i], &request->data[i], nullptr) !=
            GST_FLOW_OK) {
            request->data[i] = nullptr;
            error = {vartml::ErrorCode::out_of_memory,
                     "no memory for output '" + instance_->outputs[i].info.name + "' of " +
                         std::to_string(instance_->outputs[i].info.size_in_bytes) + " bytes"};
            return false;
        }
        request->outputs[i] = output_buffer_tensor(request->data[i]);
    }
    const auto now = Clock::now();
    {
        const std::lock_guard lock(signal_->mutex);
        request->running = true;
        request->done = request->given_up = false;
        request->failed_because.clear();
        request->device_lost = false;
        request->submitted = now;
    }
    instance_->scheduler->submit(place_, request, now + batch_timeout);
    return true;
}

void Lane::release(Request* request) {
    bool running;
    {
        const std::lock_guard lock(signal_->mutex);
        request->given_up = running = request->running;
    }
    // On the device: finished() puts it back.
    if (running && !instance_->scheduler->withdraw(place_, request)) return;
    request->running = false;
    put_back(request);
}

// The last look at the request: once the mutex is let go, retire() may free it.
void Lane::put_back(Request* request) {
    for (GstBuffer*& data : request->data) gst_clear_buffer(&data);
    if (request->frame) {
        request->inputs[picture_] = request->memory[picture_].tensor;
        gst_clear_buffer(&request->frame);
    }
    request->next = nullptr;
    const std::lock_guard lock(signal_->mutex);
    free_.push_back(request);
    signal_->changed.notify_all();
}

void Lane::finished(Request* request, const RunResult& result) {
    {
        const std::lock_guard lock(signal_->mutex);
        request->running = false;
        if (!request->given_up) {
            // A result that comes after the stream was told that it will not is of no use.
            if (!request->done) {
                request->status = result.status;
                request->failed_because = result.because;
                request->device_lost = result.device_lost;
                request->started = result.started;
                request->finished = result.finished;
                request->batch_fill = result.batch_fill;
                request->leads_batch = result.leads_batch;
                request->done = true;
            }
            signal_->changed.notify_all();  // under the mutex: afterwards the stream may be gone
            return;
        }
    }
    put_back(request);
}

void Lane::overdue(Request* request, bool leads_batch) {
    const std::lock_guard lock(signal_->mutex);
    if (request->given_up || request->done) return;
    request->status = vart::StatusCode::RUNTIME_ERROR;
    request->failed_because = "the device did not end the run within run-timeout;";
    request->device_lost = true;
    request->started = request->finished = Clock::now();
    request->leads_batch = leads_batch;
    request->done = true;
    signal_->changed.notify_all();
}

bool Lane::convert_outputs(Request* request, bool& converted) {
    for (size_t i = 0; i < cpu_views_.size(); ++i) {
        std::optional<CpuView>& view = cpu_views_[i];
        if (!view) continue;
        GstBuffer* cpu = nullptr;
        GstMapInfo from, to;
        if (gst_buffer_pool_acquire_buffer(view->pool, &cpu, nullptr) != GST_FLOW_OK) return false;
        gst_buffer_map(request->data[i], &from, GST_MAP_READ);
        gst_buffer_map(cpu, &to, GST_MAP_WRITE);
        view->conversion.run(from.data, to.data);
        gst_buffer_unmap(cpu, &to);
        gst_buffer_unmap(request->data[i], &from);
        gst_buffer_unref(std::exchange(request->data[i], cpu));
        converted = true;
    }
    return true;
}

}  // namespace vartml::gst::infer
