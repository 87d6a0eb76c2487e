// SPDX-License-Identifier: Apache-2.0
// Sources that come and go while the others run: one pipeline, one model in memory, a branch per
// source that ends in an appsink. Commands come from standard input:
//   add URI|FILE      prints `source N is URI`
//   remove N          prints `source N is gone`
//   list
//   quit              also the end of the input
// Per frame with results: `source N frame F: label score x y w h, …`.
//   many-sources MODEL
#include <gst/analytics/analytics.h>
#include <gst/app/app.h>
#include <gst/gst.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Source {
    unsigned number;
    std::string uri;
    GstElement* bin;
    unsigned long frames = 0;
};

std::mutex printing;  // appsinks print from their own threads

void say(const std::string& line) {
    const std::lock_guard lock(printing);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

std::string boxes(GstBuffer* buffer) {
    std::string text;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    while (meta && gst_analytics_relation_meta_iterate(meta, &state,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        int x, y, w, h;
        float score;
        gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score);
        char one[256];
        std::snprintf(one, sizeof one, "%s%s %.2f %d %d %d %d", text.empty() ? "" : ", ",
                      g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&od)), double(score), x,
                      y, w, h);
        text += one;
    }
    return text;
}

GstFlowReturn on_sample(GstAppSink* sink, gpointer data) {
    auto& source = *static_cast<Source*>(data);
    GstSample* sample = gst_app_sink_pull_sample(sink);
    if (!sample) return GST_FLOW_EOS;
    const std::string found = boxes(gst_sample_get_buffer(sample));
    gst_sample_unref(sample);
    const unsigned long frame = source.frames++;
    if (!found.empty()) {
        say("source " + std::to_string(source.number) + " frame " + std::to_string(frame) + ": " +
            found);
    }
    return GST_FLOW_OK;
}

void on_end(GstAppSink*, gpointer data) {
    say("source " + std::to_string(static_cast<Source*>(data)->number) + " has ended");
}

class Program {
public:
    explicit Program(std::string model) : model_(std::move(model)) {
        pipeline_ = gst_pipeline_new(nullptr);
        // An error of one branch must not stop the others: it is reported, and the branch taken
        // out. The end of one is not the end of all.
        gst_element_set_state(pipeline_, GST_STATE_PLAYING);
    }
    ~Program() {
        gst_element_set_state(pipeline_, GST_STATE_NULL);
        gst_object_unref(pipeline_);
    }

    void add(const std::string& name) {
        gchar* uri = gst_uri_is_valid(name.c_str()) ? g_strdup(name.c_str())
                                                    : gst_filename_to_uri(name.c_str(), nullptr);
        const unsigned number = next_++;
        GError* error = nullptr;
        // Streams of one id share the model: it is loaded when the first comes. A sink that waits
        // for its first frame (async) would make the whole pipeline wait for it.
        GstElement* bin = gst_parse_bin_from_description(
            "uridecodebin name=source ! videoconvert ! queue ! vartmlinfer name=infer "
            "model-instance-id=all ! "
            "vartmldecode ! appsink name=sink sync=false "
            "async=false",
            FALSE, &error);
        if (!bin || error) {  // also where an element of it is missing
            std::fprintf(stderr, "many-sources: %s\n", error->message);
            if (bin) gst_object_unref(bin);
            g_error_free(error);
            g_free(uri);
            return;
        }
        Source& source = sources_[number] = {number, uri, bin};
        g_free(uri);
        // A branch that waits for its first frame, or fails before it, is no matter of the others.
        g_object_set(bin, "async-handling", TRUE, nullptr);
        set(bin, "source", "uri", source.uri);
        set(bin, "infer", "model", model_);
        GstElement* sink = gst_bin_get_by_name(GST_BIN(bin), "sink");
        GstAppSinkCallbacks callbacks{};
        callbacks.new_sample = on_sample;
        callbacks.eos = on_end;
        gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, &source, nullptr);
        gst_object_unref(sink);
        gst_bin_add(GST_BIN(pipeline_), bin);
        say("source " + std::to_string(number) + " is " + source.uri);
        gst_element_sync_state_with_parent(bin);
    }

    void remove(unsigned number) {
        const auto found = sources_.find(number);
        if (found == sources_.end()) {
            std::fprintf(stderr, "many-sources: there is no source %u; list shows them\n", number);
            return;
        }
        // A branch of its own may be stopped at any moment: nothing else is linked to it.
        GstElement* bin = found->second.bin;
        gst_element_set_locked_state(bin, TRUE);
        gst_element_set_state(bin, GST_STATE_NULL);
        gst_bin_remove(GST_BIN(pipeline_), bin);
        sources_.erase(found);
        say("source " + std::to_string(number) + " is gone");
    }

    void list() const {
        for (const auto& [number, source] : sources_) {
            say("source " + std::to_string(number) + " is " + source.uri);
        }
    }

    // What went wrong since the last call; takes out the branch that it happened in.
    void look_for_errors() {
        GstBus* bus = gst_element_get_bus(pipeline_);
        while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
            GError* error = nullptr;
            gst_message_parse_error(message, &error, nullptr);
            for (auto& [number, source] : sources_) {
                if (!gst_object_has_as_ancestor(GST_MESSAGE_SRC(message), GST_OBJECT(source.bin)))
                    continue;
                std::fprintf(stderr, "many-sources: source %u: %s\n", number, error->message);
                remove(number);
                break;
            }
            g_error_free(error);
            gst_message_unref(message);
        }
        gst_object_unref(bus);
    }

private:
    static void set(GstElement* bin, const char* element, const char* property,
                    const std::string& value) {
        GstElement* one = gst_bin_get_by_name(GST_BIN(bin), element);
        g_object_set(one, property, value.c_str(), nullptr);
        gst_object_unref(one);
    }

    const std::string model_;
    GstElement* pipeline_;
    std::map<unsigned, Source> sources_;
    unsigned next_ = 0;
};

// One command. False: quit.
bool obey(Program& program, const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "quit") return false;
    if (command == "add" && !argument.empty()) {
        program.add(argument);
    } else if (command == "remove" && !argument.empty()) {
        program.remove(unsigned(std::strtoul(argument.c_str(), nullptr, 10)));
    } else if (command == "list") {
        program.list();
    } else if (!command.empty()) {
        std::fprintf(stderr, "many-sources: '%s' is not add URI, remove N, list or quit\n",
                     line.c_str());
    }
    return true;
}

gboolean on_input(GIOChannel*, GIOCondition, gpointer data) {
    auto& [program, loop] = *static_cast<std::pair<Program&, GMainLoop*>*>(data);
    std::string line;
    if (std::getline(std::cin, line) && obey(program, line)) {
        // Lines that came together are in the stream's buffer already.
        while (std::cin.rdbuf()->in_avail() > 0 && std::getline(std::cin, line)) {
            if (!obey(program, line)) break;
        }
        if (line != "quit") return G_SOURCE_CONTINUE;
    }
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: many-sources MODEL\n");
        return 2;
    }
    gst_init(nullptr, nullptr);
    std::ios::sync_with_stdio(false);
    Program program(argv[1]);
    GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
    std::pair<Program&, GMainLoop*> input(program, loop);
    GIOChannel* channel = g_io_channel_unix_new(0);
    g_io_add_watch(channel, GIOCondition(G_IO_IN | G_IO_HUP), on_input, &input);
    g_timeout_add(
        100,
        [](gpointer p) -> gboolean {
            static_cast<Program*>(p)->look_for_errors();
            return G_SOURCE_CONTINUE;
        },
        &program);
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
    g_io_channel_unref(channel);
    return 0;
}
