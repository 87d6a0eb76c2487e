// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/player.h"

#include <glib-unix.h>
#include <gst/app/app.h>
#include <gst/video/video.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>

namespace demo {
namespace {

using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;

struct GErrorFree {
    void operator()(GError* error) const { g_error_free(error); }
};
using GErrorPtr = std::unique_ptr<GError, GErrorFree>;
struct GFree {
    void operator()(gpointer memory) const { g_free(memory); }
};
using GString8 = std::unique_ptr<gchar, GFree>;

// What play() knows while its loop runs. Main thread only.
struct Playing {
    GMainLoop* loop;
    GstElement* pipeline;
    bool interrupted = false, failed = false;
    std::string error{};
    std::set<std::string> warned{};
    bool compiling = false;
};

// One sentence: ours as they are, those of others with the element's name and the reason from the
// last line of `debug`.
std::string sentence(GstMessage* message, const GError* error, const char* debug) {
    std::string text = error->message;
    if (text.starts_with("Could not ")) return text;
    while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
    text = std::string(GST_OBJECT_NAME(GST_MESSAGE_SRC(message))) + ": " + text;
    if (debug) {
        std::string_view reason = debug;
        while (!reason.empty() && reason.back() == '\n') reason.remove_suffix(1);
        const size_t line = reason.rfind('\n');
        reason = line == std::string_view::npos ? reason : reason.substr(line + 1);
        while (!reason.empty() && reason.front() == ' ') reason.remove_prefix(1);
        if (!reason.empty()) text += " (" + std::string(reason) + ")";
    }
    return text;
}

void show_progress(Playing& playing, const GstStructure* s) {
    if (gst_structure_has_name(s, "vartml-compile")) {
        gboolean hit = FALSE;
        gst_structure_get_boolean(s, "cache-hit", &hit);
        if (!hit && !playing.compiling) {
            playing.compiling = true;
            const char* model = gst_structure_get_string(s, "model");
            std::fprintf(stderr, "compiling %s (only at its first use)\n",
                         model ? model : "the model");
        }
    } else if (gst_structure_has_name(s, "vartml-decoder-selected")) {
        const char* decoder = gst_structure_get_string(s, "decoder");
        const char* reason = gst_structure_get_string(s, "reason");
        guint classes = 0;
        gst_structure_get_uint(s, "classes", &classes);
        std::fprintf(
            stderr, "its outputs are read by decoder %s, by the %s%s\n", decoder ? decoder : "?",
            reason ? reason : "?",
            classes
                ? (", " + std::to_string(classes) + (classes == 1 ? " class" : " classes")).c_str()
                : "");
    } else if (gst_structure_has_name(s, "vartml-model-loaded")) {
        const char* device = gst_structure_get_string(s, "device");
        guint npu = 0, cpu = 0;
        gst_structure_get(s, "npu-nodes", G_TYPE_UINT, &npu, "cpu-nodes", G_TYPE_UINT, &cpu,
                          nullptr);
        std::fprintf(stderr, "the model runs on %s: %u operators on the NPU, %u on the CPU\n",
                     device ? device : "?", npu, cpu);
    }
}

gboolean on_message(GstBus*, GstMessage* message, gpointer data) {
    auto& playing = *static_cast<Playing*>(data);
    GError* error = nullptr;
    gchar* debug = nullptr;
    switch (GST_MESSAGE_TYPE(message)) {
        case GST_MESSAGE_ERROR: {
            gst_message_parse_error(message, &error, &debug);
            const GErrorPtr error_owner(error);
            const GString8 debug_owner(debug);
            if (!playing.failed)
                playing.error = sentence(message, error, debug);  // the first is the cause
            playing.failed = true;
            g_main_loop_quit(playing.loop);
            break;
        }
        case GST_MESSAGE_WARNING: {
            gst_message_parse_warning(message, &error, &debug);
            const GErrorPtr error_owner(error);
            const GString8 debug_owner(debug);
            if (playing.warned.insert(error->message).second) {
                std::fprintf(stderr, "vartml-demo: warning: %s\n", error->message);
            }
            break;
        }
        case GST_MESSAGE_INFO: {
            gst_message_parse_info(message, &error, &debug);
            const GErrorPtr error_owner(error);
            const GString8 debug_owner(debug);
            std::fprintf(stderr, "%s\n", error->message);
            break;
        }
        case GST_MESSAGE_ELEMENT:
            if (const GstStructure* s = gst_message_get_structure(message))
                show_progress(playing, s);
            break;
        case GST_MESSAGE_EOS:
            g_main_loop_quit(playing.loop);
            break;
        default:
            break;
    }
    return G_SOURCE_CONTINUE;
}

gboolean on_interrupt(gpointer data) {
    auto& playing = *static_cast<Playing*>(data);
    if (playing.interrupted) {  // the second time: do not wait for the stream to end
        playing.failed = true;
        playing.error = "interrupted before the files were complete";
        g_main_loop_quit(playing.loop);
        return G_SOURCE_CONTINUE;
    }
    playing.interrupted = true;
    end_stream(playing.pipeline);
    return G_SOURCE_CONTINUE;
}

bool installed(const char* factory) {
    const std::unique_ptr<GstElementFactory, GstObjectUnref> found(
        gst_element_factory_find(factory));
    return found != nullptr;
}

// A video file name inside a pipeline text.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

}  // namespace

Result<ElementPtr> make_pipeline(const std::string& text) {
    GError* error = nullptr;
    GstElement* pipeline =
        gst_parse_launch_full(text.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
    const GErrorPtr error_owner(error);
    if (!pipeline || error) {
        if (pipeline) gst_object_unref(pipeline);
        return Error{ErrorCode::not_found, std::string(error ? error->message : "no pipeline") +
                                               ", which the demo needs"};
    }
    gst_object_ref_sink(pipeline);
    return ElementPtr(pipeline);
}

ElementPtr element_of(GstElement* pipeline, const char* name) {
    return ElementPtr(gst_bin_get_by_name(GST_BIN(pipeline), name));
}

Result<void> check_camera(const std::string& device) {
    if (access(device.c_str(), R_OK | W_OK) == 0) return {};
    const bool there = access(device.c_str(), F_OK) == 0;
    return Error{ErrorCode::not_found,
                 there ? device + ": you may not use this camera; join the group 'video'"
                       : "there is no camera " + device +
                             "; plug one in, name another device after --camera, or use --video "
                             "FILE"};
}

Result<std::string> h264_encoder(Encoding encoding) {
    struct Row {
        const char* factory;
        const char* options[3];  // in the order of Encoding
    };
    const Row rows[] = {
        {"x264enc",
         {"speed-preset=ultrafast bitrate=10000 key-int-max=60",
          "speed-preset=superfast bitrate=2300 key-int-max=60",
          "speed-preset=ultrafast tune=zerolatency bitrate=6000"}},
        {"openh264enc",
         {"bitrate=6000000 gop-size=60", "bitrate=2300000 gop-size=60",
          "bitrate=6000000 gop-size=60"}},
        {"v4l2h264enc", {"", "", ""}},
    };
    std::string names;
    for (const Row& row : rows) {
        if (installed(row.factory)) {
            return std::string(row.factory) + " " + row.options[static_cast<size_t>(encoding)];
        }
        names += std::string(names.empty() ? "" : ", ") + row.factory;
    }
    return Error{ErrorCode::not_found, "there is no H.264 encoder; install one of " + names};
}

void end_stream(GstElement* pipeline) {
    // From a thread of its own: the event waits for the streaming thread that may be the caller.
    gst_element_call_async(
        pipeline, [](GstElement* p, gpointer) { gst_element_send_event(p, gst_event_new_eos()); },
        nullptr, nullptr);
}

Result<bool> play(GstElement* pipeline, const std::function<void()>& finished) {
    const std::unique_ptr<GMainLoop, decltype(&g_main_loop_unref)> loop(
        g_main_loop_new(nullptr, FALSE), &g_main_loop_unref);
    Playing playing{.loop = loop.get(), .pipeline = pipeline};
    const std::unique_ptr<GstBus, GstObjectUnref> bus(gst_element_get_bus(pipeline));
    const guint watch = gst_bus_add_watch(bus.get(), on_message, &playing);
    const guint signal = g_unix_signal_add(SIGINT, on_interrupt, &playing);
    if (gst_element_set_state(pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
        // The reason is on the bus; wait for it only if it is there.
        while (!playing.failed && g_main_context_iteration(nullptr, FALSE)) {
        }
        if (!playing.failed) playing.error = "the pipeline does not start";
        playing.failed = true;
    }
    if (!playing.failed) g_main_loop_run(loop.get());
    if (!playing.failed && finished) finished();
    gst_element_set_state(pipeline, GST_STATE_NULL);
    g_source_remove(signal);
    g_source_remove(watch);
    if (playing.failed) return Error{ErrorCode::io, playing.error};
    return playing.interrupted;
}

Result<Picture> load_picture(const std::string& file, int width, int height, double seconds) {
    auto pipeline = make_pipeline("filesrc location=" + quoted(file) +
                                  " ! decodebin ! videoconvertscale add-borders=false ! "
                                  "video/x-raw,format=RGB,pixel-aspect-ratio=1/1,width=" +
                                  std::to_string(width) + ",height=" + std::to_string(height) +
                                  " ! appsink name=sink sync=false");
    if (!pipeline) return pipeline.error();
    const ElementPtr sink = element_of(pipeline->get(), "sink");
    const std::unique_ptr<GstBus, GstObjectUnref> bus(gst_element_get_bus(pipeline->get()));
    gst_element_set_state(pipeline->get(), GST_STATE_PLAYING);
    SamplePtr sample;
    while (!gst_app_sink_is_eos(GST_APP_SINK(sink.get()))) {
        GstSample* next = gst_app_sink_try_pull_sample(GST_APP_SINK(sink.get()), 20 * GST_MSECOND);
        if (next) {
            sample.reset(next);
            const GstClockTime pts = GST_BUFFER_PTS(gst_sample_get_buffer(next));
            if (!GST_CLOCK_TIME_IS_VALID(pts) || pts >= seconds * GST_SECOND) break;
        } else if (GstMessage* error = gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR)) {
            gst_message_unref(error);
            break;
        }
    }
    gst_element_set_state(pipeline->get(), GST_STATE_NULL);
    GstVideoInfo info;
    GstVideoFrame frame;
    if (!sample || !gst_video_info_from_caps(&info, gst_sample_get_caps(sample.get())) ||
        !gst_video_frame_map(&frame, &info, gst_sample_get_buffer(sample.get()), GST_MAP_READ)) {
        return Error{
            ErrorCode::io,
            file + ": no picture can be read from it; a JPEG, PNG or video file is expected"};
    }
    Picture picture(width, height);
    for (int y = 0; y < height; ++y) {
        const auto* row = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)) +
                          static_cast<ptrdiff_t>(y) * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0);
        std::memcpy(picture.at(0, y), row, static_cast<size_t>(width) * 3);
    }
    gst_video_frame_unmap(&frame);
    return picture;
}

Result<void> write_png(GstSample* sample, const std::string& file) {
    const std::unique_ptr<GstCaps, decltype(&gst_caps_unref)> caps(
        gst_caps_new_empty_simple("image/png"), &gst_caps_unref);
    GError* error = nullptr;
    const SamplePtr png(gst_video_convert_sample(sample, caps.get(), 20 * GST_SECOND, &error));
    GErrorPtr error_owner(error);
    if (!png) return Error{ErrorCode::io, file + ": " + (error ? error->message : "not converted")};
    GstMapInfo map;
    GstBuffer* buffer = gst_sample_get_buffer(png.get());
    if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) {
        return Error{ErrorCode::internal, file + ": the picture cannot be mapped"};
    }
    error = nullptr;
    const gboolean written =
        g_file_set_contents(file.c_str(), reinterpret_cast<const gchar*>(map.data),
                            static_cast<gssize>(map.size), &error);
    gst_buffer_unmap(buffer, &map);
    error_owner.reset(error);
    if (!written) return Error{ErrorCode::io, error->message};
    return {};
}

}  // namespace demo
