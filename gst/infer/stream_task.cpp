// SPDX-License-Identifier: Apache-2.0
// The task of the src pad: waits for the head of the queue, attaches what came out of the run,
// pushes.
#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <utility>

#include "gst/infer/stream.h"

namespace vartml::gst::infer {
namespace {

uint64_t us_between(Clock::time_point from, Clock::time_point to) {
    return uint64_t(std::max<int64_t>(
        0, std::chrono::duration_cast<std::chrono::microseconds>(to - from).count()));
}

GstTensorDataType tensor_type(vartml::DataType type) {
    using vartml::DataType;
    switch (type) {
        case DataType::int8:
            return GST_TENSOR_DATA_TYPE_INT8;
        case DataType::int16:
            return GST_TENSOR_DATA_TYPE_INT16;
        case DataType::uint16:
            return GST_TENSOR_DATA_TYPE_UINT16;
        case DataType::int32:
            return GST_TENSOR_DATA_TYPE_INT32;
        case DataType::uint32:
            return GST_TENSOR_DATA_TYPE_UINT32;
        case DataType::int64:
            return GST_TENSOR_DATA_TYPE_INT64;
        case DataType::uint64:
            return GST_TENSOR_DATA_TYPE_UINT64;
        case DataType::fp16:
            return GST_TENSOR_DATA_TYPE_FLOAT16;
        case DataType::bf16:
            return GST_TENSOR_DATA_TYPE_BFLOAT16;
        case DataType::float32:
            return GST_TENSOR_DATA_TYPE_FLOAT32;
        case DataType::float64:
            return GST_TENSOR_DATA_TYPE_FLOAT64;
        default:
            return GST_TENSOR_DATA_TYPE_UINT8;  // and booleans
    }
}

}  // namespace

bool Stream::head_ready() {
    if (queue_.empty()) return false;
    const Entry& head = queue_.front();
    return !head.job || head.job->done || dropping_;
}

void Stream::loop() {
    std::unique_lock lock(signal_.mutex);
    signal_.changed.wait(lock, [this] { return flow_ != GST_FLOW_OK || head_ready(); });
    if (flow_ != GST_FLOW_OK) {
        lock.unlock();
        gst_pad_pause_task(src_);
        return;
    }
    Entry entry = queue_.pop();
    query_active_ = entry.kind == Entry::Kind::query;
    lock.unlock();

    GstFlowReturn flow = GST_FLOW_OK;
    const bool had_job = entry.job != nullptr;
    const bool frame = entry.kind == Entry::Kind::frame;
    switch (entry.kind) {
        case Entry::Kind::frame:
            flow = push_frame(entry);
            break;
        case Entry::Kind::event:
            flow = push_event(entry);
            break;
        case Entry::Kind::query:
            answer_query(entry);
            break;
        case Entry::Kind::none:
            break;
    }

    lock.lock();
    if (frame) {
        --frames_;
        if (had_job) --inferring_;
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
    signal_.changed.notify_all();
    if (flow != GST_FLOW_OK && flow_ == GST_FLOW_OK) {
        flow_ = flow;
        lock.unlock();
        finished_flow(flow);
    }
}

void Stream::finished_flow(GstFlowReturn flow) {
    gst_pad_pause_task(src_);
    bool eos;
    {
        const std::lock_guard lock(signal_.mutex);
        eos = eos_;
    }
    // Upstream sent its last and will not see the result: tell the application.
    if (eos && (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS)) {
        GST_ELEMENT_FLOW_ERROR(element_, flow);
        gst_pad_push_event(src_, gst_event_new_eos());
    }
}

GstFlowReturn Stream::push_event(Entry& entry) {
    GstEvent* event = GST_EVENT_CAST(entry.object);
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_SEGMENT || type == GST_EVENT_STREAM_START || type == GST_EVENT_EOS)
        dropping_ = false;
    if (type == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &out_segment_);
    gst_pad_push_event(src_, event);
    return type == GST_EVENT_EOS ? GST_FLOW_EOS : GST_FLOW_OK;
}

void Stream::answer_query(Entry& entry) {
    GstQuery* query = GST_QUERY_CAST(entry.object);
    bool result = gst_pad_peer_query(src_, query);
    if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) result = answer_allocation(query) || result;
    const std::lock_guard lock(signal_.mutex);
    query_active_ = false;
    query_done_ = true;
    query_result_ = result;
    signal_.changed.notify_all();
}

// The peer's answer, with strides and offsets allowed and room for the frames that wait here.
bool Stream::answer_allocation(GstQuery* query) {
    if (!gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr)) {
        gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    }
    for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
        GstBufferPool* pool;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
        min += depth();
        if (max != 0) max += depth();
        gst_query_set_nth_allocation_pool(query, i, pool, size, min, max);
        if (pool) gst_object_unref(pool);
    }
    return true;
}

GstFlowReturn Stream::push_frame(Entry& entry) {
    GstBuffer* buffer = GST_BUFFER_CAST(entry.object);
    if (dropping_) {
        if (entry.job) jobs_.abandon(entry.job);
        gst_buffer_unref(buffer);
        return GST_FLOW_OK;
    }
    if (entry.job && entry.job->status != vart::StatusCode::SUCCESS) {
        entry.status = InferenceStatus::failed;
        entry.error = status_error(entry.job->status, "the run ended");
    }
    if (entry.status == InferenceStatus::inferred && !convert_outputs(entry)) {
        entry.status = InferenceStatus::failed;
        entry.error = {vartml::ErrorCode::out_of_memory, "no memory for the CPU view of an output"};
    }
    const auto now = Clock::now();
    ready_ = std::max(ready_, entry.job ? entry.job->finished : entry.entered);
    GstFlowReturn flow = GST_FLOW_OK;
    if (entry.status == InferenceStatus::failed) {
        flow = report_failure(entry);
    } else if (entry.status == InferenceStatus::inferred) {
        failures_ = 0;
        stats_.times(entry.pre_us, us_between(entry.job->submitted, entry.job->started),
                     us_between(entry.job->started, entry.job->finished));
        count_copies(entry);
        if (live_) raise_latency(ready_, entry);
    }
    stats_.total(us_between(entry.entered, now));
    stats_.frame(entry.status);
    if (entry.status == InferenceStatus::skipped_late ||
        entry.status == InferenceStatus::skipped_busy)
        report_skip(entry);
    buffer = attach(entry, buffer);
    if (entry.job) jobs_.release(entry.job);
    if (!buffer) return GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }
    return gst_pad_push(src_, buffer);
}

// One failed run is a WARNING, the third in a row an ERROR.
GstFlowReturn Stream::report_failure(const Entry& entry) {
    Failure failure = {{entry.error.code, "frame " + std::to_string(entry.seq) + " of model '" +
                                              entry.plan->instance->description.name +
                                              "': " + entry.error.message},
                       "infer-run"};
    if (entry.error.code == vartml::ErrorCode::busy)
        return GST_FLOW_OK;  // the wait for a slot was ended by a flush
    if (++failures_ < 3) {
        post_warning(element_, "infer a frame", failure);
        return GST_FLOW_OK;
    }
    failure.error.message += "; it is the third failed run in a row";
    post_error(element_, "infer a frame", failure);
    return GST_FLOW_ERROR;
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
        const std::lock_guard lock(signal_.mutex);
        proportion = gates_.proportion();
        if (GST_CLOCK_TIME_IS_VALID(running) && GST_CLOCK_TIME_IS_VALID(gates_.earliest())) {
            jitter = GST_CLOCK_DIFF(running, gates_.earliest());
        }
    }
    gst_message_set_qos_values(message, jitter, proportion, 1000000);
    gst_message_set_qos_stats(message, GST_FORMAT_BUFFERS, stats_.inferences(), stats_.skipped());
    gst_element_post_message(element_, message);
}

void Stream::count_copies(const Entry& entry) {
    const Instance& instance = *entry.plan->instance;
    const auto count = [&](CopyReason reason, const std::vector<vartml::TensorInfo>& infos,
                           const std::vector<RunnerTensor>& tensors) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < tensors.size(); ++i)
            bytes += infos[i].hw ? 0 : tensors[i].info.size_in_bytes;
        if (bytes && stats_.copied(reason, bytes)) (void)copy_forbidden(reason, bytes);
    };
    count(CopyReason::input_cpu_view, instance.description.inputs, instance.inputs);
    count(CopyReason::output_cpu_view, instance.description.outputs, instance.outputs);
}

// Puts CPU views in the place of what the device wrote. False: no memory.
bool Stream::convert_outputs(Entry& entry) {
    Instance& instance = *entry.plan->instance;
    bool converted = false;
    for (size_t i = 0; i < instance.cpu_views.size(); ++i) {
        std::optional<Instance::CpuView>& view = instance.cpu_views[i];
        if (!view) continue;
        GstBuffer* cpu = nullptr;
        GstMapInfo from, to;
        if (gst_buffer_pool_acquire_buffer(view->pool, &cpu, nullptr) != GST_FLOW_OK) return false;
        gst_buffer_map(entry.job->data[i], &from, GST_MAP_READ);
        gst_buffer_map(cpu, &to, GST_MAP_WRITE);
        view->conversion.run(from.data, to.data);
        gst_buffer_unmap(cpu, &to);
        gst_buffer_unmap(entry.job->data[i], &from);
        gst_buffer_unref(std::exchange(entry.job->data[i], cpu));
        converted = true;
    }
    if (converted) stats_.conversion();
    return true;
}

// Live: what a frame was held beyond the promised latency raises it; the wait for downstream is not
// ours.
void Stream::raise_latency(Clock::time_point ready, const Entry& entry) {
    const uint64_t held_us = us_between(entry.entered, ready);
    {
        const std::lock_guard lock(signal_.mutex);
        const GstClockTime held = (held_us + 999) / 1000 * GST_MSECOND;
        if (held <= measured_latency_) return;
        measured_latency_ = held;
        const auto now = Clock::now();
        if (now - latency_posted_ < std::chrono::seconds(1)) return;
        latency_posted_ = now;
    }
    gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

// Metadata needs a writable buffer. Its memory is shared by the copy, except where a memory forbids
// it.
GstBuffer* Stream::make_writable(GstBuffer* buffer, const Entry&) {
    if (gst_buffer_is_writable(buffer)) return buffer;
    uint64_t bytes = 0;
    for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
        GstMemory* memory = gst_buffer_peek_memory(buffer, i);
        if (GST_MEMORY_IS_NO_SHARE(memory)) bytes += memory->size;
    }
    if (bytes && stats_.copied(CopyReason::make_writable, bytes) &&
        copy_forbidden(CopyReason::make_writable, bytes)) {
        gst_buffer_unref(buffer);
        return nullptr;
    }
    return gst_buffer_make_writable(buffer);
}

void Stream::attach_tensors(const Entry& entry, GstBuffer* buffer) {
    const InferenceRecord& record = *entry.plan->instance->record;
    const size_t n = record.views.size();
    GstTensor** tensors = g_new0(GstTensor*, n);
    for (size_t i = 0; i < n; ++i) {
        const vartml::TensorView& view = record.views[i];
        // Not gst_tensor_new_simple: it refuses a buffer that is larger than its elements.
        GstTensor* tensor = gst_tensor_alloc(view.shape.size());
        tensor->id = g_quark_from_string(record.tensor_ids[i].c_str());
        tensor->layout = GST_TENSOR_LAYOUT_CONTIGUOUS;
        tensor->data_type = tensor_type(view.data_type);
        tensor->data = gst_buffer_ref(entry.job->data[i]);
        tensor->dims_order = GST_TENSOR_DIM_ORDER_ROW_MAJOR;
        std::copy(view.shape.begin(), view.shape.end(), tensor->dims);
        tensors[i] = tensor;
    }
    // Not gst_buffer_add_tensor_meta: before 1.26.6 it returns an existing one.
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    gst_tensor_meta_set(meta, guint(n), tensors);
}

// Takes the buffer, returns one with the metadata; nullptr after posting an error.
GstBuffer* Stream::attach(Entry& entry, GstBuffer* buffer) {
    const FramePlan& plan = *entry.plan;
    buffer = make_writable(buffer, entry);
    if (!buffer) return nullptr;
    Inference& i = scratch_;
    i.status = entry.status;
    i.stream_id = plan.stream_id;
    i.frame_seq = entry.seq;
    i.frame_width = plan.format.picture.width;
    i.frame_height = plan.format.picture.height;
    i.region_width = int(i.frame_width);
    i.region_height = int(i.frame_height);
    i.resize = plan.instance->preprocess.resize;
    i.to_frame = plan.preprocessor.to_frame();
    i.pre_us = entry.pre_us;
    i.wait_us = i.run_us = 0;
    i.total_us = us_between(entry.entered, Clock::now());
    i.batch_fill = 0;
    i.record = plan.instance->record;
    i.data.clear();
    if (entry.status == InferenceStatus::inferred) {
        i.wait_us = us_between(entry.job->submitted, entry.job->started);
        i.run_us = us_between(entry.job->started, entry.job->finished);
        i.batch_fill = 1;
        i.data = entry.job->data;
        attach_tensors(entry, buffer);
    }
    add_inference(buffer, i, entry.status == InferenceStatus::inferred ? 100 : 0);
    i.data.clear();
    return buffer;
}

}  // namespace vartml::gst::infer
