// SPDX-License-Identifier: Apache-2.0
// The way out: the task of the src pad waits for the head of the queue; who serves the head
// collects what came out of the runs and pushes.
#include <algorithm>
#include <utility>

#include "gst/infer/stream.h"
#include "gst/infer/trace.h"

namespace vartml::gst::infer {

bool Stream::head_ready() {
    if (queue_.empty()) return false;
    const Entry& head = queue_.front();
    if (head.kind == Entry::Kind::event && !dropping_ &&
        GST_EVENT_TYPE(GST_EVENT_CAST(head.object)) == GST_EVENT_EOS) {
        return std::ranges::all_of(flying_, &Entry::done);  // and are counted
    }
    return dropping_ || head.done() || (head.keeps_rate() && Clock::now() >= head.leave_by);
}

void Stream::loop() {
    std::unique_lock lock(signal_->mutex);
    while (flow_ == GST_FLOW_OK && !head_ready()) {
        if (queue_.empty()) {
            queued_.wait(lock);
        } else if (queue_.front().keeps_rate()) {
            signal_->changed.wait_until(lock, queue_.front().leave_by);
        } else {
            signal_->changed.wait(lock);
        }
    }
    if (flow_ != GST_FLOW_OK) {
        gst_pad_pause_task(src_);  // locked, so that who sets the flow to OK starts it after this
        return;
    }
    serve_head(lock);
}

// One thread at a time: the task, or the streaming thread when nothing is before its frame.
void Stream::serve_head(std::unique_lock<std::mutex>& lock) {
    Entry entry = queue_.pop();
    const bool done = entry.done();
    serving_ = true;
    query_active_ = entry.kind == Entry::Kind::query;
    lock.unlock();

    GstFlowReturn flow = GST_FLOW_OK;
    const bool inferring = entry.requests != nullptr && (done || dropping_);
    const bool frame = entry.kind == Entry::Kind::frame;
    switch (entry.kind) {
        case Entry::Kind::frame:
            flow = push_frame(entry, done);
            break;
        case Entry::Kind::event:
            flow = push_event(entry);
            break;
        case Entry::Kind::query:
            answer_query(entry);
            break;
        case Entry::Kind::swap:
            finish_swap(entry);
            break;
        case Entry::Kind::none:
            break;
    }

    lock.lock();
    serving_ = false;
    if (frame) {
        --frames_;
        if (inferring) --inferring_;
    }
    if (flow == GST_FLOW_EOS && frame) {
        // Downstream wants no more frames. Events go on, and another segment may come or be queued
        // already.
        dropping_ = refusing_ = true;
        for (size_t i = 0; i < queue_.size(); ++i) {
            if (queue_[i].kind != Entry::Kind::event) continue;
            const GstEventType type = GST_EVENT_TYPE(GST_EVENT_CAST(queue_[i].object));
            if (type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START) refusing_ = false;
        }
        flow = GST_FLOW_OK;
    }
    if (flow == GST_FLOW_OK || flow_ != GST_FLOW_OK) {
        signal_->changed.notify_all();
        return;
    }
    set_flow(flow);  // and the task pauses
    if (!eos_) return;
    lock.unlock();
    report_flow(flow);
    lock.lock();
}

// Upstream sent its last and will not see the result: tell the application.
void Stream::report_flow(GstFlowReturn flow) {
    if (flow != GST_FLOW_NOT_LINKED && flow >= GST_FLOW_EOS) return;
    GST_ELEMENT_FLOW_ERROR(element_, flow);
    gst_pad_push_event(src_, gst_event_new_eos());
}

GstFlowReturn Stream::push_event(Entry& entry) {
    GstEvent* event = GST_EVENT_CAST(entry.object);
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START || type == GST_EVENT_EOS)
        dropping_ = false;
    if (type == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &out_segment_);
    const GstFlowReturn flow = type == GST_EVENT_EOS ? land() : GST_FLOW_OK;
    gst_pad_push_event(src_, event);
    return type == GST_EVENT_EOS && flow == GST_FLOW_OK ? GST_FLOW_EOS : flow;
}

// Results that no frame will carry.
void Stream::abandon_flying() {
    {
        const std::lock_guard lock(signal_->mutex);
        landed_.swap(flying_);
        inferring_ -= unsigned(std::min<size_t>(landed_.size(), inferring_));
    }
    for (Entry& entry : landed_) {
        stats_.result(InferenceStatus::inferred, entry.inferences);
        release_all(entry);
    }
    landed_.clear();
}

// Every frame of the model before has left.
void Stream::finish_swap(Entry& entry) {
    known_.forget();
    abandon_flying();
    post_swapped(entry);
    const std::lock_guard lock(signal_->mutex);
    retired_.push_back(std::move(entry.old_lane));
    wake_worker();
}

// The device refused an input: of this request, or of one in the same batch. A frame that it did
// not read where it lies is copied, and none is given to it that way again. OK: the request has
// another result.
GstFlowReturn Stream::run_again(Entry& entry, Request* request) {
    const FramePlan& plan = *entry.plan;
    if (GstBuffer* frame = std::exchange(request->frame, nullptr)) {
        import_refused_ = true;
        GST_DEBUG_OBJECT(element_, "the device refused a frame's memory: frames are copied");
        const size_t picture = plan.lane->picture();
        request->inputs[picture] = request->memory[picture].tensor;
        const bool forbidden = count_copy(CopyReason::import_refused, plan.direct->size_bytes());
        const bool copied =
            !forbidden && plan.direct->copy(frame, plan.format.info, request->memory[picture].data);
        gst_buffer_unref(frame);
        if (forbidden) return GST_FLOW_ERROR;
        if (!copied) return GST_FLOW_OK;  // with the result that it has
    }
    for (GstBuffer*& data : request->data) gst_clear_buffer(&data);
    if (!plan.lane->submit(request, {}, entry.error)) return GST_FLOW_OK;
    std::unique_lock lock(signal_->mutex);
    signal_->changed.wait(lock, [&] { return request->done || flow_ != GST_FLOW_OK; });
    return request->done ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

// Looks at the results of a frame: its status, its CPU views, its counters.
GstFlowReturn Stream::collect(Entry& entry) {
    bool converted = false;
    for (Request* r = entry.requests; r; r = r->next) {
        if (r->status == vart::StatusCode::INVALID_INPUT && (r->frame || r->batch_fill > 1)) {
            if (const GstFlowReturn flow = run_again(entry, r); flow != GST_FLOW_OK) return flow;
        }
        // The device is done with it; a frame that only we hold needs no copy to be written to.
        if (!r->device_lost) gst_clear_buffer(&r->frame);
        if (r->status != vart::StatusCode::SUCCESS) {
            entry.status = InferenceStatus::failed;
            entry.error = status_error(
                r->status, r->failed_because.empty() ? "the run ended" : r->failed_because);
        } else if (!entry.plan->lane->convert_outputs(r, converted)) {
            entry.status = InferenceStatus::failed;
            entry.error = {vartml::ErrorCode::out_of_memory,
                           "no memory for the CPU view of an output"};
        }
    }
    if (converted) stats_.conversion();
    if (entry.status != InferenceStatus::inferred) return GST_FLOW_OK;
    failures_ = 0;
    for (const Request* r = entry.requests; r; r = r->next) {
        stats_.times(r->pre_us, us_between(r->submitted, r->started),
                     us_between(r->started, r->finished));
        stats_.run(r->batch_fill, r->leads_batch);
        trace_wait(*r);
    }
    count(entry);
    const std::lock_guard lock(signal_->mutex);
    for (const Request* r = entry.requests; r; r = r->next)
        time_.add(us_between(r->submitted, r->finished));
    return GST_FLOW_OK;
}

// The frame leaves before its own result: what stays here has no buffer.
void Stream::fly(Entry& entry) {
    Entry flying;
    flying.kind = Entry::Kind::frame;
    flying.requests = std::exchange(entry.requests, nullptr);
    flying.inferences = entry.inferences;
    flying.plan = entry.plan;
    flying.seq = entry.seq;
    flying.trace_frame = entry.trace_frame;
    flying.entered = entry.entered;
    flying.pts = entry.pts;
    entry.status = InferenceStatus::pending;
    stats_.frame_before_result();
    const std::lock_guard lock(signal_->mutex);
    flying_.push_back(std::move(flying));
}

// Takes over the results of frames that have left before them.
GstFlowReturn Stream::land() {
    {
        const std::lock_guard lock(signal_->mutex);
        for (size_t i = 0; i < flying_.size();) {
            if (!flying_[i].done()) {
                ++i;
                continue;
            }
            landed_.push_back(std::move(flying_[i]));
            flying_.erase(flying_.begin() + std::ptrdiff_t(i));
        }
    }
    if (landed_.empty()) return GST_FLOW_OK;
    GstFlowReturn flow = GST_FLOW_OK;
    for (Entry& entry : landed_) {
        if (flow == GST_FLOW_OK && (flow = collect(entry)) == GST_FLOW_OK) {
            stats_.result(entry.status, entry.inferences);
            adapt(entry, us_between(entry.entered, entry.requests->finished));
            if (entry.status == InferenceStatus::failed) {
                trace_skip(element_, entry.status, entry.trace_frame);
                flow = report_failure(entry);
            } else {
                remember(entry);
            }
        }
        release_all(entry);
    }
    const std::lock_guard lock(signal_->mutex);
    inferring_ -= unsigned(landed_.size());
    landed_.clear();
    signal_->changed.notify_all();
    return flow;
}

// `done`: its result is there, or it has none.
GstFlowReturn Stream::push_frame(Entry& entry, bool done) {
    GstBuffer* buffer = GST_BUFFER_CAST(entry.object);
    if (dropping_) {
        release_all(entry);
        gst_buffer_unref(buffer);
        return GST_FLOW_OK;
    }
    Span span(trace_flag::runs, TraceCategory::host, "post-process");
    span.frames({&entry.trace_frame, 1});
    ready_ = std::max(ready_, entry.entered);
    if (entry.requests && !done) ready_ = std::max(ready_, entry.leave_by);
    for (const Request* r = done ? entry.requests : nullptr; r; r = r->next)
        ready_ = std::max(ready_, r->finished);
    const bool held = entry.requests != nullptr;
    GstFlowReturn flow = land();
    if (flow == GST_FLOW_OK && done) flow = collect(entry);
    if (flow == GST_FLOW_OK && !done) fly(entry);
    if (flow != GST_FLOW_OK) {
        release_all(entry);
        gst_buffer_unref(buffer);
        return flow == GST_FLOW_FLUSHING ? GST_FLOW_OK : flow;  // a flush has set its own
    }
    if (live_ && held && entry.status != InferenceStatus::failed)
        raise_latency(ready_, entry.entered);
    if (entry.status == InferenceStatus::failed) flow = report_failure(entry);
    const uint64_t total_us = us_between(entry.entered, Clock::now());
    stats_.total(total_us);
    if (entry.status != InferenceStatus::pending) {
        stats_.frame(entry.status, entry.inferences);
        adapt(entry, total_us);
        if (entry.status != InferenceStatus::inferred)
            trace_skip(element_, entry.status, entry.trace_frame);
    }
    if (entry.status == InferenceStatus::skipped_late ||
        entry.status == InferenceStatus::skipped_busy)
        report_skip(entry);
    buffer = attach(entry, buffer);
    release_all(entry);
    if (!buffer) return GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }
    span.end();
    return gst_pad_push(src_, buffer);
}

// One failed run is a WARNING, the third in a row an ERROR. Of the frames of one batch the first
// speaks for all.
GstFlowReturn Stream::report_failure(const Entry& entry) {
    if (entry.requests && !entry.requests->leads_batch) return GST_FLOW_OK;
    Failure failure = {
        {entry.error.code, "frame " + std::to_string(entry.seq) + " of model '" +
                               entry.plan->lane->record()->model + "': " + entry.error.message},
        "infer-run"};
    if (entry.requests && entry.requests->device_lost) {
        failure.id = "infer-device-lost";
        failure.recoverable = false;
    }
    if (++failures_ < 3) {
        post_warning(element_, "infer a frame", failure);
        return GST_FLOW_OK;
    }
    failure.error.message += "; it is the third failed run in a row";
    post_error(element_, "infer a frame", failure);
    return GST_FLOW_ERROR;
}

void Stream::adapt(const Entry& entry, uint64_t total_us) {
    const uint64_t target_us = uint64_t(latency_target_ms_) * 1000;
    if (target_us == 0) target_.reset(interval_);
    std::optional<LatencyTarget::Change> change;
    if (target_us != 0 && entry.status == InferenceStatus::inferred)
        change = target_.inference(total_us, target_us, interval_);
    adapted_ = target_.interval();
    if (!change) return;
    GST_DEBUG_OBJECT(element_, "one frame in %u is inferred: 95 of 100 take %u us, wanted %u ms",
                     change->interval, change->p95_us, latency_target_ms_.load());
    gst_element_post_message(
        element_, gst_message_new_element(
                      GST_OBJECT(element_),
                      gst_structure_new("vartml-slo", "interval", G_TYPE_UINT, change->interval,
                                        "p95-us", G_TYPE_UINT64, guint64(change->p95_us),
                                        "target-us", G_TYPE_UINT64, guint64(target_us), nullptr)));
}

void Stream::report_skip(const Entry& entry) {
    GstBuffer* buffer = GST_BUFFER_CAST(entry.object);
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    guint64 running = GST_CLOCK_TIME_NONE, stream = GST_CLOCK_TIME_NONE;
    if (GST_CLOCK_TIME_IS_VALID(pts) && out_segment_.format == GST_FORMAT_TIME) {
        running = gst_segment_to_running_time(&out_segment_, GST_FORMAT_TIME, pts);
        stream = gst_segment_to_stream_time(&out_segment_, GST_FORMAT_TIME, pts);
    }
    GstMessage* message = gst_message_new_qos(GST_OBJECT(element_), live_, running, stream, pts,
                                              GST_BUFFER_DURATION(buffer));
    gint64 jitter = 0;
    double proportion;
    {
        const std::lock_guard lock(signal_->mutex);
        proportion = gates_.proportion();
        if (GST_CLOCK_TIME_IS_VALID(running) && GST_CLOCK_TIME_IS_VALID(gates_.earliest())) {
            jitter = GST_CLOCK_DIFF(running, gates_.earliest());
        }
    }
    gst_message_set_qos_values(message, jitter, proportion, 1000000);
    gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, stats_.inferences(), stats_.skipped());
    gst_element_post_message(element_, message);
}

// Live: frames that are held beyond the promised latency raise it; the wait for downstream is not
// ours. The application hears of it once a second at most.
void Stream::raise_latency(Clock::time_point ready, Clock::time_point entered) {
    if (GST_CLOCK_TIME_IS_VALID(started_.latency)) return;
    {
        const std::lock_guard lock(signal_->mutex);
        const auto more =
            promise_.frame(us_between(entered, ready), measured_latency_ / GST_USECOND);
        if (more) {
            measured_latency_ = (*more + 999) / 1000 * GST_MSECOND;
            latency_rose_ = true;
        }
        const auto now = Clock::now();
        if (!latency_rose_ || now - latency_posted_ < std::chrono::seconds(1)) return;
        latency_rose_ = false;
        latency_posted_ = now;
    }
    gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

}  // namespace vartml::gst::infer
