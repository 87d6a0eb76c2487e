// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/out_queue.h"

#include <algorithm>
#include <utility>

#include "gst/infer/trace.h"
#include "gst/support/camera_format.h"
#include "gst/support/events.h"
#include "gst/support/pools.h"

namespace vartml::gst::infer {

void OutQueue::push(Entry entry) {
    queue_.push(std::move(entry));
    queued_.notify_one();
}

void OutQueue::set_flow(GstFlowReturn flow) {
    flow_ = flow;
    queued_.notify_one();
    context_.signal->changed.notify_all();
}

bool OutQueue::run() {
    return gst_pad_start_task(
        context_.src, [](gpointer queue) { static_cast<OutQueue*>(queue)->loop(); }, this, nullptr);
}

void OutQueue::reset() {
    admission_.reset();
    eos_ = refusing_ = dropping_ = false;
    frames_ = inferring_ = 0;
    ++flushes_;
}

void OutQueue::open() {
    const std::lock_guard lock(context_.signal->mutex);
    reset();
    gst_segment_init(&segment_, GST_FORMAT_UNDEFINED);
    ready_ = {};
    set_flow(GST_FLOW_OK);
}

bool OutQueue::begin() {
    const std::lock_guard lock(context_.signal->mutex);
    set_flow(GST_FLOW_OK);
    return run();
}

void OutQueue::resume() {
    const std::lock_guard lock(context_.signal->mutex);
    reset();
    set_flow(GST_FLOW_OK);
    if (gst_pad_is_active(context_.src)) (void)run();
}

void OutQueue::close() {
    const std::lock_guard lock(context_.signal->mutex);
    set_flow(GST_FLOW_FLUSHING);
}

void OutQueue::relinked() {
    const std::lock_guard lock(context_.signal->mutex);
    if (flow_ != GST_FLOW_NOT_LINKED) return;  // linked anew, as in queue
    set_flow(GST_FLOW_OK);
    (void)run();
}

GstFlowReturn OutQueue::refusal() const {
    const std::lock_guard lock(context_.signal->mutex);
    return flow_ == GST_FLOW_OK && refusing_ ? GST_FLOW_EOS : flow_;
}

bool OutQueue::put_event(GstEvent* event) {
    const GstEventType type = GST_EVENT_TYPE(event);
    std::unique_lock lock(context_.signal->mutex);
    if (type == GST_EVENT_STREAM_START || type == GST_EVENT_SEGMENT) {
        refusing_ = false;
        if (flow_ == GST_FLOW_EOS) {
            eos_ = false;
            set_flow(GST_FLOW_OK);
            (void)run();
        }
    }
    if (flow_ != GST_FLOW_OK && (!is_sticky(event) || type == GST_EVENT_EOS)) {
        // Upstream's last event: nothing later would report the failure.
        const GstFlowReturn flow = flow_;
        lock.unlock();
        if (type == GST_EVENT_EOS && (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS))
            GST_ELEMENT_FLOW_ERROR(context_.element, flow);
        gst_event_unref(event);
        return false;
    }
    if (type == GST_EVENT_EOS) eos_ = true;
    Entry entry;
    entry.kind = Entry::Kind::event;
    entry.object = GST_MINI_OBJECT_CAST(event);
    push(std::move(entry));
    lock.unlock();
    // No frame will come that fills the last batch, or none before the next seek.
    if (type == GST_EVENT_EOS || type == GST_EVENT_SEGMENT_DONE) hurry();
    return true;
}

void OutQueue::put_swap(const Loader::Change& change, guint64 seq, GstClockTime pts) {
    Entry entry;
    entry.kind = Entry::Kind::swap;
    entry.seq = seq;
    entry.pts = pts;
    entry.old_lane = change.old_lane;
    entry.new_lane = change.new_lane;
    const std::lock_guard lock(context_.signal->mutex);
    push(std::move(entry));
}

bool OutQueue::ask(GstQuery* query) {
    std::unique_lock lock(context_.signal->mutex);
    if (flow_ != GST_FLOW_OK) return false;
    query_done_ = query_result_ = false;
    Entry entry;
    entry.kind = Entry::Kind::query;
    entry.object = GST_MINI_OBJECT_CAST(query);
    push(std::move(entry));
    lock.unlock();
    hurry();
    lock.lock();
    context_.signal->changed.wait(
        lock, [this] { return query_done_ || (flow_ != GST_FLOW_OK && !query_active_); });
    if (!query_done_) {
        for (size_t i = 0; i < queue_.size(); ++i) {
            if (queue_[i].kind == Entry::Kind::query) queue_[i].kind = Entry::Kind::none;
        }
    }
    return query_done_ && query_result_;
}

void OutQueue::hurry() {
    if (const std::shared_ptr<Lane> lane = loader_.lane()) lane->hurry();
}

unsigned OutQueue::in_flight() const {
    const auto landed = std::ranges::count_if(flying_, &Entry::done);
    return inferring_ - unsigned(landed);
}

GstFlowReturn OutQueue::admit(Entry& entry, unsigned wanted, std::unique_lock<std::mutex>& lock) {
    using Verdict = Admission::Verdict;
    Verdict verdict = Verdict::wait;
    context_.signal->changed.wait(lock, [&] {
        if (flow_ != GST_FLOW_OK || refusing_) return true;
        const auto oldest = std::ranges::find_if_not(flying_, &Entry::done);
        verdict = admission_.verdict(
            entry, wanted, {frames_, in_flight(), oldest == flying_.end() ? nullptr : &*oldest});
        return verdict != Verdict::wait;
    });
    if (flow_ != GST_FLOW_OK) return flow_;
    if (refusing_) return GST_FLOW_EOS;
    const bool infer = verdict == Verdict::infer;
    if (wanted > 0 && !infer) entry.status = InferenceStatus::skipped_busy;
    ++frames_;
    if (infer) ++inferring_;
    if (infer) context_.stats.in_flight(in_flight());
    entry.inferences = infer ? wanted : 0;
    return GST_FLOW_OK;
}

GstFlowReturn OutQueue::put_frame(Entry entry, GstBuffer* buffer, Prepared prepared) {
    std::unique_lock lock(context_.signal->mutex);
    if (entry.inferences > 0 && !entry.requests) --inferring_;
    const bool here = entry.plan->lane->runs_here();
    if (here) {
        // The run has ended, or another stream's thread is about to end it: waking the task would
        // cost more. Events before the frame leave first.
        context_.signal->changed.wait(lock, [this, &entry] {
            return flow_ != GST_FLOW_OK || (queue_.empty() && !serving_ && entry.done());
        });
    }
    if (flow_ == GST_FLOW_OK && prepared != Prepared::stop) {
        entry.object = GST_MINI_OBJECT_CAST(buffer);
        if (!here) {
            push(std::move(entry));
            return GST_FLOW_OK;
        }
        queue_.push(std::move(entry));
        serve_head(lock);
        return flow_;
    }
    // Stopped, flushed or forbidden meanwhile.
    const GstFlowReturn flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_ERROR;
    --frames_;
    if (entry.requests) --inferring_;
    lock.unlock();
    entry.release_requests();
    gst_buffer_unref(buffer);
    return flow;
}

void OutQueue::stop() {
    writer_.stop();
    failures_ = 0;
}

OutQueue::Traffic OutQueue::traffic() const {
    const std::lock_guard lock(context_.signal->mutex);
    return {frames_, inferring_};
}

bool OutQueue::at_rest() {
    const std::lock_guard lock(context_.signal->mutex);
    if (frames_ > 0 || serving_ || !queue_.empty()) return false;
    if (!flying_.empty() && std::ranges::all_of(flying_, &Entry::done)) push({});
    return inferring_ == 0;
}

// With the task stopped. Sticky events stay on the src pad, as in queue; those of a segment do not
// survive a flush.
void OutQueue::drop(bool keep_sticky) {
    std::vector<Entry> dropped;
    {
        std::unique_lock lock(context_.signal->mutex);
        // By a streaming thread whose frame no task serves. A seek in the midst of a push flushes
        // from the thread that pushes, which waits for no one: what it serves is over.
        const auto own = std::this_thread::get_id();
        context_.signal->changed.wait(lock, [&] { return !serving_ || serving_thread_ == own; });
        serving_ = false;
        while (!queue_.empty()) dropped.push_back(queue_.pop());
    }
    abandon_flying();
    writer_.forget();
    for (Entry& entry : dropped) {
        if (entry.kind == Entry::Kind::query || entry.kind == Entry::Kind::none) continue;
        if (entry.kind == Entry::Kind::swap) {
            finish_swap(entry);
            continue;
        }
        if (entry.kind == Entry::Kind::event) {
            GstEvent* event = GST_EVENT_CAST(entry.object);
            const GstEventType type = GST_EVENT_TYPE(event);
            if (keep_sticky && is_sticky(event) && type != GST_EVENT_SEGMENT &&
                type != GST_EVENT_EOS) {
                gst_pad_store_sticky_event(context_.src, event);
            }
        }
        entry.release_requests();
        gst_mini_object_unref(entry.object);
    }
}

bool OutQueue::head_ready() {
    if (queue_.empty()) return false;
    const Entry& head = queue_.front();
    if (head.kind == Entry::Kind::event && !dropping_ &&
        GST_EVENT_TYPE(GST_EVENT_CAST(head.object)) == GST_EVENT_EOS) {
        return std::ranges::all_of(flying_, &Entry::done);  // and are counted
    }
    return dropping_ || head.done() || (head.keeps_rate() && Clock::now() >= head.leave_by);
}

void OutQueue::loop() {
    std::unique_lock lock(context_.signal->mutex);
    while (flow_ == GST_FLOW_OK && !head_ready()) {
        if (queue_.empty()) {
            queued_.wait(lock);
        } else if (queue_.front().keeps_rate()) {
            context_.signal->changed.wait_until(lock, queue_.front().leave_by);
        } else {
            context_.signal->changed.wait(lock);
        }
    }
    if (flow_ != GST_FLOW_OK) {
        gst_pad_pause_task(
            context_.src);  // locked, so that who sets the flow to OK starts it after this
        return;
    }
    serve_head(lock);
}

// One thread at a time: the task, or the streaming thread when nothing is before its frame.
void OutQueue::serve_head(std::unique_lock<std::mutex>& lock) {
    Entry entry = queue_.pop();
    const bool done = entry.done();
    serving_ = true;
    serving_thread_ = std::this_thread::get_id();
    const guint64 flushes = flushes_;
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
        case Entry::Kind::none:  // at_rest() asks for it, or it was a query
            flow = land();
            break;
    }

    entry.plan.reset();  // once it is not counted its model may go
    lock.lock();
    if (flushes != flushes_) {  // nothing of before counts
        if (serving_thread_ == std::this_thread::get_id()) serving_ = false;
        context_.signal->changed.notify_all();
        return;
    }
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
        context_.signal->changed.notify_all();
        return;
    }
    set_flow(flow);  // and the task pauses
    if (!eos_) return;
    lock.unlock();
    report_flow(flow);
    lock.lock();
}

// Upstream sent its last and will not see the result: tell the application.
void OutQueue::report_flow(GstFlowReturn flow) {
    if (flow != GST_FLOW_NOT_LINKED && flow >= GST_FLOW_EOS) return;
    GST_ELEMENT_FLOW_ERROR(context_.element, flow);
    gst_pad_push_event(context_.src, gst_event_new_eos());
}

GstFlowReturn OutQueue::push_event(Entry& entry) {
    GstEvent* event = GST_EVENT_CAST(entry.object);
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START || type == GST_EVENT_EOS)
        dropping_ = false;
    if (type == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &segment_);
    const GstFlowReturn flow = type == GST_EVENT_EOS ? land() : GST_FLOW_OK;
    gst_pad_push_event(context_.src, event);
    return type == GST_EVENT_EOS && flow == GST_FLOW_OK ? GST_FLOW_EOS : flow;
}

// Results that no frame will carry.
void OutQueue::abandon_flying() {
    {
        const std::lock_guard lock(context_.signal->mutex);
        landed_.swap(flying_);
        inferring_ -= unsigned(std::min<size_t>(landed_.size(), inferring_));
    }
    for (Entry& entry : landed_) {
        context_.stats.result(InferenceStatus::inferred, entry.inferences);
        entry.release_requests();
    }
    landed_.clear();
}

// Every frame of the model before has left.
void OutQueue::finish_swap(Entry& entry) {
    writer_.forget();
    abandon_flying();
    loader_.finish_swap(entry);
}

// The device refused an input: of this request, or of one in the same batch. A frame that it did
// not read where it lies is copied, and none is given to it that way again. OK: the request has
// another result.
GstFlowReturn OutQueue::run_again(Entry& entry, Request* request) {
    const FramePlan& plan = *entry.plan;
    if (GstBuffer* frame = std::exchange(request->frame, nullptr)) {
        context_.copies.import_refused = true;
        GST_DEBUG_OBJECT(context_.element,
                         "the device refused a frame's memory: frames are copied");
        const size_t picture = plan.lane->picture();
        request->inputs[picture] = request->memory[picture].tensor;
        const bool forbidden =
            context_.copies.count(CopyReason::import_refused, plan.direct->size_bytes());
        const bool copied =
            !forbidden && plan.direct->copy(frame, plan.format, request->memory[picture].data);
        gst_buffer_unref(frame);
        if (forbidden) return GST_FLOW_ERROR;
        if (!copied) return GST_FLOW_OK;  // with the result that it has
    }
    for (GstBuffer*& data : request->data) gst_clear_buffer(&data);
    if (!plan.lane->submit(request, {}, entry.error)) return GST_FLOW_OK;
    std::unique_lock lock(context_.signal->mutex);
    context_.signal->changed.wait(lock, [&] { return request->done || flow_ != GST_FLOW_OK; });
    return request->done ? GST_FLOW_OK : GST_FLOW_FLUSHING;
}

// Looks at the results of a frame: its status, its CPU views, its counters.
GstFlowReturn OutQueue::collect(Entry& entry) {
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
    if (converted) context_.stats.conversion();
    if (entry.status != InferenceStatus::inferred) return GST_FLOW_OK;
    failures_ = 0;
    for (const Request* r = entry.requests; r; r = r->next) {
        context_.stats.times(r->pre_us, us_between(r->submitted, r->started),
                             us_between(r->started, r->finished));
        context_.stats.run(r->batch_fill, r->leads_batch);
        trace_wait(*r);
    }
    for (const Request* r = entry.requests; r; r = r->next)
        if (context_.copies.count_views(entry.plan->lane->instance())) return GST_FLOW_ERROR;
    if (!entry.requests) return GST_FLOW_OK;
    context_.stats.waited(us_between(entry.entered, entry.finished()));
    const std::lock_guard lock(context_.signal->mutex);
    admission_.took(us_between(entry.requests->submitted, entry.finished()));
    return GST_FLOW_OK;
}

// The frame leaves before its own result: what stays here has no buffer.
void OutQueue::fly(Entry& entry) {
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
    context_.stats.frame_before_result();
    const std::lock_guard lock(context_.signal->mutex);
    flying_.push_back(std::move(flying));
}

// Takes over the results of frames that have left before them.
GstFlowReturn OutQueue::land() {
    {
        const std::lock_guard lock(context_.signal->mutex);
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
            context_.stats.result(entry.status, entry.inferences);
            admission_.adapt(entry.status, us_between(entry.entered, entry.finished()));
            if (entry.status == InferenceStatus::failed) {
                trace_skip(context_.element, entry.status, entry.trace_frame);
                context_.no_result = true;  // what looks like it has none to carry
                flow = report_failure(entry);
            } else {
                writer_.remember(entry);
            }
        }
        entry.release_requests();
    }
    const std::lock_guard lock(context_.signal->mutex);
    inferring_ -= unsigned(landed_.size());
    landed_.clear();
    context_.signal->changed.notify_all();
    return flow;
}

// `done`: its result is there, or it has none.
GstFlowReturn OutQueue::push_frame(Entry& entry, bool done) {
    GstBuffer* buffer = GST_BUFFER_CAST(entry.object);
    if (dropping_) {
        for (const Request* one = entry.requests; one; one = one->next)
            if (one->region.track) context_.tracks.failed(one->region.track);
        if (entry.requests) forget_older(entry);
        entry.release_requests();
        gst_buffer_unref(buffer);
        return GST_FLOW_OK;
    }
    Span span(trace_flag::runs, TraceCategory::host, "post-process");
    span.frames({&entry.trace_frame, 1});
    ready_ = std::max(ready_, entry.entered);
    if (entry.requests && !done) ready_ = std::max(ready_, entry.leave_by);
    if (done && entry.requests) ready_ = std::max(ready_, entry.finished());
    const bool held = entry.requests != nullptr;
    GstFlowReturn flow = land();
    if (flow == GST_FLOW_OK && done) flow = collect(entry);
    if (flow == GST_FLOW_OK && !done) fly(entry);
    if (flow != GST_FLOW_OK) {
        entry.release_requests();
        gst_buffer_unref(buffer);
        return flow == GST_FLOW_FLUSHING ? GST_FLOW_OK : flow;  // a flush has set its own
    }
    if (admission_.live() && held && entry.status != InferenceStatus::failed)
        latency_.held(entry.entered, ready_);
    if (entry.status == InferenceStatus::failed) {
        forget_older(entry);
        flow = report_failure(entry);
    }
    const uint64_t total_us = us_between(entry.entered, Clock::now());
    context_.stats.total(total_us);
    if (entry.status != InferenceStatus::pending) {
        context_.stats.frame(entry.status, entry.inferences);
        admission_.adapt(entry.status, total_us);
        if (entry.status != InferenceStatus::inferred)
            trace_skip(context_.element, entry.status, entry.trace_frame);
    }
    if (entry.status == InferenceStatus::skipped_late ||
        entry.status == InferenceStatus::skipped_busy)
        report_skip(entry);
    buffer = writer_.attach(entry, buffer);
    entry.release_requests();
    if (!buffer) return GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }
    span.end();
    return gst_pad_push(context_.src, buffer);
}

// What looks like this frame, which has no result, has none to carry: nor one that is older.
void OutQueue::forget_older(const Entry& entry) {
    context_.no_result = true;
    if (!entry.keeps_rate()) writer_.forget();
}

// One failed run is a WARNING, the third in a row an ERROR. Of the requests of one batch, which may
// be of several frames, the first speaks for all.
GstFlowReturn OutQueue::report_failure(const Entry& entry) {
    bool ran_badly = false, leads = false, device_lost = false;
    for (const Request* one = entry.requests; one; one = one->next) {
        const bool bad = one->status != vart::StatusCode::SUCCESS;
        ran_badly = ran_badly || bad;
        leads = leads || (bad && one->leads_batch);
        device_lost = device_lost || one->device_lost;
    }
    if (ran_badly && !leads) return GST_FLOW_OK;
    Failure failure = {
        {entry.error.code, "frame " + std::to_string(entry.seq) + " of model '" +
                               entry.plan->lane->record()->model + "': " + entry.error.message},
        "infer-run"};
    if (device_lost) {
        failure.id = "infer-device-lost";
        failure.recoverable = false;
    }
    if (++failures_ < 3) {
        post_warning(context_.element, "infer a frame", failure);
        return GST_FLOW_OK;
    }
    failure.error.message += "; it is the third failed run in a row";
    post_error(context_.element, "infer a frame", failure);
    return GST_FLOW_ERROR;
}

void OutQueue::report_skip(const Entry& entry) {
    GstBuffer* buffer = GST_BUFFER_CAST(entry.object);
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    guint64 running = GST_CLOCK_TIME_NONE, stream = GST_CLOCK_TIME_NONE;
    if (GST_CLOCK_TIME_IS_VALID(pts) && segment_.format == GST_FORMAT_TIME) {
        running = gst_segment_to_running_time(&segment_, GST_FORMAT_TIME, pts);
        stream = gst_segment_to_stream_time(&segment_, GST_FORMAT_TIME, pts);
    }
    GstMessage* message = gst_message_new_qos(GST_OBJECT(context_.element), admission_.live(),
                                              running, stream, pts, GST_BUFFER_DURATION(buffer));
    gint64 jitter = 0;
    double proportion;
    {
        const std::lock_guard lock(context_.signal->mutex);
        proportion = admission_.gates().proportion();
        if (GST_CLOCK_TIME_IS_VALID(running) &&
            GST_CLOCK_TIME_IS_VALID(admission_.gates().earliest())) {
            jitter = GST_CLOCK_DIFF(running, admission_.gates().earliest());
        }
    }
    gst_message_set_qos_values(message, jitter, proportion, 1000000);
    gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, context_.stats.inferences(),
                              context_.stats.skipped());
    gst_element_post_message(context_.element, message);
}

// Whether frames are tensors, by their caps or by the camera that they come from.
bool OutQueue::are_tensors(const GstCaps* caps) const {
    const auto format = frame_format(caps);
    return format && (format->tensor || camera_tensor(context_.element, *format));
}

void OutQueue::answer_query(Entry& entry) {
    GstQuery* query = GST_QUERY_CAST(entry.object);
    if (GST_QUERY_TYPE(query) == GST_QUERY_DRAIN) {  // who asks takes the memory of frames back
        std::unique_lock lock(context_.signal->mutex);
        context_.signal->changed.wait(lock, [&] {
            return flow_ != GST_FLOW_OK ||
                   std::ranges::all_of(flying_, [](const Entry& one) { return one.done(); });
        });
    }
    bool result = gst_pad_peer_query(context_.src, query);
    if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
        const std::shared_ptr<Lane> lane = loader_.lane();
        const InputIsTensor tensor = context_.settings.started().input_is_tensor;
        GstCaps* caps = nullptr;
        gst_query_parse_allocation(query, &caps, nullptr);
        const bool dense = tensor == InputIsTensor::yes ||
                           (tensor == InputIsTensor::automatic && lane && lane->takes_pictures()) ||
                           (caps && are_tensors(caps));
        answer_allocation(query, lane ? lane->depth() : 2, dense);
        result = true;
    }
    const std::lock_guard lock(context_.signal->mutex);
    query_active_ = false;
    query_done_ = true;
    query_result_ = result;
    context_.signal->changed.notify_all();
}

}  // namespace vartml::gst::infer
