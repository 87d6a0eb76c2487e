// SPDX-License-Identifier: Apache-2.0
// The properties of vartmlinfer as plain values.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include <gst/gst.h>

namespace vartml::gst::infer {

enum class ResizeChoice { automatic, stretch, letterbox, letterbox_top_left, crop };
enum class OutputView { cpu, hw, best };
enum class CopyPolicy { allow, warn, forbid };
enum class OnFallback { allow, warn, error };
enum class OnLate { automatic, block, skip };
enum class KeepRate { automatic, no, yes };
enum class InferenceRegion { full_frame, roi, tiles };
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
    unsigned idle_unload_ms = 0;     // 0: never
    InferenceRegion region = InferenceRegion::full_frame;
    RoiSource roi_source = RoiSource::automatic;
    std::string roi_classes;  // labels separated by commas; "" = all
    unsigned roi_min_size = 16, roi_max = 16;
    double roi_expand = 0;
    unsigned roi_reinfer_interval = 1;
    double roi_reinfer_growth = 0.5;
    std::string tile_grid = "2x2";
    double tile_overlap = 0.2;
    bool tile_whole_frame = true;
    unsigned motion_threshold = 0;  // 0: off
    guint64 motion_max_age_ns = 5 * GST_SECOND;
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
    // modelinfo-file was there for another model than the present one, which was to be swapped in
    // when the element stopped.
    bool sidecar_of_before = false;
};

const char* region_nick(InferenceRegion region);

// The property `runner-options`: fields of the structure as payloads of the runner's options, and
// back; nullptr for none.
void read_runner_options(Settings& settings, const GstStructure* s);
GstStructure* runner_options_structure(const Settings& settings);
// As text, equal for equal options.
std::string runner_options_text(const Settings& settings);

struct RegionRules;

// The settings of an element, which is written to while it runs. Thread-safety: all members may be
// called concurrently. The mutex is held alone, and nothing is called under it.
class LiveSettings {
public:
    // For the table of properties: what is written to, under the mutex, and after that, without,
    // the model that is to be swapped in.
    std::mutex& mutex() { return mutex_; }
    Settings& written() { return settings_; }
    std::optional<std::string> take_over();

    void start();
    void stop();
    const Settings& started() const { return started_; }  // immutable between start and stop

    // Of a model that is swapped in: the sidecar that was written for it, else nothing and, in
    // `in_use`, the present one.
    std::optional<std::string> sidecar_of_next(std::string& in_use);
    // Frames have the new model, or will have: a start that does what a stop cut off.
    void swapped(const std::string& model, const std::string& sidecar);
    // They keep the old one, which it returns; nullptr: there is none yet.
    std::string not_swapped(const std::string* sidecar);
    // That of the next start. `is_swap`: another one was there, or was being loaded.
    void set_model(const std::string& model, bool is_swap);

    // may change while running
    unsigned interval() const { return interval_; }
    unsigned latency_target_ms() const { return latency_target_ms_; }
    int batch_timeout_ms() const { return batch_timeout_ms_; }
    CopyPolicy copy_policy() const { return copy_policy_; }
    OnLate on_late() const { return on_late_; }
    KeepRate keep_rate() const { return keep_rate_; }
    // keep-rate=yes was written while regions are inferred, whose results are not carried: once
    // until the next start.
    bool refuses_keep_rate();
    std::shared_ptr<const RegionRules> rules();
    // Whether regions of tracked objects carry results from frame to frame.
    bool reinfers() const { return reinfers_; }

    // Whether frames that are late, or meet a full queue, pass without inference.
    bool skips(bool live) const;
    // Whether frames leave at their time. Results of regions belong to boxes of their frame.
    bool keeps_rate(bool live) const;
    // What a frame that keeps its rate may wait for its own result.
    GstClockTime longest_hold(GstClockTime frame_duration) const;

private:
    void configure();  // with the mutex

    std::mutex mutex_;  // guards the two below
    Settings settings_;
    std::shared_ptr<const RegionRules> rules_;
    Settings started_;
    bool keep_rate_refused_ = false;  // guarded by mutex_

    std::atomic<unsigned> interval_{1}, latency_target_ms_{0};
    std::atomic<int> batch_timeout_ms_{-1};
    std::atomic<bool> reinfers_{false};
    std::atomic<OnLate> on_late_{OnLate::automatic};
    std::atomic<KeepRate> keep_rate_{KeepRate::automatic};
    std::atomic<CopyPolicy> copy_policy_{CopyPolicy::warn};
};

}  // namespace vartml::gst::infer
