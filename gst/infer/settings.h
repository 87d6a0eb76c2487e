// SPDX-License-Identifier: Apache-2.0
// The properties of vartmlinfer as plain values.
#pragma once
#include <gst/gst.h>

#include <map>
#include <string>
#include <variant>

namespace vartml::gst::infer {

enum class ResizeChoice { automatic, stretch, letterbox, letterbox_top_left, crop };
enum class OutputView { cpu, hw };
enum class CopyPolicy { allow, warn, forbid };
enum class OnFallback { allow, warn, error };
enum class OnLate { automatic, block, skip };

struct Settings {
    std::string model, modelinfo_file, device = "auto", cache_dir, preprocess;
    std::map<std::string, std::variant<std::string, bool, int, unsigned>> runner_options;
    std::string runner_options_error;  // a field of another type
    unsigned batch_size = 0, async_depth = 0, inference_interval = 1;
    ResizeChoice resize = ResizeChoice::automatic;
    OutputView output_view = OutputView::cpu;
    CopyPolicy copy_policy = CopyPolicy::warn;
    OnFallback on_fallback = OnFallback::warn;
    OnLate on_late = OnLate::automatic;
    guint64 latency = GST_CLOCK_TIME_NONE;

    unsigned depth() const { return async_depth ? async_depth : 2; }
};

}  // namespace vartml::gst::infer
