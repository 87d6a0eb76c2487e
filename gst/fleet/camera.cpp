// SPDX-License-Identifier: Apache-2.0
// What `vartml worker` runs for each camera: one pipeline in a process of its own.
// usage: vartml-camera [PUBLISH...]   with the camera as a line of JSON on standard input; PUBLISH
// are properties of vartmlpublish. Prints a line of JSON when the camera's state changes, and every
// two seconds how it is; further lines of its input ask for a picture or name another model.
#include <glib-unix.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "gst/fleet/values.h"

namespace {

using nlohmann::json;

constexpr guint report_s = 2;
constexpr int picture_width = 640;  // at most
constexpr int reports_kept = 15;    // ours: half a minute

struct Run {
    GstElement* pipeline = nullptr;
    GMainLoop* loop = nullptr;
    int status = 0;
    std::atomic<uint64_t> frames{0};  // by the streaming thread
    uint64_t reported = 0;
    gint64 reported_us = 0;
    double p95_ms = 0;  // of the last report that had a result
    int without = 0;    // reports since then
    std::string input;  // of a line that is not complete
};

// A line whatever characters a camera's answer brought.
std::string one_line(std::string text) {
    for (char& c : text)
        if (g_ascii_iscntrl(c)) c = ' ';
    return text + '\n';
}

void say(const json& value) {
    const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

void complain(const char* text) {
    std::fputs(one_line("vartml worker: " + std::string(text)).c_str(), stderr);
}

gboolean on_message(GstBus*, GstMessage* message, gpointer data) {
    auto& run = *static_cast<Run*>(data);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError* error = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        say({{"state", "failed"}, {"reason", error->message}});
        complain(error->message);
        g_clear_error(&error);
        run.status = 1;
        g_main_loop_quit(run.loop);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        g_main_loop_quit(run.loop);
    } else if (gst_message_has_name(message, "vartml-src-state")) {
        const GstStructure* said = gst_message_get_structure(message);
        say({{"state", gst_structure_get_string(said, "state")},
             {"reason", gst_structure_get_string(said, "reason")}});
    } else if (gst_message_has_name(message, "vartml-model-change-failed")) {
        const char* const why =
            gst_structure_get_string(gst_message_get_structure(message), "reason");
        say({{"state", "the model before runs"}, {"reason", why}});
    } else if (gst_message_has_name(message, "vartml-model-changed")) {
        say({{"state", "the new model runs"}});
    }
    return G_SOURCE_CONTINUE;
}

// The way out of a live camera: what is on its way is still published.
gboolean on_signal(gpointer data) {
    gst_element_send_event(static_cast<Run*>(data)->pipeline, gst_event_new_eos());
    g_main_loop_quit(static_cast<Run*>(data)->loop);
    return G_SOURCE_CONTINUE;
}

GstElement* part(const Run& run, const char* name) {
    return gst_bin_get_by_name(GST_BIN(run.pipeline), name);
}

GstPadProbeReturn on_frame(GstPad*, GstPadProbeInfo*, gpointer data) {
    ++static_cast<Run*>(data)->frames;
    return GST_PAD_PROBE_OK;
}

// Since it was asked for the last time.
struct Load {
    double p95_ms = 0;   // from a frame's arrival at vartmlinfer until its result; 0: none lately
    bool skips = false;  // more than one frame in twenty, for want of time
};
Load take_load(Run& run) {
    GstElement* const infer = part(run, "infer");
    if (!infer) return {};
    GstStructure* stats = nullptr;
    g_object_get(infer, "stats", &stats, nullptr);
    g_signal_emit_by_name(infer, "reset-stats");
    gst_object_unref(infer);
    const auto number = [&](const char* field) {
        guint64 value = 0;
        gst_structure_get_uint64(stats, field, &value);
        return value;
    };
    const guint64 skipped = number("skipped-late") + number("skipped-busy");
    // A camera may give a frame every few seconds.
    const double p95_ms = double(number("result-p95-us")) / 1000;
    run.without = p95_ms > 0 ? 0 : run.without + 1;
    if (p95_ms > 0 || run.without > reports_kept) run.p95_ms = p95_ms;
    const Load load = {run.p95_ms, 20 * skipped > skipped + number("inferences")};
    gst_structure_free(stats);
    return load;
}

gboolean report(gpointer data) {
    auto& run = *static_cast<Run*>(data);
    const gint64 now_us = g_get_monotonic_time();
    const uint64_t frames = run.frames;
    const double seconds = double(now_us - std::exchange(run.reported_us, now_us)) / 1e6;
    const Load load = take_load(run);
    say({{"frames_per_s", double(frames - std::exchange(run.reported, frames)) / seconds},
         {"p95_ms", load.p95_ms},
         {"skips", load.skips}});
    return G_SOURCE_CONTINUE;
}

// The newest frame as a JPEG, or why there is none.
json picture_of(const Run& run) {
    GstElement* const sink = part(run, "sink");
    GstSample* sample = nullptr;
    g_object_get(sink, "last-sample", &sample, nullptr);
    gst_object_unref(sink);
    if (!sample) return {{"picture", ""}, {"reason", "no picture has come yet"}};
    const GstStructure* const s = gst_caps_get_structure(gst_sample_get_caps(sample), 0);
    int width = 0, height = 0;
    gst_structure_get_int(s, "width", &width);
    gst_structure_get_int(s, "height", &height);
    GstCaps* const caps = gst_caps_new_empty_simple("image/jpeg");
    if (width > picture_width)
        gst_caps_set_simple(caps, "width", G_TYPE_INT, picture_width, "height", G_TYPE_INT,
                            std::max(height * picture_width / width, 1), nullptr);
    GError* error = nullptr;
    GstSample* const jpeg = gst_video_convert_sample(sample, caps, 2 * GST_SECOND, &error);
    gst_caps_unref(caps);
    gst_sample_unref(sample);
    if (!jpeg) {
        const std::string why = error ? error->message : "it cannot be converted";
        g_clear_error(&error);
        return {{"picture", ""}, {"reason", why}};
    }
    GstMapInfo map;
    gst_buffer_map(gst_sample_get_buffer(jpeg), &map, GST_MAP_READ);
    gchar* const text = g_base64_encode(map.data, map.size);
    json picture = {{"picture", text}};
    g_free(text);
    gst_buffer_unmap(gst_sample_get_buffer(jpeg), &map);
    gst_sample_unref(jpeg);
    return picture;
}

void obey(Run& run, const std::string& line) {
    const auto order = json::parse(line, nullptr, false);
    if (!order.is_object()) return;
    if (order.contains("picture")) say(picture_of(run));
    if (const std::string model = vartml::fleet::text_of(line, "model"); !model.empty())
        if (GstElement* const infer = part(run, "infer")) {
            g_object_set(infer, "model", model.c_str(), nullptr);
            gst_object_unref(infer);
        }
}

gboolean on_input(gint fd, GIOCondition, gpointer data) {
    auto& run = *static_cast<Run*>(data);
    char chunk[4096];
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n <= 0) return G_SOURCE_REMOVE;
    run.input.append(chunk, size_t(n));
    for (size_t end = run.input.find('\n'); end != run.input.npos; end = run.input.find('\n')) {
        obey(run, run.input.substr(0, end));
        run.input.erase(0, end + 1);
    }
    return G_SOURCE_CONTINUE;
}

// Not a byte more: what is behind it comes later.
std::string read_line() {
    std::string line;
    for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line += c;
    return line;
}

void set(GstElement* pipeline, const char* name, const char* property, const std::string& text) {
    GstElement* const element = gst_bin_get_by_name(GST_BIN(pipeline), name);
    if (!text.empty()) gst_util_set_object_arg(G_OBJECT(element), property, text.c_str());
    gst_object_unref(element);
}

// Each camera has a folder of its own in the spool that all cameras of a machine are given. Who has
// the camera next on this machine sends first what was left there.
void use_own_spool(const Run& run, std::string camera) {
    // No name has a '%'.
    for (size_t at; (at = camera.find('/')) != camera.npos;) camera.replace(at, 1, "%2F");
    GstElement* const publish = part(run, "publish");
    gchar* shared = nullptr;
    g_object_get(publish, "spool-dir", &shared, nullptr);
    if (shared && *shared) {
        gchar* const own = g_build_filename(shared, camera.c_str(), nullptr);
        g_mkdir_with_parents(own, 0700);
        g_object_set(publish, "spool-dir", own, nullptr);
        g_free(own);
    }
    g_free(shared);
    gst_object_unref(publish);
}

}  // namespace

int main(int argc, char** argv) {
    const auto camera = json::parse(read_line(), nullptr, false);
    if (!camera.is_object() || !camera.contains("uri")) {
        std::fputs("vartml-camera: standard input has no camera; vartml worker calls it\n", stderr);
        return 2;
    }
    for (const char* member : {"uri", "model", "device"}) {
        if (!camera.contains(member) || camera[member].is_string()) continue;
        const std::string why = '"' + std::string(member) + "\" of the camera is of type " +
                                camera[member].type_name() + ", expected a text";
        say({{"state", "failed"}, {"reason", why}});
        complain(why.c_str());
        return 2;
    }
    gst_init(nullptr, nullptr);
    const std::string model = camera.value("model", "");
    std::string text = "vartmlsrc name=src ! videoconvert ! queue ! ";
    if (!model.empty()) text += "vartmlinfer name=infer ! vartmldecode ! vartmltrack ! ";
    text += "vartmlpublish name=publish";
    for (int i = 1; i < argc; ++i) text += ' ' + std::string(argv[i]);
    text += " ! fakesink name=sink sync=false";
    Run run;
    GError* error = nullptr;
    run.pipeline = gst_parse_launch(text.c_str(), &error);
    if (error) {
        complain(error->message);
        return 2;
    }
    set(run.pipeline, "src", "uri", camera.value("uri", ""));
    set(run.pipeline, "publish", "stream-name", camera.value("camera", ""));
    set(run.pipeline, "publish", "epoch", std::to_string(camera.value("epoch", uint64_t(0))));
    use_own_spool(run, camera.value("camera", ""));
    if (!model.empty()) {
        set(run.pipeline, "infer", "model", model);
        set(run.pipeline, "infer", "device", camera.value("device", ""));
    }
    run.loop = g_main_loop_new(nullptr, FALSE);
    GstBus* const bus = gst_element_get_bus(run.pipeline);
    gst_bus_add_watch(bus, on_message, &run);
    g_unix_signal_add(SIGTERM, on_signal, &run);
    g_unix_fd_add(STDIN_FILENO, G_IO_IN, on_input, &run);
    GstElement* const sink = part(run, "sink");
    GstPad* const pad = gst_element_get_static_pad(sink, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, &run, nullptr);
    gst_object_unref(pad);
    gst_object_unref(sink);
    run.reported_us = g_get_monotonic_time();
    g_timeout_add_seconds(report_s, report, &run);
    gst_element_set_state(run.pipeline, GST_STATE_PLAYING);
    g_main_loop_run(run.loop);
    gst_element_set_state(run.pipeline, GST_STATE_NULL);
    gst_bus_remove_watch(bus);
    gst_object_unref(bus);
    gst_object_unref(run.pipeline);
    g_main_loop_unref(run.loop);
    return run.status;
}
