// SPDX-License-Identifier: Apache-2.0
// vartmlinfer between its pads: chain → pre-process and submit → queue in order → task → attach and
// push. Runs that are shorter than the way to another thread are pushed from the chain.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gst/infer/announcer.h"
#include "gst/infer/motion_gate.h"
#include "gst/infer/out_queue.h"
#include "gst/infer/regions.h"
#include "gst/support/upstream.h"

namespace vartml::gst::infer {

// Pads and events. It has no lock of its own. Settings, loader and latency lock themselves and hold
// that alone; the way of frames (out_queue, admission, requests) has the signal's, under which only
// the statistics are locked. The scheduler's may be held before the signal's, the list of shared
// instances before the loader's and the scheduler's, and before all of them the stream lock of the
// sink, with which the loader's thread stands in for the streaming thread.
class Stream final : private LaneHolder {
public:
    Stream(GstElement* element, GstPad* sink, GstPad* src) : context_{element, sink, src} {}
    ~Stream() { stop(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // What the properties are written to; settings_written() follows. A model that is written while
    // running is swapped in.
    LiveSettings& settings() { return context_.settings; }
    void settings_written();
    GstStructure* stats();  // the caller owns it
    void reset_stats() { context_.stats.reset(); }

    // READY→PAUSED: loads the model, in a thread of its own where it must be compiled first. False
    // after posting the error.
    bool start();
    // PAUSED→READY, with the pads inactive.
    void stop();

    GstFlowReturn chain(GstBuffer* buffer);  // takes the buffer
    gboolean sink_event(GstEvent* event);    // takes the event
    // Of the kind that is serialized.
    gboolean sink_query(GstQuery* query) { return out_.ask(query); }
    gboolean src_event(GstEvent* event);  // takes the event
    gboolean src_query(GstQuery* query);  // LATENCY and CAPS
    // CAPS: leaves of the answer what `input-is-tensor=yes` allows, and what the tensors need.
    void narrow_caps(GstQuery* query);
    // ACCEPT_CAPS that was answered by downstream, which may wait for tensors that upstream has
    // not.
    void accept_caps(GstQuery* query);
    void activate_sink(bool active);
    gboolean activate_src(bool active);

private:
    // LaneHolder
    Clock::time_point last_frame() const override { return last_frame_; }
    bool at_rest() override { return out_.at_rest(); }
    void let_go() override;

    GstFlowReturn wait_for_model(GstBuffer* buffer);
    bool handle_caps(GstEvent* event);
    bool announce();
    unsigned find_inferences(GstBuffer* buffer, Entry& entry);
    void look_for_motion(GstBuffer* buffer, Entry& entry, std::optional<MappedFrame>& frame);

    Context context_;
    Loader loader_{context_, *this};
    Latency latency_{context_};
    Admission admission_{context_};
    Announcer announcer_{context_, loader_};
    Preparer preparer_{context_, admission_, latency_, announcer_};
    MotionGate motion_{context_};
    OutQueue out_{context_, loader_, admission_, latency_};

    // streaming thread
    Clock::time_point last_frame_;  // when it came
    GstSegment segment_;
    guint64 next_seq_ = 0;
    std::vector<FrameRegion> regions_;
    std::shared_ptr<const RegionRules> rules_;  // whose labels were compared
    LabelCheck label_check_;
};

}  // namespace vartml::gst::infer
