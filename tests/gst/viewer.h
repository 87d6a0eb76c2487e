// SPDX-License-Identifier: Apache-2.0
// What vartmlsrc shows to what follows it.
#pragma once
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gst/gstvartmlsrc.h"

namespace vartml::test {

// `vartmlsrc ! MIDDLE ! fakesink`, with what came out of it.
class Viewer {
public:
    explicit Viewer(const std::string& uri, const std::string& properties = "",
                    const std::string& middle = "identity") {
        gst_element_register(nullptr, "vartmlsrc", GST_RANK_NONE, GST_TYPE_VARTML_SRC);
        GError* error = nullptr;
        pipeline_ = gst_parse_launch(("vartmlsrc name=src " + properties + " ! " + middle +
                                      " ! fakesink name=sink sync=false")
                                         .c_str(),
                                     &error);
        EXPECT_EQ(error, nullptr) << error->message;
        src_ = gst_bin_get_by_name(GST_BIN(pipeline_), "src");
        sink_ = gst_bin_get_by_name(GST_BIN(pipeline_), "sink");
        g_object_set(src_, "uri", uri.c_str(), nullptr);
        bus_ = gst_element_get_bus(pipeline_);
        GstPad* const pad = gst_element_get_static_pad(src_, "src");
        gst_pad_add_probe(
            pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
            [](GstPad*, GstPadProbeInfo* info, gpointer self) {
                static_cast<Viewer*>(self)->take(info);
                return GST_PAD_PROBE_OK;
            },
            this, nullptr);
        gst_object_unref(pad);
    }
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;
    ~Viewer() {
        set_state(GST_STATE_NULL);
        gst_clear_message(&last_);
        gst_object_unref(src_);
        gst_object_unref(sink_);
        gst_object_unref(bus_);
        gst_object_unref(pipeline_);
    }
    GstStateChangeReturn set_state(GstState state) {
        return gst_element_set_state(pipeline_, state);
    }
    // With NO_PREROLL the pipeline would not wait for its sinks, and they not play.
    void play() {
        const auto changed = set_state(GST_STATE_PLAYING);
        EXPECT_TRUE(changed == GST_STATE_CHANGE_SUCCESS || changed == GST_STATE_CHANGE_ASYNC)
            << gst_element_state_change_return_get_name(changed);
    }

    // Returns when so many more frames have come.
    void wait_for_frames(size_t more) {
        std::unique_lock lock(mutex_);
        const size_t enough = times_.size() + more;
        changed_.wait(lock, [&] { return times_.size() >= enough; });
    }
    // The message, which it keeps until the next.
    const GstStructure* wait_for_state(const std::string& state) {
        for (;;) {
            GstMessage* message =
                gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT);
            const GstStructure* said = gst_message_get_structure(message);
            const bool found = gst_structure_has_name(said, "vartml-src-state") &&
                               state == gst_structure_get_string(said, "state");
            gst_clear_message(&last_);
            last_ = message;
            if (found) return said;
        }
    }
    // Sentence of the next error or warning.
    std::string wait_for(GstMessageType type) {
        GstMessage* message = gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, type);
        GError* error = nullptr;
        if (type == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, nullptr);
        if (type == GST_MESSAGE_WARNING) gst_message_parse_warning(message, &error, nullptr);
        std::string text = error ? error->message : "";
        g_clear_error(&error);
        gst_message_unref(message);
        return text;
    }
    std::string stat(const char* name) const {
        GstStructure* stats = nullptr;
        g_object_get(src_, "stats", &stats, nullptr);
        gchar* text = g_strdup_value_contents(gst_structure_get_value(stats, name));
        std::string value = text;
        g_free(text);
        gst_structure_free(stats);
        std::erase(value, '"');
        return value;
    }
    // One stream, one segment, times that go on, and a mark at each connection.
    void expect_one_stream(size_t connections) {
        const std::lock_guard lock(mutex_);
        EXPECT_EQ(stream_starts_, 1u);
        EXPECT_EQ(segments_, 1u);
        EXPECT_EQ(ends_, 0u);
        EXPECT_EQ(discontinuities_, connections);
        for (size_t i = 1; i < times_.size(); ++i)
            ASSERT_GT(times_[i], times_[i - 1]) << "frame " << i << " of " << times_.size();
    }
    std::vector<GstClockTime> times() {
        const std::lock_guard lock(mutex_);
        return times_;
    }
    std::string caps() {
        const std::lock_guard lock(mutex_);
        return caps_;
    }
    void wait_for_end() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ > 0; });
    }
    void forget_messages() {
        gst_bus_set_flushing(bus_, TRUE);
        gst_bus_set_flushing(bus_, FALSE);
    }
    GstElement* element() { return src_; }
    GstElement* sink() { return sink_; }
    GstElement* pipeline() { return pipeline_; }
    GstBus* bus() { return bus_; }

private:
    void take(GstPadProbeInfo* info) {
        const std::lock_guard lock(mutex_);
        if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
            GstBuffer* const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
            times_.push_back(GST_BUFFER_PTS(buffer));
            discontinuities_ += GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DISCONT);
        } else {
            GstEvent* const event = GST_PAD_PROBE_INFO_EVENT(info);
            stream_starts_ += GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START;
            segments_ += GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT;
            ends_ += GST_EVENT_TYPE(event) == GST_EVENT_EOS;
            if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
                GstCaps* caps = nullptr;
                gst_event_parse_caps(event, &caps);
                gchar* text = gst_caps_to_string(caps);
                caps_ = text;
                g_free(text);
            }
        }
        changed_.notify_all();
    }

    GstElement *pipeline_ = nullptr, *src_ = nullptr, *sink_ = nullptr;
    GstBus* bus_ = nullptr;
    GstMessage* last_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<GstClockTime> times_;
    std::string caps_;
    size_t stream_starts_ = 0, segments_ = 0, ends_ = 0, discontinuities_ = 0;
};

// Keeps the next frame that leaves the viewer's source, as a paused sink does, until it is
// released.
class Holder {
public:
    explicit Holder(Viewer& viewer) : pad_(gst_element_get_static_pad(viewer.element(), "src")) {
        probe_ = gst_pad_add_probe(
            pad_, GST_PAD_PROBE_TYPE_BUFFER,
            [](GstPad*, GstPadProbeInfo*, gpointer shared) {
                Hold& hold = **static_cast<std::shared_ptr<Hold>*>(shared);
                std::unique_lock lock(hold.mutex);
                hold.holds = true;
                hold.changed.notify_all();
                hold.changed.wait(lock, [&] { return hold.released; });
                return GST_PAD_PROBE_OK;
            },
            new std::shared_ptr<Hold>(hold_),
            [](gpointer shared) { delete static_cast<std::shared_ptr<Hold>*>(shared); });
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
        gst_pad_remove_probe(pad_, probe_);
        gst_object_unref(pad_);
    }
    void wait_for_frame() {
        std::unique_lock lock(hold_->mutex);
        hold_->changed.wait(lock, [&] { return hold_->holds; });
    }
    void release() {
        const std::lock_guard lock(hold_->mutex);
        hold_->released = true;
        hold_->changed.notify_all();
    }

private:
    // The thread that was held leaves it behind this one's end.
    struct Hold {
        std::mutex mutex;
        std::condition_variable changed;
        bool holds = false, released = false;
    };
    GstPad* const pad_;
    gulong probe_ = 0;
    const std::shared_ptr<Hold> hold_ = std::make_shared<Hold>();
};

}  // namespace vartml::test
