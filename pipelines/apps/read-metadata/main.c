/* SPDX-License-Identifier: Apache-2.0
 * What vartmlinfer says of each frame, read by an application: whether it was inferred, by which
 * model, which tensors came out, and how pixels of the model's input become pixels of the frame.
 *
 *     read-metadata MODEL [PICTURE-OR-VIDEO]     without one: three frames of a test picture
 */
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/vartml/inference.h>

/* "1x3x640x640" of an array of numbers. */
static void print_shape(const GstStructure* tensor, const char* field) {
    const GValue* shape = gst_structure_get_value(tensor, field);
    for (guint i = 0; i < gst_value_array_get_size(shape); ++i)
        g_print("%s%u", i ? "x" : "", g_value_get_uint(gst_value_array_get_value(shape, i)));
}

static void print_tensors(const GstStructure* inference) {
    const GValue* tensors = gst_structure_get_value(inference, "tensors");
    for (guint i = 0; i < gst_value_array_get_size(tensors); ++i) {
        const GstStructure* tensor = gst_value_get_structure(gst_value_array_get_value(tensors, i));
        g_print("  tensor %s: %s view, %s %s ", gst_structure_get_string(tensor, "name"),
                gst_structure_get_string(tensor, "view"),
                gst_structure_get_string(tensor, "data_type"),
                gst_structure_get_string(tensor, "layout"));
        print_shape(tensor, "shape");
        g_print("\n");
    }
}

static void print_to_frame(const GstStructure* inference) {
    const GValue* map = gst_structure_get_value(inference, "to_frame");
    double v[6];
    for (guint i = 0; i < 6; ++i) v[i] = g_value_get_double(gst_value_array_get_value(map, i));
    g_print("  to_frame: x = %.3f u + %.3f v + %.3f, y = %.3f u + %.3f v + %.3f\n", v[0], v[1],
            v[2], v[3], v[4], v[5]);
}

/* Called on GStreamer's thread for each frame. */
static GstFlowReturn on_frame(GstAppSink* sink, gpointer user) {
    (void)user;
    GstSample* sample = gst_app_sink_pull_sample(sink);
    GstBuffer* buffer = gst_sample_get_buffer(sample);
    GstStructure* inference;
    /* One record per inference: several where regions were inferred. */
    for (guint i = 0; (inference = gst_vartml_inference_get_structure(buffer, i)); ++i) {
        guint64 frame = 0;
        gst_structure_get_uint64(inference, "frame_seq", &frame);
        g_print("frame %" G_GUINT64_FORMAT ": %s, model %s\n", frame,
                gst_structure_get_string(inference, "status"),
                gst_structure_get_string(inference, "model"));
        print_to_frame(inference);
        print_tensors(inference);
        gst_structure_free(inference);
    }
    gst_sample_unref(sample);
    return GST_FLOW_OK;
}

/* Waits. 0 at the end of the stream, or 1 after an error, whose text is the whole explanation. */
static int end_of(GstElement* pipeline) {
    int status = 0;
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, GST_CLOCK_TIME_NONE, (GstMessageType)(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError* error = NULL;
        gst_message_parse_error(message, &error, NULL);
        g_printerr("read-metadata: %s\n", error->message);
        g_error_free(error);
        status = 1;
    }
    gst_message_unref(message);
    gst_object_unref(bus);
    return status;
}

int main(int argc, char** argv) {
    gst_init(&argc, &argv);
    if (argc < 2) {
        g_printerr("usage: read-metadata MODEL [PICTURE-OR-VIDEO]\n");
        return 2;
    }
    GError* error = NULL;
    GstElement* pipeline = gst_parse_launch(
        argc > 2 ? "filesrc name=file ! decodebin ! videoconvert ! vartmlinfer name=infer ! "
                   "appsink name=frames sync=false"
                 : "videotestsrc num-buffers=3 ! video/x-raw,width=640,height=480 ! "
                   "vartmlinfer name=infer ! appsink name=frames sync=false",
        &error);
    if (!pipeline || error) { /* also where an element of it is missing */
        g_printerr("read-metadata: %s\n", error->message);
        return 1;
    }
    GstElement* infer = gst_bin_get_by_name(GST_BIN(pipeline), "infer");
    GstElement* frames = gst_bin_get_by_name(GST_BIN(pipeline), "frames");
    g_object_set(infer, "model", argv[1], NULL);
    if (argc > 2) {
        GstElement* file = gst_bin_get_by_name(GST_BIN(pipeline), "file");
        g_object_set(file, "location", argv[2], NULL);
        gst_object_unref(file);
    }
    GstAppSinkCallbacks callbacks = {.new_sample = on_frame};
    gst_app_sink_set_callbacks(GST_APP_SINK(frames), &callbacks, NULL, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    const int status = end_of(pipeline);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(infer);
    gst_object_unref(frames);
    gst_object_unref(pipeline);
    return status;
}
