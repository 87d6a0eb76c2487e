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
#include "gst/support/error.h"
#include "gst/support/events.h"
#include "gst/support/picture_info.h"

GST_DEBUG_CATEGORY(gst_vartml_infer_debug);

namespace infer = vartml::gst::infer;

struct _GstVartmlInfer {
    GstElement parent;
    GstPad *sink, *src;
    infer::Stream* stream;  // locks itself
};

G_DEFINE_TYPE(GstVartmlInfer, gst_vartml_infer, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE(vartmlinfer, "vartmlinfer", GST_RANK_NONE,
                                      GST_TYPE_VARTML_INFER, vartml::gst::install_log())

namespace {

enum Signal { signal_reset_stats, num_signals };
guint signals[num_signals];

infer::Stream* stream_of(GstObject* object) {
    return GST_VARTML_INFER(object)->stream;
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
    // The interval may be controlled; other properties follow when they are set.
    if (GST_BUFFER_PTS_IS_VALID(buffer) && gst_object_has_active_control_bindings(parent)) {
        gst_object_sync_values(parent, GST_BUFFER_PTS(buffer));
    }
    return stream_of(parent)->chain(buffer);
}

gboolean sink_event(GstPad*, GstObject* parent, GstEvent* event) {
    return stream_of(parent)->sink_event(event);
}

gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    if (vartml::gst::is_serialized(query)) return stream_of(parent)->sink_query(query);
    const gboolean answered = gst_pad_query_default(pad, parent, query);
    if (answered && GST_QUERY_TYPE(query) == GST_QUERY_CAPS) stream_of(parent)->narrow_caps(query);
    return answered;
}

gboolean src_event(GstPad*, GstObject* parent, GstEvent* event) {
    return stream_of(parent)->src_event(event);
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    return GST_QUERY_TYPE(query) == GST_QUERY_LATENCY ? stream_of(parent)->src_query(query)
                                                      : gst_pad_query_default(pad, parent, query);
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

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    if (!GST_VARTML_INFER(object)->stream->set_property(id, value))
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    if (!GST_VARTML_INFER(object)->stream->get_property(id, value))
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
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
    self->stream = new infer::Stream(GST_ELEMENT(self), self->sink, self->src);
}

static void gst_vartml_infer_class_init(GstVartmlInferClass* klass) {
    GST_DEBUG_CATEGORY_INIT(gst_vartml_infer_debug, "vartmlinfer", 0, "runs a model on frames");
    GObjectClass* object_class = G_OBJECT_CLASS(klass);
    object_class->set_property = set_property;
    object_class->get_property = get_property;
    object_class->finalize = finalize;
    infer::install_properties(object_class);
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
    GstCaps* caps = vartml::gst::picture_caps();
    gst_element_class_add_pad_template(
        element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
    gst_element_class_add_pad_template(
        element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}
