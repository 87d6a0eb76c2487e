// SPDX-License-Identifier: Apache-2.0
// vartmlinfer on the fake model inside a GstHarness, with short ways to push frames and read what
// came out.
#pragma once
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "gst/gstvartmlinfer.h"
#include "gst/metadata/inference.h"
#include "tests/support/gst_fake_model.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {

// A file that exists; the fake open_model does not look inside.
inline std::string model_file(const char* ending = ".rai") {
    static const TempDir directory;
    const std::string path = directory / ("model" + std::string(ending));
    if (FILE* file = std::fopen(path.c_str(), "w")) std::fclose(file);
    return path;
}

inline GstElement* make_infer() {
    GST_ELEMENT_REGISTER(vartmlinfer, nullptr);
    GstElement* element = gst_element_factory_make("vartmlinfer", nullptr);
    // Else the shapes of the fake model would make it a classifier, whose pixels nobody vouches
    // for.
    g_object_set(element, "model", model_file().c_str(), "preprocess",
                 "channels=rgb resize=stretch mean=0 scale=1", nullptr);
    // A harness says that it is live.
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "block");
    gst_util_set_object_arg(G_OBJECT(element), "keep-rate", "no");
    return element;
}

inline constexpr const char* gray_caps =
    "video/x-raw,format=GRAY8,width=32,height=24,framerate=30/1";

class InferHarness {
public:
    // No caps: they are the test's to send.
    explicit InferHarness(GstElement* element = make_infer(), const char* caps = gray_caps)
        : element(element) {
        bus = gst_bus_new();
        gst_element_set_bus(element, bus);
        h = gst_harness_new_with_element(element, "sink", "src");
        if (caps) gst_harness_set_src_caps_str(h, caps);
    }
    ~InferHarness() {
        gst_harness_teardown(h);
        gst_element_set_bus(element, nullptr);
        gst_object_unref(bus);
        gst_object_unref(element);
    }
    InferHarness(const InferHarness&) = delete;
    InferHarness& operator=(const InferHarness&) = delete;

    static GstBuffer* frame(guint64 number, gsize size = 32 * 24) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, size, nullptr);
        gst_buffer_memset(buffer, 0, guint8(number), size);
        GST_BUFFER_PTS(buffer) = number * GST_SECOND / 30;
        GST_BUFFER_DURATION(buffer) = GST_SECOND / 30;
        GST_BUFFER_OFFSET(buffer) = number;
        return buffer;
    }
    GstFlowReturn push(guint64 number) { return gst_harness_push(h, frame(number)); }
    GstBuffer* pull() { return gst_harness_pull(h); }

    // Number of the frame, status, and the run that made its scores (-1: none) from what byte.
    struct Out {
        guint64 offset;
        gst::InferenceStatus status;
        int run;
        float first_byte;
    };
    Out pull_out() {
        GstBuffer* buffer = pull();
        if (!buffer) {
            ADD_FAILURE() << "no frame came";
            return {};
        }
        const gst::Inference* inference = gst::get_inference(buffer, 0);
        Out out = {GST_BUFFER_OFFSET(buffer), inference->status, -1, -1};
        if (!inference->data.empty()) {
            float scores[4] = {-1, -1, -1, -1};
            gst_buffer_extract(inference->data[0], 0, scores, sizeof scores);
            out.run = int(scores[0]);
            out.first_byte = scores[2];
        }
        gst_buffer_unref(buffer);
        return out;
    }
    guint64 stat(const char* field) {
        GstStructure* s = nullptr;
        g_object_get(element, "stats", &s, nullptr);
        const GValue* v = gst_structure_get_value(s, field);
        const guint64 value = G_VALUE_HOLDS_UINT(v) ? g_value_get_uint(v) : g_value_get_uint64(v);
        gst_structure_free(s);
        return value;
    }
    unsigned messages(GstMessageType type) {
        unsigned count = 0;
        while (GstMessage* message = gst_bus_pop_filtered(bus, type)) {
            ++count;
            gst_message_unref(message);
        }
        return count;
    }

    GstElement* const element;
    GstHarness* h;
    GstBus* bus;
};

}  // namespace vartml::test
