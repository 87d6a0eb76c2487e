// SPDX-License-Identifier: Apache-2.0
// The streaming thread: gates, depth, pre-processing and submission of a frame.
#include <algorithm>
#include <utility>

#include "gst/infer/stream.h"

namespace vartml::gst::infer {
namespace {

uint64_t us_between(Clock::time_point from, Clock::time_point to) {
    return uint64_t(std::max<int64_t>(
        0, std::chrono::duration_cast<std::chrono::microseconds>(to - from).count()));
}

}  // namespace

void Stream::handle_caps(GstEvent* event) {
    GstCaps* caps;
    gst_event_parse_caps(event, &caps);
    if (caps_ && gst_caps_is_equal(caps_, caps)) return;
    gst_caps_replace(&caps_, caps);
    plan_.reset();  // frames in flight keep theirs
}

bool Stream::skip_mode() const {
    const OnLate choice = on_late_;
    return choice == OnLate::skip || (choice == OnLate::automatic && live_);
}

void Stream::ask_liveness() {
    GstQuery* query = gst_query_new_latency();
    gboolean live = FALSE;
    if (gst_pad_peer_query(sink_, query)) gst_query_parse_latency(query, &live, nullptr, nullptr);
    gst_query_unref(query);
    live_ = live;
}

// The plan for the frames from here on; false after posting the error.
bool Stream::ensure_plan() {
    if (plan_) return true;
    std::shared_ptr<Instance> instance;
    {
        const std::lock_guard lock(signal_.mutex);
        instance = instance_;
    }
    if (!caps_) {
        post_error(element_, "read the frame",
                   {{vartml::ErrorCode::unsupported, "frames came before caps"}, "infer-caps"});
        return false;
    }
    auto format = frame_format(caps_);
    if (!format) {
        post_error(element_, "read the frame", {format.error(), "infer-caps"});
        return false;
    }
    const RunnerTensor& input = instance->inputs[instance->picture];
    auto preprocessor = vartml::Preprocessor::create(format->picture, {}, input.cpu, input.view,
                                                     instance->preprocess);
    if (!preprocessor) {
        post_error(element_, "prepare the pre-processing",
                   {{preprocessor.error().code, "model '" + instance->description.name +
                                                    "', input '" + input.info.name +
                                                    "': " + preprocessor.error().message},
                    "infer-caps"});
        return false;
    }
    ask_liveness();
    measure_ = true;
    plan_ = std::make_shared<const FramePlan>(
        FramePlan{std::move(instance), *std::move(format), *std::move(preprocessor), stream_id_});
    return true;
}

// Waits until the frame may enter the queue and decides whether it is inferred. False: the stream
// stopped.
bool Stream::admit(InferenceStatus& status, Job*& job, std::unique_lock<std::mutex>& lock) {
    const bool wanted = status == InferenceStatus::inferred;
    bool skip = false;
    // Frames that pass without inference wait behind those in flight, so that the order is kept;
    // they are bounded as well.
    const auto room = [&] {
        if (flow_ != GST_FLOW_OK || refusing_) return true;
        skip = skip_mode();
        if (frames_ >= (skip ? 2 * depth() : depth())) return false;
        if (!wanted || (skip && inferring_ >= depth())) return true;
        job = jobs_.take();
        return job != nullptr || skip;
    };
    signal_.changed.wait(lock, room);
    if (flow_ != GST_FLOW_OK || refusing_) return false;
    if (wanted && !job) status = InferenceStatus::skipped_busy;
    ++frames_;
    if (job) stats_.in_flight(++inferring_);
    return true;
}

// At the first frame under new caps: what pre-processing takes here, as far as 100 ms of measuring
// tell.
void Stream::measure_preprocess(const FramePlan& plan, const vartml::Picture& picture,
                                void* tensor) {
    uint64_t longest = 0;
    const auto start = Clock::now();
    for (int run = 0; run < 22 && us_between(start, Clock::now()) < 100'000; ++run) {
        const auto begin = Clock::now();
        plan.preprocessor.run(picture, tensor);
        if (run >= 2) longest = std::max(longest, us_between(begin, Clock::now()));
    }
    bool rose = false;
    {
        const std::lock_guard lock(signal_.mutex);
        const GstClockTime want = (plan.instance->run_p99_us + longest + 999) / 1000 * GST_MSECOND;
        rose = want > measured_latency_;
        if (rose) measured_latency_ = want;
    }
    if (rose && live_)
        gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

// Pre-processes into the job's tensor, fills the other inputs and submits. False: `entry.error`
// says why; the job is free.
bool Stream::prepare(Entry& entry, GstBuffer* buffer) {
    const FramePlan& plan = *entry.plan;
    const Instance& instance = *plan.instance;
    {
        const auto begin = Clock::now();
        const MappedFrame frame(plan.format, buffer);
        if (!frame.mapped()) {
            entry.error = {vartml::ErrorCode::io,
                           "the frame's memory cannot be mapped, or is smaller than the caps say"};
            jobs_.release(entry.job);
            return false;
        }
        void* tensor = entry.job->memory[instance.picture].data;
        if (std::exchange(measure_, false)) measure_preprocess(plan, frame.picture(), tensor);
        plan.preprocessor.run(frame.picture(), tensor);
        entry.pre_us = us_between(begin, Clock::now());
    }
    stats_.conversion();
    for (size_t i = 0; i < instance.feeds.size(); ++i) {
        if (!instance.feeds[i]) continue;
        instance.feeds[i]->write(plan.format.picture.width, plan.format.picture.height,
                                 entry.job->memory[i].data);
    }
    return jobs_.submit(entry.job, flow_, entry.error);
}

GstFlowReturn Stream::chain(GstBuffer* buffer) {
    const auto entered = Clock::now();
    std::unique_lock lock(signal_.mutex);
    signal_.changed.wait(lock, [this] { return flow_ != GST_FLOW_OK || load_ != Load::loading; });
    GstFlowReturn flow = refusing_ ? GST_FLOW_EOS : flow_;
    if (flow == GST_FLOW_OK && load_ != Load::loaded) flow = GST_FLOW_ERROR;
    lock.unlock();
    if (flow == GST_FLOW_OK && !ensure_plan()) flow = GST_FLOW_ERROR;
    if (flow != GST_FLOW_OK) {
        gst_buffer_unref(buffer);
        return flow;
    }

    Entry entry;
    entry.kind = Entry::Kind::frame;
    entry.plan = plan_;
    entry.seq = next_seq_++;
    entry.entered = entered;
    lock.lock();
    entry.status = gates_.decide(buffer, segment_, interval_, skip_mode());
    if (!admit(entry.status, entry.job, lock)) {
        flow = flow_ != GST_FLOW_OK ? flow_ : GST_FLOW_EOS;
        lock.unlock();
        gst_buffer_unref(buffer);
        return flow;
    }
    lock.unlock();

    const bool had_job = entry.job != nullptr;
    if (had_job && !prepare(entry, buffer)) {
        entry.job = nullptr;
        entry.status = InferenceStatus::failed;
    }
    lock.lock();
    if (had_job && !entry.job) --inferring_;
    if (flow_ == GST_FLOW_OK) {
        entry.object = GST_MINI_OBJECT_CAST(buffer);
        enqueue(std::move(entry));
        return GST_FLOW_OK;
    }
    // Stopped or flushed meanwhile.
    flow = flow_;
    --frames_;
    if (entry.job) --inferring_;
    lock.unlock();
    if (entry.job) jobs_.abandon(entry.job);
    gst_buffer_unref(buffer);
    return flow;
}

}  // namespace vartml::gst::infer
