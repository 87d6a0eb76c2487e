// SPDX-License-Identifier: Apache-2.0
// vartmlinfer with a model that is soon unloaded: how a test waits until it is, and what it looks
// at on frames before and afterwards.
#pragma once
#include <memory>
#include <string>

#include "tests/support/gst_infer_harness.h"

namespace vartml::test {

// Soon idle: a test that needs the model asleep waits for the message.
inline GstElement* drowsy(const char* id = nullptr) {
    GstElement* element = make_infer();
    g_object_set(element, "idle-unload", 1, "model-instance-id", id, nullptr);
    return element;
}

// The next element message of that name, of which others are left out; waits for it.
inline GstStructure* wait_message(GstBus* bus, const char* name) {
    while (true) {
        GstMessage* message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_ELEMENT);
        if (!message) return nullptr;
        const GstStructure* s = gst_message_get_structure(message);
        GstStructure* copy = gst_structure_has_name(s, name) ? gst_structure_copy(s) : nullptr;
        gst_message_unref(message);
        if (copy) return copy;
    }
}

inline testing::AssertionResult comes(InferHarness& t, const char* name) {
    GstStructure* message = wait_message(t.bus, name);
    if (!message) return testing::AssertionFailure() << "no message " << name;
    gst_structure_free(message);
    return testing::AssertionSuccess();
}

// Where one element alone is not yet asleep.
inline testing::AssertionResult says_it_sleeps(InferHarness& t) {
    return comes(t, "vartml-model-unloaded");
}
// From here on no model is loaded until a frame comes.
inline testing::AssertionResult all_sleep() {
    FakeModel& model = fake_model();
    std::unique_lock lock(model.mutex);
    if (model.changed.wait_for(lock, std::chrono::seconds(10),
                               [&] { return model.live_runners == 0; }))
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << model.live_runners << " runners are left";
}

// Writes the property and waits until the model is loaded, not yet used.
inline void write_model(InferHarness& t, const std::string& file) {
    while (GstMessage* old = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ELEMENT))
        gst_message_unref(old);
    g_object_set(t.element, "model", file.c_str(), nullptr);
    ASSERT_TRUE(comes(t, "vartml-model-loaded"));
}

inline std::string model_in_use(GstElement* element) {
    gchar* text = nullptr;
    g_object_get(element, "model", &text, nullptr);
    std::string copy = text ? text : "";
    g_free(text);
    return copy;
}

// What came out, without the buffer.
struct Seen {
    guint64 offset = G_MAXUINT64, seq = G_MAXUINT64;
    gst::InferenceStatus status = gst::InferenceStatus::failed;
    float first_byte = -1;
    std::shared_ptr<const gst::InferenceRecord> record;
};
inline Seen see(InferHarness& t, guint64 number) {
    EXPECT_EQ(t.push(number), GST_FLOW_OK);
    GstBuffer* buffer = t.pull();
    if (!buffer) return {};
    const gst::Inference* i = gst::get_inference(buffer, 0);
    Seen seen = {GST_BUFFER_OFFSET(buffer), i->frame_seq, i->status, -1, i->record};
    float scores[4] = {-1, -1, -1, -1};
    if (!i->data.empty()) gst_buffer_extract(i->data[0], 0, scores, sizeof scores);
    seen.first_byte = scores[2];
    gst_buffer_unref(buffer);
    return seen;
}

}  // namespace vartml::test
