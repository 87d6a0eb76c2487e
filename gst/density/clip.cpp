// SPDX-License-Identifier: Apache-2.0
#include "gst/density/clip.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gst/detect/pipeline.h"

namespace vartml::gst::density {
namespace {

using detect::ElementPtr;
using detect::Unref;

constexpr size_t most_bytes = size_t{512} << 20;  // ours

// What the streaming thread collects; read when the pipeline has stopped.
struct Collector {
    GstElement* pipeline = nullptr;
    Clip clip;
    std::vector<GstClockTime> times;  // of the frames, as they were
    size_t bytes = 0;
    bool has_video = false, changes = false, is_large = false, lacks_time = false;
};

GstPadProbeReturn on_data(GstPad*, GstPadProbeInfo* info, gpointer data) {
    auto& c = *static_cast<Collector*>(data);
    if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
        GstEvent* const event = GST_PAD_PROBE_INFO_EVENT(info);
        if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
        GstCaps* caps = nullptr;
        gst_event_parse_caps(event, &caps);
        c.changes = c.changes || (c.clip.caps && !gst_caps_is_equal(c.clip.caps.get(), caps));
        if (!c.clip.caps) c.clip.caps.reset(gst_caps_ref(caps));
        return GST_PAD_PROBE_OK;
    }
    GstBuffer* const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (c.clip.frames.empty() && GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT))
        return GST_PAD_PROBE_OK;
    c.bytes += gst_buffer_get_size(buffer);
    c.is_large = c.bytes > most_bytes;
    c.lacks_time = c.lacks_time || !GST_BUFFER_PTS_IS_VALID(buffer);
    if (c.is_large) return GST_PAD_PROBE_OK;
    // Its memory is its own: a demuxer's may be a mapping that it uses again.
    c.clip.frames.push_back({decltype(Clip::Frame::buffer)(gst_buffer_copy_deep(buffer)), 0});
    c.times.push_back(GST_BUFFER_PTS(buffer));
    return GST_PAD_PROBE_OK;
}

// The first video is kept, all else is let go.
void on_pad(GstElement*, GstPad* pad, gpointer data) {
    auto& c = *static_cast<Collector*>(data);
    GstCaps* const caps = gst_pad_query_caps(pad, nullptr);
    const char* const name =
        gst_caps_get_size(caps) ? gst_structure_get_name(gst_caps_get_structure(caps, 0)) : "";
    const bool video = g_str_has_prefix(name, "video/") || g_str_has_prefix(name, "image/");
    GstElement* const sink = gst_element_factory_make("fakesink", nullptr);
    g_object_set(sink, "sync", FALSE, "async", FALSE, nullptr);
    gst_bin_add(GST_BIN(c.pipeline), sink);
    GstPad* const end = gst_element_get_static_pad(sink, "sink");
    if (video && !std::exchange(c.has_video, true))
        gst_pad_add_probe(
            end, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
            on_data, &c, nullptr);
    gst_element_sync_state_with_parent(sink);
    gst_pad_link(pad, end);
    gst_object_unref(end);
    gst_caps_unref(caps);
}

// As the container says, else as the times do; 0: nobody knows.
double rate_of(const Collector& c) {
    int numerator = 0, denominator = 0;
    const GstStructure* const s = gst_caps_get_structure(c.clip.caps.get(), 0);
    if (gst_structure_get_fraction(s, "framerate", &numerator, &denominator) && numerator > 0 &&
        denominator > 0)
        return double(numerator) / denominator;
    const auto [first, last] = std::ranges::minmax(c.times);
    return last > first ? double(c.times.size() - 1) * double(GST_SECOND) / double(last - first)
                        : 0;
}

// A frame is shown behind all that are earlier, and the one that comes latest for its turn keeps
// all others waiting.
void set_waits(std::vector<Clip::Frame>& frames) {
    std::vector<size_t> shown(frames.size());
    std::iota(shown.begin(), shown.end(), size_t{0});
    std::ranges::stable_sort(shown, {}, [&](size_t i) { return frames[i].pts; });
    size_t depth = 0;
    for (size_t turn = 0; turn < shown.size(); ++turn)
        if (shown[turn] > turn) depth = std::max(depth, shown[turn] - turn);
    for (size_t turn = 0; turn < shown.size(); ++turn)
        frames[shown[turn]].waits_for = unsigned(turn + depth - shown[turn]);
}

}  // namespace

Result<Clip> read_clip(const std::string& file, double rate) {
    const auto wrong = [&](const std::string& why) {
        return Error{ErrorCode::invalid_argument, file + ": " + why};
    };
    Collector c;
    const ElementPtr pipeline(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr))));
    c.pipeline = pipeline.get();
    GstElement* const source = gst_element_factory_make("filesrc", nullptr);
    GstElement* const parse = gst_element_factory_make("parsebin", nullptr);
    if (!source || !parse)
        return Error{ErrorCode::not_found,
                     "GStreamer does not find filesrc or parsebin; install "
                     "gstreamer1.0-plugins-base"};
    g_object_set(source, "location", file.c_str(), nullptr);
    gst_bin_add_many(GST_BIN(c.pipeline), source, parse, nullptr);
    gst_element_link(source, parse);
    g_signal_connect(parse, "pad-added", G_CALLBACK(on_pad), &c);
    const std::unique_ptr<GstBus, Unref> bus(gst_element_get_bus(c.pipeline));
    gst_element_set_state(c.pipeline, GST_STATE_PLAYING);
    GstMessage* const message = gst_bus_timed_pop_filtered(
        bus.get(), GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    const bool failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
    detect::Request request;
    request.source = file;
    request.source_kind = "file";
    const Error fault = failed ? detect::sentence_of(request, message) : Error{};
    gst_message_unref(message);
    gst_element_set_state(c.pipeline, GST_STATE_NULL);
    if (failed) return fault;
    if (!c.has_video) return wrong("has no video");
    if (c.changes) return wrong("changes its format within; give one of a single format");
    if (c.is_large) return wrong("has more than 512 MiB; give a shorter clip");
    if (c.clip.frames.size() < 2)
        return wrong("has " + std::to_string(c.clip.frames.size()) +
                     " frames from its first key frame on, expected a video of two or more");
    if (c.lacks_time)
        return wrong("has frames without time; put it into a container, such as .mp4");
    const double own = rate_of(c);
    if (rate <= 0) rate = own;
    if (rate <= 0) return wrong("does not say its frames per second; set --rate");
    c.clip.period = GstClockTime(std::llround(double(GST_SECOND) / rate));
    const GstClockTime first = std::ranges::min(c.times);
    const double scale = own > 0 ? own / rate : 1;
    for (size_t i = 0; i < c.times.size(); ++i)
        c.clip.frames[i].pts = GstClockTime(double(c.times[i] - first) * scale);
    set_waits(c.clip.frames);
    return std::move(c.clip);
}

}  // namespace vartml::gst::density
