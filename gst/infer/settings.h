// SPDX-License-Identifier: Apache-2.0
// The properties of vartmlinfer as plain values.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>

#include <gst/gst.h>

namespace vartml::gst::infer {

enum class ResizeChoice { automatic, stretch, letterbox, letterbox_top_left, crop };
enum class OutputView { cpu, hw };
enum class CopyPolicy { allow, warn, forbid };
enum class OnFallback { allow, warn, error };
enum class OnLate { automatic, block, skip };
enum class KeepRate { automatic, no, yes };
enum class InferenceRegion { full_frame, roi };
enum class RoiSource { automatic, detections, roi_meta };
enum class InputIsTensor { automatic, no, yes };

struct Settings {
    std::string model, modelinfo_file, device = "auto", cache_dir, preprocess;
    std::map<std::string, std::variant<std::string, bool, int, unsigned>> runner_options;
    std::string runner_options_error;  // a field of another type
    std::string model_instance_id;
    unsigned batch_size = 0, async_depth = 0, inference_interval = 1;
    int batch_timeout_ms = -1;  // -1: one frame
    unsigned run_timeout_ms = 10'000;
    unsigned latency_target_ms = 0;  // 0: off
    InferenceRegion region = InferenceRegion::full_frame;
    RoiSource roi_source = RoiSource::automatic;
    std::string roi_classes;  // labels separated by commas; "" = all
    unsigned roi_min_size = 16, roi_max = 16;
    double roi_expand = 0;
    InputIsTensor input_is_tensor = InputIsTensor::automatic;
    ResizeChoice resize = ResizeChoice::automatic;
    OutputView output_view = OutputView::cpu;
    CopyPolicy copy_policy = CopyPolicy::warn;
    OnFallback on_fallback = OnFallback::warn;
    OnLate on_late = OnLate::automatic;
    KeepRate keep_rate = KeepRate::automatic;
    guint64 latency = GST_CLOCK_TIME_NONE;

    bool running = false;                     // between start and stop
    std::optional<std::string> wanted_model;  // written while running, to be swapped in
    bool sidecar_written = false;  // while running, since the last swap: the next model's
};

// The property `runner-options`: fields of the structure as payloads of the runner's options, and
// back; nullptr for none.
void read_runner_options(Settings& settings, const GstStructure* s);
GstStructure* runner_options_structure(const Settings& settings);
// As text, equal for equal options.
std::string runner_options_text(const Settings& settings);

}  // namespace vartml::gst::infer
