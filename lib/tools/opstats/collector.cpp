// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/collector.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "lib/trace/latency_file.h"

namespace vartml::profiling {

// Welford's recurrence: the mean of squares minus the square of the mean loses all digits of a
// small deviation.
void RunningStats::add(double value) {
    min_ = count_ ? std::min(min_, value) : value;
    max_ = count_ ? std::max(max_, value) : value;
    ++count_;
    const double distance = value - mean_;
    mean_ += distance / static_cast<double>(count_);
    squares_ += distance * (value - mean_);
}

void RunningStats::add(const RunningStats& other) {
    if (other.count_ == 0) return;
    if (count_ == 0) {
        *this = other;
        return;
    }
    const auto a = static_cast<double>(count_), b = static_cast<double>(other.count_);
    const double distance = other.mean_ - mean_;
    mean_ += distance * b / (a + b);
    squares_ += other.squares_ + distance * distance * a * b / (a + b);
    count_ += other.count_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

double RunningStats::deviation() const {
    return count_ ? std::sqrt(squares_ / static_cast<double>(count_)) : 0;
}

void DeviceStats::add(const Capture& capture) {
    if (const auto execution = execution_of(capture)) execution_us.add(execution->us());
    if (const auto wait = longest_wait_us(capture, false)) input_wait_us.add(*wait);
    if (const auto wait = longest_wait_us(capture, true)) output_wait_us.add(*wait);
}

void DeviceStats::add(const DeviceStats& other) {
    execution_us.add(other.execution_us);
    input_wait_us.add(other.input_wait_us);
    output_wait_us.add(other.output_wait_us);
}

void Collector::begin(uint64_t first_index) {
    if (options_.duration_ns > 0) end_ns_ = options_.clock() + options_.duration_ns;
    ended_.store(false, std::memory_order_relaxed);
    first_.store(first_index, std::memory_order_release);
}

void Collector::end() {
    ended_.store(true, std::memory_order_release);
}

bool Collector::is_sample(uint64_t inference_index, uint64_t first) const {
    return (inference_index - first) / options_.every < options_.num_samples;
}

unsigned Collector::level_of(uint64_t inference_index) noexcept {
    const uint64_t first = first_.load(std::memory_order_acquire);
    if (inference_index < first || ended_.load(std::memory_order_acquire)) return 0;
    if ((inference_index - first) % options_.every != 0) return 0;
    const uint64_t end = end_ns_.load(std::memory_order_relaxed);
    if (end != never && options_.clock() >= end) return 0;
    const unsigned level =
        is_sample(inference_index, first) ? options_.level : options_.level_of_rest;
    if (level > 0) asked_.fetch_add(1, std::memory_order_relaxed);
    return level;
}

void Collector::take(const Capture& capture) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        device_.add(capture);
        if (is_sample(capture.inference_index, first_.load(std::memory_order_relaxed))) {
            Capture& sample = samples_.emplace_back(capture);
            sample.program_index = options_.program_index;
            sample.activation_index = options_.activation_index;
        }
    } catch (const std::bad_alloc&) {
        out_of_memory_ = true;
    }
    ++taken_;
    arrived_.notify_all();
}

uint64_t Collector::wait_for_captures(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    const uint64_t asked = asked_.load();
    arrived_.wait_for(lock, limit, [&] { return taken_ >= asked; });
    return asked - std::min(asked, taken_);
}

std::vector<Capture> Collector::samples() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(samples_, {}, &Capture::inference_index);
    return std::exchange(samples_, {});
}

DeviceStats Collector::device() const {
    const std::lock_guard lock(mutex_);
    return device_;
}

}  // namespace vartml::profiling
