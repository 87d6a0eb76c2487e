// SPDX-License-Identifier: Apache-2.0
// The way of frames through vartmlinfer: chain → pre-process and submit → queue in order → task →
// attach and push.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gst/infer/gates.h"
#include "gst/infer/job.h"
#include "gst/infer/ring.h"
#include "gst/infer/settings.h"
#include "gst/infer/stats.h"
#include "gst/support/picture_info.h"

namespace vartml::gst::infer {

// What frames under the same caps and model share; immutable.
struct FramePlan {
    std::shared_ptr<Instance> instance;
    FrameFormat format;
    vartml::Preprocessor preprocessor;
    std::string stream_id;
};

// One thing on its way, in order.
struct Entry {
    enum class Kind : uint8_t { none, frame, event, query };
    Kind kind = Kind::none;
    GstMiniObject* object = nullptr;  // a reference, except for queries
    // frames
    InferenceStatus status = InferenceStatus::inferred;
    Job* job = nullptr;  // of an inferred frame
    std::shared_ptr<const FramePlan> plan;
    guint64 seq = 0;
    Clock::time_point entered;
    uint64_t pre_us = 0;
    vartml::Error error;  // why a frame is `failed`
};

// Locks: signal_.mutex guards what is marked; nothing is pushed, queried or called in the runtime
// while it is held, and of GStreamer only tasks are started under it.
class Stream {
public:
    Stream(GstElement* element, GstPad* sink, GstPad* src)
        : element_(element), sink_(sink), src_(src), jobs_(signal_) {}
    ~Stream();

    // READY→PAUSED: loads the model, in a thread of its own where it must be compiled first. False
    // after posting the error.
    bool start(const Settings& settings);
    // PAUSED→READY, with the pads inactive.
    void stop();
    // Properties that may change while running.
    void configure(const Settings& settings);

    GstFlowReturn chain(GstBuffer* buffer);  // takes the buffer
    gboolean sink_event(GstEvent* event);    // takes the event
    gboolean sink_query(GstQuery* query);
    gboolean src_event(GstEvent* event);  // takes the event
    gboolean src_query(GstQuery* query);
    void activate_sink(bool active);
    gboolean activate_src(bool active);

    GstStructure* stats_structure();
    void reset_stats() { stats_.reset(); }

private:
    enum class Load : uint8_t { none, loading, loaded, failed };

    // loading
    void load();
    void post_loaded(const Instance& instance);
    bool check_policies(const Instance& instance);
    void post_compile(int percent, const std::string& stage);

    // chain
    bool ensure_plan();
    void ask_liveness();
    bool admit(InferenceStatus& status, Job*& job, std::unique_lock<std::mutex>& lock);
    bool prepare(Entry& entry, GstBuffer* buffer);
    void measure_preprocess(const FramePlan& plan, const vartml::Picture& picture, void* tensor);
    void handle_caps(GstEvent* event);
    bool skip_mode() const;

    // task
    static void task(gpointer stream) { static_cast<Stream*>(stream)->loop(); }
    void loop();
    bool head_ready();
    GstFlowReturn push_frame(Entry& entry);
    GstFlowReturn push_event(Entry& entry);
    void answer_query(Entry& entry);
    GstBuffer* attach(Entry& entry, GstBuffer* buffer);
    void attach_tensors(const Entry& entry, GstBuffer* buffer);
    GstFlowReturn report_failure(const Entry& entry);
    void report_skip(const Entry& entry);
    bool convert_outputs(Entry& entry);
    void count_copies(const Entry& entry);
    GstBuffer* make_writable(GstBuffer* buffer, const Entry& entry);
    bool answer_allocation(GstQuery* query);
    void raise_latency(Clock::time_point ready, const Entry& entry);

    // both
    void enqueue(Entry entry);          // with the mutex
    void drop_queue(bool keep_sticky);  // without the mutex, with the task stopped
    void set_flow(GstFlowReturn flow);  // with the mutex
    void reset_stream();                // with the mutex
    bool copy_forbidden(CopyReason reason, uint64_t bytes);
    void finished_flow(GstFlowReturn flow);  // the task ends with a flow that is not OK
    GstClockTime latency() const;
    unsigned depth() const { return settings_.depth(); }

    GstElement* const element_;
    GstPad* const sink_;
    GstPad* const src_;

    Signal signal_;
    JobPool jobs_;
    Settings settings_;  // written in start, under the mutex
    Stats stats_;

    // may change while running
    std::atomic<unsigned> interval_{1};
    std::atomic<OnLate> on_late_{OnLate::automatic};
    std::atomic<CopyPolicy> copy_policy_{CopyPolicy::warn};

    // guarded by the mutex
    Ring<Entry> queue_;
    GstFlowReturn flow_ = GST_FLOW_FLUSHING;
    Load load_ = Load::none;
    std::shared_ptr<Instance> instance_;
    unsigned frames_ = 0;     // between chain and push
    unsigned inferring_ = 0;  // of these, with a job
    bool eos_ = false;        // EOS is queued or gone
    bool refusing_ = false;   // downstream said EOS: no more frames before the next segment
    bool query_done_ = false, query_result_ = false, query_active_ = false;
    Gates gates_;
    GstClockTime measured_latency_ = 0;  // p99 of pre and run, and what was seen later
    Clock::time_point latency_posted_;

    // streaming thread
    GstCaps* caps_ = nullptr;
    std::shared_ptr<const FramePlan> plan_;
    GstSegment segment_;
    std::string stream_id_;
    guint64 next_seq_ = 0;
    std::atomic<bool> live_{false};
    bool measure_ = false;  // the plan is new: measure the pre-processing

    // task
    bool dropping_ = false;  // frames until the next segment, after downstream said EOS
    GstSegment out_segment_;
    Inference scratch_;
    unsigned failures_ = 0;  // in a row
    Clock::time_point ready_;

    std::thread loader_;
    bool own_thread_ = false;  // set before the loader starts
    std::atomic<bool> cancel_{false};
};

}  // namespace vartml::gst::infer
