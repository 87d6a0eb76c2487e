// SPDX-License-Identifier: Apache-2.0
// What one element makes of an instance of a model: how its frames become tensors, how tensors are
// attached, and the requests that carry them.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <vartml/convert.h>
#include <vartml/preprocess.h>

#include "gst/infer/feed.h"
#include "gst/infer/instance.h"
#include "gst/infer/request.h"
#include "gst/infer/scheduler.h"
#include "gst/infer/settings.h"
#include "gst/metadata/inference.h"
#include "gst/support/decoder_query.h"
#include "gst/support/tensor_groups.h"

namespace vartml::gst::infer {

// How a run ended, for each request in it.
struct RunResult {
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    std::string because;  // where the status alone does not tell
    bool device_lost = false;
    Clock::time_point started, finished;
    unsigned batch_fill = 0;
    bool leads_batch = false;
};

// Thread-safety: as noted.
class Lane {
public:
    // Reads the sidecar, prepares feeds, record and pools. On failure returns nullptr and fills
    // `failure`. The signal is that of the stream; `wishes` are those of its decoders so far.
    static std::shared_ptr<Lane> create(const Settings& settings, const std::string& infer_id,
                                        unsigned epoch, std::shared_ptr<Instance> instance,
                                        std::shared_ptr<Signal> signal,
                                        std::span<const DecoderWish> wishes, Failure& failure);
    // A lane that says all that this one says, and can do nothing: its instance may end.
    std::shared_ptr<Lane> asleep() const;
    bool is_asleep() const { return !instance_->scheduler; }
    // Of one that nobody else knows yet: results have the record of the lane before it, where that
    // says the same, so that those that are kept stay good.
    void continue_from(const Lane& before);
    // Of one that nobody else knows yet: which model of the stream it is.
    void set_epoch(unsigned epoch);
    // The only way to end a lane: waits until its requests are home. One that the device keeps is
    // kept for ever, with all that it needs. Blocks; without the mutex.
    static void retire(std::shared_ptr<Lane> lane);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    // immutable after create
    Instance& instance() const { return *instance_; }
    const RunnerTensor& picture_tensor() const { return instance_->inputs[picture_]; }
    size_t picture() const { return picture_; }              // which of the inputs
    bool takes_pictures() const { return takes_pictures_; }  // as bytes, without mean and scale
    // As far as the decoders were known when it was made.
    const vartml::PreprocessOptions& preprocess() const { return pixels_.options; }
    // Else they are a guess.
    bool knows_pixels() const {
        return !pixels_.source.empty() && !pixels_.source.starts_with("the input's type");
    }
    // The pixels for these decoders. False: they contradict each other, `failure` is filled.
    bool choose_pixels(const Settings& settings, std::span<const DecoderWish> wishes,
                       vartml::PixelChoice& choice, Failure& failure) const;
    const std::shared_ptr<const InferenceRecord>& record() const { return record_; }
    // What its tensors may be called in caps and on frames, best first; one at least.
    std::span<const TensorGroup> groups() const { return groups_; }
    const std::string& modelinfo_file() const { return modelinfo_file_; }  // "" = the model's own
    unsigned depth() const { return depth_; }                              // frames in flight
    // Inferences of a frame; 1 where frames bring their own regions.
    unsigned per_frame() const { return per_frame_; }
    // Whether a run has ended when submit() returns.
    bool runs_here() const { return instance_->limits.here; }
    unsigned output_buffers() const { return output_buffers_->load(); }
    Clock::duration batch_timeout(int milliseconds, GstClockTime frame_duration) const;

    // Whether `count` requests can be had at once; with the mutex. Only one thread acquires.
    bool available(unsigned count) const { return free_.size() + (limit_ - made_) >= count; }
    // A request with memory for its inputs; nullptr: `error` says why.
    Request* acquire(vartml::Error& error);
    // Fills the inputs that are not the picture.
    void feed(Request* request, unsigned frame_width, unsigned frame_height) const;
    // Takes output buffers and hands over. False: `error` says why; the caller releases it.
    bool submit(Request* request, Clock::duration batch_timeout, vartml::Error& error);
    // The stream is done with it, whether the run is or not. Without the mutex.
    void release(Request* request);
    // Half batches of this lane go now.
    void hurry() {
        if (!is_asleep()) instance_->scheduler->hurry(place_);
    }

    // Puts CPU views in the place of what the device wrote, where that is wanted. `converted` says
    // whether something was. False: no memory.
    bool convert_outputs(Request* request, bool& converted);

    // The scheduler's calls.
    void finished(Request* request, const RunResult& result);
    void overdue(Request* request, bool leads_batch);

private:
    // Of an output whose CPU view is attached and differs from what the runner writes; else empty.
    struct CpuView {
        vartml::TensorConversion conversion;
        GstBufferPool* pool;
    };

    Lane(std::shared_ptr<Instance> instance, std::shared_ptr<Signal> signal);
    bool prepare(const Settings& settings, const std::string& infer_id, unsigned epoch,
                 std::span<const DecoderWish> wishes, Failure& failure);
    bool choose_picture(const Settings& settings, const vartml::ModelInfo& info, Failure& failure);
    bool make_feeds(const vartml::ModelInfo& info, Failure& failure);
    static bool is_hw(const Settings& settings, const Instance& instance);
    void make_record(const Settings& settings, const std::string& infer_id, unsigned epoch,
                     const vartml::ModelInfo& info);
    void name_tensors(bool whole_frames);
    bool make_pools(const Settings& settings, Failure& failure);
    std::unique_ptr<Request> make_request(vartml::Error& error);
    void put_back(Request* request);

    const std::shared_ptr<Instance> instance_;
    const std::shared_ptr<Signal> signal_;
    size_t picture_ = 0;
    bool takes_pictures_ = false;
    std::vector<std::optional<Feed>> feeds_;  // one per input, nothing for the picture
    vartml::PixelChoice pixels_;
    std::shared_ptr<const InferenceRecord> record_;
    std::vector<TensorGroup> groups_;
    std::string modelinfo_file_;
    unsigned depth_ = 2, per_frame_ = 1;
    std::vector<GstBufferPool*> output_pools_;  // one per output
    std::vector<std::optional<CpuView>> cpu_views_;
    std::shared_ptr<std::atomic<unsigned>> output_buffers_;
    Scheduler::Place place_;

    // guarded by the signal's mutex
    std::vector<std::unique_ptr<Request>> requests_;
    std::vector<Request*> free_;  // capacity for all
    unsigned made_ = 0, limit_ = 0;
};

}  // namespace vartml::gst::infer
