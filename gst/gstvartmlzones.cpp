// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlzones
 * @title: vartmlzones
 * @short_description: counts tracks in zones and over lines
 *
 * Reads the #GstAnalyticsODMtd of each frame that have a #GstAnalyticsTrackingMtd, as vartmltrack
 * writes it, and compares one point of each, its anchor, with polygons and lines of the picture. It
 * writes an Mtd `vartml-zone` per zone and line, with counts, and `vartml-zone-visit` per track in
 * a zone, and posts the element message `vartml-zone-event` when one enters, leaves or crosses.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmlzones zones="all=0,0 1,0 1,1 0,1" ! fakesink
 * ]| Frames without tracks pass with their zones.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlzones.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gst/analytics/analytics.h>

#include <vartml/zones.h>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmlzones_debug);
#define GST_CAT_DEFAULT vartmlzones_debug

using namespace vartml::gst;

namespace {

enum class Units { relative, pixels };
enum class Anchor { bottom, centre, top };

// As the user set them. Thread-safety: none.
struct ZoneSettings {
    std::string zones, lines, classes;
    Units units = Units::relative;
    Anchor anchor = Anchor::bottom;
    uint64_t leave_after_ns = GST_SECOND / 2;
};

struct State {
    // guarded by the object lock
    ZoneSettings settings;
    std::vector<std::pair<std::string, vartml::ZoneCounts>> counts;
    guint64 copied = 0;
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // streaming thread, between start and stop
    ZoneSettings in_use;
    vartml::ZoneCounter counter;                         // in the units of the settings
    std::vector<GQuark> names;                           // of the shapes
    std::vector<std::vector<vartml::ZonePoint>> points;  // of the shapes, in pixels
    std::vector<std::string> label_names;
    std::vector<GQuark> classes;
    std::vector<vartml::ZoneVisitor> visitors;
    std::vector<guint> od_ids;   // of the visitors
    std::vector<GQuark> labels;  // the same
    std::vector<vartml::ZoneEvent> events;
    FrameSize size;
    FrameSize counted_size;        // of the frames in the counter
    vartml::ZonePoint unit{1, 1};  // of the counter, in pixels
    FrameClock clock;
    GstClockTime newest = GST_CLOCK_TIME_NONE;  // PTS of the last frame
    TrackLabels track_labels;
    CopyNotice copy_notice;
    IdleNotice idle;
    LabelCheck label_check;
};

}  // namespace

struct _GstVartmlZones {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlZones, gst_vartml_zones, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmlzones, "vartmlzones", GST_RANK_NONE, GST_TYPE_VARTML_ZONES)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_ZONES(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const State& state = state_of(object);
    GstStructure* s =
        gst_structure_new("vartml-zones-stats", "copied", G_TYPE_UINT64, state.copied, nullptr);
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_ARRAY);
    for (const auto& [name, c] : state.counts) {
        GValue one = G_VALUE_INIT;
        g_value_init(&one, GST_TYPE_STRUCTURE);
        g_value_take_boxed(
            &one, gst_structure_new("vartml-zone", "name", G_TYPE_STRING, name.c_str(), "inside",
                                    G_TYPE_UINT64, c.inside, "in", G_TYPE_UINT64, c.in, "out",
                                    G_TYPE_UINT64, c.out, "longest", G_TYPE_UINT64, c.longest_ns,
                                    nullptr));
        gst_value_array_append_and_take_value(&list, &one);
    }
    gst_structure_take_value(s, "zones", &list);
    return s;
}

constexpr GEnumValue units_values[] = {
    {static_cast<int>(Units::relative), "Parts of the frame's width and height, 0 to 1",
     "relative"},
    {static_cast<int>(Units::pixels), "Pixels of the frame", "pixels"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue anchor_values[] = {
    {static_cast<int>(Anchor::bottom), "The middle of its lower side: where it stands", "bottom"},
    {static_cast<int>(Anchor::centre), "Its centre", "centre"},
    {static_cast<int>(Anchor::top), "The middle of its upper side", "top"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<ZoneSettings>> rows();
    static ZoneSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

std::span<const Property<ZoneSettings>> Properties::rows() {
    using S = ZoneSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"zones", "Zones",
         "Polygons, NAME=X,Y X,Y X,Y and more of them behind semicolons; counts of a zone that "
         "stays as it was go on; unset: none",
         any_time, P::Text{&S::zones}},
        {"lines", "Lines",
         "Lines to cross, NAME=X,Y X,Y and more of them behind semicolons; seen from the first "
         "point, in is from the left to the right; unset: none",
         any_time, P::Text{&S::lines}},
        {"units", "Units", "What the numbers of zones and lines are", any_time,
         P::choice<&S::units>("GstVartmlZonesUnits", units_values)},
        {"anchor", "Anchor", "Which point of a box is where the object is", any_time,
         P::choice<&S::anchor>("GstVartmlZonesAnchor", anchor_values)},
        {"leave-after", "Leave after",
         "Nanoseconds for which a track is outside of a zone, or not seen, until it has left it",
         any_time, P::Time{&S::leave_after_ns}},
        {"classes", "Classes", "Comma list of labels that are counted; unset: all", any_time,
         P::Text{&S::classes}},
        P::stats<stats_of>("Counts since start: per zone and line inside, in, out, longest dwell; "
                           "copied"),
    };
    return all;
}

// All shapes, in the units of the settings.
vartml::Result<std::vector<vartml::ZoneShape>> shapes_of(const ZoneSettings& settings,
                                                         const char*& property) {
    property = "zones";
    auto shapes = vartml::parse_zones(settings.zones, false);
    if (!shapes) return shapes;
    property = "lines";
    auto lines = vartml::parse_zones(settings.lines, true);
    if (!lines) return lines;
    for (vartml::ZoneShape& line : *lines) {
        if (std::ranges::find(*shapes, line.name, &vartml::ZoneShape::name) != shapes->end()) {
            return vartml::Error{
                vartml::ErrorCode::invalid_argument,
                "'" + line.name + "' is the name of a zone, too; expected a name of its own"};
        }
        shapes->push_back(std::move(line));
    }
    return shapes;
}

// Errors: a point beyond the frame.
vartml::Result<void> check(const std::vector<vartml::ZoneShape>& shapes, Units units,
                           FrameSize size, const char*& property) {
    const auto text = [](float v) {
        std::string t = std::to_string(v);
        t.erase(t.find_last_not_of('0') + 1);
        if (t.ends_with('.')) t.pop_back();
        return t;
    };
    const bool relative = units == Units::relative;
    const float w = static_cast<float>(size.width), h = static_cast<float>(size.height);
    const float most_x = relative ? 1 : w, most_y = relative ? 1 : h;
    for (const vartml::ZoneShape& shape : shapes) {
        for (const vartml::ZonePoint& p : shape.points) {
            if (p.x < 0 || p.y < 0 || p.x > most_x || p.y > most_y) {
                property = shape.line ? "lines" : "zones";
                return vartml::Error{
                    vartml::ErrorCode::invalid_argument,
                    "'" + shape.name + "' has the point " + text(p.x) + "," + text(p.y) +
                        ", expected 0,0 to " + text(most_x) + "," + text(most_y) +
                        (relative ? " of units=relative; units=pixels takes pixels"
                                  : " of units=pixels; units=relative takes parts of the frame")};
            }
        }
    }
    return {};
}

// From now on the counter is in these units, of frames as they are now.
void count_in(State& state, Units units) {
    const FrameSize size = state.size;
    vartml::ZonePoint unit = {1, 1};
    if (units == Units::relative && size.width)
        unit = {static_cast<float>(size.width), static_cast<float>(size.height)};
    const Growth larger = growth(state.counted_size, size).value_or(Growth{});
    state.counter.rescale(larger.x * state.unit.x / unit.x, larger.y * state.unit.y / unit.y);
    state.counted_size = size;
    state.unit = unit;
}

bool refuse(GstVartmlZones* self, const vartml::Error& error, const char* property) {
    vartml::Error named = error;
    named.message = std::string("property '") + property + "': " + error.message;
    return post_error(self, "make out the zones",
                      {.error = named, .id = "zones-shape", .property = property});
}

// Takes over changed properties. False after posting an error.
bool update_settings(GstVartmlZones* self) {
    State& state = *self->state;
    if (!state.changed.exchange(false)) return true;
    const ZoneSettings settings = copy_settings<Properties>(self);
    if (settings.anchor != state.in_use.anchor) state.counter.forget_places();
    state.in_use = settings;
    state.label_names = split_list(settings.classes);
    state.label_check.restart();
    state.classes.clear();
    for (const std::string& label : state.label_names)
        state.classes.push_back(g_quark_from_string(label.c_str()));
    const char* property = nullptr;
    auto shapes = shapes_of(settings, property);
    if (!shapes) return refuse(self, shapes.error(), property);
    if (!shapes->empty() && !state.size.width) {
        return post_error(
            self, "place the zones",
            {.error = {vartml::ErrorCode::unsupported,
                       "the caps of the frames tell no width and height; put vartmlzones where "
                       "video passes"},
             .id = "zones-caps"});
    }
    if (auto checked = check(*shapes, settings.units, state.size, property); !checked)
        return refuse(self, checked.error(), property);
    count_in(state, settings.units);
    state.names.clear();
    state.points.clear();
    for (const vartml::ZoneShape& shape : *shapes) {
        state.names.push_back(g_quark_from_string(shape.name.c_str()));
        state.points.push_back(shape.points);
        for (vartml::ZonePoint& p : state.points.back()) p.x *= state.unit.x, p.y *= state.unit.y;
    }
    state.counter.set_shapes(*std::move(shapes), settings.leave_after_ns);
    return true;
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_ZONES(base);
    State& state = *self->state;
    const ZoneSettings settings = copy_settings<Properties>(self);
    const char* property = nullptr;
    if (auto shapes = shapes_of(settings, property); !shapes)
        return refuse(self, shapes.error(), property);
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    state.counter = vartml::ZoneCounter();
    state.changed = true;
    state.size = state.counted_size = {};
    state.unit = {1, 1};
    state.clock.restart();
    state.newest = GST_CLOCK_TIME_NONE;
    state.track_labels.restart();
    state.copy_notice.restart();
    state.idle.restart();
    const ObjectLock lock(self);
    state.counts.clear();
    state.copied = 0;
    return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    State& state = state_of(base);
    const FrameSize size = video_size(in);
    if (size.width != state.size.width || size.height != state.size.height) state.changed = true;
    state.size = size;
    state.clock.set_caps(in);
    return TRUE;
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

// ---- a frame ----

vartml::ZonePoint anchor_of(Anchor anchor, int x, int y, int w, int h) {
    const float cx = static_cast<float>(x) + static_cast<float>(w) / 2;
    const float top = static_cast<float>(y), height = static_cast<float>(h);
    switch (anchor) {
        case Anchor::top:
            return {cx, top};
        case Anchor::centre:
            return {cx, top + height / 2};
        case Anchor::bottom:
            break;
    }
    return {cx, top + height};
}

// The anchor of a box that ends at a border of the frame, or beyond it, is on the last pixel there:
// on the border itself it would be in no zone, and cross no line to one of its sides.
float inside(float at, int size) {
    return std::clamp(at, 0.5f, static_cast<float>(size) - 0.5f);
}

// Tracks of the frame, one visitor each. False: there is no detection with a track.
bool find_visitors(GstVartmlZones* self, GstBuffer* buffer) {
    State& state = *self->state;
    const bool labels_are_kept = state.track_labels.are_kept(GST_ELEMENT(self));
    state.visitors.clear(), state.od_ids.clear(), state.labels.clear();
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer iterator = nullptr;
    GstAnalyticsMtd od;
    bool any = false;
    while (meta && gst_analytics_relation_meta_iterate(meta, &iterator,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        const auto track = track_of(meta, od.id);
        int x, y, w, h;
        float score;
        if (!track || !gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score)) continue;
        any = true;
        const GQuark label = gst_analytics_od_mtd_get_obj_type(&od);
        if (!state.classes.empty() &&
            std::ranges::find(state.classes, label) == state.classes.end())
            continue;
        const vartml::ZoneVisitor visitor = {*track, {}, labels_are_kept ? label : 0};
        if (std::ranges::any_of(state.visitors, [&](const vartml::ZoneVisitor& other) {
                return other.track == visitor.track && other.label == visitor.label;
            }))
            continue;
        vartml::ZonePoint anchor = anchor_of(state.in_use.anchor, x, y, w, h);
        if (state.size.width)
            anchor = {inside(anchor.x, state.size.width), inside(anchor.y, state.size.height)};
        state.visitors.push_back(visitor);
        state.visitors.back().at = {anchor.x / state.unit.x, anchor.y / state.unit.y};
        state.od_ids.push_back(od.id);
        state.labels.push_back(label);
    }
    return any;
}

GQuark label_of(const State& state, const vartml::ZoneEvent& event) {
    return event.visitor >= 0 ? state.labels[static_cast<size_t>(event.visitor)] : event.label;
}

void add_metadata(State& state, GstBuffer* buffer) {
    if (state.names.empty()) return;
    GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta) return;
    const auto& shapes = state.counter.shapes();
    GstAnalyticsMtd mtd;
    for (size_t i = 0; i < shapes.size(); ++i) {
        add_zone(meta, {state.names[i], shapes[i].line, state.counter.counts()[i], state.points[i]},
                 &mtd);
    }
    for (const vartml::ZoneEvent& event : state.events) {
        if (!add_zone_visit(meta,
                            {state.names[event.shape], label_of(state, event), event.kind,
                             event.track, event.dwell_ns},
                            &mtd))
            return;
        if (event.visitor >= 0) {
            gst_analytics_relation_meta_set_relation(
                meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                state.od_ids[static_cast<size_t>(event.visitor)], mtd.id);
        }
    }
}

void post_events(GstVartmlZones* self, GstClockTime time) {
    const State& state = *self->state;
    for (const vartml::ZoneEvent& event : state.events) {
        if (event.kind == vartml::ZoneEventKind::inside) continue;
        const vartml::ZoneCounts& counts = state.counter.counts()[event.shape];
        const GQuark label = label_of(state, event);
        GstStructure* s = gst_structure_new(
            "vartml-zone-event", "zone", G_TYPE_STRING, g_quark_to_string(state.names[event.shape]),
            "event", G_TYPE_STRING, std::string(to_string(event.kind)).c_str(), "track",
            G_TYPE_UINT64, guint64(event.track), "time", G_TYPE_UINT64, guint64(time), "inside",
            G_TYPE_UINT64, guint64(counts.inside), "in", G_TYPE_UINT64, guint64(counts.in), "out",
            G_TYPE_UINT64, guint64(counts.out), nullptr);
        if (label) gst_structure_set(s, "label", G_TYPE_STRING, g_quark_to_string(label), nullptr);
        if (event.kind == vartml::ZoneEventKind::leave)
            gst_structure_set(s, "dwell", G_TYPE_UINT64, guint64(event.dwell_ns), nullptr);
        post_structure(self, s);
    }
}

void note_counts(GstVartmlZones* self) {
    State& state = *self->state;
    const auto& shapes = state.counter.shapes();
    const ObjectLock lock(self);
    state.counts.resize(shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
        state.counts[i].first = shapes[i].name;
        state.counts[i].second = state.counter.counts()[i];
    }
}

// Whoever was in a zone is so no more, which is told with the time of the last frame.
void end_stream(GstVartmlZones* self) {
    State& state = *self->state;
    state.events.clear();
    state.counter.end_tracks(state.events);
    post_events(self, state.newest);
    note_counts(self);
    state.clock.begin();
    state.track_labels.restart();
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_EOS)
        end_stream(GST_VARTML_ZONES(base));
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_zones_parent_class)->sink_event(base, event);
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_ZONES(base);
    State& state = *self->state;
    sync_properties(base, buffer);
    if (!update_settings(self)) return GST_FLOW_ERROR;
    const GstClockTime now = state.clock.time(base->segment, buffer), time = state.clock.pts(now);
    state.newest = time;
    const bool any = find_visitors(self, buffer);
    state.idle.frame(GST_ELEMENT(self),
                     {.id = "zones-idle",
                      .doing = "count tracks",
                      .lacks = "tracks",
                      .needs_decoder = true,
                      .needs_tracker = true},
                     any, get_inference(buffer, 0) != nullptr);
    if (any) state.label_check.frame(GST_ELEMENT(self), "classes", state.label_names);
    state.counter.update(now, state.visitors, state.events);
    add_metadata(state, buffer);
    post_events(self, time);
    note_counts(self);
    GST_LOG_OBJECT(self, "%" GST_TIME_FORMAT ": %u tracks, %u events", GST_TIME_ARGS(time),
                   static_cast<guint>(state.visitors.size()),
                   static_cast<guint>(state.events.size()));
    return GST_FLOW_OK;
}

}  // namespace

static void gst_vartml_zones_init(GstVartmlZones* self) {
    self->state = new State;
    set_up_in_place(GST_BASE_TRANSFORM(self));
}

static void gst_vartml_zones_class_init(GstVartmlZonesClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlzones_debug, "vartmlzones", 0, "tracks in zones and over lines");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlZones>;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML zones", "Analyzer/Video",
                    "Counts tracks in zones and over lines, with events");

    base->start = start;
    base->set_caps = set_caps;
    base->sink_event = sink_event;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
