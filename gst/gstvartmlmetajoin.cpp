// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlmetajoin
 * @title: vartmlmetajoin
 * @short_description: puts the metadata of one branch on the pictures of another
 *
 * Pictures of `sink_main` leave with the analytics metadata and regions of interest of the frame of
 * `sink_meta` that is nearest by running time; coordinates become pixels of the main picture. It
 * reads no tensors, and lets go of pictures of `sink_meta` at once. Put a queue before each sink
 * pad.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! tee name=t ! queue ! join.sink_main t. ! queue !
 * videoscale ! video/x-raw,width=160,height=120 ! join.sink_meta vartmlmetajoin name=join !
 * fakesink
 * ]| Metadata of small pictures on large ones.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlmetajoin.h"

#include <gst/video/video.h>

#include <chrono>

#include "gst/join/joint.h"
#include "gst/metadata/inference.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/picture_info.h"
#include "gst/support/property_table.h"

GST_DEBUG_CATEGORY_STATIC(vartmlmetajoin_debug);
#define GST_CAT_DEFAULT vartmlmetajoin_debug

using namespace vartml::gst;

namespace {

struct State {
    JoinSettings settings;  // guarded by the object lock
    Joint joint;
    GstPad *main_pad = nullptr, *meta_pad = nullptr, *src_pad = nullptr;  // never changed
    // streaming thread of sink_main
    bool unlinked_warned = false, waiting_warned = false, doubled_warned = false;
    bool ahead_warned = false;  // streaming thread of sink_meta
};

}  // namespace

struct _GstVartmlMetaJoin {
    GstElement parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlMetaJoin, gst_vartml_meta_join, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE(vartmlmetajoin, "vartmlmetajoin", GST_RANK_NONE,
                            GST_TYPE_VARTML_META_JOIN)

namespace {

GstStaticPadTemplate main_template = GST_STATIC_PAD_TEMPLATE(
    "sink_main", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate meta_template =
    GST_STATIC_PAD_TEMPLATE("sink_meta", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw(ANY); application/x-vartml-tensor(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

State& state_of(gpointer object) {
    return *GST_VARTML_META_JOIN(object)->state;
}

GstStructure* stats_of(GObject* object) {
    Joint& joint = state_of(object).joint;
    const std::lock_guard lock(joint.mutex);
    const JoinCounts& c = joint.counts;
    return gst_structure_new("vartml-metajoin-stats", "frames", G_TYPE_UINT64, c.frames, "matched",
                             G_TYPE_UINT64, c.matched, "unmatched", G_TYPE_UINT64, c.unmatched,
                             "late", G_TYPE_UINT64, c.late, "timeouts", G_TYPE_UINT64, c.timeouts,
                             "copied", G_TYPE_UINT64, c.copied, nullptr);
}

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<JoinSettings>> rows();
    static JoinSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object);
};

std::span<const Property<JoinSettings>> Properties::rows() {
    using S = JoinSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"tolerance", "Tolerance",
         "Nanoseconds that the running times of a picture and its metadata may differ by; none: "
         "half a frame of sink_main",
         any_time, P::Time{&S::tolerance}},
        {"sync", "Sync", "Wait for the metadata of each picture", until_ready, P::Flag{&S::sync}},
        {"timeout", "Timeout",
         "Nanoseconds that live pictures wait longer than the latency of the branches", until_ready,
         P::Time{&S::timeout}},
        {"region", "Region",
         "Part of the main picture that sink_meta shows, `x,y,w,h` in its pixels; `whole`: all of "
         "it, stretched; unset: all of it, in its aspect",
         until_ready, P::Text{&S::region}},
        P::stats<stats_of>(
            "Counts since start: frames, matched, unmatched, late, timeouts, copied"),
    };
    return all;
}

void Properties::written(GObject* object) {
    uint64_t tolerance;
    {
        const ObjectLock lock(object);
        tolerance = settings(object).tolerance;
    }
    Joint& joint = state_of(object).joint;
    const std::lock_guard lock(joint.mutex);
    joint.settings.tolerance = tolerance;
}

// ---- latency -------------------------------------------------------------------------------

// Of both branches: the larger, and our time on top where it is live; of pictures that do not wait
// their own.
bool query_latency(State& state, bool& live, GstClockTime& min, GstClockTime& max) {
    live = false, min = 0, max = GST_CLOCK_TIME_NONE;
    bool any = false, waits = true;
    {
        const std::lock_guard lock(state.joint.mutex);
        waits = state.joint.settings.sync;
    }
    for (GstPad* pad : {state.main_pad, state.meta_pad}) {
        if (pad == state.meta_pad && !waits) continue;  // no picture waits for it
        GstQuery* query = gst_query_new_latency();
        if (gst_pad_peer_query(pad, query)) {
            gboolean is_live;
            GstClockTime its_min, its_max;
            gst_query_parse_latency(query, &is_live, &its_min, &its_max);
            any = true;
            if (is_live) {
                live = true;
                min = std::max(min, its_min);
                if (!GST_CLOCK_TIME_IS_VALID(max) || its_max < max) max = its_max;
            }
        }
        gst_query_unref(query);
    }
    const std::lock_guard lock(state.joint.mutex);
    if (live && waits) min += state.joint.settings.timeout;
    if (GST_CLOCK_TIME_IS_VALID(max) && waits) max += state.joint.settings.timeout;
    state.joint.live = live;
    state.joint.latency = min;
    state.joint.latency_known = any;
    return any;
}

// ---- sink_meta -----------------------------------------------------------------------------

void warn_of_pts(GstVartmlMetaJoin* self) {
    post_warning(self, "join metadata",
                 {.error = {vartml::ErrorCode::invalid_argument,
                            "frames of sink_meta have no PTS, by which they find their pictures; "
                            "they are dropped, let the source set timestamps"},
                  .id = "join-pts"});
}

// ours: longer than a model takes to load, and shorter than people look at a picture that stands
constexpr std::chrono::seconds long_wait{10};

Failure unlinked(State& state, GstPad* pad) {
    const bool meta = pad == state.meta_pad;
    return {.error = {vartml::ErrorCode::invalid_argument,
                      meta ? "sink_meta is not linked, so that no metadata comes that pictures of "
                             "sink_main could have; link the branch that infers to it"
                           : "sink_main is not linked, so that no picture comes that could have "
                             "the metadata of sink_meta; link the branch that is shown to it"},
            .id = "join-unlinked",
            .fix = meta ? "link sink_meta" : "link sink_main"};
}

// A pad may come later: what waits for it is told only after long, and then it is an error.
bool fail_if_unlinked(GstVartmlMetaJoin* self, GstPad* pad) {
    if (gst_pad_is_linked(pad)) return false;
    post_error(self, "join metadata", unlinked(*self->state, pad));
    return true;
}

// Whether the pipeline, or the bin with a state of its own, stands because it was told to, and not
// because it cannot preroll on its way to PLAYING.
bool is_paused(GstElement* element) {
    GstObject* top = GST_OBJECT(gst_object_ref(element));
    while (!gst_element_is_locked_state(GST_ELEMENT(top))) {
        GstObject* const parent = gst_object_get_parent(top);
        if (!parent) break;
        gst_object_unref(top);
        top = parent;
    }
    GST_OBJECT_LOCK(top);
    const bool paused =
        GST_STATE_TARGET(top) < GST_STATE_PLAYING && GST_STATE(top) >= GST_STATE_PAUSED;
    GST_OBJECT_UNLOCK(top);
    gst_object_unref(top);
    return paused;
}

// Where sink_main has fewer pictures than a tee gives both branches, the tee and both wait for each
// other for ever.
void warn_of_running_ahead(GstVartmlMetaJoin* self) {
    self->state->ahead_warned = true;
    post_warning(
        self, "join metadata",
        {.error = {vartml::ErrorCode::timeout,
                   "metadata of " + std::to_string(Matcher::most) + " frames has waited for " +
                       std::to_string(long_wait.count()) +
                       " s for a picture of sink_main; drop no frames before it, or drop the same "
                       "before both sink pads, or do not wait with sync=false"},
         .id = "join-ahead",
         .property = "sync",
         .fix = "vartmlmetajoin sync=false"});
}

GstFlowReturn chain_meta(GstPad*, GstObject* parent, GstBuffer* buffer) {
    auto* self = GST_VARTML_META_JOIN(parent);
    Joint& joint = self->state->joint;
    const GstClockTime pts = GST_BUFFER_PTS(buffer), duration = GST_BUFFER_DURATION(buffer);
    const std::shared_ptr<GstBuffer> kept(keep_metadata(buffer), UnrefBuffer());
    gst_buffer_unref(buffer);
    const bool linked = gst_pad_is_linked(self->state->main_pad);
    std::unique_lock lock(joint.mutex);
    if (joint.meta.flushing) return GST_FLOW_FLUSHING;
    joint.seen_metadata = true;
    const GstClockTime time = running_time(joint.meta, pts, duration);
    if (!GST_CLOCK_TIME_IS_VALID(time)) {
        const bool warn = !GST_CLOCK_TIME_IS_VALID(pts) && !std::exchange(joint.pts_warned, true);
        lock.unlock();
        if (warn) warn_of_pts(self);
        return GST_FLOW_OK;
    }
    // A file's branch must not run away from its pictures.
    const auto may_go_on = [&] { return joint.meta.flushing || may_run_ahead(joint); };
    while ((!linked || !self->state->ahead_warned) &&
           !joint.changed.wait_for(lock, long_wait, may_go_on)) {
        const bool is_busy = joint.main.busy;
        lock.unlock();
        if (fail_if_unlinked(self, self->state->main_pad)) return GST_FLOW_ERROR;
        if (!is_busy && !self->state->ahead_warned && !is_paused(GST_ELEMENT(self)))
            warn_of_running_ahead(self);
        lock.lock();
    }
    joint.changed.wait(lock, may_go_on);
    if (joint.meta.flushing) return GST_FLOW_FLUSHING;
    const GstClockTime tolerance = tolerance_of(joint);
    if (GST_CLOCK_TIME_IS_VALID(joint.main.position) && joint.main.position > tolerance &&
        time < joint.main.position - tolerance) {
        ++joint.counts.late;
    } else {
        joint.matcher.add(
            {time, kept, joint.meta.width, joint.meta.height, joint.meta.par_n, joint.meta.par_d});
    }
    joint.meta.position = time;
    joint.changed.notify_all();
    return GST_FLOW_OK;
}

// ---- sink_main -----------------------------------------------------------------------------

// Keeps the element, and tells a deadline from the one before, which may still be under way.
struct Deadline {
    GstVartmlMetaJoin* self;
    guint64 number;
};

void free_deadline(gpointer user) {
    auto* deadline = static_cast<Deadline*>(user);
    gst_object_unref(deadline->self);
    delete deadline;
}

gboolean deadline_reached(GstClock*, GstClockTime, GstClockID, gpointer user) {
    const auto* deadline = static_cast<Deadline*>(user);
    Joint& joint = deadline->self->state->joint;
    const std::lock_guard lock(joint.mutex);
    if (deadline->number == joint.deadline) joint.deadline_passed = true;
    joint.changed.notify_all();
    return TRUE;
}

// A single shot of the element's clock; without clock there is no deadline.
GstClockID start_deadline(GstVartmlMetaJoin* self, GstClockTime time, GstClockTime latency,
                          guint64 number) {
    GstClock* clock = gst_element_get_clock(GST_ELEMENT(self));
    if (!clock) return nullptr;
    const GstClockTime base = gst_element_get_base_time(GST_ELEMENT(self));
    GstClockID id = gst_clock_new_single_shot_id(clock, base + time + latency);
    gst_object_unref(clock);
    auto* deadline = new Deadline{GST_VARTML_META_JOIN(gst_object_ref(self)), number};
    gst_clock_id_wait_async(id, deadline_reached, deadline, free_deadline);
    return id;
}

// Both branches of a tee that have one thread wait for each other for ever.
void warn_of_waiting(GstVartmlMetaJoin* self) {
    self->state->waiting_warned = true;
    post_warning(
        self, "join metadata",
        {.error = {vartml::ErrorCode::timeout,
                   "a picture of sink_main has waited for " + std::to_string(long_wait.count()) +
                       " s for sink_meta to reach its time; put a queue before each sink "
                       "pad, or do not wait with sync=false"},
         .id = "join-waiting",
         .property = "sync",
         .fix = "queue ! vartmlmetajoin"});
}

// Waits until sink_meta has reached the time, has ended or, live, is too late.
GstFlowReturn wait_for_metadata(GstVartmlMetaJoin* self, GstClockTime time) {
    Joint& joint = self->state->joint;
    const bool linked = gst_pad_is_linked(self->state->meta_pad);
    std::unique_lock lock(joint.mutex);
    if (!joint.latency_known) {
        lock.unlock();
        bool live;
        GstClockTime min, max;
        query_latency(*self->state, live, min, max);
        lock.lock();
    }
    if (joint.main.flushing) return GST_FLOW_FLUSHING;
    if (!joint.settings.sync || has_metadata(joint, time)) return GST_FLOW_OK;
    GstClockID deadline = nullptr;
    joint.deadline_passed = false;
    const guint64 number = ++joint.deadline;
    if (joint.live) {
        const GstClockTime latency = joint.latency;
        lock.unlock();
        deadline = start_deadline(self, time, latency, number);
        lock.lock();
    }
    joint.wanted = time;
    joint.changed.notify_all();
    const auto is_over = [&] {
        return joint.main.flushing || has_metadata(joint, time) || joint.deadline_passed;
    };
    if (!joint.live && (!self->state->waiting_warned || !linked) &&
        !joint.changed.wait_for(lock, long_wait, is_over)) {
        lock.unlock();
        const bool failed = fail_if_unlinked(self, self->state->meta_pad);
        if (!failed && !self->state->waiting_warned) warn_of_waiting(self);
        lock.lock();
        if (failed) {
            joint.wanted = GST_CLOCK_TIME_NONE;
            return GST_FLOW_ERROR;
        }
    }
    joint.changed.wait(lock, is_over);
    joint.wanted = GST_CLOCK_TIME_NONE;
    if (!has_metadata(joint, time) && joint.deadline_passed) ++joint.counts.timeouts;
    const bool flushing = joint.main.flushing;
    lock.unlock();
    if (deadline) {
        gst_clock_id_unschedule(deadline);
        gst_clock_id_unref(deadline);
    }
    return flushing ? GST_FLOW_FLUSHING : GST_FLOW_OK;
}

GstFlowReturn post_geometry(GstVartmlMetaJoin* self, const Matcher::Kept& kept, int width,
                            int height) {
    const std::string meta_size = std::to_string(kept.width) + "x" + std::to_string(kept.height);
    const std::string main_size = std::to_string(width) + "x" + std::to_string(height);
    post_error(
        self, "join metadata",
        {.error = {vartml::ErrorCode::bad_model,
                   "sink_meta has pictures of " + meta_size + " and sink_main of " + main_size +
                       ", whose display aspects differ by more than 1 %; say by property "
                       "region which part of the main picture sink_meta shows, or region=whole "
                       "where all of it was stretched"},
         .id = "join-geometry",
         .property = "region",
         .found = meta_size,
         .expected = main_size,
         .fix = "set region"});
    return GST_FLOW_ERROR;
}

void warn_of_unmatched(GstVartmlMetaJoin* self, GstClockTime distance, GstClockTime tolerance) {
    const std::string nearest = GST_CLOCK_TIME_IS_VALID(distance)
                                    ? "the nearest is " + std::to_string(distance) + " ns away"
                                    : "there is none at all";
    post_warning(self, "join metadata",
                 {.error = {vartml::ErrorCode::timeout,
                            std::to_string(unmatched_to_warn) +
                                " pictures in a row found no metadata: " + nearest +
                                ", the tolerance is " + std::to_string(tolerance) + " ns"},
                  .id = "join-unmatched",
                  .property = "tolerance"});
}

// A result that both branches have is of an inference before they parted: its boxes are there
// twice.
void warn_of_doubled(GstVartmlMetaJoin* self, GstBuffer* kept, GstBuffer* main) {
    if (self->state->doubled_warned) return;
    for (unsigned i = 0; const Inference* added = get_inference(kept, i); ++i)
        for (unsigned k = 0; const Inference* there = get_inference(main, k); ++k) {
            if (added->result_id == 0 || added->result_id != there->result_id) continue;
            self->state->doubled_warned = true;
            return post_warning(
                self, "join metadata",
                {.error = {vartml::ErrorCode::invalid_argument,
                           std::string("both branches bring results of model '") +
                               (added->record ? added->record->model : std::string()) +
                               "', so its objects are there twice; let the branches part before "
                               "the first vartmlinfer, and put all of them into that of "
                               "sink_meta"},
                 .id = "join-doubled"});
        }
}

// No error yet: the pad may come later.
void warn_of_unlinked(GstVartmlMetaJoin* self) {
    State& state = *self->state;
    if (state.unlinked_warned || gst_pad_is_linked(state.meta_pad)) return;
    state.unlinked_warned = true;
    post_warning(self, "join metadata", unlinked(state, state.meta_pad));
}

// Of memory that cannot be shared.
void count_copy(GstVartmlMetaJoin* self) {
    const std::lock_guard lock(self->state->joint.mutex);
    if (self->state->joint.counts.copied++ == 0) {
        GST_CAT_WARNING_OBJECT(performance_log(), self,
                               "the picture's memory cannot be shared: copied to add metadata");
    }
}

GstFlowReturn post_copy_failed(GstVartmlMetaJoin* self) {
    post_error(self, "join metadata",
               {.error = {vartml::ErrorCode::io,
                          "a picture of sink_main that others share cannot be copied; metadata "
                          "needs a picture of its own"},
                .id = "join-copy"});
    return GST_FLOW_ERROR;
}

// What is downstream may be at its end: then no picture comes that sink_meta could wait for.
GstFlowReturn push_main(GstVartmlMetaJoin* self, GstBuffer* buffer) {
    const GstFlowReturn flow = gst_pad_push(self->state->src_pad, buffer);
    Joint& joint = self->state->joint;
    const std::lock_guard lock(joint.mutex);
    joint.main.ended = flow != GST_FLOW_OK;
    joint.main.busy = false;
    if (joint.main.ended) joint.changed.notify_all();
    return flow;
}

GstFlowReturn chain_main(GstPad*, GstObject* parent, GstBuffer* buffer) {
    auto* self = GST_VARTML_META_JOIN(parent);
    Joint& joint = self->state->joint;
    GstClockTime time;
    {
        const std::lock_guard lock(joint.mutex);
        joint.main.busy = true;
        time = running_time(joint.main, GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer));
    }
    warn_of_unlinked(self);
    if (GST_CLOCK_TIME_IS_VALID(time)) {
        if (const GstFlowReturn flow = wait_for_metadata(self, time); flow != GST_FLOW_OK) {
            gst_buffer_unref(buffer);
            return flow;
        }
    }
    bool warn;
    GstClockTime distance, tolerance;
    const auto kept = find_metadata(joint, time, warn, distance, tolerance);
    GST_LOG_OBJECT(self, "%" GST_TIME_FORMAT ": metadata of %" GST_TIME_FORMAT, GST_TIME_ARGS(time),
                   GST_TIME_ARGS(kept ? kept->time : GST_CLOCK_TIME_NONE));
    if (warn) warn_of_unmatched(self, distance, tolerance);
    if (kept && kept->width && kept->height) {
        std::unique_lock lock(joint.mutex);
        const auto geometry = geometry_of(joint, *kept);
        const int width = joint.main.width, height = joint.main.height;
        lock.unlock();
        if (!geometry) {
            gst_buffer_unref(buffer);
            return post_geometry(self, *kept, width, height);
        }
        GstBuffer* writable = nullptr;
        bool copied = false;
        if (prepare_writable(buffer, &writable, copied) != GST_FLOW_OK) {
            gst_buffer_unref(buffer);
            return post_copy_failed(self);
        }
        if (writable != buffer) gst_buffer_unref(buffer);
        buffer = writable;
        if (copied) count_copy(self);
        warn_of_doubled(self, kept->metadata.get(), buffer);
        add_metadata(kept->metadata.get(), *geometry, buffer);
    }
    return push_main(self, buffer);
}

// ---- events and queries --------------------------------------------------------------------

gboolean take_caps(GstVartmlMetaJoin* self, GstPad* pad, JoinBranch& branch, GstEvent* event) {
    GstCaps* caps;
    gst_event_parse_caps(event, &caps);
    {
        const std::lock_guard lock(self->state->joint.mutex);
        if (read_caps(branch, caps)) return TRUE;
    }
    return post_error(
        self, "join metadata",
        {.error = {vartml::ErrorCode::unsupported,
                   std::string(GST_PAD_NAME(pad)) + ": its caps are no video with a size"},
         .id = "join-caps"});
}

// What both branches do with an event; false when it is refused.
bool note_event(GstVartmlMetaJoin* self, GstPad* pad, JoinBranch& branch, GstEvent* event) {
    Joint& joint = self->state->joint;
    if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) return take_caps(self, pad, branch, event);
    const std::lock_guard lock(joint.mutex);
    follow(joint, branch, event);
    return true;
}

gboolean event_main(GstPad* pad, GstObject* parent, GstEvent* event) {
    auto* self = GST_VARTML_META_JOIN(parent);
    if (!note_event(self, pad, self->state->joint.main, event)) {
        gst_event_unref(event);
        return FALSE;
    }
    return gst_pad_event_default(pad, parent, event);
}

gboolean event_meta(GstPad* pad, GstObject* parent, GstEvent* event) {
    auto* self = GST_VARTML_META_JOIN(parent);
    State& state = *self->state;
    const bool taken = note_event(self, pad, state.joint.meta, event);
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS && !gst_pad_is_linked(state.main_pad))
        post_warning(self, "join metadata", unlinked(state, state.main_pad));
    gst_event_unref(event);
    return taken;
}

gboolean query_main(GstPad* pad, GstObject* parent, GstQuery* query) {
    if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION)
        return gst_pad_query_default(pad, parent, query);
    gst_pad_peer_query(state_of(parent).src_pad, query);
    ask_for_whole_frames(query);
    return TRUE;
}

gboolean query_meta(GstPad* pad, GstObject* parent, GstQuery* query) {
    if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION)
        return gst_pad_query_default(pad, parent, query);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    return TRUE;
}

gboolean query_src(GstPad*, GstObject* parent, GstQuery* query) {
    State& state = state_of(parent);
    if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY)
        return gst_pad_peer_query(state.main_pad, query);
    bool live;
    GstClockTime min, max;
    if (!query_latency(state, live, min, max)) return FALSE;
    gst_query_set_latency(query, live, min, max);
    return TRUE;
}

// ---- element -------------------------------------------------------------------------------

bool start(GstVartmlMetaJoin* self) {
    State& state = *self->state;
    GST_OBJECT_LOCK(self);
    const JoinSettings settings = state.settings;
    GST_OBJECT_UNLOCK(self);
    std::optional<Placement> region;
    if (!parse_region(settings.region, region)) {
        return post_error(self, "join metadata",
                          {.error = {vartml::ErrorCode::invalid_argument,
                                     "region '" + settings.region +
                                         "' is neither 'whole' nor four numbers x,y,w,h with a "
                                         "positive size"},
                           .id = "join-region",
                           .property = "region",
                           .found = settings.region});
    }
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    state.unlinked_warned = state.waiting_warned = state.doubled_warned = false;
    state.ahead_warned = false;
    Joint& joint = state.joint;
    const std::lock_guard lock(joint.mutex);
    joint.main = joint.meta = {};
    joint.matcher.clear();
    joint.counts = {};
    joint.settings = settings;
    joint.region = region;
    joint.live = joint.latency_known = joint.pts_warned = false;
    joint.seen_metadata = joint.unmatched_warned = false;
    joint.latency = 0;
    joint.unmatched_in_a_row = 0;
    return true;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
    auto* self = GST_VARTML_META_JOIN(element);
    Joint& joint = self->state->joint;
    if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !start(self))
        return GST_STATE_CHANGE_FAILURE;
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
        const std::lock_guard lock(joint.mutex);
        joint.main.flushing = joint.meta.flushing = true;
        joint.changed.notify_all();
    }
    const GstStateChangeReturn result =
        GST_ELEMENT_CLASS(gst_vartml_meta_join_parent_class)->change_state(element, transition);
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
        const std::lock_guard lock(joint.mutex);
        joint.matcher.clear();
    }
    return result;
}

void finalize(GObject* object) {
    delete GST_VARTML_META_JOIN(object)->state;
    G_OBJECT_CLASS(gst_vartml_meta_join_parent_class)->finalize(object);
}

GstPad* add_pad(GstVartmlMetaJoin* self, GstStaticPadTemplate* pad_template) {
    GstPad* pad = gst_pad_new_from_static_template(pad_template, pad_template->name_template);
    gst_element_add_pad(GST_ELEMENT(self), pad);
    return pad;
}

}  // namespace

static void gst_vartml_meta_join_init(GstVartmlMetaJoin* self) {
    self->state = new State;
    State& state = *self->state;
    state.main_pad = add_pad(self, &main_template);
    state.meta_pad = add_pad(self, &meta_template);
    state.src_pad = add_pad(self, &src_template);
    gst_pad_set_chain_function(state.main_pad, chain_main);
    gst_pad_set_event_function(state.main_pad, event_main);
    gst_pad_set_query_function(state.main_pad, query_main);
    GST_PAD_SET_PROXY_CAPS(state.main_pad);
    gst_pad_set_chain_function(state.meta_pad, chain_meta);
    gst_pad_set_event_function(state.meta_pad, event_meta);
    gst_pad_set_query_function(state.meta_pad, query_meta);
    gst_pad_set_query_function(state.src_pad, query_src);
}

static void gst_vartml_meta_join_class_init(GstVartmlMetaJoinClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlmetajoin_debug, "vartmlmetajoin", 0,
                            "metadata of one branch on pictures of another");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* element = GST_ELEMENT_CLASS(klass);
    gobject->finalize = finalize;
    element->change_state = change_state;
    install_properties<Properties>(gobject);
    gst_element_class_set_static_metadata(
        element, "VART-ML metadata joiner", "Muxer/Metadata",
        "Puts the metadata of one branch on the pictures of another", "The gst-vartml authors");
    gst_element_class_add_static_pad_template(element, &main_template);
    gst_element_class_add_static_pad_template(element, &meta_template);
    gst_element_class_add_static_pad_template(element, &src_template);
}
