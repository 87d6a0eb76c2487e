// SPDX-License-Identifier: Apache-2.0
// What `vartml worker` runs for each camera: one pipeline in a process of its own.
// usage: vartml-camera [PUBLISH...]   with the camera as a line of JSON on standard input; PUBLISH
// are properties of vartmlpublish. Prints a line when the camera's state changes.
#include <glib-unix.h>
#include <gst/gst.h>

#include <cstdio>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace {

struct Run {
    GstElement* pipeline = nullptr;
    GMainLoop* loop = nullptr;
    int status = 0;
};

// A line whatever characters a camera's answer brought.
std::string one_line(std::string text) {
    for (char& c : text)
        if (g_ascii_iscntrl(c)) c = ' ';
    return text + '\n';
}

void say(const std::string& text) {
    std::fputs(one_line(text).c_str(), stdout);
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
        say(error->message);
        complain(error->message);
        g_clear_error(&error);
        run.status = 1;
        g_main_loop_quit(run.loop);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        g_main_loop_quit(run.loop);
    } else if (gst_message_has_name(message, "vartml-src-state")) {
        const GstStructure* said = gst_message_get_structure(message);
        const std::string reason = gst_structure_get_string(said, "reason");
        say(gst_structure_get_string(said, "state") + (reason.empty() ? "" : ": " + reason));
    }
    return G_SOURCE_CONTINUE;
}

// The way out of a live camera: what is on its way is still published.
gboolean on_signal(gpointer data) {
    gst_element_send_event(static_cast<Run*>(data)->pipeline, gst_event_new_eos());
    g_main_loop_quit(static_cast<Run*>(data)->loop);
    return G_SOURCE_CONTINUE;
}

void set(GstElement* pipeline, const char* name, const char* property, const std::string& text) {
    GstElement* const element = gst_bin_get_by_name(GST_BIN(pipeline), name);
    if (!text.empty()) gst_util_set_object_arg(G_OBJECT(element), property, text.c_str());
    gst_object_unref(element);
}

}  // namespace

int main(int argc, char** argv) {
    std::string line;
    std::getline(std::cin, line);
    const auto camera = nlohmann::json::parse(line, nullptr, false);
    if (!camera.is_object() || !camera.contains("uri")) {
        std::fputs("vartml-camera: standard input has no camera; vartml worker calls it\n", stderr);
        return 2;
    }
    gst_init(nullptr, nullptr);
    const std::string model = camera.value("model", "");
    std::string text = "vartmlsrc name=src ! videoconvert ! queue ! ";
    if (!model.empty())
        text += "vartmlinfer name=infer on-late=skip ! vartmldecode ! vartmltrack ! ";
    text += "vartmlpublish name=publish";
    for (int i = 1; i < argc; ++i) text += ' ' + std::string(argv[i]);
    text += " ! fakesink sync=false";
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
    if (!model.empty()) {
        set(run.pipeline, "infer", "model", model);
        set(run.pipeline, "infer", "device", camera.value("device", ""));
    }
    run.loop = g_main_loop_new(nullptr, FALSE);
    GstBus* const bus = gst_element_get_bus(run.pipeline);
    gst_bus_add_watch(bus, on_message, &run);
    g_unix_signal_add(SIGTERM, on_signal, &run);
    gst_element_set_state(run.pipeline, GST_STATE_PLAYING);
    g_main_loop_run(run.loop);
    gst_element_set_state(run.pipeline, GST_STATE_NULL);
    gst_bus_remove_watch(bus);
    gst_object_unref(bus);
    gst_object_unref(run.pipeline);
    g_main_loop_unref(run.loop);
    return run.status;
}
