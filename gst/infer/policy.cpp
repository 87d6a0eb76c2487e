// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/policy.h"

#include <string_view>

#include "gst/infer/frame_tensor.h"
#include "gst/infer/trace.h"
#include "gst/support/picture_info.h"

namespace vartml::gst::infer {
namespace {

Failure fallback(const vartml::ModelDescription& d) {
    const unsigned all = d.npu_operators + d.cpu_operators;
    return {{vartml::ErrorCode::unsupported,
             "model '" + d.name + "' runs " + std::to_string(d.cpu_operators) + " of " +
                 std::to_string(all) + " nodes on the CPU, first " + d.first_cpu_operator +
                 "; set on-fallback=allow to accept that"},
            "infer-fallback",
            "on-fallback"};
}

Failure copy(CopyReason reason, uint64_t bytes) {
    const CopyReasonText& text = copy_reason(reason);
    Failure failure = {{vartml::ErrorCode::unsupported,
                        std::string("copy '") + text.nick + "' of " + std::to_string(bytes) +
                            " bytes per frame is needed because " + text.why + "; " + text.fix +
                            ", or set copy-policy=allow"},
                       "infer-copy-forbidden",
                       "copy-policy"};
    failure.found = text.nick;
    failure.fix = text.fix;
    return failure;
}

// Bytes per frame that the runner itself copies for want of a HW view.
uint64_t cpu_view_bytes(const std::vector<vartml::TensorInfo>& infos,
                        const std::vector<RunnerTensor>& tensors) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < tensors.size(); ++i)
        bytes += infos[i].hw ? 0 : tensors[i].info.size_in_bytes;
    return bytes;
}

}  // namespace

bool allows(const Settings& settings, CopyPolicy copies, const Lane& lane, Failure& failure) {
    const vartml::ModelDescription& d = lane.instance().description;
    if (d.cpu_operators > 0 && settings.on_fallback == OnFallback::error) {
        failure = fallback(d);
        return false;
    }
    const bool must = settings.input_is_tensor == InputIsTensor::yes;
    if (must && settings.region != InferenceRegion::full_frame) {
        failure = {{vartml::ErrorCode::invalid_argument,
                    std::string("property 'input-is-tensor' is yes and 'inference-region' is ") +
                        region_nick(settings.region) +
                        ", but a region of a frame is not the tensor; set input-is-tensor=no, or "
                        "inference-region=full-frame"},
                   "infer-option",
                   "input-is-tensor"};
        return false;
    }
    if (settings.keep_rate == KeepRate::yes && settings.region == InferenceRegion::roi) {
        failure = {{vartml::ErrorCode::invalid_argument,
                    "property 'keep-rate' is yes and 'inference-region' is roi, but results of "
                    "regions belong to the boxes of their own frame; set keep-rate=auto, or "
                    "inference-region=full-frame"},
                   "infer-option",
                   "keep-rate"};
        return false;
    }
    if (settings.motion_threshold > 0 && settings.region == InferenceRegion::roi) {
        failure = {
            {vartml::ErrorCode::invalid_argument,
             "property 'motion-threshold' is " + std::to_string(settings.motion_threshold) +
                 " and 'inference-region' is roi, but results of regions belong to the boxes "
                 "of their own frame; set motion-threshold on the vartmlinfer that finds the "
                 "boxes, and roi-reinfer-interval on this one"},
            "infer-option",
            "motion-threshold"};
        return false;
    }
    if (must) {
        std::string why;
        if (!FrameTensor::create(lane, why)) {
            failure = {{vartml::ErrorCode::unsupported,
                        "property 'input-is-tensor' is yes, but " + why +
                            "; set input-is-tensor=auto to convert frames"},
                       "infer-caps",
                       "input-is-tensor"};
            return false;
        }
    }
    if (copies != CopyPolicy::forbid) return true;
    const std::pair<CopyReason, uint64_t> needed[] = {
        {CopyReason::input_cpu_view, cpu_view_bytes(d.inputs, lane.instance().inputs)},
        {CopyReason::output_cpu_view, cpu_view_bytes(d.outputs, lane.instance().outputs)},
    };
    for (const auto& [reason, bytes] : needed) {
        if (!bytes) continue;
        failure = copy(reason, bytes);
        return false;
    }
    return true;
}

bool suits_head(const Lane& lane, Failure& failure) {
    const InferenceRecord& record = *lane.record();
    const vartml::ModelInfo& info = record.model_info;
    if (info.decoder.empty()) return true;
    const auto decoder =
        vartml::Decoder::create(info, record.outputs, record.model_width, record.model_height, {});
    if (decoder) return true;
    failure = {decoder.error(), "infer-sidecar", "modelinfo-file", info.file};
    failure.error.message += "; write 'modelinfo-file' before 'model' to change both";
    return false;
}

bool suits_format(const Settings& settings, const Lane& lane, const GstCaps* caps,
                  Failure& failure) {
    const auto format = frame_format(caps);
    if (!format) return true;  // said when the first frame comes
    if (format->tensor) return suits_tensor(settings, lane, *format->tensor, failure);
    const RunnerTensor& input = lane.picture_tensor();
    if (settings.input_is_tensor != InputIsTensor::yes) {
        if (settings.region != InferenceRegion::full_frame) return true;
        const auto made = vartml::Preprocessor::create(format->picture, {}, input.cpu, input.view,
                                                       lane.preprocess());
        if (made) return true;
        failure = {made.error(), "infer-caps"};
        return false;
    }
    std::string why;
    const CapsDifference d = FrameTensor::create(lane, why)->compare(format->info);
    if (d.field.empty()) return true;
    failure = tensor_caps_failure(d);
    return false;
}

// Of frames that are pictures, and not the tensor, no property is wrong.
const char* doing_with_caps(const Failure& failure) {
    const bool is_picture = std::string_view(failure.id) == "infer-caps" && !failure.property;
    return is_picture ? "prepare the pre-processing" : "take frames as the tensor";
}

bool suits_offer(const Lane& lane, GstCaps* offered, Failure& failure) {
    std::string why;
    GstCaps* caps = FrameTensor::create(lane, why)->caps();
    const bool same = gst_caps_is_equal(caps, offered);
    if (!same) {
        failure = {{vartml::ErrorCode::unsupported,
                    "the model takes other frames than the one in use, and input-is-tensor is yes; "
                    "stop the element to change the model"},
                   "infer-caps",
                   "input-is-tensor"};
    }
    gst_caps_unref(caps);
    return same;
}

void warn_of_policies(GstElement* element, const Settings& settings, const Lane& lane) {
    const vartml::ModelDescription& d = lane.instance().description;
    if (d.cpu_operators > 0 && settings.on_fallback == OnFallback::warn)
        post_warning(element, "run the whole model on the NPU", fallback(d));
    const unsigned batch = lane.instance().limits.batch;
    if (batch > lane.depth() && settings.model_instance_id.empty()) {
        post_warning(element, "fill batches",
                     {{vartml::ErrorCode::invalid_argument,
                       "property 'async-depth' is " + std::to_string(lane.depth()) +
                           ", below the batch of " + std::to_string(batch) +
                           ", so batches never fill; set it to " + std::to_string(2 * batch) +
                           " or 0, or batch-size to " + std::to_string(lane.depth())},
                      "infer-batch",
                      "async-depth"});
    }
}

void Copies::start() {
    import_refused = false;
    for (std::atomic<bool>& told : told_) told = false;
}

bool Copies::count(CopyReason reason, uint64_t bytes) {
    if (bytes == 0) return false;
    stats_.copied(reason, bytes);
    trace_copy(element_, copy_reason(reason).nick, bytes);
    const CopyPolicy policy = settings_.copy_policy();
    if (policy == CopyPolicy::forbid) {
        post_error(element_, "pass the frame without a copy", copy(reason, bytes));
        return true;
    }
    if (policy == CopyPolicy::allow || told_[size_t(reason)].exchange(true)) return false;
    const CopyReasonText& text = copy_reason(reason);
    GST_CAT_WARNING_OBJECT(performance_log(), element_,
                           "copy '%s' of %" G_GUINT64_FORMAT " bytes per frame: %s", text.nick,
                           guint64(bytes), text.why);
    post_warning(element_, "pass the frame without a copy", copy(reason, bytes));
    return false;
}

bool Copies::count_views(const Instance& instance) {
    return count(CopyReason::input_cpu_view,
                 cpu_view_bytes(instance.description.inputs, instance.inputs)) ||
           count(CopyReason::output_cpu_view,
                 cpu_view_bytes(instance.description.outputs, instance.outputs));
}

}  // namespace vartml::gst::infer
