// SPDX-License-Identifier: Apache-2.0
// Both plugins as installed: vartmltrack, of one object, reads what vartmlinfer, of the other, says
// of a frame.
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

using vartml::test::TempDir;
using vartml::test::TinyOnnx;

std::string make_model(const TempDir& dir) {
    const std::string path = dir / "tiny.onnx";
    TinyOnnx m;
    m.input("images", {1, 3, 8, 8}).weights("w", {4, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}});
    m.node("Sigmoid", {"c"}, {"y"}).output("y", {1, 4, 8, 8}).save(path);
    return path;
}

// A detection on the first frame only: the second inferred one has none.
void before_track(GstElement*, GstBuffer* buffer, GstPad*, gpointer) {
    if (GST_BUFFER_PTS(buffer) != 0) return;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    ASSERT_NE(meta, nullptr);
    GstAnalyticsODMtd od;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("cat"), 2, 2, 8, 8, 0.9f, &od);
}

void after_track(GstElement*, GstBuffer* buffer, GstPad*, gpointer ids) {
    guint64 id = 0;
    gpointer state = nullptr;
    GstAnalyticsMtd track;
    if (gst_analytics_relation_meta_iterate(gst_buffer_get_analytics_relation_meta(buffer), &state,
                                            gst_analytics_tracking_mtd_get_mtd_type(), &track)) {
        GstClockTime first, last;
        gboolean lost;
        gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost);
    }
    static_cast<std::vector<guint64>*>(ids)->push_back(id);
}

TEST(TrackPlugins, TracksLiveThroughFramesThatTheOtherPluginDidNotInfer) {
    const TempDir dir;
    const std::string line =
        "videotestsrc num-buffers=6 ! video/x-raw,format=RGBx,width=20,height=14,framerate=30/1 ! "
        "vartmlinfer inference-interval=3 model=" +
        make_model(dir) + " cache-dir=" + (dir / "cache") +
        " ! identity name=before ! vartmltrack ! fakesink name=after signal-handoffs=true";
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    ASSERT_NE(pipeline, nullptr) << error->message;
    std::vector<guint64> ids;
    GstElement* before = gst_bin_get_by_name(GST_BIN(pipeline), "before");
    GstElement* after = gst_bin_get_by_name(GST_BIN(pipeline), "after");
    g_signal_connect(before, "handoff", G_CALLBACK(before_track), nullptr);
    g_signal_connect(after, "handoff", G_CALLBACK(after_track), &ids);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, GST_CLOCK_TIME_NONE, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    EXPECT_EQ(GST_MESSAGE_TYPE(message), GST_MESSAGE_EOS);
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    for (GstObject* object :
         {GST_OBJECT(bus), GST_OBJECT(before), GST_OBJECT(after), GST_OBJECT(pipeline)})
        gst_object_unref(object);
    EXPECT_EQ(ids, (std::vector<guint64>{1, 1, 1, 0, 0, 0}));
}

}  // namespace
