// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/preparer.h"

#include <algorithm>
#include <utility>

#include "gst/infer/regions.h"
#include "gst/infer/trace.h"
#include "gst/support/camera_format.h"
#include "gst/support/decoder_query.h"
#include "gst/support/picture_info.h"

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

vartml::Error not_finished() {
    return {
        vartml::ErrorCode::timeout,
        "the frame's producer is still writing its memory after a second (a fence of its dma-buf "
        "is not signalled)"};
}
vartml::Error not_mapped() {
    return {
        vartml::ErrorCode::io,
        "the frame's memory cannot be mapped, is smaller than its caps and GstVideoMeta say, or "
        "has its rows from the bottom up; convert it to another format with videoconvert"};
}

}  // namespace

void Preparer::stop() {
    plan_.reset();
    doubted_.reset();
    region_plans_.clear();
    gst_clear_caps(&caps_);
}

void Preparer::new_stream(const char* id) {
    stream_id_ = id ? id : "";
    plan_.reset();
}

bool Preparer::set_caps(GstCaps* caps) {
    if (caps_ && gst_caps_is_equal(caps_, caps)) return false;
    gst_caps_replace(&caps_, caps);
    plan_.reset();
    measure_ = !latency_.measured();
    return true;
}

bool Preparer::ensure_plan(const Loader& loader) {
    if (relinked_.exchange(false)) plan_.reset();
    if (plan_) return true;
    const std::shared_ptr<Lane> lane = loader.lane();
    Failure failure;
    if (!make_plan(lane, failure)) return post_error(context_.element, doing(failure), failure);
    admission_.ask_liveness();
    {
        const std::lock_guard lock(context_.signal->mutex);
        admission_.begin_model(lane->record()->model_epoch, expected_run_us(*lane));
    }
    measure_ = measure_ && !plan_->direct && !plan_->regions.empty();
    if (!measure_) latency_.promise(*lane, plan_->frame_duration, admission_.live());
    return true;
}

// What the frames of a plan are made into, now that who decodes the tensors is known. A choice that
// nobody vouches for is told once per model.
bool Preparer::choose_pixels(const Lane& lane, FramePlan& plan, Failure& failure) {
    vartml::PixelChoice choice;
    if (!lane.choose_pixels(context_.settings.started(), ask_decoders(context_.src), choice,
                            failure))
        return false;
    plan.preprocess = choice.options;
    if (!choice.source.empty() || doubted_ == lane.record()) return true;
    doubted_ = lane.record();
    const std::string& input = lane.instance().description.inputs[lane.picture()].name;
    post_warning(context_.element, "know how the model takes pictures",
                 pixels_doubt(choice, input));
    return true;
}

bool Preparer::make_plan(const std::shared_ptr<Lane>& lane, Failure& failure) {
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
    if (!format->tensor) format->tensor = camera_tensor(context_.element, *format);
    if (!format->tensor && has_limited_colours(format->info)) {
        failure.error = {
            vartml::ErrorCode::unsupported,
            std::string("the frames are ") + GST_VIDEO_INFO_NAME(&format->info) +
                " of limited range (16 to 235), which is read as full range alone; put "
                "'videoconvert ! video/x-raw,format=I420,colorimetry=bt601' before vartmlinfer"};
        return false;
    }
    FramePlan plan;
    plan.lane = lane;
    plan.group = announcer_.group(*lane);
    // Of a tensor nothing is to be chosen.
    if (!format->tensor && !choose_pixels(*lane, plan, failure)) return false;
    plan.format = *std::move(format);
    plan.stream_id = stream_id_;
    plan.trace_stream = TraceStream(stream_id_);
    plan.frame_duration = frame_duration(plan.format.info);
    const bool must = context_.settings.started().input_is_tensor == InputIsTensor::yes;
    const bool full = context_.settings.started().region == InferenceRegion::full_frame;
    if (plan.format.tensor) {
        if (!suits_tensor(context_.settings.started(), *lane, *plan.format.tensor, failure))
            return false;
        std::string why;
        plan.direct = FrameTensor::create(*lane, why);
    } else if (must ||
               (full && context_.settings.started().input_is_tensor == InputIsTensor::automatic &&
                lane->takes_pictures())) {
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
    if (plan.direct) {
        const auto codes = camera_codes(context_.element);
        if (codes &&
            !suits_camera(context_.settings.started(), *lane, *plan.direct, *codes, failure))
            return false;
    }
    if (!plan_regions(plan, failure)) return false;
    region_plans_.clear();
    const RunnerTensor& input = lane->picture_tensor();
    const vartml::PreprocessOptions& p = lane->preprocess();
    constexpr const char* resizes[] = {"stretch", "letterbox", "letterbox-top-left", "crop"};
    constexpr const char* orders[] = {"rgb", "bgr", "gray"};
    GST_INFO_OBJECT(context_.element,
                    "plan: %ux%u frames as input '%s' of %ux%u, %s, %s, mean %g,%g,%g scale "
                    "%g,%g,%g",
                    plan.format.picture.width, plan.format.picture.height, input.info.name.c_str(),
                    lane->record()->model_width, lane->record()->model_height,
                    plan.direct ? "as they are" : resizes[int(p.resize)], orders[int(p.channels)],
                    double(p.mean[0]), double(p.mean[1]), double(p.mean[2]), double(p.scale[0]),
                    double(p.scale[1]), double(p.scale[2]));
    plan_ = std::make_shared<const FramePlan>(std::move(plan));
    return true;
}

// What every frame is cut into, with a preprocessor each unless it is the tensor.
bool Preparer::plan_regions(FramePlan& plan, Failure& failure) {
    const vartml::PictureInfo& picture = plan.format.picture;
    const auto regions = fixed_regions(context_.settings.started(), picture.width, picture.height);
    if (!regions) {
        failure = {.error = regions.error(), .id = "infer-option", .property = "tile-grid"};
        return false;
    }
    for (const FrameRegion& region : *regions) {
        if (plan.direct) {
            plan.regions.push_back({region, std::nullopt});
            continue;
        }
        auto planned = plan_region(plan, region);
        if (!planned) {
            failure.error = {planned.error().code, "model '" + plan.lane->record()->model +
                                                       "', input '" +
                                                       plan.lane->picture_tensor().info.name +
                                                       "': " + planned.error().message};
            return false;
        }
        plan.regions.push_back(*std::move(planned));
    }
    return true;
}

vartml::Result<PlannedRegion> Preparer::plan_region(const FramePlan& plan,
                                                    const FrameRegion& r) const {
    const RunnerTensor& input = plan.lane->picture_tensor();
    auto made = vartml::Preprocessor::create(
        plan.format.picture, {double(r.x), double(r.y), double(r.width), double(r.height)},
        input.cpu, input.view, plan.preprocess);
    if (!made) return made.error();
    return PlannedRegion{r, *std::move(made)};
}

// At the first frame under new caps: what pre-processing takes here, as far as 100 ms of measuring
// tell.
void Preparer::measure_preprocess(const FramePlan& plan, const vartml::Picture& picture,
                                  void* tensor) {
    std::array<uint32_t, 20> times;
    size_t count = 0;
    const auto start = Clock::now();
    for (int run = 0; run < 22 && us_between(start, Clock::now()) < 100'000; ++run) {
        const auto begin = Clock::now();
        for (const PlannedRegion& planned : plan.regions)
            planned.preprocessor->run(picture, tensor);
        if (run >= 2) times[count++] = uint32_t(us_between(begin, Clock::now()));
    }
    latency_.set_preprocess(promise_us(std::span(times).first(count), true));
    latency_.promise(*plan.lane, plan.frame_duration, admission_.live());
}

// Regions that stay where they are are prepared once.
const PlannedRegion* Preparer::region_plan(const FramePlan& plan, const FrameRegion& r,
                                           vartml::Error& error) {
    const auto same = [&](const PlannedRegion& one) {
        return one.region.x == r.x && one.region.y == r.y && one.region.width == r.width &&
               one.region.height == r.height;
    };
    const auto known = std::ranges::find_if(region_plans_, same);
    if (known != region_plans_.end()) {
        std::rotate(known, known + 1, region_plans_.end());
        return &region_plans_.back();
    }
    auto made = plan_region(plan, r);
    if (!made) {
        error = made.error();
        return nullptr;
    }
    if (region_plans_.size() >= most_region_plans) region_plans_.erase(region_plans_.begin());
    region_plans_.push_back(*std::move(made));
    return &region_plans_.back();
}

// The frame is the tensor: no conversion, and no copy where the device reads its memory.
Prepared Preparer::fill_directly(Entry& entry, GstBuffer* buffer, Request* request) {
    const FramePlan& plan = *entry.plan;
    const auto begin = Clock::now();
    const FrameTensor::Result put =
        plan.direct->put(buffer, plan.format, *plan.lane, request, !context_.copies.import_refused);
    request->pre_us = us_between(begin, Clock::now());
    if (put.failed) {
        entry.error = put.unfinished ? not_finished() : not_mapped();
        return Prepared::failed;
    }
    request->to_frame = {};
    if (put.new_import) context_.stats.import();
    if (put.imported) return Prepared::yes;
    return context_.copies.count(put.reason, plan.direct->size_bytes()) ? Prepared::stop
                                                                        : Prepared::yes;
}

// Fills the picture input of a request from its region of the frame.
void Preparer::fill(Entry& entry, const vartml::Picture& picture, const PlannedRegion& planned,
                    Request* request) {
    const FramePlan& plan = *entry.plan;
    const size_t input = plan.lane->picture();
    void* tensor = request->memory[input].data;
    request->inputs[input] = request->memory[input].tensor;
    auto begin = Clock::now();
    if (std::exchange(measure_, false)) {
        measure_preprocess(plan, picture, tensor);
        const auto measuring = Clock::now() - begin;
        begin += measuring;  // is no part of the frame
        entry.entered += measuring;
        if (entry.keeps_rate()) entry.leave_by += measuring;
    }
    planned.preprocessor->run(picture, tensor);
    request->to_frame = planned.preprocessor->to_frame();
    request->pre_us = us_between(begin, Clock::now());
    context_.stats.conversion();
}

Prepared Preparer::prepare(Entry& entry, GstBuffer* buffer, std::span<const FrameRegion> found,
                           std::optional<MappedFrame>& frame) {
    const FramePlan& plan = *entry.plan;
    if (!plan.format.tensor) {
        if (auto whole = expect_whole_frame(buffer, plan.format.info); !whole) {
            entry.error = std::move(whole).error();
            return Prepared::failed;
        }
    }
    Lane& lane = *plan.lane;
    const vartml::PictureInfo& size = plan.format.picture;
    const Clock::duration timeout =
        lane.batch_timeout(context_.settings.batch_timeout_ms(), plan.frame_duration);
    Request** tail = &entry.requests;
    for (unsigned i = 0; i < entry.inferences; ++i) {
        const PlannedRegion* planned =
            plan.regions.empty() ? region_plan(plan, found[i], entry.error) : &plan.regions[i];
        Request* request = planned ? lane.acquire(entry.error) : nullptr;
        if (!request) return Prepared::failed;
        request->region = plan.regions.empty() ? found[i] : planned->region;
        Prepared filled = Prepared::yes;
        {
            Span span(trace_flag::runs, TraceCategory::host, "pre-process");
            span.frames({&entry.trace_frame, 1});
            if (!plan.direct && !frame) frame.emplace(plan.format, buffer);
            if (plan.direct) {
                filled = fill_directly(entry, buffer, request);
            } else if (frame->mapped()) {
                fill(entry, frame->picture(), *planned, request);
            } else {
                entry.error = not_mapped();
                filled = Prepared::failed;
            }
        }
        if (filled != Prepared::yes) {
            lane.release(request);
            return filled;
        }
        lane.feed(request, size.width, size.height);
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
