// SPDX-License-Identifier: Apache-2.0
// The way of frames through vartmlinfer: chain → pre-process and submit → queue in order → task →
// attach and push. Runs that are shorter than the way to another thread are pushed from the chain.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gst/infer/admission.h"
#include "gst/infer/frame_tensor.h"
#include "gst/infer/lane.h"
#include "gst/infer/regions.h"
#include "gst/infer/request.h"
#include "gst/infer/settings.h"
#include "gst/infer/shared_instances.h"
#include "gst/infer/stats.h"
#include "gst/support/picture_info.h"
#include "gst/support/upstream.h"

namespace vartml::gst::infer {

// What frames under the same caps and model share; immutable.
struct FramePlan {
    std::shared_ptr<Lane> lane;
    FrameFormat format;
    vartml::PreprocessOptions preprocess;
    std::optional<FrameTensor> direct;                 // the frame is the tensor already
    std::optional<vartml::Preprocessor> preprocessor;  // of the whole frame; else absent
    std::string stream_id;
    uint32_t trace_stream = 0;  // the stream in a trace
    GstClockTime frame_duration = 0;
};

// One thing on its way, in order.
struct Entry {
    enum class Kind : uint8_t { none, frame, event, query, swap };
    Kind kind = Kind::none;
    GstMiniObject* object = nullptr;  // a reference, except for queries
    // frames
    InferenceStatus status = InferenceStatus::inferred;
    Request* requests = nullptr;  // of an inferred frame, one per region
    unsigned inferences = 0;      // how many of them
    std::shared_ptr<const FramePlan> plan;
    guint64 seq = 0;  // of a swap: of the first frame after it
    TraceFrame trace_frame;
    Clock::time_point entered;
    // When it leaves with or without its own result; not at the end of time: it keeps its rate.
    Clock::time_point leave_by = Clock::time_point::max();
    GstClockTime pts = GST_CLOCK_TIME_NONE;  // of a swap: of the first frame after it
    vartml::Error error;                     // why a frame is `failed`
    // swaps
    std::shared_ptr<Lane> old_lane, new_lane;

    bool keeps_rate() const { return leave_by != Clock::time_point::max(); }
    bool done() const;  // with the mutex: its result is there, or it has none
};

// Locks: the signal's mutex guards what is marked; nothing is pushed, queried or called in the
// runtime while it is held, and of GStreamer only tasks are started under it.
class Stream final : private InstanceUser {
public:
    Stream(GstElement* element, GstPad* sink, GstPad* src)
        : element_(element), sink_(sink), src_(src), signal_(std::make_shared<Signal>()) {}
    ~Stream();

    // What the properties are written to, under its mutex; settings_written() follows, without. A
    // model written while running is swapped in.
    std::mutex& settings_mutex() { return settings_mutex_; }
    Settings& settings() { return settings_; }
    void settings_written();
    GstStructure* stats_structure();  // the caller owns it

    // READY→PAUSED: loads the model, in a thread of its own where it must be compiled first. False
    // after posting the error.
    bool start();
    // PAUSED→READY, with the pads inactive.
    void stop();

    GstFlowReturn chain(GstBuffer* buffer);  // takes the buffer
    gboolean sink_event(GstEvent* event);    // takes the event
    gboolean sink_query(GstQuery* query);    // of the kind that is serialized
    gboolean src_event(GstEvent* event);     // takes the event
    gboolean src_query(GstQuery* query);     // LATENCY
    // CAPS: leaves of the answer what `input-is-tensor=yes` allows.
    void narrow_caps(GstQuery* query);
    void activate_sink(bool active);
    gboolean activate_src(bool active);

    void reset_stats() { stats_.reset(); }

private:
    enum class Load : uint8_t { none, loading, loaded, failed };
    enum class Prepared : uint8_t { yes, failed, stop };

    // InstanceUser
    std::shared_ptr<Lane> make_lane(const std::shared_ptr<Instance>& instance,
                                    Failure& failure) override;
    void adopt(const std::string& model, std::shared_ptr<Lane> lane) override;

    // loading
    void configure(const Settings& settings);
    void load();
    std::shared_ptr<Lane> load_lane(Failure& failure);
    void request_swap(const std::string& model);
    std::string sidecar_of_next(const Instance& instance);
    void swap(const std::string& model);
    void work();
    void wake_worker();  // with the mutex
    LoadProgress progress(const std::string& model);
    std::string element_name() const;
    void post_loaded(const Lane& lane);
    void post_compile(const std::string& model, int percent, const std::string& stage);
    void finish_swap(Entry& entry);
    void post_swapped(const Entry& entry);
    void post_swap_failed(const std::string& requested, const Failure& failure);

    // policies
    bool allowed(const Lane& lane, Failure& failure) const;
    bool suits_caps(const Lane& lane, Failure& failure) const;
    bool suits_head(const Lane& lane, Failure& failure) const;
    bool suits_format(const Lane& lane, const GstCaps* caps, Failure& failure) const;
    bool suits_offer(const Lane& lane, GstCaps* offered, Failure& failure) const;
    void narrow_to(const Lane& lane);
    void warn_of_policies(const Lane& lane);
    bool count_copy(CopyReason reason, uint64_t bytes);

    // chain
    GstFlowReturn wait_for_model(GstBuffer* buffer);
    bool ensure_plan();
    void check_labels(const std::shared_ptr<const RegionRules>& rules, GstBuffer* buffer);
    bool make_plan(const std::shared_ptr<Lane>& lane, Failure& failure);
    bool choose_pixels(const Lane& lane, FramePlan& plan, Failure& failure);
    void ask_liveness();
    bool admit(Entry& entry, unsigned wanted, std::unique_lock<std::mutex>& lock);
    bool keeps_rate(bool live) const;
    GstClockTime longest_hold(GstClockTime frame_duration) const;
    void decide_leave(Entry& entry);                  // with the mutex
    bool is_early(const Entry& entry) const;          // with the mutex
    unsigned in_flight() const;                       // with the mutex
    size_t most_frames(const FramePlan& plan) const;  // with the mutex
    Prepared prepare(Entry& entry, GstBuffer* buffer);
    Prepared fill(Entry& entry, GstBuffer* buffer, Request* request);
    Prepared fill_directly(Entry& entry, GstBuffer* buffer, Request* request);
    const vartml::Preprocessor* region_preprocessor(const FramePlan& plan, const FrameRegion& r,
                                                    vartml::Error& error);
    void measure_preprocess(const FramePlan& plan, const vartml::Picture& picture, void* tensor);
    void raise_promise(const FramePlan& plan);
    uint64_t expected_run_us(const Lane& lane) const;
    GstClockTime promised_latency(const Lane& lane, GstClockTime frame_duration, bool live) const;
    bool handle_caps(GstEvent* event);
    bool skip_mode() const;
    void release_all(Entry& entry);

    // task
    static void task(gpointer stream) { static_cast<Stream*>(stream)->loop(); }
    void loop();
    bool head_ready();
    void serve_head(std::unique_lock<std::mutex>& lock);
    GstFlowReturn push_frame(Entry& entry, bool done);
    GstFlowReturn land();
    void fly(Entry& entry);
    void abandon_flying();
    GstFlowReturn push_event(Entry& entry);
    void answer_query(Entry& entry);
    void answer_allocation(GstQuery* query);
    GstFlowReturn collect(Entry& entry);
    GstFlowReturn run_again(Entry& entry, Request* request);
    GstBuffer* attach(Entry& entry, GstBuffer* buffer);
    void attach_one(const Entry& entry, GstBuffer* buffer, const Request* request);
    void attach_known(const Entry& entry, GstBuffer* buffer, const Inference& known);
    void describe(const Entry& entry, const Request* request);
    void remember(const Entry& entry);
    void log(const Inference& inference) const;
    GstFlowReturn report_failure(const Entry& entry);
    void report_skip(const Entry& entry);
    void count(const Entry& entry);
    void adapt(const Entry& entry, uint64_t total_us);
    GstBuffer* make_writable(GstBuffer* buffer);
    void raise_latency(Clock::time_point ready, Clock::time_point entered);

    // both
    void enqueue(Entry entry);          // with the mutex
    void drop_queue(bool keep_sticky);  // without the mutex, with the task stopped
    void set_flow(GstFlowReturn flow);  // with the mutex
    void reset_stream();                // with the mutex
    void report_flow(GstFlowReturn flow);
    GstClockTime latency(bool live);

    GstElement* const element_;
    GstPad* const sink_;
    GstPad* const src_;
    const std::shared_ptr<Signal> signal_;
    Stats stats_;

    std::mutex
        settings_mutex_;  // guards the one below; no other is taken under it but the signal's
    Settings settings_;
    Settings started_;  // as they were at start; immutable between start and stop

    // may change while running
    std::atomic<unsigned> interval_{1}, adapted_{1};
    std::atomic<unsigned> latency_target_ms_{0};
    std::atomic<int> batch_timeout_ms_{-1};
    std::atomic<OnLate> on_late_{OnLate::automatic};
    std::atomic<KeepRate> keep_rate_{KeepRate::automatic};
    std::atomic<CopyPolicy> copy_policy_{CopyPolicy::warn};
    std::array<std::atomic<bool>, num_copy_reasons> copy_told_{};
    std::atomic<bool> import_refused_{false};  // by the device, in this run of the element

    // guarded by the mutex
    Ring<Entry> queue_;
    std::condition_variable queued_;  // the task waits here for the first entry, and for the flow
    bool serving_ = false;            // an entry is on its way downstream
    GstFlowReturn flow_ = GST_FLOW_FLUSHING;
    Load load_ = Load::none;
    std::shared_ptr<Lane> lane_, next_lane_;  // next: from the next frame on
    std::string next_model_;
    unsigned epoch_ = 0;
    std::shared_ptr<const RegionRules> rules_;
    GstCaps* caps_ = nullptr;    // of the sink; written by the streaming thread
    GstCaps* narrow_ = nullptr;  // what input-is-tensor=yes allows
    unsigned frames_ = 0;        // between chain and push
    unsigned inferring_ = 0;     // with requests: of these, and those that have left before
    std::vector<Entry> flying_;  // frames that left before their results, without their buffers
    InferenceTime time_;         // from submission to result
    std::optional<unsigned> timed_epoch_;  // of the model that it is of
    bool eos_ = false;                     // EOS is queued or gone
    bool refusing_ = false;  // downstream said EOS: no more frames before the next segment
    bool query_done_ = false, query_result_ = false, query_active_ = false;
    Gates gates_;
    GstClockTime frame_duration_ = GST_SECOND / 30;  // of the plan in use
    GstClockTime measured_latency_ = 0;  // promised for pre and run, and what was seen later
    bool latency_rose_ = false;          // and no message told
    Clock::time_point latency_posted_;

    // streaming thread
    std::shared_ptr<const FramePlan> plan_;
    std::vector<FrameRegion> regions_;
    std::shared_ptr<const RegionRules> checked_rules_;  // whose labels were compared
    LabelCheck label_check_;
    struct RegionPlan {
        FrameRegion region;
        vartml::Preprocessor preprocessor;
    };
    std::vector<RegionPlan> region_plans_;  // of plan_, the last used last
    GstSegment segment_;
    std::string stream_id_;
    guint64 next_seq_ = 0;
    std::atomic<bool> live_{false};
    std::atomic<bool> relinked_{false};  // there may be other decoders than the plan knows
    bool regions_told_ = false;          // that pictures wait for them
    bool measure_ = false;               // the caps are new: measure the pre-processing
    std::shared_ptr<const InferenceRecord> doubted_;  // the model of the last warning of pixels
    std::atomic<uint64_t> pre_promise_us_{0};

    // who serves the head of the queue
    bool dropping_ = false;  // frames until the next segment, after downstream said EOS
    GstSegment out_segment_;
    Inference scratch_;
    KnownResult known_;
    std::vector<Entry> landed_;  // of flying_, whose results are there
    LatencyTarget target_;
    LatencyPromise promise_;
    unsigned failures_ = 0;  // in a row
    Clock::time_point ready_;

    // The thread that loads what has to be compiled, swaps models, and ends lanes.
    std::thread worker_;  // guarded by the mutex
    std::atomic<bool> cancel_{false};
    // guarded by the mutex
    bool load_wanted_ = false, worker_stops_ = false;
    std::optional<std::string> wanted_model_;
    std::shared_ptr<Lane> announce_;  // loaded, and the application does not know yet
    std::vector<std::shared_ptr<Lane>> retired_;
};

}  // namespace vartml::gst::infer
