// SPDX-License-Identifier: Apache-2.0
// The streaming thread: model and plan for a frame, gates, depth, into the queue.
#include <algorithm>
#include <utility>

#include "gst/infer/log.h"
#include "gst/infer/stream.h"
#include "gst/infer/trace.h"

namespace vartml::gst::infer {

bool Stream::skip_mode() const {
    const OnLate choice = on_late_;
    const bool passes = live_ || keep_rate_ == KeepRate::yes;
    return choice == OnLate::skip || (choice == OnLate::automatic && passes);
}

// Results of regions belong to boxes of their frame.
bool Stream::keeps_rate(bool live) const {
    if (started_.region == InferenceRegion::roi) return false;
    const KeepRate choice = keep_rate_;
    return choice == KeepRate::yes ||
           (choice == KeepRate::automatic && live && on_late_ != OnLate::block);
}

// What a frame that keeps its rate may wait for its own result.
GstClockTime Stream::longest_hold(GstClockTime frame_duration) const {
    return GST_CLOCK_TIME_IS_VALID(started_.latency) ? started_.latency : frame_duration;
}

// A frame waits only for results that are expected in time.
void Stream::decide_leave(Entry& entry) {
    if (!keeps_rate(live_)) return;
    const std::chrono::nanoseconds hold(longest_hold(entry.plan->frame_duration));
    const auto hold_us =
        uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(hold).count());
    const bool waited = time_.is_within(), waits = time_.within(hold_us);
    if (waits != waited) {
        GST_DEBUG_OBJECT(element_,
                         "results come in %" G_GUINT64_FORMAT " us of %" G_GUINT64_FORMAT
                         ": frames %s",
                         guint64(time_.us()), guint64(hold_us),
                         waits ? "wait for their own" : "carry the newest");
    }
    entry.leave_by = entry.entered + (waits ? Clock::duration(hold) : Clock::duration(0));
}

bool Entry::done() const {
    for (const Request* r = requests; r; r = r->next) {
        if (!r->done) return false;
    }
    return true;
}

// Frames whose results are not there.
unsigned Stream::in_flight() const {
    const auto landed = std::ranges::count_if(flying_, &Entry::done);
    return inferring_ - unsigned(landed);
}

// Of a frame that keeps its rate: the device has as many runs of this stream as it makes beside
// each other, and none ends before the next frame, which is newer then. Where one does, this frame
// waits for it, the only one, so that the device goes on at once.
bool Stream::is_early(const Entry& entry) const {
    const Lane& lane = *entry.plan->lane;
    const Scheduler& scheduler = *lane.instance().scheduler;
    const unsigned batch = scheduler.limits().batch;
    const unsigned busy = std::min(lane.depth(), scheduler.runs_of_stream() * batch);
    const unsigned waiting = in_flight();
    if (waiting < busy) return false;
    const auto oldest = std::ranges::find_if_not(flying_, &Entry::done);
    if (oldest == flying_.end()) return waiting >= lane.depth();
    const auto ends = oldest->requests->submitted + std::chrono::microseconds(time_.us());
    return waiting >= busy + batch ||
           ends > entry.entered + std::chrono::nanoseconds(entry.plan->frame_duration);
}

// Between chain and push: those that come during two turns of the device wait behind frames that
// are inferred; beyond that downstream is slow.
size_t Stream::most_frames(const FramePlan& plan) const {
    const size_t depth = plan.lane->depth();
    if (plan.frame_duration == 0) return 2 * depth;
    const uint64_t turn_ns = depth * time_.us() * 1000;
    return 2 * (depth + size_t(turn_ns / plan.frame_duration));
}

// Waits until a model is there and takes over one that was swapped in: this frame is its first.
GstFlowReturn Stream::wait_for_model(GstBuffer* buffer) {
    std::shared_ptr<Lane> replaced;
    std::string model, sidecar;
    {
        std::unique_lock lock(signal_->mutex);
        signal_->changed.wait(lock,
                              [this] { return flow_ != GST_FLOW_OK || load_ != Load::loading; });
        if (flow_ != GST_FLOW_OK) return flow_;
        if (refusing_) return GST_FLOW_EOS;
        if (load_ != Load::loaded) return GST_FLOW_ERROR;
        if (next_lane_) {
            replaced = std::exchange(lane_, std::exchange(next_lane_, nullptr));
            model = next_model_;
            sidecar = lane_->modelinfo_file();
            epoch_ = lane_->record()->model_epoch;
            narrow_to(*lane_);
            plan_.reset();
            Entry entry;
            entry.kind = Entry::Kind::swap;
            entry.seq = next_seq_;
            entry.pts = GST_BUFFER_PTS(buffer);
            entry.old_lane = replaced;
            entry.new_lane = lane_;
            enqueue(std::move(entry));
        }
    }
    if (replaced) {
        replaced->hurry();
        stats_.model_swap();
        const std::lock_guard lock(settings_mutex_);
        settings_.model = model;
        if (sidecar == settings_.modelinfo_file) sidecar_written_ = false;
        if (!sidecar_written_) settings_.modelinfo_file = sidecar;
    }
    return GST_FLOW_OK;
}

// Waits until the frame with `wanted` inferences may enter the queue, and decides whether it is
// inferred. False: the stream stopped.
bool Stream::admit(Entry& entry, unsigned wanted, std::unique_lock<std::mutex>& lock) {
    Lane& lane = *entry.plan->lane;
    bool skip = false, infer = false;
    // Frames that pass without inference wait behind those in flight, so that the order is kept;
    // they are bounded as well.
    const auto room = [&] {
        if (flow_ != GST_FLOW_OK || refusing_) return true;
        skip = skip_mode();
        if (frames_ >= (skip ? most_frames(*entry.plan) : lane.depth())) return false;
        if (wanted == 0) return true;
        infer = lane.available(wanted) &&
                (skip && entry.keeps_rate() ? !is_early(entry) : in_flight() < lane.depth());
        return infer || skip;
    };
    signal_->changed.wait(lock, room);
    if (flow_ != GST_FLOW_OK || refusing_) return false;
    if (wanted > 0 && !infer) entry.status = InferenceStatus::skipped_busy;
    ++frames_;
    if (infer) ++inferring_;
    if (infer) stats_.in_flight(in_flight());
    entry.inferences = infer ? wanted : 0;
    return true;
}

void Stream::release_all(Entry& entry) {
    while (Request* request = entry.requests) {
        entry.requests = request->next;
        entry.plan->lane->release(request);
    }
}

// Tells of labels of regions that no model before knows.
void Stream::check_labels(const std::shared_ptr<const RegionRules>& rules, GstBuffer* buffer) {
    if (rules != checked_rules_) label_check_.restart();
    checked_rules_ = rules;
    if (regions_are_detections(buffer, *rules))
        label_check_.frame(element_, "roi-classes", rules->classes);
}

GstFlowReturn Stream::chain(GstBuffer* buffer) {
    GstFlowReturn flow = wait_for_model(buffer);
    if (flow == GST_FLOW_OK && !ensure_plan()) flow = GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }

    Entry entry;
    entry.kind = Entry::Kind::frame;
    entry.plan = plan_;
    entry.seq = next_seq_++;
    entry.trace_frame = trace_frame(plan_->trace_stream, buffer, entry.seq);
    entry.entered = Clock::now();  // the wait for a model is not the frame's
    entry.pts = GST_BUFFER_PTS(buffer);
    std::shared_ptr<const RegionRules> rules;
    std::unique_lock lock(signal_->mutex);
    entry.status = gates_.decide(buffer, segment_, interval_,
                                 std::max<unsigned>(interval_, adapted_), skip_mode());
    rules = rules_;
    decide_leave(entry);
    unsigned wanted = entry.status == InferenceStatus::inferred;
    if (wanted && started_.region == InferenceRegion::roi) {
        lock.unlock();
        const vartml::PictureInfo& picture = plan_->format.picture;
        check_labels(rules, buffer);
        find_regions(buffer, *rules, picture.width, picture.height, regions_);
        wanted = unsigned(regions_.size());
        if (wanted == 0) entry.status = InferenceStatus::skipped_region;
        lock.lock();
    }
    if (!admit(entry, wanted, lock)) {
        flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_EOS;
        lock.unlock();
        gst_buffer_unref(buffer);
        return flow;
    }
    lock.unlock();

    const bool inferring = entry.inferences > 0;
    const Prepared prepared = inferring ? prepare(entry, buffer) : Prepared::yes;
    if (prepared != Prepared::yes) {
        release_all(entry);
        entry.status = InferenceStatus::failed;
    }
    lock.lock();
    if (inferring && !entry.requests) --inferring_;
    const bool here = entry.plan->lane->runs_here();
    if (here) {
        // The run has ended, or another stream's thread is about to end it: waking the task would
        // cost more. Events before the frame leave first.
        signal_->changed.wait(lock, [this, &entry] {
            return flow_ != GST_FLOW_OK || (queue_.empty() && !serving_ && entry.done());
        });
    }
    if (flow_ == GST_FLOW_OK && prepared != Prepared::stop) {
        entry.object = GST_MINI_OBJECT_CAST(buffer);
        if (!here) {
            enqueue(std::move(entry));
            return GST_FLOW_OK;
        }
        queue_.push(std::move(entry));
        serve_head(lock);
        return flow_;
    }
    // Stopped, flushed or forbidden meanwhile.
    flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_ERROR;
    --frames_;
    if (entry.requests) --inferring_;
    lock.unlock();
    release_all(entry);
    gst_buffer_unref(buffer);
    return flow;
}

}  // namespace vartml::gst::infer
