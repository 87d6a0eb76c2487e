// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlpicture
 * @title: vartmlpicture
 * @short_description: turns an output that is a picture into video
 *
 * Takes the tensors that vartmlinfer attached to a frame, or the #GstTensorMeta of upstream's
 * inference elements, and puts out the picture that one of them is instead of the frame: colours
 * `[1,3,h,w]`, brightness alone `[1,1,h,w]` with the frame's own colours, a measure such as depth
 * as colours, or a mask as the alpha channel of the frame. Also `[1,h,w,C]`, in the CPU and the HW
 * view.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmlpicture ! fakesink
 * ]| Without a model before it there is no picture, which it says in a warning.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlpicture.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gst/video/video.h>

#include <vartml/output_picture.h>

#include "gst/metadata/inference.h"
#include "gst/picture/canvas.h"
#include "gst/picture/source.h"
#include "gst/support/decoder_query.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/picture_info.h"
#include "gst/support/property_table.h"
#include "gst/support/tensor_meta.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmlpicture_debug);
#define GST_CAT_DEFAULT vartmlpicture_debug

using namespace vartml::gst;
using vartml::PictureKind;

namespace {

constexpr int kind_auto = -1;

// As the user set them. Thread-safety: none.
struct PictureSettings {
    std::string output, range;
    int kind = kind_auto;
    vartml::ColorMap colormap = vartml::ColorMap::turbo;
};

struct Stats {
    guint64 frames = 0, pictures = 0, repeated = 0, waiting = 0, not_finite = 0;
};

struct CapsUnref {
    void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
};
using CapsRef = std::unique_ptr<GstCaps, CapsUnref>;

struct State {
    // guarded by the object lock
    PictureSettings settings;
    Stats stats;
    CapsRef src_caps;  // of the pictures, once they are known
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // streaming thread, between start and stop
    PictureSettings in_use;
    std::vector<GstEvent*> held;  // from the first caps on, until those of the pictures are known
    bool holding = false, begun = false;
    CapsRef sink_caps;
    FrameSize size;
    PictureSource source;
    std::optional<vartml::OutputPicture> picture;
    std::shared_ptr<const InferenceRecord> picture_record;
    std::vector<vartml::TensorInfo> picture_outputs;
    Shown shown;
    std::optional<FrameFormat> format;  // of frames whose pixels are needed
    GstVideoInfo out{};
    MappedTensors tensors;
    PictureConverter colors;
    AlphaWriter alpha;
    bool told_not_finite = false, doubted = false;
    IdleNotice idle;
};

}  // namespace

struct _GstVartmlPicture {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlPicture, gst_vartml_picture, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmlpicture, "vartmlpicture", GST_RANK_NONE, GST_TYPE_VARTML_PICTURE)

namespace {

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
    "src", GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE("{ RGB, BGR, GRAY8, I420, RGBA }")));

State& state_of(gpointer object) {
    return *GST_VARTML_PICTURE(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const Stats& s = state_of(object).stats;
    return gst_structure_new("vartml-picture-stats", "frames", G_TYPE_UINT64, s.frames, "pictures",
                             G_TYPE_UINT64, s.pictures, "repeated", G_TYPE_UINT64, s.repeated,
                             "waiting", G_TYPE_UINT64, s.waiting, "not-finite", G_TYPE_UINT64,
                             s.not_finite, nullptr);
}

constexpr GEnumValue kind_values[] = {
    {kind_auto, "By the sidecar, else by the output's shape and the model's input", "auto"},
    {static_cast<int>(PictureKind::color), "Three colours of each pixel", "color"},
    {static_cast<int>(PictureKind::luma), "Brightness; the colours are the frame's", "luma"},
    {static_cast<int>(PictureKind::map), "A measure such as depth, in the colours of colormap",
     "map"},
    {static_cast<int>(PictureKind::alpha), "The frame, with the output as its alpha channel",
     "alpha"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue colormap_values[] = {
    {static_cast<int>(vartml::ColorMap::gray), "Black to white, as GRAY8", "gray"},
    {static_cast<int>(vartml::ColorMap::turbo), "Blue over green to red", "turbo"},
    {static_cast<int>(vartml::ColorMap::inferno), "Black over red to yellow", "inferno"},
    {static_cast<int>(vartml::ColorMap::viridis), "Violet over green to yellow", "viridis"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<PictureSettings>> rows();
    static PictureSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

std::span<const Property<PictureSettings>> Properties::rows() {
    using S = PictureSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"output", "Output",
         "Name or id of the tensor that is the picture; unset: the one that the sidecar calls a "
         "picture, else the only one with the shape of one",
         any_time, P::Text{&S::output}},
        {"kind", "Kind", "What its values are", any_time,
         P::choice<&S::kind>("GstVartmlPictureKind", kind_values)},
        {"range", "Range",
         "Values of black and white, MIN,MAX (MAX,MIN turns them round), or frame: the least and "
         "the greatest of each frame; unset: the sidecar's, else by graph and input, a map's each "
         "frame's own",
         any_time, P::Text{&S::range}},
        {"colormap", "Color map", "Colours of kind=map, from the least to the greatest value",
         any_time, P::choice<&S::colormap>("GstVartmlColorMap", colormap_values)},
        P::stats<stats_of>("Counts since start: frames, pictures (of new results), repeated "
                           "(frames without one), waiting (let go before the first), not-finite "
                           "(values)"),
    };
    return all;
}

void drop_held(State& state) {
    for (GstEvent* event : state.held) gst_event_unref(event);
    state.held.clear();
}

void forget(GstVartmlPicture* self) {
    State& state = *self->state;
    drop_held(state);
    state.holding = state.begun = false;
    state.sink_caps.reset();
    state.size = {};
    state.source.forget();
    state.picture.reset();
    state.picture_record.reset();
    state.picture_outputs.clear();
    state.format.reset();
    state.tensors.clear();
    state.alpha.clear();
    const ObjectLock lock(self);
    state.src_caps.reset();
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_PICTURE(base);
    State& state = *self->state;
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    forget(self);
    state.changed = true;
    state.told_not_finite = state.doubted = false;
    state.idle.restart();
    const ObjectLock lock(self);
    state.stats = {};
    return TRUE;
}

gboolean stop(GstBaseTransform* base) {
    forget(GST_VARTML_PICTURE(base));
    return TRUE;
}

// ---- caps ----

GstCaps* transform_caps(GstBaseTransform* base, GstPadDirection direction, GstCaps*,
                        GstCaps* filter) {
    GstCaps* caps;
    if (direction == GST_PAD_SINK) {
        const ObjectLock lock(base);
        const State& state = state_of(base);
        caps = state.src_caps ? gst_caps_ref(state.src_caps.get())
                              : gst_static_pad_template_get_caps(&src_template);
    } else {
        caps = gst_caps_new_any();
    }
    if (!filter) return caps;
    GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(caps);
    return both;
}

gboolean set_caps(GstBaseTransform* base, GstCaps*, GstCaps* out) {
    return gst_video_info_from_caps(&state_of(base).out, out);
}

gboolean transform_size(GstBaseTransform* base, GstPadDirection, GstCaps*, gsize, GstCaps*,
                        gsize* size) {
    *size = GST_VIDEO_INFO_SIZE(&state_of(base).out);
    return TRUE;
}

gboolean propose_allocation(GstBaseTransform*, GstQuery*, GstQuery* query) {
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    return TRUE;
}

// The peer's pool, else one of our own; rows with the peer's strides where it understands them.
gboolean decide_allocation(GstBaseTransform* base, GstQuery* query) {
    GstBufferPool* pool = nullptr;
    guint size = 0, min = 0, max = 0;
    GstCaps* caps = nullptr;
    gst_query_parse_allocation(query, &caps, nullptr);
    const bool offered = gst_query_get_n_allocation_pools(query) > 0;
    if (offered) gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &min, &max);
    size = std::max(size, guint(GST_VIDEO_INFO_SIZE(&state_of(base).out)));
    if (!pool) pool = gst_video_buffer_pool_new();
    GstStructure* config = gst_buffer_pool_get_config(pool);
    if (gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr))
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    gst_buffer_pool_config_set_params(config, caps, size, min, max);
    gst_buffer_pool_set_config(pool, config);
    if (offered)
        gst_query_set_nth_allocation_pool(query, 0, pool, size, min, max);
    else
        gst_query_add_allocation_pool(query, pool, size, min, max);
    gst_object_unref(pool);
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_picture_parent_class)
        ->decide_allocation(base, query);
}

Fraction fraction_of(const GstCaps* caps, const char* field, Fraction otherwise) {
    Fraction f = otherwise;
    gst_structure_get_fraction(gst_caps_get_structure(caps, 0), field, &f.n, &f.d);
    return f;
}

// Kinds whose pictures are made of pixels of the frame as well.
bool needs_frame(PictureKind kind) {
    return kind == PictureKind::luma || kind == PictureKind::alpha;
}

GstVideoFormat format_of(const State& state) {
    switch (state.picture->kind()) {
        case PictureKind::color:
            return state.picture->bgr() ? GST_VIDEO_FORMAT_BGR : GST_VIDEO_FORMAT_RGB;
        case PictureKind::luma:
            return GST_VIDEO_FORMAT_I420;
        case PictureKind::map:
            return state.in_use.colormap == vartml::ColorMap::gray ? GST_VIDEO_FORMAT_GRAY8
                                                                   : GST_VIDEO_FORMAT_RGB;
        case PictureKind::alpha:
            break;
    }
    return GST_VIDEO_FORMAT_RGBA;
}

// Pixels that stay where they are, with the colours that they had.
void copy_look(const GstCaps* from, const GstVideoInfo& info, GstCaps* rgba) {
    for (const char* field : {"interlace-mode", "field-order"})
        if (const GValue* value = gst_structure_get_value(gst_caps_get_structure(from, 0), field))
            gst_caps_set_value(rgba, field, value);
    GstVideoColorimetry colors = info.colorimetry;
    if (colors.primaries == GST_VIDEO_COLOR_PRIMARIES_UNKNOWN ||
        colors.transfer == GST_VIDEO_TRANSFER_UNKNOWN)
        return;
    colors.range = GST_VIDEO_COLOR_RANGE_0_255;
    colors.matrix = GST_VIDEO_COLOR_MATRIX_RGB;
    gchar* const text = gst_video_colorimetry_to_string(&colors);
    if (text) gst_caps_set_simple(rgba, "colorimetry", G_TYPE_STRING, text, nullptr);
    g_free(text);
}

// Of the pictures that the frames of the sink pad become. nullptr after posting an error.
CapsRef caps_of_pictures(GstVartmlPicture* self) {
    State& state = *self->state;
    const GstCaps* sink = state.sink_caps.get();
    const Fraction frame_aspect = fraction_of(sink, "pixel-aspect-ratio", {});
    const Fraction rate = fraction_of(sink, "framerate", {0, 1});
    const bool alpha = state.picture->kind() == PictureKind::alpha;
    const Fraction aspect = alpha ? frame_aspect : pixel_aspect(state.shown, frame_aspect);
    CapsRef caps(gst_caps_new_simple(
        "video/x-raw", "format", G_TYPE_STRING, gst_video_format_to_string(format_of(state)),
        "width", G_TYPE_INT, alpha ? state.size.width : int(state.shown.cut.width), "height",
        G_TYPE_INT, alpha ? state.size.height : int(state.shown.cut.height), "framerate",
        GST_TYPE_FRACTION, rate.n, rate.d, "pixel-aspect-ratio", GST_TYPE_FRACTION, aspect.n,
        aspect.d, nullptr));
    if (!needs_frame(state.picture->kind())) return caps;
    auto format = frame_format(sink);
    if (format && format->tensor) {
        format = vartml::Error{vartml::ErrorCode::unsupported,
                               "the frames are tensors of a camera and no pictures, so they have "
                               "no colours to give; set kind=map"};
    }
    if (!format) {
        post_error(self, "take colours from the frames",
                   {.error = format.error(), .id = "pic-caps", .property = "kind"});
        return nullptr;
    }
    state.format = *format;
    if (alpha) copy_look(sink, format->info, caps.get());
    if (state.picture->kind() == PictureKind::luma) {
        // Brightness of RGB is that of BT.601, as the model was fed.
        gchar* const own = gst_video_colorimetry_to_string(&format->info.colorimetry);
        gst_caps_set_simple(caps.get(), "colorimetry", G_TYPE_STRING,
                            own && GST_VIDEO_INFO_IS_YUV(&format->info) ? own : "bt601", nullptr);
        g_free(own);
    }
    return caps;
}

// ---- events ----

// From the caps on, everything waits until the size of the pictures is known.
gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_CAPS: {
            GstCaps* caps;
            gst_event_parse_caps(event, &caps);
            state.sink_caps.reset(gst_caps_ref(caps));
            const FrameSize size = video_size(caps);
            if (const auto larger = growth(state.size, size)) state.source.scale(*larger);
            state.size = size;
            state.holding = !state.begun;
            break;
        }
        case GST_EVENT_FLUSH_STOP:
            state.source.forget();
            std::erase_if(state.held, [](GstEvent* held) {
                const GstEventType type = GST_EVENT_TYPE(held);
                const bool sticky = (gst_event_type_get_flags(type) & GST_EVENT_TYPE_STICKY) != 0;
                if (sticky && type != GST_EVENT_SEGMENT && type != GST_EVENT_EOS) return false;
                gst_event_unref(held);
                return true;
            });
            break;
        case GST_EVENT_STREAM_START:
            state.source.forget();
            break;
        default:
            break;
    }
    const bool serialized =
        gst_event_type_get_flags(GST_EVENT_TYPE(event)) & GST_EVENT_TYPE_SERIALIZED;
    const bool ends =
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP || GST_EVENT_TYPE(event) == GST_EVENT_EOS;
    if (state.holding && serialized && !ends) {
        if (GST_EVENT_TYPE(event) == GST_EVENT_GAP)
            gst_event_unref(event);
        else
            state.held.push_back(event);
        return TRUE;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_picture_parent_class)->sink_event(base, event);
}

// Tensors end here, and so does the question who decodes them.
gboolean query(GstBaseTransform* base, GstPadDirection direction, GstQuery* query) {
    if (direction == GST_PAD_SINK && is_decoder_query(query)) return FALSE;
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_picture_parent_class)->query(base, direction, query);
}

// Gives the base class the events that were held, of which the caps negotiate.
void begin(GstBaseTransform* base) {
    State& state = state_of(base);
    state.holding = false;
    state.begun = true;
    const std::vector<GstEvent*> held = std::exchange(state.held, {});
    for (GstEvent* event : held)
        GST_BASE_TRANSFORM_CLASS(gst_vartml_picture_parent_class)->sink_event(base, event);
}

// ---- a frame ----

bool refuse(GstVartmlPicture* self, const char* id, const std::string& sentence,
            const std::string& fix, vartml::ErrorCode code = vartml::ErrorCode::unsupported) {
    return post_error(self, "make a picture",
                      {.error = {code, sentence + "; " + fix}, .id = id, .fix = fix});
}

// Makes the reader of the result's model, unless it is there. False after posting an error.
bool make_picture(GstVartmlPicture* self) {
    State& state = *self->state;
    const PictureResult& result = *state.source.result();
    if (state.picture && state.picture_record == result.record &&
        (result.record || state.picture_outputs == result.outputs))
        return true;
    vartml::OutputPictureOptions options{.output = state.in_use.output,
                                         .range = state.in_use.range};
    if (state.in_use.kind != kind_auto) options.kind = PictureKind(state.in_use.kind);
    const InferenceRecord* record = result.record.get();
    vartml::DecodeFault fault;
    auto made = vartml::OutputPicture::create(record ? record->model_info : vartml::ModelInfo(),
                                              result.described(), record ? &record->input : nullptr,
                                              record ? record->model_width : 0,
                                              record ? record->model_height : 0, options, &fault);
    if (!made) {
        return post_error(self, "find the picture",
                          {.error = made.error(),
                           .id = g_intern_string(fault.id.c_str()),
                           .property = fault.id == "pic-range"      ? "range"
                                       : fault.id == "pic-channels" ? "kind"
                                                                    : "output",
                           .found = fault.found,
                           .expected = fault.expected,
                           .fix = fault.fix});
    }
    state.picture.emplace(std::move(*made));
    state.picture_record = result.record;
    state.picture_outputs = result.outputs;
    state.doubted = false;
    const vartml::OutputPicture& picture = *state.picture;
    GST_INFO_OBJECT(self, "output %s as %s, range %s", picture.output().c_str(),
                    std::string(vartml::to_string(picture.kind())).c_str(),
                    picture.range().c_str());
    post_structure(
        self, gst_structure_new("vartml-picture-selected", "output", G_TYPE_STRING,
                                picture.output().c_str(), "kind", G_TYPE_STRING,
                                std::string(vartml::to_string(picture.kind())).c_str(), "range",
                                G_TYPE_STRING, picture.range().c_str(), "width", G_TYPE_UINT,
                                picture.width(), "height", G_TYPE_UINT, picture.height(), nullptr));
    return true;
}

// Where the picture lies on frames of the current caps. False after posting an error.
bool place_picture(GstVartmlPicture* self) {
    State& state = *self->state;
    const PictureResult& result = *state.source.result();
    const InferenceRecord* record = result.record.get();
    const auto shown = shown_part(result.to_frame, record ? record->model_width : 0,
                                  record ? record->model_height : 0, state.picture->width(),
                                  state.picture->height(), record ? state.size : FrameSize());
    if (!shown)
        return refuse(self, "pic-geometry", "the frame was turned or mirrored after inference",
                      "place vartmlpicture directly after vartmlinfer",
                      vartml::ErrorCode::bad_model);
    state.shown = *shown;
    // Upstream's tensors are of the whole frame.
    if (!record) state.shown.frame = {0, 0, state.size.width, state.size.height};
    state.shown.whole |= !record;
    if (!needs_frame(state.picture->kind()) || state.size.width) return true;
    return refuse(self, "pic-caps", "the caps of the frames tell no width and height",
                  "set kind=map, or put vartmlpicture where video passes");
}

// Takes what is new on the frame, and sees to it that the caps are right. False after an error.
bool prepare(GstVartmlPicture* self, GstBuffer* buffer, bool& fresh) {
    State& state = *self->state;
    if (state.changed.exchange(false)) {
        state.in_use = copy_settings<Properties>(self);
        state.picture.reset();
        state.source.want(state.in_use.output);
    }
    Failure failure;
    const auto taken = state.source.take(buffer, failure);
    if (!taken) return post_error(self, "make a picture", failure);
    fresh = taken->fresh;
    state.idle.frame(
        GST_ELEMENT(self),
        {.id = "pic-idle", .doing = "make a picture", .lacks = "tensors", .needs_decoder = false},
        taken->has_result, taken->has_record);
    if (!state.source.result()) return true;
    if (!make_picture(self) || !place_picture(self)) return false;
    CapsRef caps = caps_of_pictures(self);
    if (!caps) return false;
    {
        const ObjectLock lock(self);
        if (state.src_caps && gst_caps_is_equal(state.src_caps.get(), caps.get())) return true;
        state.src_caps = std::move(caps);
    }
    if (!state.begun)
        begin(GST_BASE_TRANSFORM(self));
    else
        gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
    return true;
}

GstFlowReturn submit_input_buffer(GstBaseTransform* base, gboolean discont, GstBuffer* buffer) {
    auto* self = GST_VARTML_PICTURE(base);
    State& state = *self->state;
    bool fresh = false;
    if (!prepare(self, buffer, fresh)) {
        gst_buffer_unref(buffer);
        return GST_FLOW_ERROR;
    }
    {
        const ObjectLock lock(self);
        ++state.stats.frames;
        if (!state.source.result())
            ++state.stats.waiting;
        else
            ++(fresh ? state.stats.pictures : state.stats.repeated);
    }
    if (!state.source.result()) {
        gst_buffer_unref(buffer);
        return GST_FLOW_OK;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_picture_parent_class)
        ->submit_input_buffer(base, discont, buffer);
}

// Times and flags, and metadata of the frame: what is of pixels in those of the picture, where it
// shows all of the frame.
gboolean copy_metadata(GstBaseTransform* base, GstBuffer* in, GstBuffer* out) {
    State& state = state_of(base);
    gst_buffer_copy_into(out, in,
                         GstBufferCopyFlags(GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS), 0,
                         gsize(-1));
    // With `alpha` the picture is the frame.
    const bool all = state.shown.whole || state.picture->kind() == PictureKind::alpha;
    const bool whole = all && state.size.width;
    GstVideoInfo from;
    gst_video_info_init(&from);
    from.width = state.size.width, from.height = state.size.height;
    const Fraction aspect = fraction_of(state.sink_caps.get(), "pixel-aspect-ratio", {});
    from.par_n = aspect.n, from.par_d = aspect.d;
    GstVideoMetaTransform scale = {&from, &state.out};
    const GQuark type = gst_video_meta_transform_scale_get_quark();
    gpointer iterator = nullptr;
    GstMetaTransformCopy copy = {FALSE, 0, gsize(-1)};
    while (GstMeta* meta = gst_buffer_iterate_meta(in, &iterator)) {
        const GType api = meta->info->api;
        const auto transform = meta->info->transform_func;
        if (!transform || gst_meta_api_type_has_tag(api, _gst_meta_tag_memory)) continue;
        if (whole && transform(out, meta, in, type, &scale)) continue;
        // What is not of pixels, such as time codes, also of a part of the frame.
        const gchar* const* tags = gst_meta_api_type_get_tags(api);
        if ((!tags || !*tags) && api != GST_ANALYTICS_RELATION_META_API_TYPE)
            transform(out, meta, in, _gst_meta_transform_copy, &copy);
    }
    drop_inference_tensors(out);
    return TRUE;
}

// False after posting an error.
bool read_picture(GstVartmlPicture* self) {
    State& state = *self->state;
    const PictureResult& result = *state.source.result();
    const InferenceRecord* record = result.record.get();
    const auto& outputs = result.described();
    vartml::Result<void> done;
    if (outputs.size() != result.data.size())
        done =
            vartml::Error{vartml::ErrorCode::internal, "the record does not describe its tensors"};
    for (size_t i = 0; i < result.data.size() && done; ++i)
        done = state.tensors.add(result.data[i], outputs[i],
                                 record ? record->views[i] : outputs[i].cpu);
    if (done) done = state.picture->read(state.tensors.outputs());
    if (!done)
        return post_error(self, "read the picture", {.error = done.error(), .id = "pic-output"});
    std::string doubt = state.doubted ? "" : state.picture->doubt();
    if (!doubt.empty()) {
        state.doubted = true;
        post_warning(self, "trust the picture",
                     {.error = {vartml::ErrorCode::bad_model, std::move(doubt)},
                      .id = "pic-range",
                      .property = "range",
                      .fix = "range=MIN,MAX"});
    }
    return true;
}

// Writes the picture into `out`. False where a frame cannot be mapped or converted.
bool write_picture(State& state, GstBuffer* in, GstBuffer* out, size_t& not_finite) {
    VideoMapping to(state.out, out, GST_MAP_WRITE);
    if (!to) return false;
    vartml::OutputPicture& picture = *state.picture;
    const Shown& shown = state.shown;
    if (!needs_frame(picture.kind())) {
        const bool mapped = picture.kind() == PictureKind::map &&
                            GST_VIDEO_INFO_FORMAT(&state.out) == GST_VIDEO_FORMAT_RGB;
        not_finite = mapped ? picture.write_mapped(shown.cut, state.in_use.colormap, to.row(0, 0),
                                                   to.stride(0))
                            : picture.write(shown.cut, to.row(0, 0), to.stride(0));
        return true;
    }
    const Rectangle all = {0, 0, GST_VIDEO_INFO_WIDTH(&state.out),
                           GST_VIDEO_INFO_HEIGHT(&state.out)};
    VideoMapping from(state.format->info, in, GST_MAP_READ);
    const bool luma = picture.kind() == PictureKind::luma;
    const Rectangle part = luma ? shown.frame : all;
    if (!from || !state.colors.run(from.frame(), part, to.frame(), all)) return false;
    if (!luma) return state.alpha.run(picture, shown, to, not_finite);
    const bool limited = state.out.colorimetry.range != GST_VIDEO_COLOR_RANGE_0_255;
    not_finite = picture.write(shown.cut, to.row(0, 0), to.stride(0), limited);
    return true;
}

GstFlowReturn transform(GstBaseTransform* base, GstBuffer* in, GstBuffer* out) {
    auto* self = GST_VARTML_PICTURE(base);
    State& state = *self->state;
    if (!read_picture(self)) {
        state.tensors.clear();
        return GST_FLOW_ERROR;
    }
    size_t not_finite = 0;
    const bool written = write_picture(state, in, out, not_finite);
    state.tensors.clear();
    if (!written) {
        post_error(self, "make a picture",
                   {.error = {vartml::ErrorCode::io,
                              "the memory of a frame cannot be mapped, or GStreamer cannot convert "
                              "it; put videoconvert before vartmlinfer"},
                    .id = "pic-caps"});
        return GST_FLOW_ERROR;
    }
    if (not_finite && !std::exchange(state.told_not_finite, true)) {
        post_warning(self, "trust the picture",
                     {.error = {vartml::ErrorCode::bad_model,
                                std::to_string(not_finite) + " values of output '" +
                                    state.picture->output() +
                                    "' are NaN or infinite on this frame and are drawn as black; "
                                    "compile the model with --numerics f32, and see that its "
                                    "pixels are those it was trained with"},
                      .id = "pic-not-finite",
                      .fix = "vartml compile --numerics f32"});
    }
    const ObjectLock lock(self);
    state.stats.not_finite += not_finite;
    return GST_FLOW_OK;
}

}  // namespace

static void gst_vartml_picture_init(GstVartmlPicture* self) {
    self->state = new State;
    gst_base_transform_set_qos_enabled(GST_BASE_TRANSFORM(self), FALSE);  // it would drop frames
}

static void gst_vartml_picture_class_init(GstVartmlPictureClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlpicture_debug, "vartmlpicture", 0, "outputs that are pictures");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* element = GST_ELEMENT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlPicture>;
    install_properties<Properties>(gobject);

    gst_element_class_set_static_metadata(element, "VART-ML picture", "Filter/Effect/Video",
                                          "Turns an output that is a picture into video",
                                          "The gst-vartml authors");
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_element_class_add_static_pad_template(element, &src_template);

    base->start = start;
    base->stop = stop;
    base->transform_caps = transform_caps;
    base->set_caps = set_caps;
    base->transform_size = transform_size;
    base->propose_allocation = propose_allocation;
    base->decide_allocation = decide_allocation;
    base->sink_event = sink_event;
    base->query = query;
    base->submit_input_buffer = submit_input_buffer;
    base->copy_metadata = copy_metadata;
    base->transform = transform;
}
