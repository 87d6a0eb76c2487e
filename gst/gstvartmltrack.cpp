// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmltrack
 * @title: vartmltrack
 * @short_description: gives detections identities
 *
 * Reads the #GstAnalyticsODMtd of each frame, in pixels of the frame, and writes a
 * #GstAnalyticsTrackingMtd for each that belongs to a track, related by RELATE_TO. Detections that
 * have a track already are left alone. It reads no tensors, so their shapes do not matter.
 *
 * On frames that vartmlinfer did not infer tracks live on, and are added as detections at the place
 * where they are expected. Detections of a result that a frame carries from an earlier one count
 * once, for the time of that frame, and are moved to where they are expected on this one. Of
 * several vartmlinfer those say whether a frame was inferred whose detections are tracked. Frames
 * without a record of vartmlinfer count as inferred, unless frames before had one.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmltrack ! fakesink
 * ]| Frames without detections pass untouched.
 *
 * Since: 1.0
 */
#include "gst/gstvartmltrack.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"
#include "gst/track/metadata.h"

GST_DEBUG_CATEGORY_STATIC(vartmltrack_debug);
#define GST_CAT_DEFAULT vartmltrack_debug

using namespace vartml::gst;

namespace {

// As the user set them. Thread-safety: none.
struct TrackSettings : vartml::TrackOptions {
    std::string classes;
    bool predict = true;
};

struct State {
    // guarded by the object lock
    TrackSettings settings;
    vartml::TrackCounts counts;
    guint64 copied = 0;
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // streaming thread, between start and stop
    vartml::Tracker tracker{{}};
    vartml::TrackAlgorithm algorithm{};  // as it was at start
    bool predict = true;
    std::vector<std::string> label_names;  // of the property
    std::vector<GQuark> classes;
    TrackableBoxes found;
    std::vector<vartml::Identity> identities;
    std::vector<vartml::PredictedBox> predicted;
    KnownIdentities known;
    TrackTurns turns;
    EvidenceReader evidence;
    FrameSize size;
    FrameClock clock;
    bool had_records = false;  // since STREAM_START
    bool refuses = false;      // the properties contradict each other
    CopyNotice copy_notice;
    IdleNotice idle;
    LabelCheck label_check;
};

}  // namespace

struct _GstVartmlTrack {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlTrack, gst_vartml_track, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmltrack, "vartmltrack", GST_RANK_NONE, GST_TYPE_VARTML_TRACK)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_TRACK(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const State& state = state_of(object);
    const vartml::TrackCounts& c = state.counts;
    return gst_structure_new("vartml-track-stats", "tracks-live", G_TYPE_UINT64, c.live,
                             "tracks-total", G_TYPE_UINT64, c.total, "matched", G_TYPE_UINT64,
                             c.matched, "lost", G_TYPE_UINT64, c.lost, "copied", G_TYPE_UINT64,
                             state.copied, nullptr);
}

constexpr GEnumValue algorithm_values[] = {
    {static_cast<int>(vartml::TrackAlgorithm::iou), "One association, largest overlap first",
     "iou"},
    {static_cast<int>(vartml::TrackAlgorithm::bytetrack),
     "Certain boxes first, then uncertain ones, best sum of overlaps", "bytetrack"},
    {static_cast<int>(vartml::TrackAlgorithm::ocsort),
     "The same by observations: direction, losses estimated anew, last boxes", "ocsort"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<TrackSettings>> rows();
    static TrackSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

std::span<const Property<TrackSettings>> Properties::rows() {
    using S = TrackSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"algorithm", "Algorithm", "How boxes find their tracks", until_ready,
         P::choice<&S::algorithm>("GstVartmlTrackAlgorithm", algorithm_values)},
        {"high-score", "High score",
         "Least score of a box in the first association of bytetrack and ocsort", controlled,
         P::Real{&S::high_score, 0, 1}},
        {"low-score", "Low score",
         "Least score of a box in their second association; iou: of any box", controlled,
         P::Real{&S::low_score, 0, 1}},
        {"new-track-score", "New track score",
         "Least score of a box that begins a track; not iou: high-score where that is more",
         controlled, P::Real{&S::new_track_score, 0, 1}},
        {"match-iou", "Overlap",
         "Least intersection over union of a box and the place where its track is expected; "
         "not iou: in the first association",
         controlled, P::Real{&S::match_iou, 0, 1}},
        {"low-match-iou", "Overlap of uncertain boxes", "The same in their second association",
         controlled, P::Real{&S::low_match_iou, 0, 1}},
        {"max-lost", "Longest loss",
         "Nanoseconds of stream time after which a lost track ends; on frames that were not "
         "inferred no track is lost",
         any_time, P::Time{&S::max_lost_ns}},
        {"min-hits", "Least hits",
         "Boxes in successive inferred frames before a track is reported and has an id", any_time,
         P::Uint{&S::min_hits, 1, 1000}},
        {"per-class", "Per class", "Whether a track keeps its class", any_time,
         P::Flag{&S::per_class}},
        {"momentum", "Momentum", "Weight of the direction of a track beside the overlap in ocsort",
         controlled, P::Real{&S::momentum, 0, 1}},
        {"appearance", "Appearance",
         "Weight of what they look like beside the overlap, of boxes and tracks with embeddings",
         controlled, P::Real{&S::appearance, 0, 10}},
        {"reid-similarity", "Similarity of re-identification",
         "Cosine of embeddings from which a box continues a track that it does not overlap; 0 = "
         "never; which is right depends on the model",
         controlled, P::Real{&S::reid_similarity, 0, 1}},
        {"classes", "Classes", "Comma list of labels that are tracked; unset: all", any_time,
         P::Text{&S::classes}},
        {"predict", "Predict",
         "Add boxes of the tracks, at the place where they are expected, to frames that were not "
         "inferred",
         any_time, P::Flag{&S::predict}},
        P::stats<stats_of>("Counts since start: tracks-live, tracks-total, matched, lost, "
                           "copied"),
    };
    return all;
}

// Of the two scores that contradict each other, that which is not at its default.
const char* contradicting(const TrackSettings& settings) {
    return settings.low_score == TrackSettings().low_score ? "high-score" : "low-score";
}

void update_settings(GstVartmlTrack* self) {
    State& state = *self->state;
    if (!state.changed.exchange(false)) return;
    TrackSettings settings = copy_settings<Properties>(self);
    settings.algorithm = state.algorithm;
    if (auto done = vartml::check(settings); !done) {
        // Once: a controlled property is written with each frame.
        if (std::exchange(state.refuses, true)) return;
        post_warning(
            self, "take the new options",
            {.error = {done.error().code, done.error().message + "; the options before stay"},
             .id = "track-scores",
             .property = contradicting(settings)});
        return;
    }
    state.refuses = false;
    state.tracker.set_options(settings);
    state.predict = settings.predict;
    state.label_names = split_list(settings.classes);
    state.label_check.restart();
    state.classes.clear();
    for (const std::string& label : state.label_names) {
        state.classes.push_back(g_quark_from_string(label.c_str()));
    }
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_TRACK(base);
    State& state = *self->state;
    const TrackSettings settings = copy_settings<Properties>(self);
    if (auto done = vartml::check(settings); !done) {
        return post_error(
            self, "track detections",
            {.error = done.error(), .id = "track-scores", .property = contradicting(settings)});
    }
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    state.tracker = vartml::Tracker(settings);
    state.algorithm = settings.algorithm;
    state.changed = true;
    state.refuses = false;
    state.size = {};
    state.clock.restart();
    state.had_records = false;
    state.evidence.restart();
    state.copy_notice.restart();
    state.idle.restart();
    GST_OBJECT_LOCK(self);
    state.counts = {};
    state.copied = 0;
    GST_OBJECT_UNLOCK(self);
    return TRUE;
}

gboolean stop(GstBaseTransform* base) {
    state_of(base).tracker.restart();
    state_of(base).known = {};
    return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    State& state = state_of(base);
    const FrameSize size = video_size(in);
    if (const auto larger = growth(state.size, size)) {
        state.tracker.rescale(larger->x, larger->y);
        state.known.boxes.clear();  // in pixels of frames before
    }
    state.size = size;
    state.clock.set_caps(in);
    return TRUE;
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP)
        state.clock.begin();
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
        state.tracker.restart();
        state.known = {};
        state.had_records = false;
        state.evidence.restart();
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        state.tracker.end_tracks();
        state.known = {};
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_track_parent_class)->sink_event(base, event);
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* base, GstBuffer* in, GstBuffer** out) {
    State& state = state_of(base);
    bool copied = false;
    const GstFlowReturn flow = prepare_writable(in, out, copied);
    if (!copied) return flow;
    state.copy_notice.copied(base, cannot_share);
    const ObjectLock lock(base);
    ++state.copied;
    return flow;
}

// Whether the absence of a detection says something.
bool was_inferred(State& state, const Evidence& evidence, guint detections) {
    using Kind = Evidence::Kind;
    state.had_records = state.had_records || evidence.kind != Kind::none;
    if (evidence.kind == Kind::none) return detections > 0 || !state.had_records;
    return evidence.kind == Kind::inferred;
}

// Detections of the frame that is `time`.
void update(State& state, const Evidence& evidence, GstClockTime time) {
    state.tracker.update(time, state.found.boxes, state.identities, state.found.looks);
    state.known.result_id = evidence.result_id;
    state.known.boxes = state.found.boxes;
    state.known.identities = state.identities;
    note_turns(state.found, state.identities, state.turns);
}

// A frame with the result of an earlier one, which other frames may have carried before.
void track_carried(State& state, GstBuffer* buffer, const Evidence& evidence, GstClockTime now) {
    const GstClockTime then = now - std::min<GstClockTime>(now, evidence.age_ns);
    if (state.known.has(evidence.result_id, state.found.boxes)) {
        state.known.find(state.found.boxes, state.identities);
    } else {
        update(state, evidence, then);
    }
    state.tracker.predict(now, state.predicted);
    add_tracks(buffer, state.clock, then, state.found, state.identities);
    if (!state.predict || evidence.still) return;
    if (state.found.untracked == 0) {  // nobody decoded it again
        add_predicted(buffer, state.clock, state.predicted, state.turns, state.size);
    } else {
        move_to_predicted(buffer, state.found, state.identities, state.predicted, state.size);
    }
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_TRACK(base);
    State& state = *self->state;
    sync_properties(base, buffer);
    update_settings(self);

    const GstClockTime now = state.clock.time(base->segment, buffer);
    collect_boxes(buffer, state.classes, state.found);
    const Evidence evidence = state.evidence.read(buffer, state.found);
    state.idle.frame(GST_ELEMENT(self),
                     {.id = "track-idle",
                      .doing = "track detections",
                      .lacks = "detections",
                      .needs_decoder = true},
                     state.found.untracked > 0, evidence.kind != Evidence::Kind::none);
    if (evidence.result_id != 0 || evidence.kind == Evidence::Kind::inferred)
        state.label_check.frame(GST_ELEMENT(self), "classes", state.label_names);
    if (evidence.kind == Evidence::Kind::carried) {
        state.had_records = true;
        track_carried(state, buffer, evidence, now);
    } else if (was_inferred(state, evidence, state.found.untracked)) {
        update(state, evidence, now);
        add_tracks(buffer, state.clock, now, state.found, state.identities);
    } else {
        state.tracker.predict(now, state.predicted);
        // The frame names the new model, which has found none of them yet.
        if (state.predict && !evidence.swapped)
            add_predicted(buffer, state.clock, state.predicted, state.turns, state.size);
    }
    const vartml::TrackCounts counts = state.tracker.counts();
    GST_LOG_OBJECT(self,
                   "%" GST_TIME_FORMAT ": %u detections, result %" G_GUINT64_FORMAT
                   " %" G_GUINT64_FORMAT " us old, %" G_GUINT64_FORMAT " tracks",
                   GST_TIME_ARGS(state.clock.pts(now)), state.found.untracked, evidence.result_id,
                   evidence.age_ns / 1000, guint64(counts.live));
    GST_OBJECT_LOCK(self);
    state.counts = counts;
    GST_OBJECT_UNLOCK(self);
    return GST_FLOW_OK;
}

}  // namespace

static void gst_vartml_track_init(GstVartmlTrack* self) {
    self->state = new State;
    GstBaseTransform* base = GST_BASE_TRANSFORM(self);
    set_up_in_place(base);
}

static void gst_vartml_track_class_init(GstVartmlTrackClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmltrack_debug, "vartmltrack", 0, "identities of detections");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlTrack>;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML tracker", "Analyzer/Video",
                    "Gives detections identities that last over frames");

    base->start = start;
    base->stop = stop;
    base->set_caps = set_caps;
    base->sink_event = sink_event;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
