// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmloverlay
 * @title: vartmloverlay
 * @short_description: draws what vision models found
 *
 * Draws the #GstAnalyticsODMtd of each frame, upright or turned, with label, score, track and
 * trail, their #GstAnalyticsSegmentationMtd (region numbers as GRAY8 or GRAY16_LE) and keypoints,
 * class maps and classes of the whole frame, regions, and a head-up display of what vartmlinfer
 * says. Objects of #GstVartmlOverlay:blur-classes become a mosaic before anything is drawn. All
 * coordinates are pixels of the frame. It reads no tensors, so their shapes do not matter.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmloverlay hud=true ! fakesink
 * ]| Frames without detections get the display alone.
 *
 * Since: 1.0
 */
#include "gst/gstvartmloverlay.h"

#include <gst/video/gstvideometa.h>

#include <atomic>

#include "gst/overlay/attach.h"
#include "gst/overlay/hud.h"
#include "gst/overlay/negotiate.h"
#include "gst/overlay/reader.h"
#include "gst/overlay/scene.h"
#include "gst/overlay/settings.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/picture_info.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmloverlay_debug);
#define GST_CAT_DEFAULT vartmloverlay_debug

using namespace vartml::gst;

namespace {

struct Counts {
    guint64 frames = 0, drawn = 0, attached = 0, blended = 0, copied = 0, rectangle_bytes = 0,
            blurred = 0;
};

struct State {
    // guarded by the object lock
    OverlaySettings settings;
    std::optional<OverlaySettings> started;  // between start and stop
    Counts counts;
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // set when downstream may have changed, cleared by the streaming thread
    std::atomic<bool> undecided{true};

    // streaming thread, between start and stop
    bool video = false;  // caps are of frames of `width` x `height`
    int width = 0, height = 0;
    std::optional<GstVideoInfo> info;  // of frames that can be drawn into
    bool attaching = false;            // else drawing
    overlay::Look look;
    bool show_hud = false;
    GstClockTime hold = 0;
    overlay::Canvas canvas;
    overlay::Text text;
    overlay::Reader reader;
    overlay::Painter painter;
    overlay::Attacher attacher;
    overlay::Hud hud;
    overlay::Scene results, hud_scene, before;
    FrameClock clock;
    GstClockTime results_time = GST_CLOCK_TIME_NONE;  // by the clock: of the frame they are of
    CopyNotice copy_notice;
    TrackLabels track_labels;
    IdleNotice idle;
    LabelCheck label_check, blur_check;
    std::vector<std::string> label_names, blur_names;  // of `classes` and `blur-classes`

    bool anything() const { return !results.empty() || !hud_scene.empty(); }
    void forget() {
        results.clear();
        hud_scene.clear();
        reader.forget_tracks();
        results_time = GST_CLOCK_TIME_NONE;
    }
    void rescale(const Growth& larger) {
        results.rescale(larger.x, larger.y);
        reader.forget_tracks();
    }
};

}  // namespace

struct _GstVartmlOverlay {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlOverlay, gst_vartml_overlay, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmloverlay, "vartmloverlay", GST_RANK_NONE, GST_TYPE_VARTML_OVERLAY)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_OVERLAY(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const Counts& c = state_of(object).counts;
    return gst_structure_new("vartml-overlay-stats", "frames", G_TYPE_UINT64, c.frames, "drawn",
                             G_TYPE_UINT64, c.drawn, "attached", G_TYPE_UINT64, c.attached,
                             "blended", G_TYPE_UINT64, c.blended, "copied", G_TYPE_UINT64, c.copied,
                             "rectangle-bytes", G_TYPE_UINT64, c.rectangle_bytes, "blurred",
                             G_TYPE_UINT64, c.blurred, nullptr);
}

constexpr GEnumValue mode_values[] = {
    {static_cast<int>(OverlayMode::automatic),
     "Attach where downstream draws overlay compositions, else blend", "auto"},
    {static_cast<int>(OverlayMode::attach), "Attach an overlay composition", "attach"},
    {static_cast<int>(OverlayMode::blend), "Draw into the frame", "blend"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue color_mode_values[] = {
    {static_cast<int>(ColorMode::by_class), "A color per label", "class"},
    {static_cast<int>(ColorMode::by_track), "A color per track; without one, per label", "track"},
    {static_cast<int>(ColorMode::fixed), "The color of the property color", "fixed"},
    {0, nullptr, nullptr},
};

constexpr GFlagsValue draw_values[] = {
    {draw_boxes, "Outlines of detections", "boxes"},
    {draw_labels, "Labels with scores, and classes of the whole frame", "labels"},
    {draw_tracks, "Ids of tracks, and where they were", "tracks"},
    {draw_masks, "Masks of detections, and class maps", "masks"},
    {draw_keypoints, "Keypoints and skeletons", "keypoints"},
    {draw_regions, "Regions of interest and inferred regions", "regions"},
    {draw_zones, "Zones and lines with their counts", "zones"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<OverlaySettings>> rows();
    static OverlaySettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

std::span<const Property<OverlaySettings>> Properties::rows() {
    using S = OverlaySettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"mode", "Mode", "How results come onto the picture", until_ready,
         P::choice<&S::mode>("GstVartmlOverlayMode", mode_values)},
        {"draw", "Draw", "What is drawn", any_time,
         P::Flags{"GstVartmlOverlayDraw", draw_values, &S::draw}},
        {"hud", "Head-up display",
         "Show frames per second, latency, skipped inferences and the model at the top left",
         any_time, P::Flag{&S::hud}},
        {"line-width", "Line width", "Pixels; 0 = one per 360 lines of the frame, at least two",
         any_time, P::Uint{&S::line_width, 0, 100}},
        {"font-scale", "Font scale",
         "Size of the text in percent of the frame's height; 0 = 2.5, at least 10 pixels", any_time,
         P::Real{&S::font_scale, 0, 50}},
        {"color-mode", "Color mode", "What chooses the color of a detection", any_time,
         P::choice<&S::color_mode>("GstVartmlOverlayColorMode", color_mode_values)},
        {"color", "Color", "Color of color-mode=fixed as 0xaarrggbb", any_time,
         P::Uint{&S::color, 0, G_MAXUINT}},
        {"show-score", "Show scores", "Whether labels have scores", controlled,
         P::Flag{&S::show_score}},
        {"mask-opacity", "Opacity of masks", "0 = not seen, 1 = the picture below is not seen",
         controlled, P::Real{&S::mask_opacity, 0, 1}},
        {"keypoint-threshold", "Keypoint threshold", "Least score of a keypoint that is drawn",
         controlled, P::Real{&S::keypoint_threshold, 0, 1}},
        {"skeleton", "Skeleton",
         "Lines between keypoints: auto (what the model says, else those of the published skeleton "
         "of so many points), a skeleton such as coco17 or hand21, none, or pairs of point numbers "
         "such as 0-1;1-2",
         any_time, P::Text{&S::skeleton}},
        {"classes", "Classes", "Comma list of labels that are drawn; unset: all", any_time,
         P::Text{&S::classes}},
        {"tracked-only", "Tracked only",
         "Draw no detection without a track, as the unsure ones that vartmldecode lets through for "
         "vartmltrack; blur-classes blurs them all the same",
         any_time, P::Flag{&S::tracked_only}},
        {"blur-classes", "Blur classes",
         "Comma list of labels whose objects become a mosaic that tells nothing of them; frames "
         "are blended then; unset: none",
         until_ready, P::Text{&S::blur_classes}},
        {"hold", "Hold",
         "Nanoseconds for which the last results stay on frames that have none of their own",
         any_time, P::Time{&S::hold}},
        P::stats<stats_of>("Counts since start: frames, drawn, attached, blended, copied, "
                           "rectangle-bytes, blurred"),
    };
    return all;
}

// What is set; of properties that count from the start on what was set then.
OverlaySettings settings_of(gpointer element) {
    OverlaySettings settings = copy_settings<Properties>(element);
    const ObjectLock lock(element);
    if (const auto& started = state_of(element).started)
        settings.mode = started->mode, settings.blur_classes = started->blur_classes;
    return settings;
}

// Of a skeleton that cannot be read.
std::optional<Failure> skeleton_failure(const OverlaySettings& settings) {
    if (settings.skeleton == "auto" || vartml::parse_skeleton(settings.skeleton))
        return std::nullopt;
    std::string expected = "auto, none, ";
    for (const vartml::Skeleton& named : vartml::skeletons()) (expected += named.name) += ", ";
    expected += "or pairs of point numbers such as 0-1;1-2";
    return Failure{
        .error = {vartml::ErrorCode::invalid_argument,
                  "property 'skeleton' is '" + settings.skeleton + "', expected " + expected},
        .id = "ovl-skeleton",
        .property = "skeleton",
        .found = settings.skeleton,
        .expected = expected};
}

// Of a frame that attaching would leave readable.
std::optional<Failure> blur_failure(const OverlaySettings& settings) {
    if (settings.mode != OverlayMode::attach || settings.blur_classes.empty()) return std::nullopt;
    return Failure{.error = {vartml::ErrorCode::invalid_argument,
                             "property 'blur-classes' is '" + settings.blur_classes +
                                 "', which writes into frames, and mode=attach never does; set "
                                 "mode=auto or mode=blend"},
                   .id = "ovl-blur",
                   .property = "blur-classes",
                   .found = "mode=attach",
                   .expected = "mode=auto or mode=blend"};
}

void update_look(GstVartmlOverlay* self) {
    State& state = *self->state;
    if (!state.changed.exchange(false)) return;
    const OverlaySettings settings = settings_of(self);
    if (const auto failure = skeleton_failure(settings))
        post_warning(self, "draw the skeleton", *failure);
    state.look = overlay::make_look(settings, state.width, state.height);
    state.text.set_size(state.look.text_size);
    if (state.attaching) {
        state.attacher.set_size(state.width, state.height, state.look.text_size);
    }
    state.label_names = split_list(settings.classes);
    state.label_check.restart();
    state.show_hud = settings.hud;
    state.hold = settings.hold;
    if (!state.show_hud) state.hud.clear();
}

gboolean start(GstBaseTransform* base) {
    State& state = state_of(base);
    const OverlaySettings settings = copy_settings<Properties>(base);
    if (const auto failure = skeleton_failure(settings)) {
        post_error(base, "draw", *failure);
        return FALSE;
    }
    if (const auto failure = blur_failure(settings)) {
        post_error(base, "blur", *failure);
        return FALSE;
    }
    GST_INFO_OBJECT(base, "settings: %s", settings_text(base).c_str());
    state.blur_names = split_list(settings.blur_classes);
    state.blur_check.restart();
    state.video = state.attaching = false;
    state.changed = true;
    state.copy_notice.restart();
    state.idle.restart();
    state.clock.restart();
    state.hud.clear();
    state.attacher.start();
    GST_OBJECT_LOCK(base);
    state.started = settings;
    state.counts = {};
    GST_OBJECT_UNLOCK(base);
    return TRUE;
}

gboolean stop(GstBaseTransform* base) {
    State& state = state_of(base);
    state.forget();
    state.attacher.clear();
    const ObjectLock lock(base);
    state.started.reset();
    return TRUE;
}

gboolean refuse_caps(GstBaseTransform* base, const GstCaps* caps) {
    const std::string found = overlay::describe(caps);
    std::string formats;
    for (const GstVideoFormat format : overlay::drawable_formats()) {
        formats += (formats.empty() ? "" : " ") + std::string(gst_video_format_to_string(format));
    }
    const OverlaySettings settings = settings_of(base);
    const bool attach = settings.mode == OverlayMode::attach;
    const std::string why = settings.blur_classes.empty()
                                ? "downstream draws no overlay composition"
                                : "blur-classes has to write into it";
    const std::string fix = attach ? "set mode=auto" : "put videoconvert before the element";
    return post_error(
        base, "draw on these frames",
        {.error = {vartml::ErrorCode::unsupported,
                   found +
                       (attach ? ": downstream draws no overlay composition, expected by "
                                 "mode=attach; "
                               : " cannot be drawn into and " + why + ", expected one of " +
                                     formats + "; ") +
                       fix},
         .id = "ovl-caps",
         .found = found,
         .expected = attach ? "an overlay composition" : formats,
         .fix = fix});
}

GstCaps* transform_caps(GstBaseTransform* base, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
    const OverlayMode mode = settings_of(base).effective_mode();
    GstCaps* result = nullptr;
    if (direction == GST_PAD_SRC) {
        result = overlay::sink_caps(caps, mode);
    } else if (gst_caps_is_fixed(caps)) {
        result = overlay::chosen_src_caps(base->srcpad, caps, mode);
    } else {
        result = overlay::src_caps(caps, mode);
    }
    if (!filter) return result;
    GstCaps* filtered = gst_caps_intersect_full(filter, result, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(result);
    return filtered;
}

gboolean answer(GstBaseTransform* base, GstPadDirection direction, GstQuery* query) {
    if (direction == GST_PAD_SINK && GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
        overlay::answer_caps(base, query, settings_of(base).effective_mode());
        return TRUE;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_overlay_parent_class)->query(base, direction, query);
}

gboolean accept_caps(GstBaseTransform* base, GstPadDirection direction, GstCaps* caps) {
    if (direction == GST_PAD_SRC) {
        return GST_BASE_TRANSFORM_CLASS(gst_vartml_overlay_parent_class)
            ->accept_caps(base, direction, caps);
    }
    return overlay::accepts(base, caps, settings_of(base).effective_mode());
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    State& state = state_of(base);
    const FrameSize before = state.video ? FrameSize{state.width, state.height} : FrameSize{};
    state.changed = true;
    const GstStructure* s = gst_caps_get_structure(in, 0);
    state.video = gst_structure_has_name(s, "video/x-raw") &&
                  gst_structure_get_int(s, "width", &state.width) &&
                  gst_structure_get_int(s, "height", &state.height);
    if (!state.video) {
        state.forget();
    } else if (const auto larger = growth(before, {state.width, state.height})) {
        state.rescale(*larger);
    }
    state.clock.set_caps(in);
    state.info = overlay::drawable_info(in);
    state.undecided = true;
    gst_base_transform_set_passthrough(base, !state.video && state.blur_names.empty());
    if (state.info) state.canvas.set_format(*state.info);
    return TRUE;
}

// With the first frame of some caps, because downstream may draw compositions without saying so in
// its own, and is asked when it has them.
bool decide(GstBaseTransform* base) {
    State& state = state_of(base);
    if (!state.undecided.exchange(false)) return true;
    const OverlayMode mode = settings_of(base).effective_mode();
    GstCaps* out = gst_pad_get_current_caps(base->srcpad);
    if (!out) {
        state.undecided = true;
        return false;  // flushing
    }
    state.attaching = mode != OverlayMode::blend && (overlay::has_composition(out) ||
                                                     overlay::wants_composition(base->srcpad, out));
    state.changed = true;
    GST_INFO_OBJECT(base, "caps %" GST_PTR_FORMAT ": results are %s", out,
                    state.attaching ? "attached" : "blended");
    const bool able = state.attaching || (state.info && mode != OverlayMode::attach);
    if (!able) {
        state.undecided = true;  // whoever pushes again is refused again
        refuse_caps(base, out);
    }
    gst_caps_unref(out);
    return able;
}

// Downstream may have become another.
gboolean src_event(GstBaseTransform* base, GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_RECONFIGURE) state_of(base).undecided = true;
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_overlay_parent_class)->src_event(base, event);
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        state.forget();
        state.track_labels.restart();
        state.clock.begin();
        state.hud.clear();
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_overlay_parent_class)->sink_event(base, event);
}

// Whether results of a frame of `then` are still to be seen at this time.
bool holds(const State& state, GstClockTime then, GstClockTime time) {
    return state.hold && GST_CLOCK_TIME_IS_VALID(then) && time >= then && time - then <= state.hold;
}

bool has_regions(GstBuffer* buffer) {
    gpointer state = nullptr;
    return gst_buffer_iterate_meta_filtered(buffer, &state,
                                            GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) != nullptr;
}

// Tells what keeps the element from drawing.
void look_for_mistakes(GstVartmlOverlay* self, GstBuffer* buffer,
                       const overlay::FrameResults& results) {
    State& state = *self->state;
    const bool has_work = results.drawable || state.show_hud || has_regions(buffer);
    state.idle.frame(
        GST_ELEMENT(self),
        {.id = "ovl-idle", .doing = "draw results", .lacks = "results", .needs_decoder = true},
        has_work, results.record);
    if (!results.inferred) return;
    state.label_check.frame(GST_ELEMENT(self), "classes", state.label_names);
    state.blur_check.frame(GST_ELEMENT(self), "blur-classes", state.blur_names);
}

// Fills the scenes with what is to be seen on this frame.
void read_frame(GstVartmlOverlay* self, GstBuffer* buffer) {
    State& state = *self->state;
    int top = 0;
    state.hud_scene.clear();
    if (state.show_hud) {
        state.hud.count(buffer, g_get_monotonic_time());
        top = state.hud.add_to(state.hud_scene, state.text);
    }
    const overlay::FrameResults results = overlay::results_on(buffer);
    look_for_mistakes(self, buffer, results);
    const GstClockTime now = state.clock.time(GST_BASE_TRANSFORM(self)->segment, buffer);
    const bool own = results.own();
    if (!own && holds(state, state.results_time, now)) return;
    // Where one of several models has no result, what it had hidden stays hidden.
    const bool lacking = own && results.lacking && state.hold;
    if (lacking) state.before.take_blurred(state.results);
    state.results.clear();
    state.look.tracks_keep_label = state.track_labels.are_kept(GST_ELEMENT(self));
    state.reader.read(buffer, state.look, state.text, top, state.results);
    for (overlay::MaskItem& item : state.results.blurred) item.time = now;
    if (lacking)
        state.results.add_blurred(state.before, [&](const overlay::MaskItem& item) {
            return item.source && holds(state, item.time, now) &&
                   !overlay::has_result_of(buffer, item.source);
        });
    state.results_time = own ? now : GST_CLOCK_TIME_NONE;
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* base, GstBuffer* in, GstBuffer** out) {
    auto* self = GST_VARTML_OVERLAY(base);
    State& state = *self->state;
    sync_properties(base, in);
    GST_OBJECT_LOCK(self);
    ++state.counts.frames;
    GST_OBJECT_UNLOCK(self);
    *out = in;
    if (!state.video && state.blur_names.empty()) return GST_FLOW_OK;
    if (!decide(base)) {
        return GST_PAD_IS_FLUSHING(base->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
    }
    update_look(self);
    read_frame(self, in);
    GST_LOG_OBJECT(self, "%" GST_TIME_FORMAT ": %s", GST_TIME_ARGS(GST_BUFFER_PTS(in)),
                   !state.anything() ? "nothing to draw"
                   : state.attaching ? "attached for downstream to draw"
                                     : "drawn into the picture");
    if (!state.anything()) return GST_FLOW_OK;
    bool copied = false;
    const GstFlowReturn flow =
        state.attaching ? prepare_writable(in, out, copied) : prepare_drawable(in, out, copied);
    if (!copied) return flow;
    state.copy_notice.copied(
        base,
        "somebody else has the frame too, or its memory cannot be shared: copied to draw on it");
    const ObjectLock lock(base);
    ++state.counts.copied;
    return flow;
}

bool blend(GstVartmlOverlay* self, GstBuffer* buffer) {
    State& state = *self->state;
    if (auto whole = expect_whole_frame(buffer, *state.info); !whole) {
        post_error(self, "draw on the frame", {.error = std::move(whole).error(), .id = "ovl-map"});
        return false;
    }
    GstVideoFrame frame;
    if (!map_frame(&frame, *state.info, buffer, GST_MAP_READWRITE)) {
        post_error(self, "draw on the frame",
                   {.error = {vartml::ErrorCode::internal,
                              "its memory cannot be mapped for writing; put videoconvert before "
                              "the element"},
                    .id = "ovl-map"});
        return false;
    }
    state.canvas.set_frame(frame);
    state.painter.draw(state.canvas, state.text, state.results);
    state.painter.draw(state.canvas, state.text, state.hud_scene);
    gst_video_frame_unmap(&frame);
    return true;
}

void attach(State& state, GstBuffer* buffer) {
    GstVideoOverlayComposition* composition = overlay::begin_composition(buffer);
    state.attacher.add(state.results, composition);
    state.attacher.add(state.hud_scene, composition);
    state.attacher.end_frame();
    overlay::attach(buffer, composition);
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_OVERLAY(base);
    State& state = *self->state;
    if (!state.video || !state.anything()) return GST_FLOW_OK;
    // A gap without a picture.
    if (!state.attaching && gst_buffer_get_size(buffer) == 0) return GST_FLOW_OK;
    if (state.attaching) {
        attach(state, buffer);
    } else if (!blend(self, buffer)) {
        return GST_FLOW_ERROR;
    }
    state.text.end_frame();
    GST_OBJECT_LOCK(self);
    ++state.counts.drawn;
    ++(state.attaching ? state.counts.attached : state.counts.blended);
    state.counts.blurred += state.results.blurred.size();
    state.counts.rectangle_bytes = state.attacher.bytes_made();
    GST_OBJECT_UNLOCK(self);
    return GST_FLOW_OK;
}

}  // namespace

static void gst_vartml_overlay_init(GstVartmlOverlay* self) {
    self->state = new State;
    GstBaseTransform* base = GST_BASE_TRANSFORM(self);
    set_up_in_place(base);
}

static void gst_vartml_overlay_class_init(GstVartmlOverlayClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmloverlay_debug, "vartmloverlay", 0, "drawing of detections");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlOverlay>;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML overlay", "Visualization/Video",
                    "Draws what vision models found");

    base->start = start;
    base->stop = stop;
    base->transform_caps = transform_caps;
    base->query = answer;
    base->accept_caps = accept_caps;
    base->set_caps = set_caps;
    base->sink_event = sink_event;
    base->src_event = src_event;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
