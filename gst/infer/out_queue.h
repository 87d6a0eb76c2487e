// SPDX-License-Identifier: Apache-2.0
// The way out, in order: the task of the src pad waits for the head of the queue; who serves the
// head collects what came out of the runs and pushes.
#pragma once
#include <thread>
#include <vector>

#include "gst/infer/admission.h"
#include "gst/infer/latency.h"
#include "gst/infer/loader.h"
#include "gst/infer/preparer.h"
#include "gst/infer/result_writer.h"

namespace vartml::gst::infer {

// Thread-safety: as noted. The signal's mutex guards what is marked; nothing is pushed, queried,
// posted or called in the runtime while it is held, and of GStreamer only tasks are started and
// paused under it. The loader's mutex is not taken under it.
class OutQueue {
public:
    OutQueue(Context& context, Loader& loader, Admission& admission, Latency& latency)
        : context_(context),
          loader_(loader),
          admission_(admission),
          latency_(latency),
          writer_(context) {}

    // Activation and flushes. What is between the pads leaves with drop().
    void open();    // of the sink pad: a stream begins
    bool begin();   // of the src pad: the task runs
    void resume();  // after a flush
    void close();   // frames are refused, who waits wakes
    void relinked();
    // With the task stopped. Sticky events stay on the src pad if wanted, as in queue; those of a
    // segment do not survive a flush.
    void drop(bool keep_sticky);
    void stop();

    // Streaming thread.

    // OK, or why no frame is taken.
    GstFlowReturn refusal() const;
    // With the lock: waits until the frame with `wanted` inferences may enter, and decides whether
    // it is inferred. Else why it may not.
    GstFlowReturn admit(Entry& entry, unsigned wanted, std::unique_lock<std::mutex>& lock);
    // What was admitted; takes the buffer.
    GstFlowReturn put_frame(Entry entry, GstBuffer* buffer, Prepared prepared);
    bool put_event(GstEvent* event);  // takes it
    void put_swap(const Loader::Change& change, guint64 seq, GstClockTime pts);
    bool ask(GstQuery* query);  // a query waits for what came before it

    struct Traffic {
        unsigned frames, inferring;
    };
    Traffic traffic() const;
    // With the stream lock of the sink: nothing is on its way. The task is asked to take over the
    // results of frames that have left before them.
    bool at_rest();

private:
    // with the mutex
    void push(Entry entry);
    void set_flow(GstFlowReturn flow);
    void reset();
    bool run();
    bool head_ready();
    unsigned in_flight() const;  // frames whose results are not there

    void hurry();
    void loop();
    void serve_head(std::unique_lock<std::mutex>& lock);
    GstFlowReturn push_frame(Entry& entry, bool done);
    GstFlowReturn push_event(Entry& entry);
    bool are_tensors(const GstCaps* caps) const;
    void answer_query(Entry& entry);
    void finish_swap(Entry& entry);
    GstFlowReturn collect(Entry& entry);
    GstFlowReturn run_again(Entry& entry, Request* request);
    GstFlowReturn land();
    void fly(Entry& entry);
    void abandon_flying();
    void forget_older(const Entry& entry);
    GstFlowReturn report_failure(const Entry& entry);
    void report_skip(const Entry& entry);
    void report_flow(GstFlowReturn flow);

    Context& context_;
    Loader& loader_;
    Admission& admission_;
    Latency& latency_;

    // guarded by the signal's mutex
    Ring<Entry> queue_;
    std::condition_variable queued_;  // the task waits here for the first entry, and for the flow
    bool serving_ = false;            // an entry is on its way downstream
    std::thread::id serving_thread_;  // by whom
    guint64 flushes_ = 0;
    GstFlowReturn flow_ = GST_FLOW_FLUSHING;
    unsigned frames_ = 0;        // between chain and push
    unsigned inferring_ = 0;     // with requests: of these, and those that have left before
    std::vector<Entry> flying_;  // frames that left before their results, without their buffers
    bool eos_ = false;           // EOS is queued or gone
    bool refusing_ = false;      // downstream said EOS: no more frames before the next segment
    bool query_done_ = false, query_result_ = false, query_active_ = false;

    // who serves the head of the queue
    bool dropping_ = false;  // frames until the next segment, after downstream said EOS
    GstSegment segment_;
    ResultWriter writer_;
    std::vector<Entry> landed_;  // of flying_, whose results are there
    unsigned failures_ = 0;      // in a row
    Clock::time_point ready_;
};

}  // namespace vartml::gst::infer
