// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/hud.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <limits>

#include "gst/metadata/inference.h"

namespace vartml::gst::overlay {
namespace {

constexpr int64_t second_us = 1'000'000, refresh_us = 500'000;
constexpr Rgba ground = {0, 0, 0, 170};

}  // namespace

void Hud::Window::add(uint64_t value) {
    values[count++ % values.size()] =
        static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

uint32_t Hud::Window::percentile_95() const {
    if (!count) return 0;
    std::array<uint32_t, 256> sorted = values;
    const size_t n = size(), rank = (n * 95 + 99) / 100 - 1;  // nearest rank
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank),
                     sorted.begin() + static_cast<ptrdiff_t>(n));
    return sorted[rank];
}

double Hud::Window::mean() const {
    double sum = 0;
    for (size_t i = 0; i < size(); ++i) sum += values[i];
    return count ? sum / static_cast<double>(size()) : 0;
}

void Hud::count(GstBuffer* buffer, int64_t now_us) {
    if (num_times_ == times_.size()) {
        first_ = (first_ + 1) % times_.size();
        --num_times_;
    }
    times_[(first_ + num_times_++) % times_.size()] = now_us;
    while (num_times_ > 1 && times_[first_] < now_us - second_us) {
        first_ = (first_ + 1) % times_.size();
        --num_times_;
    }
    count_inferences(buffer);
    if (num_lines_ && now_us - worded_us_ < refresh_us) return;
    worded_us_ = now_us;
    word();
}

void Hud::count_inferences(GstBuffer* buffer) {
    unsigned index = 0;
    bool inferred = false;
    while (const Inference* inference = get_inference(buffer, index)) {
        ++index;
        if (inference->record && !inference->record->model.empty()) {
            g_strlcpy(model_.data(), inference->record->model.c_str(), model_.size());
        }
        if (!inference->has_result()) continue;
        const bool carried = inference->status == InferenceStatus::carried;
        age_us_.add(inference->age_ns / 1000);
        total_us_.add(inference->total_us);
        // They are counted up; tiles of a frame have one each.
        if (carried && inference->result_id <= last_result_) continue;
        last_result_ = inference->result_id;
        inferred = true;
        run_us_.add(inference->run_us);
    }
    if (index) skipped_.add(inferred ? 0 : 1);
}

double Hud::frames_per_second() const {
    if (num_times_ < 2) return 0;
    const int64_t span = times_[(first_ + num_times_ - 1) % times_.size()] - times_[first_];
    return span > 0 ? static_cast<double>((num_times_ - 1) * second_us) / static_cast<double>(span)
                    : 0;
}

void Hud::add_line(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_vsnprintf(lines_[num_lines_].data(), static_cast<gulong>(lines_[num_lines_].size()), format,
                arguments);
    va_end(arguments);
    ++num_lines_;
}

// Whole numbers only: printf's point depends on the locale.
void Hud::word() {
    num_lines_ = 0;
    if (model_[0]) add_line("%s", model_.data());
    const long tenths = std::lround(frames_per_second() * 10);
    if (tenths) add_line("%ld.%ld frames/s", tenths / 10, tenths % 10);
    if (total_us_.count) {
        const auto total = (total_us_.percentile_95() + 50) / 100;
        const auto run = (run_us_.percentile_95() + 50) / 100;
        add_line("latency %u.%u ms, inference %u.%u ms (p95)", total / 10, total % 10, run / 10,
                 run % 10);
    }
    if (const auto age = age_us_.percentile_95() / 1000) add_line("results %u ms old (p95)", age);
    if (skipped_.count) add_line("%ld %% skipped", std::lround(skipped_.mean() * 100));
}

int Hud::add_to(Scene& scene, Text& text) const {
    const int padding = label_padding(text.line_height());
    const int height = text.line_height() + padding / 2;
    int width = 0, y = 0;
    for (unsigned i = 0; i < num_lines_; ++i) width = std::max(width, text.width(line(i)));
    for (unsigned i = 0; i < num_lines_; ++i, y += height) {
        const std::string_view words = line(i);
        scene.labels.push_back(
            {{0, y, width + 2 * padding, height}, ground, scene.chars.size(), words.size()});
        scene.chars += words;
    }
    return y;
}

}  // namespace vartml::gst::overlay
