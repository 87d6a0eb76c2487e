// SPDX-License-Identifier: Apache-2.0
// Pipelines that tests/gst/trace.cpp runs under the tracer, each in a process of its own: a tracer
// starts with GStreamer. usage: trace_pipelines NAME [ARGUMENT]
#include <gst/gst.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <vartml/profile.h>

#include "tests/support/allocations.h"

using vartml::HostTrace;

namespace {

struct Pipeline {
    GstElement* element;

    explicit Pipeline(const std::string& line) {
        GError* error = nullptr;
        element = gst_parse_launch(line.c_str(), &error);
        if (error) {
            std::fprintf(stderr, "%s: %s\n", line.c_str(), error->message);
            std::exit(2);
        }
    }
    Pipeline(const Pipeline&) = delete;
    ~Pipeline() {
        gst_element_set_state(element, GST_STATE_NULL);
        gst_object_unref(element);
    }
    GstElement* find(const char* name) const { return gst_bin_get_by_name(GST_BIN(element), name); }
    void play() const { gst_element_set_state(element, GST_STATE_PLAYING); }
    // Until EOS; an error ends the process.
    void wait() const {
        GstBus* const bus = gst_element_get_bus(element);
        const auto wanted = static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
        GstMessage* const message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, wanted);
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            GError* error = nullptr;
            gst_message_parse_error(message, &error, nullptr);
            std::fprintf(stderr, "%s\n", error->message);
            std::exit(3);
        }
        gst_message_unref(message);
        gst_object_unref(bus);
    }
    void run() const {
        play();
        wait();
    }
    // Calls `each` with every buffer at the sink pad of the element, and its number from 1.
    template <typename Each>
    void at_sink(const char* name, Each* each) const {
        GstElement* const found = find(name);
        GstPad* const pad = gst_element_get_static_pad(found, "sink");
        gst_pad_add_probe(
            pad, GST_PAD_PROBE_TYPE_BUFFER,
            [](GstPad*, GstPadProbeInfo* info, gpointer data) {
                (*static_cast<Each*>(data))(GST_PAD_PROBE_INFO_BUFFER(info));
                return GST_PAD_PROBE_OK;
            },
            each, nullptr);
        gst_object_unref(pad);
        gst_object_unref(found);
    }
};

constexpr const char* picture = "video/x-raw,width=64,height=48,framerate=30/1";

void file(const std::string&) {
    Pipeline(std::string("videotestsrc num-buffers=30 ! ") + picture +
             " ! queue name=first ! videoconvert ! tee name=t ! queue ! fakesink name=a "
             "t. ! queue ! identity ! fakesink name=b")
        .run();
}

// Frames end in what they are packed into.
void muxed(const std::string&) {
    Pipeline(std::string("videotestsrc num-buffers=30 ! ") + picture +
             " ! queue ! theoraenc ! queue ! oggmux ! fakesink name=a")
        .run();
}

void live(const std::string&) {
    Pipeline(std::string("videotestsrc is-live=true num-buffers=10 ! ") + picture +
             " ! queue ! fakesink name=a sync=true")
        .run();
}

void two_streams(const std::string&) {
    Pipeline(std::string("videotestsrc num-buffers=30 ! ") + picture +
             " ! queue ! fakesink name=a videotestsrc num-buffers=30 pattern=ball ! " + picture +
             " ! queue ! fakesink name=b")
        .run();
}

// A seek back in the middle: the same time stamps, other frames.
void flush(const std::string&) {
    const Pipeline p(std::string("videotestsrc num-buffers=200 ! ") + picture +
                     " ! queue max-size-buffers=2 ! fakesink name=a");
    std::atomic<unsigned> seen{0};
    auto count = [&](GstBuffer*) { ++seen; };
    p.at_sink("a", &count);
    gst_element_set_state(p.element, GST_STATE_PAUSED);
    gst_element_get_state(p.element, nullptr, nullptr, GST_CLOCK_TIME_NONE);
    for (int i = 0; i < 3; ++i) {
        if (!gst_element_seek_simple(p.element, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0))
            std::exit(4);
        gst_element_get_state(p.element, nullptr, nullptr, GST_CLOCK_TIME_NONE);
    }
    p.run();
}

void caps_change(const std::string&) {
    const Pipeline p(
        "videotestsrc num-buffers=60 ! capsfilter name=c caps=video/x-raw,width=64,height=48 ! "
        "queue max-size-buffers=2 ! videoconvert ! fakesink name=a");
    GstElement* const filter = p.find("c");
    unsigned seen = 0;
    auto change = [&](GstBuffer*) {
        if (++seen != 20) return;
        GstCaps* const caps = gst_caps_from_string("video/x-raw,width=32,height=32");
        g_object_set(filter, "caps", caps, nullptr);
        gst_caps_unref(caps);
    };
    p.at_sink("c", &change);
    p.run();
    gst_object_unref(filter);
}

// Events that a probe takes away, drops or answers itself.
void taken_events(const std::string&) {
    const Pipeline p("fakesrc num-buffers=5 ! identity name=i ! fakesink name=a");
    GstElement* const element = p.find("i");
    GstPad* const pad = gst_element_get_static_pad(element, "src");
    static int count = 0;
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
            GstEvent* const event = GST_PAD_PROBE_INFO_EVENT(info);
            if (GST_EVENT_TYPE(event) != GST_EVENT_STREAM_START) return GST_PAD_PROBE_OK;
            if (++count > 2) return GST_PAD_PROBE_OK;
            if (count == 1) return GST_PAD_PROBE_DROP;
            gst_event_unref(event);
            GST_PAD_PROBE_INFO_DATA(info) = nullptr;
            return GST_PAD_PROBE_HANDLED;
        },
        nullptr, nullptr);
    p.run();
    gst_object_unref(pad);
    gst_object_unref(element);
}

// Bins with ghost pads, pads that come and go, pipelines one after another.
void comings_and_goings(const std::string&) {
    for (int round = 0; round < 3; ++round) {
        const Pipeline p("videotestsrc num-buffers=10 name=s fakesink name=a");
        GstElement* const bin = gst_parse_bin_from_description("identity ! queue", TRUE, nullptr);
        GstElement *const source = p.find("s"), *const sink = p.find("a");
        gst_bin_add(GST_BIN(p.element), bin);
        if (!gst_element_link_many(source, bin, sink, nullptr)) std::exit(4);
        gst_object_unref(source);
        gst_object_unref(sink);
        p.run();
    }
    const Pipeline p(
        "fakesrc num-buffers=1000 ! tee name=t allow-not-linked=true ! fakesink name=a");
    GstElement* const tee = p.find("t");
    p.play();
    for (int i = 0; i < 100; ++i) {
        GstPad* const pad = gst_element_request_pad_simple(tee, "src_%u");
        gst_element_release_request_pad(tee, pad);
        gst_object_unref(pad);
    }
    p.wait();
    gst_object_unref(tee);
}

void no_time_stamps(const std::string&) {
    const Pipeline p(std::string("videotestsrc num-buffers=20 ! ") + picture +
                     " ! identity name=strip signal-handoffs=true ! identity name=same ! queue ! "
                     "fakesink name=a");
    GstElement* const strip = p.find("strip");
    const auto take = +[](GstElement*, GstBuffer* buffer, gpointer) {
        GST_BUFFER_PTS(buffer) = GST_CLOCK_TIME_NONE;
    };
    g_signal_connect(strip, "handoff", G_CALLBACK(take), nullptr);
    p.run();
    gst_object_unref(strip);
}

void flood(const std::string&) {
    Pipeline(
        "fakesrc num-buffers=100000 format=time datarate=1000000 ! identity ! identity ! "
        "fakesink name=a")
        .run();
}

void model(const std::string& path) {
    Pipeline(std::string("videotestsrc num-buffers=30 ! ") + picture +
             " ! vartmlinfer name=infer " + "output-tensor-type=cpu model=" + path +
             " ! queue ! fakesink name=a")
        .run();
}

void every_third(const std::string& path) {
    Pipeline(std::string("videotestsrc num-buffers=30 ! ") + picture +
             " ! vartmlinfer name=infer inference-interval=3 model=" + path + " ! fakesink name=a")
        .run();
}

void crash(const std::string&) {
    const Pipeline p(std::string("videotestsrc is-live=true ! ") + picture +
                     " ! queue ! fakesink name=a sync=true");
    unsigned seen = 0;
    auto kill = [&](GstBuffer*) {
        if (++seen == 30) std::raise(SIGKILL);
    };
    p.at_sink("a", &kill);
    p.run();
}

// What arrives at the sink, byte for byte, with its time stamps, flags and number of metas.
void digest(const std::string&) {
    const Pipeline p(std::string("videotestsrc num-buffers=20 ! ") + picture +
                     " ! queue ! videoconvert ! fakesink name=a");
    GChecksum* const sum = g_checksum_new(G_CHECKSUM_SHA256);
    auto add = [&](GstBuffer* buffer) {
        GstMapInfo map;
        gst_buffer_map(buffer, &map, GST_MAP_READ);
        g_checksum_update(sum, map.data, gssize(map.size));
        gst_buffer_unmap(buffer, &map);
        guint64 metas = 0;
        for (gpointer state = nullptr; gst_buffer_iterate_meta(buffer, &state);) ++metas;
        const guint64 rest[] = {GST_BUFFER_PTS(buffer), GST_BUFFER_DURATION(buffer), metas};
        g_checksum_update(sum, reinterpret_cast<const guchar*>(rest), sizeof rest);
    };
    p.at_sink("a", &add);
    p.run();
    std::printf("digest %s\n", g_checksum_get_string(sum));
    g_checksum_free(sum);
}

// Allocations by C++ code, of which only ours runs, between the 1000th and the 3000th buffer.
void allocations(const std::string&) {
    const Pipeline p(
        "fakesrc num-buffers=4000 format=time datarate=1000000 ! queue ! identity ! "
        "queue ! fakesink name=a");
    unsigned seen = 0;
    size_t before = 0;
    auto count = [&](GstBuffer*) {
        ++seen;
        if (seen == 1000) {
            // The writer names each thread when it comes to its first event.
            if (HostTrace::is_open()) HostTrace::open("joined")->flush();
            before = vartml::test::allocations.load();
        }
        if (seen == 3000)
            std::printf("allocations %zu\n", vartml::test::allocations.load() - before);
    };
    p.at_sink("a", &count);
    p.run();
}

void exit_without_deinit(const std::string& argument) {
    file(argument);
    std::fflush(nullptr);
    std::exit(0);
}

// A child of the process ends while the pipeline's trace is open.
void forked(const std::string& argument) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("child %d\n", status);
    file(argument);
}

struct Scenario {
    const char* name;
    void (*run)(const std::string& argument);
};
constexpr Scenario scenarios[] = {
    {"allocations", allocations},
    {"caps-change", caps_change},
    {"comings-and-goings", comings_and_goings},
    {"crash", crash},
    {"digest", digest},
    {"every-third", every_third},
    {"exit-without-deinit", exit_without_deinit},
    {"file", file},
    {"flood", flood},
    {"flush", flush},
    {"forked", forked},
    {"live", live},
    {"model", model},
    {"muxed", muxed},
    {"no-time-stamps", no_time_stamps},
    {"taken-events", taken_events},
    {"two-streams", two_streams},
};

}  // namespace

int main(int argc, char** argv) {
    gst_init(nullptr, nullptr);
    for (const Scenario& scenario : scenarios) {
        if (argc < 2 || std::strcmp(scenario.name, argv[1]) != 0) continue;
        scenario.run(argc > 2 ? argv[2] : "");
        gst_deinit();
        return 0;
    }
    return 64;
}
