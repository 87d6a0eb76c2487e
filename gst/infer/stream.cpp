// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/stream.h"

#include <utility>

#include "gst/infer/trace.h"
#include "gst/support/error.h"
#include "gst/support/events.h"
#include "gst/support/in_place.h"

namespace vartml::gst::infer {

void Stream::settings_written() {
    if (const auto model = context_.settings.take_over()) loader_.request_swap(*model);
    if (context_.settings.refuses_keep_rate()) {
        post_warning(context_.element, "keep the rate",
                     {.error = {vartml::ErrorCode::invalid_argument,
                                "property 'keep-rate' was set to yes while 'inference-region' is "
                                "roi, but results of regions belong to the boxes of their own "
                                "frame, so that frames wait for them as before; set "
                                "inference-region=full-frame in state READY, or infer on a "
                                "branch of its own and join it with vartmlmetajoin"},
                      .id = "infer-option",
                      .property = "keep-rate",
                      .found = "yes",
                      .expected = "auto",
                      .fix = "keep-rate=auto"});
    }
}

GstStructure* Stream::stats() {
    const OutQueue::Traffic traffic = out_.traffic();
    const std::shared_ptr<Lane> lane = loader_.lane();
    return context_.stats.structure({.in_flight = traffic.inferring,
                                     .queue_depth = traffic.frames,
                                     .output_buffers = lane ? lane->output_buffers() : 0,
                                     .interval = admission_.interval()});
}

bool Stream::start() {
    context_.settings.start();
    context_.stats.reset();
    context_.copies.start();
    latency_.start();
    admission_.start();
    return loader_.start();
}

void Stream::stop() {
    const bool had_model = loader_.has_model();
    context_.settings.stop();
    out_.drop(false);  // may leave a lane to the loader
    loader_.stop();
    preparer_.stop();
    announcer_.stop();
    motion_.stop();
    out_.stop();
    context_.tracks.clear();
    admission_.stop();
    // A swap that no frame has seen: the next start does it.
    if (const std::string pending = loader_.end(); !pending.empty())
        context_.settings.set_model(pending, had_model);
}

// The first frame of the same model that comes is compared with none: it is inferred.
void Stream::let_go() {
    preparer_.new_model();
    motion_.stop();
}

void Stream::activate_sink(bool active) {
    if (!active) out_.close();
    loader_.interrupt(!active);
    if (!active) return;
    next_seq_ = 0;
    gst_segment_init(&segment_, GST_FORMAT_UNDEFINED);
    out_.open();
}

gboolean Stream::activate_src(bool active) {
    if (!active) out_.close();
    loader_.interrupt(!active);
    if (active) return out_.begin();
    const gboolean result = gst_pad_stop_task(context_.src);
    out_.drop(false);
    return result;
}

// ---- events and queries ----

// False after posting the error.
bool Stream::handle_caps(GstEvent* event) {
    GstCaps* caps;
    gst_event_parse_caps(event, &caps);
    announcer_.set_caps(caps);
    if (!preparer_.set_caps(caps)) return true;
    trace_caps(context_.element, caps);
    GST_INFO_OBJECT(context_.element, "caps %" GST_PTR_FORMAT, caps);
    Failure failure;
    if (loader_.set_caps(caps, failure)) return true;
    return post_error(context_.element, doing_with_caps(failure), failure);
}

// Caps with the tensors, where other ones left last. False after posting the error.
bool Stream::announce() {
    if (!announcer_.is_stale()) return true;
    Failure failure;
    bool done = true;
    GstCaps* caps = announcer_.choose(failure);
    if (!caps) return post_error(context_.element, "hand over the tensors", failure);
    if (announcer_.changes(caps)) {
        preparer_.new_model();
        done = out_.put_event(gst_event_new_caps(caps));
    }
    gst_caps_unref(caps);
    return done;
}

gboolean Stream::sink_event(GstEvent* event) {
    const GstEventType type = GST_EVENT_TYPE(event);
    if (type == GST_EVENT_FLUSH_START) {
        const gboolean result = gst_pad_push_event(context_.src, event);
        out_.close();
        loader_.interrupt(true);
        gst_pad_pause_task(context_.src);
        return result;
    }
    if (type == GST_EVENT_FLUSH_STOP) {
        const gboolean result = gst_pad_push_event(context_.src, event);
        out_.drop(true);
        motion_.stop();
        context_.tracks.clear();
        gst_segment_init(&segment_, GST_FORMAT_UNDEFINED);
        loader_.interrupt(false);
        out_.resume();
        return result;
    }
    if (!is_serialized(event)) return gst_pad_push_event(context_.src, event);

    switch (type) {
        case GST_EVENT_CAPS: {
            const bool taken = handle_caps(event);
            // Those that leave name the tensors of the model, which is waited for.
            if (!taken || (has_tensor_groups && loader_.wait())) {
                gst_event_unref(event);
                return taken && announce();
            }
            break;
        }
        case GST_EVENT_SEGMENT:
            gst_event_copy_segment(event, &segment_);
            break;
        case GST_EVENT_STREAM_START: {
            const gchar* id;
            gst_event_parse_stream_start(event, &id);
            preparer_.new_stream(id);
            context_.tracks.clear();
            next_seq_ = 0;
            break;
        }
        default:
            break;
    }
    return out_.put_event(event);
}

gboolean Stream::src_event(GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_QOS) {
        gdouble proportion;
        GstClockTimeDiff diff;
        GstClockTime timestamp;
        gst_event_parse_qos(event, nullptr, &proportion, &diff, &timestamp);
        GST_DEBUG_OBJECT(context_.element,
                         "downstream is %" G_GINT64_FORMAT " ns late, proportion %g", diff,
                         proportion);
        const std::lock_guard lock(context_.signal->mutex);
        admission_.qos(proportion, diff, timestamp);
    }
    if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) {
        preparer_.relink();
        announcer_.relink();
        out_.relinked();
    }
    return gst_pad_push_event(context_.sink, event);
}

gboolean Stream::src_query(GstQuery* query) {
    if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) return announcer_.answer(query);
    if (!gst_pad_peer_query(context_.sink, query)) return FALSE;
    gboolean live;
    GstClockTime min, max;
    gst_query_parse_latency(query, &live, &min, &max);
    if (!live) return TRUE;
    const GstClockTime own = latency_.answer(loader_.lane().get(), live);
    GST_DEBUG_OBJECT(context_.element, "latency %" GST_TIME_FORMAT " on top of %" GST_TIME_FORMAT,
                     GST_TIME_ARGS(own), GST_TIME_ARGS(min));
    min += own;
    if (GST_CLOCK_TIME_IS_VALID(max)) max += own;
    gst_query_set_latency(query, live, min, max);
    return TRUE;
}

void Stream::narrow_caps(GstQuery* query) {
    announcer_.narrow(query);
    GstCaps* narrow = loader_.narrow_caps();
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

void Stream::accept_caps(GstQuery* query) {
    gboolean accepted;
    GstCaps* caps;
    gst_query_parse_accept_caps_result(query, &accepted);
    gst_query_parse_accept_caps(query, &caps);
    if (accepted || !has_tensor_groups) return;
    GstCaps* allowed = gst_pad_query_caps(context_.sink, caps);
    gst_query_set_accept_caps_result(query, gst_caps_is_subset(caps, allowed));
    gst_caps_unref(allowed);
}

// ---- frames ----

// Waits until a model is there and takes over one that was swapped in: this frame is its first.
GstFlowReturn Stream::wait_for_model(GstBuffer* buffer) {
    // A frame that is refused needs no model.
    if (const GstFlowReturn flow = out_.refusal(); flow != GST_FLOW_OK) return flow;
    if (loader_.wake() != Loader::State::loaded) {
        const GstFlowReturn flow = out_.refusal();
        return flow == GST_FLOW_OK ? GST_FLOW_ERROR : flow;
    }
    const auto change = loader_.take_over();
    if (!change) return GST_FLOW_OK;
    preparer_.new_model();
    announcer_.new_model();
    context_.tracks.clear();
    out_.put_swap(*change, next_seq_, GST_BUFFER_PTS(buffer));
    change->old_lane->hurry();
    context_.stats.model_swap();
    context_.settings.swapped(change->model, change->new_lane->modelinfo_file());
    return GST_FLOW_OK;
}

// How many inferences of regions are wanted, none with the reason; tells of labels of regions that
// no model before knows.
unsigned Stream::find_inferences(GstBuffer* buffer, Entry& entry) {
    const std::shared_ptr<const RegionRules> rules = context_.settings.rules();
    if (rules != rules_) label_check_.restart();
    rules_ = rules;
    if (regions_are_detections(buffer, *rules))
        label_check_.frame(context_.element, "roi-classes", rules->classes);
    const vartml::PictureInfo& picture = entry.plan->format.picture;
    unsigned known = 0;
    if (context_.settings.reinfers()) {
        known = find_due_regions(buffer, *rules, picture.width, picture.height, context_.tracks,
                                 entry.seq, regions_);
    } else {
        find_regions(buffer, *rules, picture.width, picture.height, regions_);
    }
    if (regions_.empty())
        entry.status = known ? InferenceStatus::skipped_track : InferenceStatus::skipped_region;
    return unsigned(regions_.size());
}

// Whether the frame is worth an inference.
void Stream::look_for_motion(GstBuffer* buffer, Entry& entry, std::optional<MappedFrame>& frame) {
    frame.emplace(entry.plan->format, buffer);
    if (frame->mapped() && motion_.still(entry, frame->picture()))
        entry.status = InferenceStatus::skipped_still;
}

GstFlowReturn Stream::chain(GstBuffer* buffer) {
    // The interval may be controlled; other properties follow when they are set.
    sync_properties(GST_OBJECT(context_.element), segment_, buffer);
    GstFlowReturn flow = wait_for_model(buffer);
    if (flow == GST_FLOW_OK && has_tensor_groups && !announce()) flow = GST_FLOW_ERROR;
    if (flow == GST_FLOW_OK && !preparer_.ensure_plan(loader_)) flow = GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }

    Entry entry;
    entry.kind = Entry::Kind::frame;
    entry.plan = preparer_.plan();
    entry.seq = next_seq_++;
    entry.trace_frame = trace_frame(entry.plan->trace_stream.index(), buffer, entry.seq);
    entry.entered = last_frame_ = Clock::now();  // the wait for a model is not the frame's
    entry.pts = GST_BUFFER_PTS(buffer);
    std::unique_lock lock(context_.signal->mutex);
    entry.status = admission_.decide(buffer, segment_);
    admission_.decide_leave(entry);
    lock.unlock();
    std::optional<MappedFrame> frame;  // once for all that look at it
    unsigned wanted = 0;
    if (entry.status == InferenceStatus::inferred && motion_.on())
        look_for_motion(buffer, entry, frame);
    if (entry.status == InferenceStatus::inferred)
        wanted = entry.plan->regions.empty() ? find_inferences(buffer, entry)
                                             : unsigned(entry.plan->regions.size());
    lock.lock();
    flow = out_.admit(entry, wanted, lock);
    lock.unlock();
    if (flow != GST_FLOW_OK) {
        frame.reset();  // it is mapped without a reference
        gst_buffer_unref(buffer);
        return flow;
    }
    Prepared prepared = Prepared::yes;
    if (entry.inferences > 0) {
        if (motion_.on()) motion_.inferred(entry);
        if (context_.settings.reinfers()) {
            for (const FrameRegion& region : regions_)
                if (region.track) context_.tracks.asked(region, entry.seq);
        }
        prepared = preparer_.prepare(entry, buffer, regions_, frame);
    }
    frame.reset();
    if (prepared != Prepared::yes) {
        if (context_.settings.reinfers())
            for (const FrameRegion& region : regions_)
                if (region.track) context_.tracks.failed(region.track);
        entry.release_requests();
        entry.status = InferenceStatus::failed;
    }
    return out_.put_frame(std::move(entry), buffer, prepared);
}

}  // namespace vartml::gst::infer
