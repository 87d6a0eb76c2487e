// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlinfer
 * @title: vartmlinfer
 * @short_description: runs a compiled vision model on each frame
 *
 * Each frame is fitted to the model's picture input ([1,3,H,W], [1,H,W,3] or one channel) in one
 * pass, the model runs, and its outputs are attached to the frame as #GstTensorMeta with the shapes
 * of the model (output-tensor-type=cpu) or of the device (hw). Frames leave unchanged and in order;
 * at most async-depth of them are between the pads. On every frame an analytics Mtd
 * `vartml-inference` says what happened to it and maps model pixels to frame pixels; read it with
 * gst_vartml_inference_get_structure().
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=30 ! vartmlinfer model=model.onnx ! vartmldecode !
 * vartmloverlay ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 1.0
 */
#include "gst/gstvartmlinfer.h"

#include "gst/infer/settings.h"
#include "gst/infer/stream.h"
#include "gst/infer/trace.h"
#include "gst/support/decoder_query.h"
#include "gst/support/error.h"
#include "gst/support/events.h"
#include "gst/support/picture_info.h"
#include "gst/support/property_table.h"

GST_DEBUG_CATEGORY(gst_vartml_infer_debug);

using namespace vartml::gst;
using namespace vartml::gst::infer;

struct _GstVartmlInfer {
    GstElement parent;
    GstPad *sink, *src;
    Stream* stream;  // locks itself
};

G_DEFINE_TYPE(GstVartmlInfer, gst_vartml_infer, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE(vartmlinfer, "vartmlinfer", GST_RANK_NONE,
                                      GST_TYPE_VARTML_INFER, install_log())

namespace {

// ---- properties ----

GstStructure* stats_of(GObject* object) {
    return GST_VARTML_INFER(object)->stream->stats();
}

constexpr GEnumValue resize_values[] = {
    {int(ResizeChoice::automatic), "Sidecar, else decoder family, else stretch", "auto"},
    {int(ResizeChoice::stretch), "Fill the model's input, aspect may change", "stretch"},
    {int(ResizeChoice::letterbox), "Keep the aspect, centred, borders in the pad colour",
     "letterbox"},
    {int(ResizeChoice::letterbox_top_left), "Keep the aspect, at the top left",
     "letterbox-top-left"},
    {int(ResizeChoice::crop), "Centred part of the frame with the model's aspect", "crop"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue output_view_values[] = {
    {int(OutputView::cpu), "As the ONNX model declares, dequantised", "cpu"},
    {int(OutputView::hw), "As the device wrote it, without conversion", "hw"},
    {int(OutputView::best), "hw where every output has that view, else cpu", "auto"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue copy_policy_values[] = {
    {int(CopyPolicy::allow), "Count copies", "allow"},
    {int(CopyPolicy::warn), "Count them and post one warning per reason", "warn"},
    {int(CopyPolicy::forbid), "The first copy is an error", "forbid"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue on_fallback_values[] = {
    {int(OnFallback::allow), "Run them on the CPU", "allow"},
    {int(OnFallback::warn), "Run them on the CPU and post one warning", "warn"},
    {int(OnFallback::error), "Refuse the model", "error"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue on_late_values[] = {
    {int(OnLate::automatic), "Skip when upstream is live, else block", "auto"},
    {int(OnLate::block), "Wait and infer every frame", "block"},
    {int(OnLate::skip), "Pass the frame without inference", "skip"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue keep_rate_values[] = {
    {int(KeepRate::automatic), "Yes when upstream is live, else no", "auto"},
    {int(KeepRate::no), "A frame that is inferred waits for its result, later ones behind it",
     "no"},
    {int(KeepRate::yes), "Frames leave at their time, with the newest result there is", "yes"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue inference_region_values[] = {
    {int(InferenceRegion::full_frame), "The whole frame", "full-frame"},
    {int(InferenceRegion::roi), "Each region that an element before attached", "roi"},
    {int(InferenceRegion::tiles), "Overlapping tiles of the frame, for small objects", "tiles"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue roi_source_values[] = {
    {int(RoiSource::automatic), "Regions of interest where there are any, else detections", "auto"},
    {int(RoiSource::detections), "Detections of the analytics metadata", "detections"},
    {int(RoiSource::roi_meta), "GstVideoRegionOfInterestMeta", "roi-meta"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue input_is_tensor_values[] = {
    {int(InputIsTensor::automatic),
     "Where the model takes pictures as bytes and the frame is such a picture, and where caps say "
     "that it is a tensor",
     "auto"},
    {int(InputIsTensor::no), "Frames are always converted", "no"},
    {int(InputIsTensor::yes), "Frames are the input tensor; other caps are refused", "yes"},
    {0, nullptr, nullptr},
};

GParamSpec* model_spec(const Property<Settings>& p, GParamFlags flags) {
    return g_param_spec_string(p.name, p.nick, p.blurb, nullptr, flags);
}

GParamSpec* options_spec(const Property<Settings>& p, GParamFlags flags) {
    return g_param_spec_boxed(p.name, p.nick, p.blurb, GST_TYPE_STRUCTURE, flags);
}

struct Properties {
    struct Lock : std::lock_guard<std::mutex> {
        explicit Lock(GObject* o) : lock_guard(GST_VARTML_INFER(o)->stream->settings().mutex()) {}
    };
    static std::span<const Property<Settings>> rows();
    static Settings& settings(GObject* o) {
        return GST_VARTML_INFER(o)->stream->settings().written();
    }
    static void written(GObject* o) { GST_VARTML_INFER(o)->stream->settings_written(); }
};

std::span<const Property<Settings>> Properties::rows() {
    using S = Settings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"model", "Model",
         "Compiled model (directory with vaiml_par_0, .rai or .tar.gz file, or directory with one "
         ".rai), or an .onnx file, which is compiled into cache-dir first; written while running, "
         "it is loaded beside the one in use and takes its place between two frames; required",
         any_time,
         P::Custom{model_spec, [](const S& s, GValue* value) { store(s.model, value); },
                   [](S& s, const GValue* value) {
                       if (!s.running) s.sidecar_of_before = false;
                       load(s.running ? s.wanted_model.emplace() : s.model, value);
                   }}},
        {"modelinfo-file", "Sidecar",
         "Sidecar (.modelinfo) of the model; unset: the one in the compiled model, else beside it; "
         "written while running, it is that of the model that is written next",
         any_time, P::Text{&S::modelinfo_file},
         [](S& s) {
             s.sidecar_written = true;
             s.sidecar_of_before = false;
         }},
        {"device", "Device",
         "Device that runs the model: auto, softnpu, or what the runtime offers", until_ready,
         P::Text{&S::device}},
        {"runner-options", "Runner options",
         "Further options of create_runner as a structure, such as options,start_column=(uint)4; "
         "unset: none",
         until_ready,
         P::Custom{options_spec,
                   [](const S& s, GValue* value) {
                       g_value_take_boxed(value, runner_options_structure(s));
                   },
                   [](S& s, const GValue* value) {
                       read_runner_options(s, gst_value_get_structure(value));
                   }}},
        {"cache-dir", "Cache folder",
         "Where an .onnx is compiled to and a .tar.gz unpacked; unset: vartml in the user's cache "
         "folder",
         until_ready, P::Text{&S::cache_dir}},
        {"model-instance-id", "Model instance",
         "Elements of the process with the same id share one model, its weights and its batches; "
         "one that starts beside others names the model that they have by then; unset: not shared",
         until_ready, P::Text{&S::model_instance_id}},
        {"batch-size", "Batch size",
         "Frames per run, at most what the model was compiled for; 0 = that", until_ready,
         P::Uint{&S::batch_size, 0, 64}},
        {"batch-timeout", "Batch timeout",
         "Longest wait in milliseconds of the oldest frame for a full batch; -1 = one frame "
         "duration, 0 = never wait",
         any_time, P::Int{&S::batch_timeout_ms, -1, 60'000}},
        {"async-depth", "Depth",
         "Most frames between chain and push; 0 = twice the batch size, at least 2", until_ready,
         P::Uint{&S::async_depth, 0, 64}},
        {"run-timeout", "Run timeout",
         "Milliseconds after which a run that the device does not end has failed", until_ready,
         P::Uint{&S::run_timeout_ms, 1, 3'600'000}},
        {"idle-unload", "Unload when idle",
         "Milliseconds without a frame after which the model's runner, weights, arena and tensors "
         "are freed; the next frame loads it again and waits for that; 0 = never",
         until_ready, P::Uint{&S::idle_unload_ms, 0, 86'400'000}},
        {"inference-interval", "Interval", "Infer one frame in N; the others pass", controlled,
         P::Uint{&S::inference_interval, 1, 1000}},
        {"inference-region", "Region", "What part of a frame is inferred", until_ready,
         P::choice<&S::region>("GstVartmlInferRegion", inference_region_values)},
        {"roi-source", "Source of regions", "Where regions come from", until_ready,
         P::choice<&S::roi_source>("GstVartmlInferRoiSource", roi_source_values)},
        {"roi-classes", "Classes of regions",
         "Comma-separated labels of detections, or types of regions of interest, that are "
         "inferred; unset: all",
         any_time, P::Text{&S::roi_classes}},
        {"roi-min-size", "Smallest region", "Regions with a side of fewer pixels are not inferred",
         any_time, P::Uint{&S::roi_min_size, 0, 65'535}},
        {"roi-max", "Most regions", "Most regions that are inferred per frame, best score first",
         until_ready, P::Uint{&S::roi_max, 1, 256}},
        {"roi-expand", "Enlargement", "What is added to a region on each side, as part of its size",
         any_time, P::Real{&S::roi_expand, 0, 2}},
        {"roi-reinfer-interval", "Interval of tracked regions",
         "Frames after which the region of a tracked detection is inferred again; those between "
         "carry its result; 0 = never again, 1 = every frame",
         any_time, P::Uint{&S::roi_reinfer_interval, 0, 100'000}},
        {"roi-reinfer-growth", "Growth of tracked regions",
         "Part of its area by which such a region has grown when it is inferred before that; 0 = "
         "whatever its size",
         any_time, P::Real{&S::roi_reinfer_growth, 0, 100}},
        {"tile-grid", "Grid of tiles",
         "Columns and rows of tiles of inference-region=tiles, as COLUMNSxROWS", until_ready,
         P::Text{&S::tile_grid}},
        {"tile-overlap", "Overlap of tiles",
         "What neighbours share, as part of a tile's side; an object up to that size is whole in "
         "one of them",
         until_ready, P::Real{&S::tile_overlap, 0, 0.9}},
        {"tile-whole-frame", "Whole frame beside tiles",
         "Whether the whole frame is inferred beside its tiles, for objects larger than these",
         until_ready, P::Flag{&S::tile_whole_frame}},
        {"motion-threshold", "Motion threshold",
         "Infer a frame only where the mean of a cell of 16x16 pixels (of YUV its luma) differs by "
         "more than this, of 255, from the last inferred frame; others carry its result; 0 = infer "
         "every frame",
         until_ready, P::Uint{&S::motion_threshold, 0, 255}},
        {"motion-max-age", "Longest rest",
         "Nanoseconds after which a frame is inferred though nothing moves", until_ready,
         P::Time{&S::motion_max_age_ns}},
        {"resize-mode", "Resize mode", "How the frame is fitted to the model's input", until_ready,
         P::choice<&S::resize>("GstVartmlInferResizeMode", resize_values)},
        {"preprocess", "Pre-processing",
         "Keys of the sidecar's input section without prefix, such as 'channels=bgr mean=0 scale=1 "
         "pad=114,114,114'; what is absent, or all if unset, comes from the sidecar, else from the "
         "decoder "
         "family",
         until_ready, P::Text{&S::preprocess}},
        {"input-is-tensor", "Input is tensor",
         "Whether the bytes of a frame are the model's input, without conversion", until_ready,
         P::choice<&S::input_is_tensor>("GstVartmlInferInputIsTensor", input_is_tensor_values)},
        {"output-tensor-type", "Tensor view",
         "View of the tensors that are attached; auto is what to set in front of vartmldecode",
         until_ready, P::choice<&S::output_view>("GstVartmlInferTensorType", output_view_values)},
        {"copy-policy", "Copy policy", "What a copy of a frame or tensor leads to", any_time,
         P::choice<&S::copy_policy>("GstVartmlInferCopyPolicy", copy_policy_values)},
        {"on-fallback", "On fallback", "What nodes of the model that run on the CPU lead to",
         until_ready, P::choice<&S::on_fallback>("GstVartmlInferOnFallback", on_fallback_values)},
        {"on-late", "On late frames",
         "What happens to the inference of a frame that is late or meets a full queue; the frame "
         "itself always passes",
         any_time, P::choice<&S::on_late>("GstVartmlInferOnLate", on_late_values)},
        {"keep-rate", "Keep the rate",
         "Whether every frame leaves at its time, with its own result where that comes within one "
         "frame duration (latency, where that is set), else with the newest one and its age",
         any_time, P::choice<&S::keep_rate>("GstVartmlInferKeepRate", keep_rate_values)},
        {"latency", "Latency",
         "Answer to the latency query in nanoseconds; none = 99th percentile of the measured "
         "pre-processing and run, and the batch timeout, as far as frames wait for them",
         until_ready, P::Time{&S::latency}},
        {"latency-target", "Latency target",
         "Milliseconds within which 95 of 100 inferences shall be; the interval is adapted to hold "
         "it; 0 = off",
         any_time, P::Uint{&S::latency_target_ms, 0, 60'000}},
        P::stats<stats_of>(
            "Since start: frames, inferences, batches, conversions, imports, failed, skipped-… (by "
            "reason), carried, tracks-carried, model-swaps, copies, copied-bytes, and both by "
            "reason "
            "(copy-…-count, copy-…-bytes); now: in-flight, in-flight-max, queue-depth, batch-fill, "
            "output-buffers, interval; of pre, wait, run, total (until a frame leaves), result "
            "(until its own result is there) and age over the last frames "
            "microseconds as pre-p50-us, -p95-us, -p99-us, -max-us"),
    };
    return all;
}

enum Signal { signal_reset_stats, num_signals };
guint signals[num_signals];

Stream* stream_of(GstObject* object) {
    return GST_VARTML_INFER(object)->stream;
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
    return stream_of(parent)->chain(buffer);
}

gboolean sink_event(GstPad*, GstObject* parent, GstEvent* event) {
    return stream_of(parent)->sink_event(event);
}

// Frames of a layout that is not linear are "not negotiated" upstream, which names nothing.
void explain_layout(GstObject* element, GstQuery* query) {
    gboolean accepted;
    GstCaps* caps;
    gst_query_parse_accept_caps_result(query, &accepted);
    gst_query_parse_accept_caps(query, &caps);
    if (accepted || !gst_caps_is_fixed(caps) || !gst_video_is_dma_drm_caps(caps)) return;
    const auto format = frame_format(caps);
    if (format) return;
    Failure failure;
    (void)fail(failure, "infer-caps", format.error(), nullptr);
    post_warning(element, "take the frames", failure);
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    if (is_decoder_query(query) && is_decoded(query)) return FALSE;
    if (is_serialized(query)) return stream_of(parent)->sink_query(query);
    const gboolean answered = gst_pad_query_default(pad, parent, query);
    if (answered && GST_QUERY_TYPE(query) == GST_QUERY_CAPS) stream_of(parent)->narrow_caps(query);
    if (answered && GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
        stream_of(parent)->accept_caps(query);
        explain_layout(parent, query);
    }
    return answered;
}

gboolean src_event(GstPad*, GstObject* parent, GstEvent* event) {
    return stream_of(parent)->src_event(event);
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    const bool ours = GST_QUERY_TYPE(query) == GST_QUERY_LATENCY ||
                      (has_tensor_groups && GST_QUERY_TYPE(query) == GST_QUERY_CAPS);
    return ours ? stream_of(parent)->src_query(query) : gst_pad_query_default(pad, parent, query);
}

gboolean sink_activate_mode(GstPad*, GstObject* parent, GstPadMode mode, gboolean active) {
    if (mode != GST_PAD_MODE_PUSH) return FALSE;
    stream_of(parent)->activate_sink(active);
    return TRUE;
}

gboolean src_activate_mode(GstPad*, GstObject* parent, GstPadMode mode, gboolean active) {
    return mode == GST_PAD_MODE_PUSH && stream_of(parent)->activate_src(active);
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
    GstVartmlInfer* self = GST_VARTML_INFER(element);
    if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !self->stream->start()) {
        self->stream->stop();
        return GST_STATE_CHANGE_FAILURE;
    }
    const GstStateChangeReturn result =
        GST_ELEMENT_CLASS(gst_vartml_infer_parent_class)->change_state(element, change);
    const bool failed_start =
        change == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE;
    if (change == GST_STATE_CHANGE_PAUSED_TO_READY || failed_start) self->stream->stop();
    return result;
}

void reset_stats(GstVartmlInfer* self) {
    self->stream->reset_stats();
}

void finalize(GObject* object) {
    GstVartmlInfer* self = GST_VARTML_INFER(object);
    delete self->stream;
    G_OBJECT_CLASS(gst_vartml_infer_parent_class)->finalize(object);
}

GstPad* make_pad(GstElement* element, const char* name) {
    GstPad* pad = gst_pad_new_from_template(
        gst_element_class_get_pad_template(GST_ELEMENT_GET_CLASS(element), name), name);
    GST_PAD_SET_PROXY_CAPS(pad);
    gst_element_add_pad(element, pad);
    return pad;
}

}  // namespace

static void gst_vartml_infer_init(GstVartmlInfer* self) {
    self->sink = make_pad(GST_ELEMENT(self), "sink");
    gst_pad_set_chain_function(self->sink, chain);
    gst_pad_set_event_function(self->sink, sink_event);
    gst_pad_set_query_function(self->sink, sink_query);
    gst_pad_set_activatemode_function(self->sink, sink_activate_mode);
    self->src = make_pad(GST_ELEMENT(self), "src");
    gst_pad_set_event_function(self->src, src_event);
    gst_pad_set_query_function(self->src, src_query);
    gst_pad_set_activatemode_function(self->src, src_activate_mode);
    self->stream = new Stream(GST_ELEMENT(self), self->sink, self->src);
}

static void gst_vartml_infer_class_init(GstVartmlInferClass* klass) {
    GST_DEBUG_CATEGORY_INIT(gst_vartml_infer_debug, "vartmlinfer", 0, "runs a model on frames");
    GObjectClass* object_class = G_OBJECT_CLASS(klass);
    object_class->finalize = finalize;
    install_properties<Properties>(object_class);
    /**
     * GstVartmlInfer::reset-stats:
     *
     * Sets all counters of the property `stats` to zero.
     *
     * Since: 1.0
     */
    signals[signal_reset_stats] = g_signal_new_class_handler(
        "reset-stats", G_TYPE_FROM_CLASS(klass), GSignalFlags(G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION),
        G_CALLBACK(reset_stats), nullptr, nullptr, nullptr, G_TYPE_NONE, 0);

    GstElementClass* element_class = GST_ELEMENT_CLASS(klass);
    element_class->change_state = change_state;
    gst_element_class_set_static_metadata(
        element_class, "Vision model inference", "Filter/Video",
        "Runs a compiled model on each frame and attaches the tensors", "The gst-vartml authors");
    GstCaps* caps = picture_caps();
    gst_caps_append(caps, tensor_caps());
    gst_element_class_add_pad_template(
        element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
    gst_element_class_add_pad_template(
        element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}
