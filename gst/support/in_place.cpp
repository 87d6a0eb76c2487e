// SPDX-License-Identifier: Apache-2.0
#include "gst/support/in_place.h"

#include <gst/video/gstvideometa.h>

#include <utility>

#include "gst/support/error.h"
#include "gst/support/picture_info.h"
#include "gst/support/tensor_meta.h"

namespace vartml::gst {
namespace {

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

gboolean propose_video_meta(GstBaseTransform* base, GstQuery*, GstQuery* query) {
    gst_pad_peer_query(base->srcpad, query);  // a peer that does not answer leaves it empty
    ask_for_whole_frames(query);
    return TRUE;
}

}  // namespace

void set_up_in_place(GstBaseTransformClass* klass, const char* name, const char* category,
                     const char* description) {
    auto* element = GST_ELEMENT_CLASS(klass);
    gst_element_class_set_static_metadata(element, name, category, description,
                                          "The gst-vartml authors");
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_element_class_add_static_pad_template(element, &src_template);
    klass->propose_allocation = propose_video_meta;
}

void set_up_in_place(GstBaseTransform* base) {
    gst_base_transform_set_in_place(base, TRUE);
    gst_base_transform_set_qos_enabled(base, FALSE);  // it would drop frames
}

FrameSize video_size(const GstCaps* caps) {
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    FrameSize size;
    const bool video = g_str_has_prefix(gst_structure_get_name(s), "video/") &&
                       gst_structure_get_int(s, "width", &size.width) &&
                       gst_structure_get_int(s, "height", &size.height) && size.width > 0 &&
                       size.height > 0;
    return video ? size : FrameSize{};
}

std::optional<Growth> growth(FrameSize before, FrameSize after) {
    if (!before.width || !after.width || before == after) return std::nullopt;
    return Growth{double(after.width) / before.width, double(after.height) / before.height};
}

void FrameClock::set_caps(const GstCaps* caps) {
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    gint n = 0, d = 0;
    const bool rate = gst_structure_get_fraction(s, "framerate", &n, &d) && n > 0 && d > 0;
    frame_duration_ = rate ? gst_util_uint64_scale_int(GST_SECOND, d, n) : GST_CLOCK_TIME_NONE;
}

GstClockTime FrameClock::time(const GstSegment& segment, const GstBuffer* buffer) {
    constexpr GstClockTime unknown_duration = GST_SECOND / 30;  // ours
    const bool backwards = segment.rate < 0;
    if (std::exchange(backwards_, backwards) != backwards) begin();
    const GstClockTime pts = GST_BUFFER_PTS(buffer), last_told = last_pts_;
    const bool tells = GST_CLOCK_TIME_IS_VALID(pts) && pts != std::exchange(last_pts_, pts);
    const GstClockTime time = tells ? this->pts(pts) : next_;
    const bool steps_back =
        tells && GST_CLOCK_TIME_IS_VALID(last_told) && time <= this->pts(last_told);
    // What frames without an own PTS were given may be later than the PTS that follows.
    last_ = steps_back ? time : std::max(time, last_);
    GstClockTime duration = GST_BUFFER_DURATION(buffer);
    if (!GST_CLOCK_TIME_IS_VALID(duration)) duration = frame_duration_;
    if (!GST_CLOCK_TIME_IS_VALID(duration)) duration = unknown_duration;
    next_ = time + duration;
    return last_;
}

void sync_properties(GstObject* element, const GstSegment& segment, const GstBuffer* buffer) {
    if (segment.format != GST_FORMAT_TIME) return;  // tensors of a file are in bytes
    const GstClockTime time =
        gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(element, time);
}

void CopyNotice::copied(gpointer element, const char* why) {
    if (!std::exchange(told_, true)) GST_CAT_WARNING_OBJECT(performance_log(), element, "%s", why);
}

GstFlowReturn prepare_writable(GstBuffer* in, GstBuffer** out, bool& copied) {
    copied = false;
    if (gst_buffer_is_writable(in)) {
        *out = in;
        return GST_FLOW_OK;
    }
    *out = gst_buffer_copy(in);
    if (!*out) return GST_FLOW_ERROR;
    copied =
        gst_buffer_n_memory(in) && gst_buffer_peek_memory(in, 0) != gst_buffer_peek_memory(*out, 0);
    copy_tensors(in, *out);
    return GST_FLOW_OK;
}

GstFlowReturn prepare_drawable(GstBuffer* in, GstBuffer** out, bool& copied) {
    copied = !gst_buffer_is_writable(in) || !gst_buffer_is_all_memory_writable(in);
    *out = copied ? gst_buffer_copy_deep(in) : in;
    if (!*out) return GST_FLOW_ERROR;
    if (copied) copy_tensors(in, *out);
    return GST_FLOW_OK;
}

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    gchar** list = g_strsplit(text.c_str(), ",", -1);
    for (gchar** part = list; *part; ++part) {
        if (*g_strstrip(*part)) parts.emplace_back(*part);
    }
    g_strfreev(list);
    return parts;
}

}  // namespace vartml::gst
