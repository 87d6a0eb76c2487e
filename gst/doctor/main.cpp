// SPDX-License-Identifier: Apache-2.0
// The program vartml-pipeline, a child of `vartml doctor`: parses a line of gst-launch and tries
// the part of it that infers, in a process of its own, so that neither GStreamer nor a fault of a
// plugin gets into the doctor.
//
// usage: vartml-pipeline LINE      JSON objects on descriptor 3, a line each; see lines.h
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gst/gst.h>

#include "gst/doctor/lines.h"

namespace vartml::gst::doctor {

// Runs the part of a pipeline that infers, with pictures of a test source and nothing behind it:
// sources, files, sinks and encoders of the user are never started.

// Takes the elements out of `bin`. Writes what the elements say, then the end.
void try_inference(GstElement* bin);

}  // namespace vartml::gst::doctor

int main(int argc, char** argv) {
    using namespace vartml::gst::doctor;
    if (argc != 2) {
        std::fputs("usage: vartml-pipeline LINE\n", stderr);
        return 2;
    }
    ::setenv("LC_ALL", "C", 1);  // the names are read out of GStreamer's sentences
    ::unsetenv("LANGUAGE");
    gst_init(nullptr, nullptr);
    GstElement* bin = parse_line(argv[1]);
    if (!bin) {
        write_end("none");
        return 0;
    }
    for (GList* l = g_list_last(GST_BIN_CHILDREN(bin)); l; l = l->prev)
        write_element(GST_ELEMENT(l->data));
    try_inference(bin);
    // Without the destructors of whatever the elements loaded: all is said.
    ::_exit(0);
}

namespace vartml::gst::doctor {
namespace {

// Frames of each source: enough for a batch to close by the end of the stream.
constexpr int frames = 3;
// ours: a compile reports its progress, so silence of this length is a standstill
constexpr GstClockTime longest_silence = 60 * GST_SECOND;

struct Link {
    GstPad *src, *sink;
};
// Of elements and pads that the pipeline keeps alive.
struct Part {
    std::set<GstElement*> elements;
    std::vector<Link> links;
};

bool is_ours(GstElement* element) {
    for (const char* name : {"vartmlinfer", "vartmldecode", "vartmltrack"})
        if (factory_name(element) == name) return true;
    return false;
}

bool starts_inference(GstElement* element) {
    const std::string name = factory_name(element);
    return name == "vartmlinfer" || name == "onnxinference";
}

// Caps that a test source can give.
bool is_plain_filter(GstElement* element) {
    if (factory_name(element) != "capsfilter") return true;
    GstCaps* caps = nullptr;
    g_object_get(element, "caps", &caps, nullptr);
    bool plain = caps != nullptr;
    for (guint i = 0; plain && i < gst_caps_get_size(caps); ++i) {
        const GstCapsFeatures* features = gst_caps_get_features(caps, i);
        plain = gst_structure_has_name(gst_caps_get_structure(caps, i), "video/x-raw") &&
                (!features ||
                 gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY));
    }
    gst_clear_caps(&caps);
    return plain;
}

// An element of raw pictures in plain memory that may stand behind a test source.
bool may_be_tried(GstElement* element) {
    if (GST_IS_BIN(element) || element->numsinkpads != 1 || element->numsrcpads != 1) return false;
    const std::string kind = classification(element), name = factory_name(element);
    for (const char* other : {"Source", "Sink", "Decoder", "Encoder", "Demux", "Mux", "Parser",
                              "Payload", "Network", "Hardware"})
        if (kind.find(other) != kind.npos) return false;
    for (const char* other : {"gl", "va", "v4l2", "nv", "cuda", "vulkan"})
        if (name.starts_with(other) && !name.starts_with("vartml") && name != "valve") return false;
    return is_plain_filter(element);
}

void add_upstream(GstElement* element, Part& part) {
    while (element->numsinkpads == 1) {
        GstElement* before = peer_element(GST_PAD(element->sinkpads->data));
        if (!before) return;
        gst_object_unref(before);
        if (part.elements.contains(before) || !may_be_tried(before)) return;
        part.elements.insert(before);
        element = before;
    }
}

// Keeps what lies between `element` and the last of our elements behind it. True: one is there.
bool add_downstream(GstElement* element, Part& part, std::set<GstElement*>& seen) {
    if (!seen.insert(element).second) return part.elements.contains(element);
    bool any = is_ours(element) || starts_inference(element);
    if (GST_IS_BIN(element)) return false;
    for (GList* l = element->srcpads; l; l = l->next) {
        GstElement* next = peer_element(GST_PAD(l->data));
        if (!next) continue;
        gst_object_unref(next);
        if (add_downstream(next, part, seen)) any = true;
    }
    if (any) part.elements.insert(element);
    return any;
}

std::vector<GstElement*> children(GstElement* bin) {
    std::vector<GstElement*> all;
    for (GList* l = GST_BIN_CHILDREN(bin); l; l = l->next) all.push_back(GST_ELEMENT(l->data));
    std::ranges::reverse(all);  // given: the last one added comes first
    return all;
}

Part inferring_part(GstElement* bin) {
    Part part;
    std::set<GstElement*> seen;
    for (GstElement* element : children(bin))
        if (starts_inference(element)) (void)add_downstream(element, part, seen);
    for (GstElement* element : children(bin))
        if (starts_inference(element)) add_upstream(element, part);
    for (GstElement* element : part.elements) {
        for (GList* l = element->srcpads; l; l = l->next) {
            auto* src = GST_PAD(l->data);
            GstElement* next = peer_element(src);
            if (!next) continue;
            gst_object_unref(next);
            if (part.elements.contains(next)) part.links.push_back({src, GST_PAD_PEER(src)});
        }
    }
    return part;
}

void move(GstElement* element, GstElement* from, GstElement* to) {
    gst_object_ref(element);
    gst_bin_remove(GST_BIN(from), element);  // unlinks its pads
    gst_bin_add(GST_BIN(to), element);
    gst_object_unref(element);
    if (factory_name(element) == "tee") g_object_set(element, "allow-not-linked", TRUE, nullptr);
}

void link_source(GstElement* trial, GstPad* sink) {
    GstElement* source = gst_element_factory_make("videotestsrc", nullptr);
    if (!source) return;
    g_object_set(source, "num-buffers", frames, nullptr);
    gst_bin_add(GST_BIN(trial), source);
    GstPad* pad = gst_element_get_static_pad(source, "src");
    gst_pad_link(pad, sink);
    gst_object_unref(pad);
}

void link_sink(GstElement* trial, GstPad* src) {
    GstElement* end = gst_element_factory_make("fakesink", nullptr);
    g_object_set(end, "sync", FALSE, "async", FALSE, nullptr);
    gst_bin_add(GST_BIN(trial), end);
    GstPad* pad = gst_element_get_static_pad(end, "sink");
    gst_pad_link(src, pad);
    gst_object_unref(pad);
}

GstElement* make_trial(GstElement* bin, const Part& part) {
    GstElement* trial = gst_pipeline_new("trial");
    for (GstElement* element : part.elements) move(element, bin, trial);
    for (const Link& link : part.links) gst_pad_link(link.src, link.sink);
    for (GstElement* element : part.elements) {
        const bool is_tee = factory_name(element) == "tee";
        for (GList* l = element->sinkpads; l; l = l->next)
            if (!gst_pad_is_linked(GST_PAD(l->data))) link_source(trial, GST_PAD(l->data));
        for (GList* l = element->srcpads; l; l = l->next)
            if (!is_tee && !gst_pad_is_linked(GST_PAD(l->data))) link_sink(trial, GST_PAD(l->data));
    }
    return trial;
}

// Until the end of the streams or the first error, with the other errors that are there then.
const char* watch(GstElement* trial) {
    GstBus* bus = gst_element_get_bus(trial);
    const char* end = nullptr;
    for (bool failed = false; !end || failed;) {
        GstMessage* message = gst_bus_timed_pop(bus, failed ? 0 : longest_silence);
        if (!message) {
            end = failed ? "done" : "timeout";
            break;
        }
        switch (GST_MESSAGE_TYPE(message)) {
            case GST_MESSAGE_ERROR:
                failed = true;
                [[fallthrough]];
            case GST_MESSAGE_WARNING:
                write_message(message);
                break;
            case GST_MESSAGE_EOS:
                end = "done";
                break;
            default:
                break;
        }
        gst_message_unref(message);
    }
    gst_object_unref(bus);
    return end;
}

}  // namespace

void try_inference(GstElement* bin) {
    const Part part = inferring_part(bin);
    if (part.elements.empty()) return write_end("none");
    GstElement* trial = make_trial(bin, part);
    gst_element_set_state(trial, GST_STATE_PLAYING);
    const char* end = watch(trial);
    write_end(end);
    if (g_str_equal(end, "timeout")) return;  // it may not stop either; the process ends
    gst_element_set_state(trial, GST_STATE_NULL);
    gst_object_unref(trial);
}

}  // namespace vartml::gst::doctor
