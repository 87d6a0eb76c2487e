// SPDX-License-Identifier: Apache-2.0
// From a frame to requests: plans under caps and model, pre-processing or import, submission.
#include <algorithm>
#include <utility>

#include "gst/infer/frame_tensor.h"
#include "gst/infer/stream.h"
#include "gst/infer/trace.h"

namespace vartml::gst::infer {
namespace {

constexpr size_t most_region_plans = 32;

const char* doing(const Failure& failure) {
    return std::string_view(failure.id) == "infer-decoders" ? "choose how pictures are fed"
                                                            : "prepare the pre-processing";
}

GstClockTime frame_duration(const GstVideoInfo& info) {
    const int n = GST_VIDEO_INFO_FPS_N(&info), d = GST_VIDEO_INFO_FPS_D(&info);
    // Of a stream that does not say: that of 30 frames per second.
    return n > 0 && d > 0 ? gst_util_uint64_scale_int(GST_SECOND, d, n) : GST_SECOND / 30;
}

}  // namespace

// False after posting the error.
bool Stream::handle_caps(GstEvent* event) {
    GstCaps* caps;
    gst_event_parse_caps(event, &caps);
    std::shared_ptr<Lane> lane;
    {
        const std::lock_guard lock(signal_->mutex);
        if (caps_ && gst_caps_is_equal(caps_, caps)) return true;
        gst_caps_replace(&caps_, caps);
        lane = lane_;
    }
    trace_caps(element_, caps);
    GST_INFO_OBJECT(element_, "caps %" GST_PTR_FORMAT, caps);
    plan_.reset();  // frames in flight keep theirs
    measure_ = pre_promise_us_ == 0;
    Failure failure;
    if (!lane || suits_caps(*lane, failure)) return true;
    post_error(element_, "take frames as the tensor", failure);
    return false;
}

void Stream::ask_liveness() {
    GstQuery* query = gst_query_new_latency();
    gboolean live = FALSE;
    if (gst_pad_peer_query(sink_, query)) gst_query_parse_latency(query, &live, nullptr, nullptr);
    gst_query_unref(query);
    live_ = live;
    GST_DEBUG_OBJECT(element_, "upstream is%s live: %s, late frames %s", live ? "" : " not",
                     keeps_rate(live) ? "frames keep their rate" : "results stay on their frames",
                     skip_mode() ? "pass without inference" : "wait");
    const bool would_keep = keep_rate_ != KeepRate::no && on_late_ != OnLate::block;
    if (!live || started_.region != InferenceRegion::roi || !would_keep || regions_told_) return;
    regions_told_ = true;
    gst_element_message_full(
        element_, GST_MESSAGE_INFO, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        g_strdup("pictures of this live stream wait for the results of their regions, which belong "
                 "to the boxes of one frame and are not carried on; where pictures must leave at "
                 "their time, infer on a branch of its own and join it with vartmlmetajoin"),
        nullptr, __FILE__, GST_FUNCTION, __LINE__);
}

// The plan for the frames from here on; false after posting the error.
bool Stream::ensure_plan() {
    if (relinked_.exchange(false)) plan_.reset();
    if (plan_) return true;
    std::shared_ptr<Lane> lane;
    {
        const std::lock_guard lock(signal_->mutex);
        lane = lane_;
    }
    Failure failure;
    if (!make_plan(lane, failure)) return post_error(element_, doing(failure), failure);
    ask_liveness();
    {
        const std::lock_guard lock(signal_->mutex);
        const unsigned epoch = lane->record()->model_epoch;
        if (std::exchange(timed_epoch_, epoch) != epoch) time_.begin(expected_run_us(*lane));
    }
    measure_ = measure_ && plan_->preprocessor;
    if (!measure_) raise_promise(*plan_);
    return true;
}

// What the frames of a plan are made into, now that who decodes the tensors is known. A choice that
// nobody vouches for is told once per model.
bool Stream::choose_pixels(const Lane& lane, FramePlan& plan, Failure& failure) {
    vartml::PixelChoice choice;
    if (!lane.choose_pixels(started_, ask_decoders(src_), choice, failure)) return false;
    plan.preprocess = choice.options;
    if (!choice.source.empty() || doubted_ == lane.record()) return true;
    doubted_ = lane.record();
    const std::string& input = lane.instance().description.inputs[lane.picture()].name;
    post_warning(element_, "know how the model takes pictures", pixels_doubt(choice, input));
    return true;
}

bool Stream::make_plan(const std::shared_ptr<Lane>& lane, Failure& failure) {
    failure.id = "infer-caps";
    if (!caps_) {
        failure.error = {vartml::ErrorCode::unsupported, "frames came before caps"};
        return false;
    }
    auto format = frame_format(caps_);
    if (!format) {
        failure.error = format.error();
        return false;
    }
    FramePlan plan;
    plan.lane = lane;
    if (!choose_pixels(*lane, plan, failure)) return false;
    plan.format = *std::move(format);
    plan.stream_id = stream_id_;
    plan.trace_stream = HostTrace::stream_index(stream_id_);
    plan.frame_duration = frame_duration(plan.format.info);
    const bool must = started_.input_is_tensor == InputIsTensor::yes;
    const bool full = started_.region == InferenceRegion::full_frame;
    if (must ||
        (full && started_.input_is_tensor == InputIsTensor::automatic && lane->takes_pictures())) {
        std::string why;
        plan.direct = FrameTensor::create(*lane, why);
        const CapsDifference d =
            plan.direct ? plan.direct->compare(plan.format.info) : CapsDifference{"type", why, ""};
        if (must && !d.field.empty()) {
            failure = tensor_caps_failure(d);
            return false;
        }
        if (!d.field.empty()) plan.direct.reset();
    }
    const RunnerTensor& input = lane->picture_tensor();
    if (!plan.direct && full) {
        auto preprocessor = vartml::Preprocessor::create(plan.format.picture, {}, input.cpu,
                                                         input.view, plan.preprocess);
        if (!preprocessor) {
            failure.error = {preprocessor.error().code, "model '" + lane->record()->model +
                                                            "', input '" + input.info.name +
                                                            "': " + preprocessor.error().message};
            return false;
        }
        plan.preprocessor = *std::move(preprocessor);
    }
    region_plans_.clear();
    const vartml::PreprocessOptions& p = lane->preprocess();
    constexpr const char* resizes[] = {"stretch", "letterbox", "letterbox-top-left", "crop"};
    GST_INFO_OBJECT(
        element_, "plan: %ux%u frames as input '%s' of %ux%u, %s, mean %g,%g,%g scale %g,%g,%g",
        plan.format.picture.width, plan.format.picture.height, input.info.name.c_str(),
        lane->record()->model_width, lane->record()->model_height,
        plan.direct ? "as they are" : resizes[int(p.resize)], double(p.mean[0]), double(p.mean[1]),
        double(p.mean[2]), double(p.scale[0]), double(p.scale[1]), double(p.scale[2]));
    plan_ = std::make_shared<const FramePlan>(std::move(plan));
    return true;
}

// A run of each stream that shares the model, as far as they were measured.
uint64_t Stream::expected_run_us(const Lane& lane) const {
    const Instance& instance = lane.instance();
    return instance.run_promise_us * instance.scheduler->runs_per_turn();
}

// Of a frame: pre-processing, and unless it leaves without its own result a run and the wait for a
// batch.
GstClockTime Stream::promised_latency(const Lane& lane, GstClockTime frame_duration,
                                      bool live) const {
    uint64_t us = expected_run_us(lane);
    std::chrono::nanoseconds wait = lane.batch_timeout(batch_timeout_ms_, frame_duration);
    if (keeps_rate(live) && us * 1000 + uint64_t(wait.count()) > longest_hold(frame_duration)) {
        us = 0;
        wait = {};
    }
    us += pre_promise_us_;
    return (us + 999) / 1000 * GST_MSECOND + GstClockTime(wait.count());
}

// What the latency query is answered must hold for this plan.
void Stream::raise_promise(const FramePlan& plan) {
    bool rose = false;
    {
        const std::lock_guard lock(signal_->mutex);
        frame_duration_ = plan.frame_duration;
        const GstClockTime want = promised_latency(*plan.lane, plan.frame_duration, live_);
        rose = want > measured_latency_;
        if (rose) measured_latency_ = want;
    }
    if (rose && live_)
        gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

// At the first frame under new caps: what pre-processing takes here, as far as 100 ms of measuring
// tell.
void Stream::measure_preprocess(const FramePlan& plan, const vartml::Picture& picture,
                                void* tensor) {
    std::array<uint32_t, 20> times;
    size_t count = 0;
    const auto start = Clock::now();
    for (int run = 0; run < 22 && us_between(start, Clock::now()) < 100'000; ++run) {
        const auto begin = Clock::now();
        plan.preprocessor->run(picture, tensor);
        if (run >= 2) times[count++] = uint32_t(us_between(begin, Clock::now()));
    }
    pre_promise_us_ = promise_us(std::span(times).first(count), true);
    raise_promise(plan);
}

// Regions that stay where they are are prepared once.
const vartml::Preprocessor* Stream::region_preprocessor(const FramePlan& plan, const FrameRegion& r,
                                                        vartml::Error& error) {
    const auto same = [&](const RegionPlan& one) {
        return one.region.x == r.x && one.region.y == r.y && one.region.width == r.width &&
               one.region.height == r.height;
    };
    const auto known = std::ranges::find_if(region_plans_, same);
    if (known != region_plans_.end()) {
        std::rotate(known, known + 1, region_plans_.end());
        return &region_plans_.back().preprocessor;
    }
    const RunnerTensor& input = plan.lane->picture_tensor();
    auto made = vartml::Preprocessor::create(
        plan.format.picture, {double(r.x), double(r.y), double(r.width), double(r.height)},
        input.cpu, input.view, plan.preprocess);
    if (!made) {
        error = made.error();
        return nullptr;
    }
    if (region_plans_.size() >= most_region_plans) region_plans_.erase(region_plans_.begin());
    region_plans_.push_back({r, *std::move(made)});
    return &region_plans_.back().preprocessor;
}

// The frame is the tensor: no conversion, and no copy where the device reads its memory.
Stream::Prepared Stream::fill_directly(Entry& entry, GstBuffer* buffer, Request* request) {
    const FramePlan& plan = *entry.plan;
    const FrameTensor::Result put =
        plan.direct->put(buffer, plan.format.info, *plan.lane, request, !import_refused_);
    if (put.failed) {
        entry.error = {vartml::ErrorCode::io,
                       "the frame's memory cannot be mapped, or is smaller than the caps say"};
        return Prepared::failed;
    }
    request->to_frame = {};
    if (put.new_import) stats_.import();
    if (put.imported) return Prepared::yes;
    return count_copy(put.reason, plan.direct->size_bytes()) ? Prepared::stop : Prepared::yes;
}

// Fills the picture input of a request from its region of the frame.
Stream::Prepared Stream::fill(Entry& entry, GstBuffer* buffer, Request* request) {
    const FramePlan& plan = *entry.plan;
    Span span(trace_flag::runs, TraceCategory::host, "pre-process");
    span.frames({&entry.trace_frame, 1});
    auto begin = Clock::now();
    if (plan.direct) {
        const Prepared prepared = fill_directly(entry, buffer, request);
        request->pre_us = us_between(begin, Clock::now());
        return prepared;
    }
    const size_t picture = plan.lane->picture();
    void* tensor = request->memory[picture].data;
    request->inputs[picture] = request->memory[picture].tensor;
    const vartml::Preprocessor* preprocessor =
        plan.preprocessor ? &*plan.preprocessor
                          : region_preprocessor(plan, request->region, entry.error);
    if (!preprocessor) return Prepared::failed;
    const MappedFrame frame(plan.format, buffer);
    if (!frame.mapped()) {
        entry.error = {vartml::ErrorCode::io,
                       "the frame's memory cannot be mapped, or is smaller than the caps say"};
        return Prepared::failed;
    }
    if (std::exchange(measure_, false)) {
        measure_preprocess(plan, frame.picture(), tensor);
        const auto measuring = Clock::now() - begin;
        begin += measuring;  // is no part of the frame
        entry.entered += measuring;
        if (entry.keeps_rate()) entry.leave_by += measuring;
    }
    preprocessor->run(frame.picture(), tensor);
    request->to_frame = preprocessor->to_frame();
    request->pre_us = us_between(begin, Clock::now());
    stats_.conversion();
    return Prepared::yes;
}

// One request per inference, submitted as soon as it is filled. On failure those made so far stay
// in the entry.
Stream::Prepared Stream::prepare(Entry& entry, GstBuffer* buffer) {
    const FramePlan& plan = *entry.plan;
    Lane& lane = *plan.lane;
    const vartml::PictureInfo& picture = plan.format.picture;
    const bool full = started_.region == InferenceRegion::full_frame;
    const Clock::duration timeout = lane.batch_timeout(batch_timeout_ms_, plan.frame_duration);
    Request** tail = &entry.requests;
    for (unsigned i = 0; i < entry.inferences; ++i) {
        Request* request = lane.acquire(entry.error);
        if (!request) return Prepared::failed;
        request->region =
            full ? FrameRegion{0, 0, int(picture.width), int(picture.height), -1} : regions_[i];
        if (const Prepared filled = fill(entry, buffer, request); filled != Prepared::yes) {
            lane.release(request);
            return filled;
        }
        lane.feed(request, picture.width, picture.height);
        request->trace_frame = entry.trace_frame;
        Span span(trace_flag::runs, TraceCategory::host, "submit");
        span.frames({&entry.trace_frame, 1});
        if (!lane.submit(request, timeout, entry.error)) {
            lane.release(request);
            return Prepared::failed;
        }
        *tail = request;
        tail = &request->next;
    }
    return Prepared::yes;
}

}  // namespace vartml::gst::infer
