// SPDX-License-Identifier: Apache-2.0
// Events, queries and activation of vartmlinfer; the queue they share with the frames.
#include "gst/infer/stream.h"
#include "gst/infer/log.h"

#include <algorithm>

#include "gst/support/events.h"

namespace vartml::gst::infer {

Stream::~Stream() {
    stop();
}

void Stream::enqueue(Entry entry) {
    queue_.push(std::move(entry));
    queued_.notify_one();
}

void Stream::set_flow(GstFlowReturn flow) {
    flow_ = flow;
    queued_.notify_one();
    signal_->changed.notify_all();
}

void Stream::reset_stream() {
    gates_.reset();
    eos_ = refusing_ = false;
    dropping_ = false;
    frames_ = inferring_ = 0;
}

// With the task stopped. Sticky events stay on the src pad, as in queue; those of a segment do not
// survive a flush.
void Stream::drop_queue(bool keep_sticky) {
    std::vector<Entry> dropped;
    {
        const std::lock_guard lock(signal_->mutex);
        while (!queue_.empty()) dropped.push_back(queue_.pop());
    }
    abandon_flying();
    known_.forget();
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
                gst_pad_store_sticky_event(src_, event);
            }
        }
        release_all(entry);
        gst_mini_object_unref(entry.object);
    }
}

gboolean Stream::sink_event(GstEvent* event) {
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_FLUSH_START) {
        const gboolean result = gst_pad_push_event(src_, event);
        {
            const std::lock_guard lock(signal_->mutex);
            set_flow(GST_FLOW_FLUSHING);
        }
        gst_pad_pause_task(src_);
        return result;
    }
    if (type == GST_EVENT_FLUSH_STOP) {
        const gboolean result = gst_pad_push_event(src_, event);
        drop_queue(true);
        gst_segment_init(&segment_, GST_FORMAT_UNDEFINED);
        const std::lock_guard lock(signal_->mutex);
        reset_stream();
        set_flow(GST_FLOW_OK);
        if (gst_pad_is_active(src_)) gst_pad_start_task(src_, task, this, nullptr);
        return result;
    }
    if (!is_serialized(event)) return gst_pad_push_event(src_, event);

    switch (type) {
        case GST_EVENT_CAPS:
            if (!handle_caps(event)) {
                gst_event_unref(event);
                return FALSE;
            }
            break;
        case GST_EVENT_SEGMENT:
            gst_event_copy_segment(event, &segment_);
            break;
        case GST_EVENT_STREAM_START: {
            const gchar* id;
            gst_event_parse_stream_start(event, &id);
            stream_id_ = id ? id : "";
            next_seq_ = 0;
            plan_.reset();
            break;
        }
        default:
            break;
    }
    std::unique_lock lock(signal_->mutex);
    const bool restarts = type == GST_EVENT_STREAM_START || type == GST_EVENT_SEGMENT;
    if (restarts) {
        refusing_ = false;
        if (flow_ == GST_FLOW_EOS) {
            eos_ = false;
            set_flow(GST_FLOW_OK);
            gst_pad_start_task(src_, task, this, nullptr);
        }
    }
    if (flow_ != GST_FLOW_OK && (!is_sticky(event) || type == GST_EVENT_EOS)) {
        // Upstream's last event: nothing later would report the failure.
        const GstFlowReturn flow = flow_;
        lock.unlock();
        if (type == GST_EVENT_EOS && (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS))
            GST_ELEMENT_FLOW_ERROR(element_, flow);
        gst_event_unref(event);
        return FALSE;
    }
    if (type == GST_EVENT_EOS) eos_ = true;
    Entry entry;
    entry.kind = Entry::Kind::event;
    entry.object = GST_MINI_OBJECT_CAST(event);
    enqueue(std::move(entry));
    // No frame will come that fills the last batch.
    const std::shared_ptr<Lane> lane = type == GST_EVENT_EOS ? lane_ : nullptr;
    lock.unlock();
    if (lane) lane->hurry();
    return TRUE;
}

// Serialized queries wait for what came before them.
gboolean Stream::sink_query(GstQuery* query) {
    std::unique_lock lock(signal_->mutex);
    if (flow_ != GST_FLOW_OK) return FALSE;
    query_done_ = query_result_ = false;
    Entry entry;
    entry.kind = Entry::Kind::query;
    entry.object = GST_MINI_OBJECT_CAST(query);
    enqueue(std::move(entry));
    if (const std::shared_ptr<Lane> lane = lane_) {
        lock.unlock();
        lane->hurry();
        lock.lock();
    }
    signal_->changed.wait(
        lock, [this] { return query_done_ || (flow_ != GST_FLOW_OK && !query_active_); });
    if (!query_done_) {
        for (size_t i = 0; i < queue_.size(); ++i) {
            if (queue_[i].kind == Entry::Kind::query) queue_[i].kind = Entry::Kind::none;
        }
    }
    return query_done_ && query_result_;
}

gboolean Stream::src_event(GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_QOS) {
        gdouble proportion;
        GstClockTimeDiff diff;
        GstClockTime timestamp;
        gst_event_parse_qos(event, nullptr, &proportion, &diff, &timestamp);
        GST_DEBUG_OBJECT(element_, "downstream is %" G_GINT64_FORMAT " ns late, proportion %g",
                         diff, proportion);
        const std::lock_guard lock(signal_->mutex);
        gates_.qos(proportion, diff, timestamp);
    }
    if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) {
        relinked_ = true;
        const std::lock_guard lock(signal_->mutex);
        if (flow_ == GST_FLOW_NOT_LINKED) {  // linked anew, as in queue
            set_flow(GST_FLOW_OK);
            gst_pad_start_task(src_, task, this, nullptr);
        }
    }
    return gst_pad_push_event(sink_, event);
}

// With the mutex. Other streams may have come to the model since the last time.
GstClockTime Stream::latency(bool live) {
    if (GST_CLOCK_TIME_IS_VALID(started_.latency)) return started_.latency;
    if (lane_) {
        measured_latency_ =
            std::max(measured_latency_, promised_latency(*lane_, frame_duration_, live));
    }
    return measured_latency_;
}

gboolean Stream::src_query(GstQuery* query) {
    if (!gst_pad_peer_query(sink_, query)) return FALSE;
    gboolean live;
    GstClockTime min, max;
    gst_query_parse_latency(query, &live, &min, &max);
    if (live) {
        GstClockTime own;
        {
            const std::lock_guard lock(signal_->mutex);
            own = latency(live);
        }
        GST_DEBUG_OBJECT(element_, "latency %" GST_TIME_FORMAT " on top of %" GST_TIME_FORMAT,
                         GST_TIME_ARGS(own), GST_TIME_ARGS(min));
        min += own;
        if (GST_CLOCK_TIME_IS_VALID(max)) max += own;
        gst_query_set_latency(query, live, min, max);
    }
    return TRUE;
}

void Stream::activate_sink(bool active) {
    const std::lock_guard lock(signal_->mutex);
    if (active) {
        reset_stream();
        next_seq_ = 0;
        gst_segment_init(&segment_, GST_FORMAT_UNDEFINED);
        gst_segment_init(&out_segment_, GST_FORMAT_UNDEFINED);
        ready_ = {};
        set_flow(GST_FLOW_OK);
    } else {
        set_flow(GST_FLOW_FLUSHING);
    }
}

gboolean Stream::activate_src(bool active) {
    if (active) {
        const std::lock_guard lock(signal_->mutex);
        set_flow(GST_FLOW_OK);
        return gst_pad_start_task(src_, task, this, nullptr);
    }
    {
        const std::lock_guard lock(signal_->mutex);
        set_flow(GST_FLOW_FLUSHING);
    }
    const gboolean result = gst_pad_stop_task(src_);
    drop_queue(false);
    return result;
}

GstStructure* Stream::stats_structure() {
    Stats::Gauges gauges;
    {
        const std::lock_guard lock(signal_->mutex);
        gauges.in_flight = inferring_;
        gauges.queue_depth = frames_;
        gauges.output_buffers = lane_ ? lane_->output_buffers() : 0;
    }
    gauges.interval = std::max<unsigned>(interval_, adapted_);
    return stats_.structure(gauges);
}

}  // namespace vartml::gst::infer
