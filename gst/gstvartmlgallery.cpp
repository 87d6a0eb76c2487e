// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlgallery
 * @title: vartmlgallery
 * @short_description: names objects by what they look like
 *
 * Compares the embedding of each detection, or of the whole picture, as vartmldecode writes it,
 * with those of a gallery, and adds the name of the most similar one as a #GstAnalyticsClsMtd whose
 * level is the cosine. A detection with a #GstAnalyticsTrackingMtd keeps its name on frames without
 * embedding. Names are enrolled while it runs, by property or action signal, and kept in a file.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmlgallery ! fakesink
 * ]| Frames without embeddings pass untouched.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlgallery.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gst/analytics/analytics.h>

#include <vartml/gallery.h>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmlgallery_debug);
#define GST_CAT_DEFAULT vartmlgallery_debug

using namespace vartml::gst;

namespace {

// ours: a share of a track's looks that each new embedding has, and how long a track is remembered
constexpr float newest_share = 0.25f;
constexpr GstClockTime remembered = 60 * GST_SECOND;

// As the user set them. Thread-safety: none.
struct GallerySettings {
    std::string location, enrol, unknown, classes;
    double threshold = 0.6;
    bool enrol_written = false;  // since it was taken over
};

struct Request {
    std::string name;
    std::optional<guint64> track;  // unset: the only one
    bool forget = false;
};

struct Stats {
    guint64 embeddings = 0, named = 0, unknown = 0, enrolled = 0, copied = 0;
};

// What a track looks like.
struct Seen {
    std::vector<float> looks;  // length 1
    std::string model;         // of whose vectors they are the mean
    GQuark name = 0;
    float similarity = 0;
    GstClockTime time = 0;
};

// Tracks of two labels are two.
struct Who {
    guint64 track = 0;
    GQuark label = 0;
    auto operator<=>(const Who&) const = default;
};

// A detection, or the whole picture.
struct Subject {
    std::optional<guint> od{};
    std::optional<Who> who{};  // where it is tracked
    std::optional<guint> embedding_id{};
    std::vector<float> embedding{};
    std::string_view model{};  // whose embedding it is, the hash in the frame's record; "": unknown
};

struct State {
    // guarded by the object lock
    GallerySettings settings;
    std::vector<Request> requests;
    std::vector<std::string> names;
    Stats stats;

    std::atomic<bool> stopping{false};

    // streaming thread, between start and stop
    vartml::Gallery gallery;
    std::string file;  // "" = none
    std::map<Who, Seen> tracks;
    std::vector<Subject> subjects;
    std::vector<Request> pending;
    bool told_other_model = false;
    FrameClock clock;
    TrackLabels track_labels;
    CopyNotice copy_notice;
    IdleNotice idle;
    LabelCheck label_check;
};

}  // namespace

struct _GstVartmlGallery {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlGallery, gst_vartml_gallery, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmlgallery, "vartmlgallery", GST_RANK_NONE, GST_TYPE_VARTML_GALLERY)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_GALLERY(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const Stats& s = state_of(object).stats;
    return gst_structure_new("vartml-gallery-stats", "embeddings", G_TYPE_UINT64, s.embeddings,
                             "named", G_TYPE_UINT64, s.named, "unknown", G_TYPE_UINT64, s.unknown,
                             "enrolled", G_TYPE_UINT64, s.enrolled, "copied", G_TYPE_UINT64,
                             s.copied, nullptr);
}

GParamSpec* names_spec(const Property<GallerySettings>& p, GParamFlags flags) {
    return gst_param_spec_array(
        p.name, p.nick, p.blurb,
        g_param_spec_string("name", "Name", "Name in the gallery", nullptr, flags), flags);
}
void list_names(GObject* object, GValue* list) {
    const ObjectLock lock(object);
    for (const std::string& name : state_of(object).names) {
        GValue text = G_VALUE_INIT;
        g_value_init(&text, G_TYPE_STRING);
        g_value_set_string(&text, name.c_str());
        gst_value_array_append_and_take_value(list, &text);
    }
}

// "NAME" or "NAME@TRACK".
Request request_of(const std::string& text) {
    Request request{text, std::nullopt, false};
    const size_t at = text.rfind('@');
    if (at == text.npos || at + 1 == text.size()) return request;
    guint64 track = 0;
    if (!g_ascii_string_to_unsigned(text.c_str() + at + 1, 10, 1, G_MAXUINT64, &track, nullptr))
        return request;
    return {text.substr(0, at), track, false};
}

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<GallerySettings>> rows();
    static GallerySettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) {
        const ObjectLock lock(object);
        State& state = state_of(object);
        if (!std::exchange(state.settings.enrol_written, false)) return;
        if (!state.settings.enrol.empty())
            state.requests.push_back(request_of(state.settings.enrol));
    }
};

std::span<const Property<GallerySettings>> Properties::rows() {
    using S = GallerySettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"location", "Location",
         "File of the gallery: read at start, made by the first enrolment and written after each, "
         "with what others have enrolled in it meanwhile; unset: names last as long as the element "
         "runs",
         until_ready, P::Text{&S::location}},
        {"threshold", "Threshold",
         "Least cosine of an object and its name, -1 to 1; which is right depends on the model",
         controlled, P::Real{&S::threshold, -1, 1}},
        {"enrol", "Enrol",
         "Written: NAME gets the embedding of the next frame that has one alone, NAME@TRACK that "
         "of "
         "the track; several enrolments under a name are several looks of it; unset: nobody",
         any_time, P::Text{&S::enrol}, [](S& s) { s.enrol_written = true; }},
        {"unknown", "Unknown",
         "Name of objects that are like nobody in the gallery; unset: they get none", any_time,
         P::Text{&S::unknown}},
        {"classes", "Classes", "Comma list of labels that are named; unset: all", any_time,
         P::Text{&S::classes}},
        {"names", "Names", "Names in the gallery, in the order of enrolment", 0,
         P::Computed{names_spec, list_names}},
        P::stats<stats_of>("Counts since start: embeddings, named, unknown, enrolled, copied"),
    };
    return all;
}

// ---- the gallery ----

void note_names(GstVartmlGallery* self) {
    std::vector<std::string> names = self->state->gallery.names();
    const ObjectLock lock(self);
    self->state->names = std::move(names);
}

void warn_of_enrolment(GstVartmlGallery* self, const Request& request, const std::string& why) {
    post_warning(self, "enrol a name",
                 {.error = {vartml::ErrorCode::invalid_argument,
                            "'" + request.name + "' is not enrolled: " + why},
                  .id = "gallery-enrol",
                  .property = "enrol"});
}

// The tracks of another stream are others.
void forget_tracks(GstVartmlGallery* self) {
    std::erase_if(self->state->pending, [&](const Request& request) {
        if (request.track)
            warn_of_enrolment(self, request,
                              "track " + std::to_string(*request.track) +
                                  " did not show itself before the stream ended");
        return request.track.has_value();
    });
}

bool fail_with_file(GstVartmlGallery* self, const char* doing, const vartml::Error& error) {
    return post_error(
        self, doing,
        {.error = error, .id = "gallery-file", .property = "location", .file = self->state->file});
}

// What the file holds now, where there is one. False after posting an error.
bool read_file(GstVartmlGallery* self) {
    State& state = *self->state;
    if (state.file.empty() || !g_file_test(state.file.c_str(), G_FILE_TEST_EXISTS)) return true;
    auto loaded = vartml::Gallery::load(state.file);
    if (!loaded) return fail_with_file(self, "read the gallery", loaded.error());
    state.gallery = std::move(*loaded);
    return true;
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_GALLERY(base);
    State& state = *self->state;
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    state.file = copy_settings<Properties>(self).location;
    state.gallery = {};
    if (!read_file(self)) return FALSE;
    GST_INFO_OBJECT(self, "%u vectors in the gallery", static_cast<guint>(state.gallery.vectors()));
    state.tracks.clear();
    forget_tracks(self);
    state.told_other_model = false;
    state.stopping = false;
    state.clock.restart();
    state.track_labels.restart();
    state.copy_notice.restart();
    state.idle.restart();
    state.label_check.restart();
    note_names(self);
    const ObjectLock lock(self);
    state.stats = {};
    return TRUE;
}

// Writes the file. False after posting an error.
bool save(GstVartmlGallery* self) {
    State& state = *self->state;
    note_names(self);
    if (state.file.empty()) return true;
    auto done = state.gallery.save(state.file);
    return done || fail_with_file(self, "write the gallery", done.error());
}

// Whoever waits for the lock of the file lets go.
GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
        GST_VARTML_GALLERY(element)->state->stopping = true;
    return GST_ELEMENT_CLASS(gst_vartml_gallery_parent_class)->change_state(element, transition);
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    state_of(base).clock.set_caps(in);
    return TRUE;
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    // Another stream counts its tracks anew.
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        state.tracks.clear();
        state.clock.begin();
        state.track_labels.restart();
        forget_tracks(GST_VARTML_GALLERY(base));
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_gallery_parent_class)->sink_event(base, event);
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* base, GstBuffer* in, GstBuffer** out) {
    State& state = state_of(base);
    bool copied = false;
    const GstFlowReturn flow = prepare_writable(in, out, copied);
    if (!copied) return flow;
    state.copy_notice.copied(base, cannot_share);
    const ObjectLock lock(base);
    ++state.stats.copied;
    return flow;
}

// ---- a frame ----

bool is_related(GstAnalyticsRelationMeta* meta, guint a, guint b) {
    return gst_analytics_relation_meta_get_relation(meta, a, b) != GST_ANALYTICS_REL_TYPE_NONE;
}

std::string_view model_of(GstBuffer* buffer, GstAnalyticsRelationMeta* meta, guint embedding) {
    GstAnalyticsMtd mtd;
    for (unsigned i = 0; const Inference* inference = get_inference(buffer, i, &mtd); ++i) {
        if (inference->record && is_related(meta, embedding, mtd.id))
            return inference->record->model_hash;
    }
    return {};
}

// Detections that are to be named, and the whole picture where it has an embedding of its own. Of
// several embeddings of an object the last that the gallery can be compared with.
void find_subjects(GstVartmlGallery* self, GstBuffer* buffer, GstAnalyticsRelationMeta* meta,
                   const std::vector<std::string>& classes) {
    State& state = *self->state;
    const bool labels_are_kept = state.track_labels.are_kept(GST_ELEMENT(self));
    state.subjects.clear();
    std::vector<GstAnalyticsMtd> embeddings;
    gpointer iterator = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &iterator, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
        if (type == gst_analytics_od_mtd_get_mtd_type()) {
            const GQuark label = gst_analytics_od_mtd_get_obj_type(&mtd);
            const char* const name = label ? g_quark_to_string(label) : "";
            if (!classes.empty() && std::ranges::find(classes, name) == classes.end()) continue;
            state.subjects.push_back({.od = mtd.id});
            if (const auto track = track_of(meta, mtd.id))
                state.subjects.back().who = Who{*track, labels_are_kept ? label : 0};
        } else if (!get_embedding(mtd).empty()) {
            embeddings.push_back(mtd);
        }
    }
    for (const GstAnalyticsMtd& embedding : embeddings) {
        const auto numbers = get_embedding(embedding);
        const std::string_view model = model_of(buffer, meta, embedding.id);
        const bool fits = state.gallery.check(model, numbers.size()).has_value();
        bool of_object = false;
        gpointer objects = nullptr;
        while (gst_analytics_relation_meta_iterate(meta, &objects,
                                                   gst_analytics_od_mtd_get_mtd_type(), &mtd)) {
            if (!is_related(meta, mtd.id, embedding.id)) continue;
            of_object = true;
            const auto owner =
                std::ranges::find(state.subjects, std::optional(mtd.id), &Subject::od);
            if (owner == state.subjects.end() || (!owner->embedding.empty() && !fits)) continue;
            owner->embedding_id = embedding.id;
            owner->embedding.assign(numbers.begin(), numbers.end());
            owner->model = model;
        }
        if (!of_object)
            state.subjects.push_back({.embedding_id = embedding.id,
                                      .embedding = {numbers.begin(), numbers.end()},
                                      .model = model});
    }
}

// Of a track the mean of what it looked like, newer frames more. Vectors of two models have nothing
// in common.
void look(State& state, Subject& subject, GstClockTime now) {
    if (!subject.who || subject.embedding.empty()) return;
    Seen& seen = state.tracks[*subject.who];
    if (seen.looks.size() != subject.embedding.size() || seen.model != subject.model) {
        seen.looks = subject.embedding;
        seen.model = subject.model;
    } else {
        double squares = 0;
        for (size_t i = 0; i < seen.looks.size(); ++i) {
            seen.looks[i] += newest_share * (subject.embedding[i] - seen.looks[i]);
            squares += double{seen.looks[i]} * seen.looks[i];
        }
        if (squares < 1e-6)
            seen.looks = subject.embedding;
        else
            for (float& v : seen.looks) v = static_cast<float>(v / std::sqrt(squares));
    }
    seen.time = now;
    subject.embedding = seen.looks;
}

// Enrols who was asked for, as far as this frame shows them. False after posting an error.
bool enrol(GstVartmlGallery* self) {
    State& state = *self->state;
    bool changed = false, failed = false, is_new = false;
    std::shared_ptr<void> lock;
    std::optional<vartml::Error> unlocked;
    struct Free {
        void operator()(GstStructure* s) const { gst_structure_free(s); }
    };
    std::vector<std::unique_ptr<GstStructure, Free>> enrolled;  // told once the file has them
    // Another element may have enrolled somebody in the same file: it is changed, not replaced.
    const auto renew = [&] {
        if (std::exchange(is_new, true)) return !failed;
        if (!state.file.empty()) {
            auto locked = vartml::Gallery::lock(state.file, &state.stopping);
            failed = !locked && state.stopping;
            if (failed) return false;
            if (locked)
                lock = std::move(*locked);
            else
                unlocked = locked.error();
        }
        failed = !read_file(self);
        return !failed;
    };
    std::erase_if(state.pending, [&](const Request& request) {
        if (failed) return false;
        if (request.forget) {
            if (!renew()) return false;
            const size_t gone = state.gallery.forget(request.name);
            changed |= gone > 0;
            const GQuark name = g_quark_try_string(request.name.c_str());
            for (auto& [one, seen] : state.tracks)
                if (name && seen.name == name) seen.name = 0;
            if (!gone) warn_of_enrolment(self, request, "it cannot be forgotten, nobody has it");
            return true;
        }
        std::vector<const Subject*> who;
        for (const Subject& subject : state.subjects) {
            if (!subject.embedding.empty() &&
                (!request.track || (subject.who && subject.who->track == *request.track)))
                who.push_back(&subject);
        }
        if (who.empty()) return false;  // a later frame may show it
        if (who.size() > 1) {
            const std::string count = std::to_string(who.size());
            warn_of_enrolment(self, request,
                              request.track
                                  ? count +
                                        " objects of the frame have this track, of trackers "
                                        "that count alike; show one alone"
                                  : count +
                                        " objects of the frame have an embedding; name the "
                                        "track, as in enrol=" +
                                        request.name + "@1, or show one alone");
            return true;
        }
        if (!renew()) return false;
        if (auto done = state.gallery.enrol(request.name, who[0]->model, who[0]->embedding);
            !done) {
            warn_of_enrolment(self, request, done.error().message);
            return true;
        }
        changed = true;
        GstStructure* s = gst_structure_new("vartml-gallery-enrolled", "name", G_TYPE_STRING,
                                            request.name.c_str(), "vectors", G_TYPE_UINT64,
                                            guint64(state.gallery.vectors()), nullptr);
        if (who[0]->who) gst_structure_set(s, "track", G_TYPE_UINT64, who[0]->who->track, nullptr);
        enrolled.emplace_back(s);
        return true;
    });
    if (failed) return state.stopping;
    if (changed && unlocked) return fail_with_file(self, "write the gallery", *unlocked);
    if (changed && !save(self)) return false;
    for (auto& one : enrolled) {
        post_structure(self, one.release());
        const ObjectLock counting(self);
        ++state.stats.enrolled;
    }
    return true;
}

void add_name(GstAnalyticsRelationMeta* meta, const Subject& subject, GQuark name, float level,
              GstBuffer* buffer) {
    GstAnalyticsClsMtd cls;
    if (!gst_analytics_relation_meta_add_one_cls_mtd(meta, level, name, &cls)) return;
    const auto relate = [&](guint from, guint to) {
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, from, to);
    };
    if (subject.od) relate(*subject.od, cls.id);
    if (!subject.embedding_id) return;
    GstAnalyticsMtd mtd;
    for (unsigned i = 0; get_inference(buffer, i, &mtd); ++i) {
        if (is_related(meta, *subject.embedding_id, mtd.id)) relate(cls.id, mtd.id);
    }
}

void name_subjects(GstVartmlGallery* self, GstBuffer* buffer, GstAnalyticsRelationMeta* meta,
                   const GallerySettings& settings, GstClockTime now) {
    State& state = *self->state;
    Stats counted;
    for (const Subject& subject : state.subjects) {
        Seen found;
        const auto known = subject.who ? state.tracks.find(*subject.who) : state.tracks.end();
        if (!subject.embedding.empty()) {
            ++counted.embeddings;
            const auto match = state.gallery.nearest(subject.embedding);
            if (match && match->similarity >= static_cast<float>(settings.threshold)) {
                found.name = g_quark_from_string(std::string(match->name).c_str());
            } else if (!settings.unknown.empty()) {
                found.name = g_quark_from_string(settings.unknown.c_str());
            }
            found.similarity = match ? match->similarity : 0;
            const bool named = match && match->similarity >= static_cast<float>(settings.threshold);
            ++(named ? counted.named : counted.unknown);
            if (known != state.tracks.end()) {
                known->second.name = found.name;
                known->second.similarity = found.similarity;
            }
        } else if (known != state.tracks.end()) {
            found = known->second;
            known->second.time = now;
        }
        if (found.name) add_name(meta, subject, found.name, found.similarity, buffer);
    }
    const ObjectLock lock(self);
    state.stats.embeddings += counted.embeddings;
    state.stats.named += counted.named;
    state.stats.unknown += counted.unknown;
}

// Embeddings that the gallery cannot be compared with are left out where its model is there, too,
// though it may have seen nobody. False after posting an error: where it is not.
bool leave_out_other_models(GstVartmlGallery* self, GstBuffer* buffer) {
    State& state = *self->state;
    std::vector<Subject*> others;
    vartml::Result<void> fault;
    bool any_fits = false;
    for (Subject& subject : state.subjects) {
        if (subject.embedding.empty()) continue;
        auto fits = state.gallery.check(subject.model, subject.embedding.size());
        any_fits |= fits.has_value();
        if (fits) continue;
        fault = std::move(fits);
        others.push_back(&subject);
    }
    if (others.empty()) return true;
    const Failure failure = {
        .error = fault.error(), .id = "gallery-model", .property = "location", .file = state.file};
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i)
        any_fits |= one->record && !state.gallery.model().empty() &&
                    one->record->model_hash == state.gallery.model();
    if (!any_fits) return post_error(self, "compare embeddings", failure);
    for (Subject* subject : others) subject->embedding.clear();
    if (!std::exchange(state.told_other_model, true))
        post_warning(self, "compare all embeddings", failure);
    return true;
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_GALLERY(base);
    State& state = *self->state;
    sync_properties(base, buffer);
    const GallerySettings settings = copy_settings<Properties>(self);
    {
        const ObjectLock lock(self);
        std::ranges::move(state.requests, std::back_inserter(state.pending));
        state.requests.clear();
    }
    const GstClockTime now = state.clock.time(base->segment, buffer);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    state.subjects.clear();
    const std::vector<std::string> classes = split_list(settings.classes);
    if (meta) find_subjects(self, buffer, meta, classes);
    const bool any =
        std::ranges::any_of(state.subjects, [](const Subject& s) { return !s.embedding.empty(); });
    state.idle.frame(GST_ELEMENT(self),
                     {.id = "gallery-idle",
                      .doing = "name objects",
                      .lacks = "embeddings",
                      .needs_decoder = true},
                     any, get_inference(buffer, 0) != nullptr);
    if (any) state.label_check.frame(GST_ELEMENT(self), "classes", classes);
    // Who is to be forgotten need not be seen for it.
    if (!meta) return enrol(self) ? GST_FLOW_OK : GST_FLOW_ERROR;
    if (!leave_out_other_models(self, buffer)) return GST_FLOW_ERROR;
    std::erase_if(state.tracks, [now](const auto& one) {
        return now > one.second.time && now - one.second.time > remembered;
    });
    for (Subject& subject : state.subjects) look(state, subject, now);
    if (!enrol(self)) return GST_FLOW_ERROR;
    // The file may hold another gallery by now.
    if (!leave_out_other_models(self, buffer)) return GST_FLOW_ERROR;
    name_subjects(self, buffer, meta, settings, now);
    return GST_FLOW_OK;
}

// ---- action signals ----

void enrol_now(GstVartmlGallery* self, const char* name, guint64 track) {
    const ObjectLock lock(self);
    Request request{name ? name : "", std::nullopt, false};
    if (track) request.track = track;
    self->state->requests.push_back(std::move(request));
}

void forget_now(GstVartmlGallery* self, const char* name) {
    const ObjectLock lock(self);
    self->state->requests.push_back({name ? name : "", std::nullopt, true});
}

}  // namespace

static void gst_vartml_gallery_init(GstVartmlGallery* self) {
    self->state = new State;
    set_up_in_place(GST_BASE_TRANSFORM(self));
}

static void gst_vartml_gallery_class_init(GstVartmlGalleryClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlgallery_debug, "vartmlgallery", 0, "names by embeddings");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlGallery>;
    install_properties<Properties>(gobject);

    /**
     * GstVartmlGallery::enrol:
     * @gallery: the element
     * @name: what the object is called
     * @track: its track, or 0 for the only object of the next frame that has an embedding
     *
     * Adds a look to a name, with the next frame that shows it. Safe in any thread.
     *
     * Since: 1.0
     */
    g_signal_new_class_handler("enrol", G_TYPE_FROM_CLASS(klass),
                               GSignalFlags(G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION),
                               G_CALLBACK(enrol_now), nullptr, nullptr, nullptr, G_TYPE_NONE, 2,
                               G_TYPE_STRING, G_TYPE_UINT64);
    /**
     * GstVartmlGallery::forget:
     * @gallery: the element
     * @name: who is no longer known, with the next frame
     *
     * Takes all looks of a name out of the gallery. Safe in any thread.
     *
     * Since: 1.0
     */
    g_signal_new_class_handler(
        "forget", G_TYPE_FROM_CLASS(klass), GSignalFlags(G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION),
        G_CALLBACK(forget_now), nullptr, nullptr, nullptr, G_TYPE_NONE, 1, G_TYPE_STRING);

    set_up_in_place(base, "VART-ML gallery", "Analyzer/Video",
                    "Names objects by what they look like");

    GST_ELEMENT_CLASS(klass)->change_state = change_state;
    base->start = start;
    base->set_caps = set_caps;
    base->sink_event = sink_event;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
