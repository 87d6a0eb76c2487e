// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/settings.h"

#include <algorithm>
#include <utility>

#include "gst/infer/regions.h"

namespace vartml::gst::infer {

const char* region_nick(InferenceRegion region) {
    constexpr const char* nicks[] = {"full-frame", "roi", "tiles"};
    return nicks[int(region)];
}

void read_runner_options(Settings& settings, const GstStructure* s) {
    settings.runner_options.clear();
    settings.runner_options_error.clear();
    if (!s) return;
    for (int i = 0; i < gst_structure_n_fields(s); ++i) {
        const gchar* name = gst_structure_nth_field_name(s, guint(i));
        const GValue* v = gst_structure_get_value(s, name);
        if (G_VALUE_HOLDS_STRING(v)) {
            settings.runner_options[name] = g_value_get_string(v) ? g_value_get_string(v) : "";
        } else if (G_VALUE_HOLDS_BOOLEAN(v)) {
            settings.runner_options[name] = bool(g_value_get_boolean(v));
        } else if (G_VALUE_HOLDS_INT(v)) {
            settings.runner_options[name] = g_value_get_int(v);
        } else if (G_VALUE_HOLDS_UINT(v)) {
            settings.runner_options[name] = g_value_get_uint(v);
        } else {
            settings.runner_options_error = std::string("property 'runner-options': field '") +
                                            name + "' is a " + G_VALUE_TYPE_NAME(v) +
                                            ", expected string, boolean, int or uint";
        }
    }
}

GstStructure* runner_options_structure(const Settings& settings) {
    if (settings.runner_options.empty()) return nullptr;
    GstStructure* s = gst_structure_new_empty("options");
    for (const auto& [key, value] : settings.runner_options) {
        const char* name = key.c_str();
        if (const auto* text = std::get_if<std::string>(&value))
            gst_structure_set(s, name, G_TYPE_STRING, text->c_str(), nullptr);
        if (const auto* flag = std::get_if<bool>(&value))
            gst_structure_set(s, name, G_TYPE_BOOLEAN, gboolean(*flag), nullptr);
        if (const auto* number = std::get_if<int>(&value))
            gst_structure_set(s, name, G_TYPE_INT, *number, nullptr);
        if (const auto* number = std::get_if<unsigned>(&value))
            gst_structure_set(s, name, G_TYPE_UINT, *number, nullptr);
    }
    return s;
}

std::string runner_options_text(const Settings& settings) {
    GstStructure* s = runner_options_structure(settings);
    if (!s) return "";
    gchar* text = gst_structure_to_string(s);
    std::string copy = text;
    g_free(text);
    gst_structure_free(s);
    return copy;
}

void LiveSettings::configure() {
    interval_ = std::max(1u, settings_.inference_interval);
    on_late_ = settings_.on_late;
    keep_rate_ = settings_.keep_rate;
    copy_policy_ = settings_.copy_policy;
    batch_timeout_ms_ = settings_.batch_timeout_ms;
    latency_target_ms_ = settings_.latency_target_ms;
    // While it runs, what is taken over in READY alone is as it was then.
    const Settings& fixed = settings_.running ? started_ : settings_;
    reinfers_ = fixed.region == InferenceRegion::roi && settings_.roi_reinfer_interval != 1;
    if (fixed.region != InferenceRegion::roi) return;
    RegionRules rules = region_rules(settings_);
    rules.most = fixed.roi_max;  // requests are made for so many
    rules.source = fixed.roi_source;
    if (!rules_ || !(rules == *rules_))
        rules_ = std::make_shared<const RegionRules>(std::move(rules));
}

std::optional<std::string> LiveSettings::take_over() {
    const std::lock_guard lock(mutex_);
    configure();
    return std::exchange(settings_.wanted_model, std::nullopt);
}

void LiveSettings::start() {
    const std::lock_guard lock(mutex_);
    settings_.running = true;
    settings_.sidecar_written = keep_rate_refused_ = false;
    started_ = settings_;
    configure();
}

void LiveSettings::stop() {
    const std::lock_guard lock(mutex_);
    settings_.running = false;
}

std::optional<std::string> LiveSettings::sidecar_of_next(std::string& in_use) {
    const std::lock_guard lock(mutex_);
    if (settings_.sidecar_written) return settings_.modelinfo_file;
    in_use = settings_.modelinfo_file;
    return std::nullopt;
}

void LiveSettings::swapped(const std::string& model, const std::string& sidecar) {
    const std::lock_guard lock(mutex_);
    settings_.model = model;
    settings_.sidecar_of_before = false;
    if (sidecar == settings_.modelinfo_file) settings_.sidecar_written = false;
    if (!settings_.sidecar_written) settings_.modelinfo_file = sidecar;
}

std::string LiveSettings::not_swapped(const std::string* sidecar) {
    const std::lock_guard lock(mutex_);
    if (sidecar) settings_.modelinfo_file = *sidecar;
    settings_.sidecar_written = false;
    return settings_.model;
}

void LiveSettings::set_model(const std::string& model, bool is_swap) {
    const std::lock_guard lock(mutex_);
    settings_.model = model;
    settings_.sidecar_of_before =
        (is_swap || settings_.sidecar_of_before) && !settings_.sidecar_written;
}

std::shared_ptr<const RegionRules> LiveSettings::rules() {
    const std::lock_guard lock(mutex_);
    return rules_;
}

bool LiveSettings::refuses_keep_rate() {
    const std::lock_guard lock(mutex_);
    const bool refused = settings_.running && started_.region == InferenceRegion::roi &&
                         settings_.keep_rate == KeepRate::yes;
    return refused && !std::exchange(keep_rate_refused_, true);
}

bool LiveSettings::skips(bool live) const {
    const OnLate choice = on_late_;
    const bool passes = live || keep_rate_ == KeepRate::yes;
    return choice == OnLate::skip || (choice == OnLate::automatic && passes);
}

bool LiveSettings::keeps_rate(bool live) const {
    if (started_.region == InferenceRegion::roi) return false;
    const KeepRate choice = keep_rate_;
    return choice == KeepRate::yes ||
           (choice == KeepRate::automatic && live && on_late_ != OnLate::block);
}

GstClockTime LiveSettings::longest_hold(GstClockTime frame_duration) const {
    return GST_CLOCK_TIME_IS_VALID(started_.latency) ? started_.latency : frame_duration;
}

}  // namespace vartml::gst::infer
