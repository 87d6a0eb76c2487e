// SPDX-License-Identifier: Apache-2.0
// Events, queries and activation of vartmlinfer; the queue they share with the frames.
#include "gst/infer/stream.h"

#include <algorithm>
#include <utility>

#include <gst/video/gstvideometa.h>

#include "gst/infer/trace.h"
#include "gst/support/events.h"
#include "gst/support/frame_pool.h"

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

// Serialized queries: passed on behind the frames, ALLOCATION with what this element adds.
namespace {

// What upstream should know of strides: 64-byte rows are read fastest; a frame that is the tensor
// has no padding at all.
GstStructure* alignment_params(bool dense) {
    const guint align = dense ? 0 : 63;
    return gst_structure_new("video-meta", "padding-top", G_TYPE_UINT, 0u, "padding-bottom",
                             G_TYPE_UINT, 0u, "padding-left", G_TYPE_UINT, 0u, "padding-right",
                             G_TYPE_UINT, 0u, "stride-align0", G_TYPE_UINT, align, "stride-align1",
                             G_TYPE_UINT, align, "stride-align2", G_TYPE_UINT, align,
                             "stride-align3", G_TYPE_UINT, align, nullptr);
}

void add_video_meta(GstQuery* query, bool dense) {
    GstStructure* params = alignment_params(dense);
    guint index;
    if (gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, &index)) {
        const GstStructure* theirs = nullptr;
        gst_query_parse_nth_allocation_meta(query, index, &theirs);
        GstStructure* both = nullptr;
        if (theirs &&
            gst_meta_api_type_aggregate_params(GST_VIDEO_META_API_TYPE, &both, theirs, params)) {
            gst_structure_free(params);
            params = both;
        }
        gst_query_remove_nth_allocation_meta(query, index);
    }
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, params);
    gst_structure_free(params);
}

void offer_own_pool(GstQuery* query, guint min) {
    GstCaps* caps = nullptr;
    gboolean need_pool = FALSE;
    gst_query_parse_allocation(query, &caps, &need_pool);
    if (!caps || !need_pool) return;
    OfferedPool offer = offer_pool(caps, min);
    if (!offer.pool) return;
    // Upstream looks at the first of each; one without pool only says a size.
    if (gst_query_get_n_allocation_pools(query) > 0) {
        gst_query_set_nth_allocation_pool(query, 0, offer.pool, offer.size, min, 0);
    } else {
        gst_query_add_allocation_pool(query, offer.pool, offer.size, min, 0);
    }
    if (offer.allocator && gst_query_get_n_allocation_params(query) > 0) {
        gst_query_set_nth_allocation_param(query, 0, offer.allocator, &offer.params);
    } else if (offer.allocator) {
        gst_query_add_allocation_param(query, offer.allocator, &offer.params);
    }
    gst_object_unref(offer.pool);
    gst_clear_object(&offer.allocator);
}

}  // namespace

void Stream::answer_query(Entry& entry) {
    GstQuery* query = GST_QUERY_CAST(entry.object);
    bool result = gst_pad_peer_query(src_, query);
    if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
        answer_allocation(query);
        result = true;
    }
    const std::lock_guard lock(signal_->mutex);
    query_active_ = false;
    query_done_ = true;
    query_result_ = result;
    signal_->changed.notify_all();
}

// The peer's answer, with strides and offsets allowed and room for the frames that wait here; a
// pool of ours where the peer has none.
void Stream::answer_allocation(GstQuery* query) {
    unsigned depth = 2;
    bool dense = started_.input_is_tensor == InputIsTensor::yes;
    {
        const std::lock_guard lock(signal_->mutex);
        if (lane_) {
            depth = lane_->depth();
            dense = dense || (started_.input_is_tensor == InputIsTensor::automatic &&
                              lane_->takes_pictures());
        }
    }
    add_video_meta(query, dense);
    bool pool_offered = false;
    for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
        GstBufferPool* pool;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
        min += depth;
        if (max != 0) max += depth;
        gst_query_set_nth_allocation_pool(query, i, pool, size, min, max);
        pool_offered = pool_offered || pool != nullptr;
        gst_clear_object(&pool);
    }
    if (!pool_offered) offer_own_pool(query, depth + 1);
}

void Stream::narrow_caps(GstQuery* query) {
    GstCaps* narrow = nullptr;
    {
        const std::lock_guard lock(signal_->mutex);
        if (narrow_) narrow = gst_caps_ref(narrow_);
    }
    if (!narrow) return;
    GstCaps* answer;
    gst_query_parse_caps_result(query, &answer);
    GstCaps* both = gst_caps_intersect_full(answer, narrow, GST_CAPS_INTERSECT_FIRST);
    // Where upstream has nothing that fits, its caps come and are refused with a sentence; "not
    // negotiated" would name nothing.
    if (!gst_caps_is_empty(both)) gst_query_set_caps_result(query, both);
    gst_caps_unref(both);
    gst_caps_unref(narrow);
}

// The streaming thread: model and plan for a frame, gates, depth, into the queue.

bool Stream::skip_mode() const {
    const OnLate choice = on_late_;
    const bool passes = live_ || keep_rate_ == KeepRate::yes;
    return choice == OnLate::skip || (choice == OnLate::automatic && passes);
}

// Results of regions belong to boxes of their frame.
bool Stream::keeps_rate(bool live) const {
    if (started_.region == InferenceRegion::roi) return false;
    const KeepRate choice = keep_rate_;
    return choice == KeepRate::yes ||
           (choice == KeepRate::automatic && live && on_late_ != OnLate::block);
}

// What a frame that keeps its rate may wait for its own result.
GstClockTime Stream::longest_hold(GstClockTime frame_duration) const {
    return GST_CLOCK_TIME_IS_VALID(started_.latency) ? started_.latency : frame_duration;
}

// A frame waits only for results that are expected in time.
void Stream::decide_leave(Entry& entry) {
    if (!keeps_rate(live_)) return;
    const std::chrono::nanoseconds hold(longest_hold(entry.plan->frame_duration));
    const auto hold_us =
        uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(hold).count());
    const bool waited = time_.is_within(), waits = time_.within(hold_us);
    if (waits != waited) {
        GST_DEBUG_OBJECT(element_,
                         "results come in %" G_GUINT64_FORMAT " us of %" G_GUINT64_FORMAT
                         ": frames %s",
                         guint64(time_.us()), guint64(hold_us),
                         waits ? "wait for their own" : "carry the newest");
    }
    entry.leave_by = entry.entered + (waits ? Clock::duration(hold) : Clock::duration(0));
}

bool Entry::done() const {
    for (const Request* r = requests; r; r = r->next) {
        if (!r->done) return false;
    }
    return true;
}

// Frames whose results are not there.
unsigned Stream::in_flight() const {
    const auto landed = std::ranges::count_if(flying_, &Entry::done);
    return inferring_ - unsigned(landed);
}

// Of a frame that keeps its rate: the device has as many runs of this stream as it makes beside
// each other, and none ends before the next frame, which is newer then. Where one does, this frame
// waits for it, the only one, so that the device goes on at once.
bool Stream::is_early(const Entry& entry) const {
    const Lane& lane = *entry.plan->lane;
    const Scheduler& scheduler = *lane.instance().scheduler;
    const unsigned batch = scheduler.limits().batch;
    const unsigned busy = std::min(lane.depth(), scheduler.runs_of_stream() * batch);
    const unsigned waiting = in_flight();
    if (waiting < busy) return false;
    const auto oldest = std::ranges::find_if_not(flying_, &Entry::done);
    if (oldest == flying_.end()) return waiting >= lane.depth();
    const auto ends = oldest->requests->submitted + std::chrono::microseconds(time_.us());
    return waiting >= busy + batch ||
           ends > entry.entered + std::chrono::nanoseconds(entry.plan->frame_duration);
}

// Between chain and push: those that come during two turns of the device wait behind frames that
// are inferred; beyond that downstream is slow.
size_t Stream::most_frames(const FramePlan& plan) const {
    const size_t depth = plan.lane->depth();
    if (plan.frame_duration == 0) return 2 * depth;
    const uint64_t turn_ns = depth * time_.us() * 1000;
    return 2 * (depth + size_t(turn_ns / plan.frame_duration));
}

// Waits until a model is there and takes over one that was swapped in: this frame is its first.
GstFlowReturn Stream::wait_for_model(GstBuffer* buffer) {
    std::shared_ptr<Lane> replaced;
    std::string model, sidecar;
    {
        std::unique_lock lock(signal_->mutex);
        signal_->changed.wait(lock,
                              [this] { return flow_ != GST_FLOW_OK || load_ != Load::loading; });
        if (flow_ != GST_FLOW_OK) return flow_;
        if (refusing_) return GST_FLOW_EOS;
        if (load_ != Load::loaded) return GST_FLOW_ERROR;
        if (next_lane_) {
            replaced = std::exchange(lane_, std::exchange(next_lane_, nullptr));
            model = next_model_;
            sidecar = lane_->modelinfo_file();
            epoch_ = lane_->record()->model_epoch;
            narrow_to(*lane_);
            plan_.reset();
            Entry entry;
            entry.kind = Entry::Kind::swap;
            entry.seq = next_seq_;
            entry.pts = GST_BUFFER_PTS(buffer);
            entry.old_lane = replaced;
            entry.new_lane = lane_;
            enqueue(std::move(entry));
        }
    }
    if (replaced) {
        replaced->hurry();
        stats_.model_swap();
        const std::lock_guard lock(settings_mutex_);
        settings_.model = model;
        if (sidecar == settings_.modelinfo_file) settings_.sidecar_written = false;
        if (!settings_.sidecar_written) settings_.modelinfo_file = sidecar;
    }
    return GST_FLOW_OK;
}

// Waits until the frame with `wanted` inferences may enter the queue, and decides whether it is
// inferred. False: the stream stopped.
bool Stream::admit(Entry& entry, unsigned wanted, std::unique_lock<std::mutex>& lock) {
    Lane& lane = *entry.plan->lane;
    bool skip = false, infer = false;
    // Frames that pass without inference wait behind those in flight, so that the order is kept;
    // they are bounded as well.
    const auto room = [&] {
        if (flow_ != GST_FLOW_OK || refusing_) return true;
        skip = skip_mode();
        if (frames_ >= (skip ? most_frames(*entry.plan) : lane.depth())) return false;
        if (wanted == 0) return true;
        infer = lane.available(wanted) &&
                (skip && entry.keeps_rate() ? !is_early(entry) : in_flight() < lane.depth());
        return infer || skip;
    };
    signal_->changed.wait(lock, room);
    if (flow_ != GST_FLOW_OK || refusing_) return false;
    if (wanted > 0 && !infer) entry.status = InferenceStatus::skipped_busy;
    ++frames_;
    if (infer) ++inferring_;
    if (infer) stats_.in_flight(in_flight());
    entry.inferences = infer ? wanted : 0;
    return true;
}

void Stream::release_all(Entry& entry) {
    while (Request* request = entry.requests) {
        entry.requests = request->next;
        entry.plan->lane->release(request);
    }
}

// Tells of labels of regions that no model before knows.
void Stream::check_labels(const std::shared_ptr<const RegionRules>& rules, GstBuffer* buffer) {
    if (rules != checked_rules_) label_check_.restart();
    checked_rules_ = rules;
    if (regions_are_detections(buffer, *rules))
        label_check_.frame(element_, "roi-classes", rules->classes);
}

GstFlowReturn Stream::chain(GstBuffer* buffer) {
    GstFlowReturn flow = wait_for_model(buffer);
    if (flow == GST_FLOW_OK && !ensure_plan()) flow = GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }

    Entry entry;
    entry.kind = Entry::Kind::frame;
    entry.plan = plan_;
    entry.seq = next_seq_++;
    entry.trace_frame = trace_frame(plan_->trace_stream, buffer, entry.seq);
    entry.entered = Clock::now();  // the wait for a model is not the frame's
    entry.pts = GST_BUFFER_PTS(buffer);
    std::shared_ptr<const RegionRules> rules;
    std::unique_lock lock(signal_->mutex);
    entry.status = gates_.decide(buffer, segment_, interval_,
                                 std::max<unsigned>(interval_, adapted_), skip_mode());
    rules = rules_;
    decide_leave(entry);
    unsigned wanted = entry.status == InferenceStatus::inferred;
    if (wanted && started_.region == InferenceRegion::roi) {
        lock.unlock();
        const vartml::PictureInfo& picture = plan_->format.picture;
        check_labels(rules, buffer);
        find_regions(buffer, *rules, picture.width, picture.height, regions_);
        wanted = unsigned(regions_.size());
        if (wanted == 0) entry.status = InferenceStatus::skipped_region;
        lock.lock();
    }
    if (!admit(entry, wanted, lock)) {
        flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_EOS;
        lock.unlock();
        gst_buffer_unref(buffer);
        return flow;
    }
    lock.unlock();

    const bool inferring = entry.inferences > 0;
    const Prepared prepared = inferring ? prepare(entry, buffer) : Prepared::yes;
    if (prepared != Prepared::yes) {
        release_all(entry);
        entry.status = InferenceStatus::failed;
    }
    lock.lock();
    if (inferring && !entry.requests) --inferring_;
    const bool here = entry.plan->lane->runs_here();
    if (here) {
        // The run has ended, or another stream's thread is about to end it: waking the task would
        // cost more. Events before the frame leave first.
        signal_->changed.wait(lock, [this, &entry] {
            return flow_ != GST_FLOW_OK || (queue_.empty() && !serving_ && entry.done());
        });
    }
    if (flow_ == GST_FLOW_OK && prepared != Prepared::stop) {
        entry.object = GST_MINI_OBJECT_CAST(buffer);
        if (!here) {
            enqueue(std::move(entry));
            return GST_FLOW_OK;
        }
        queue_.push(std::move(entry));
        serve_head(lock);
        return flow_;
    }
    // Stopped, flushed or forbidden meanwhile.
    flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_ERROR;
    --frames_;
    if (entry.requests) --inferring_;
    lock.unlock();
    release_all(entry);
    gst_buffer_unref(buffer);
    return flow;
}

}  // namespace vartml::gst::infer
