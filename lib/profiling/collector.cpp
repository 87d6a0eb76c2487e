// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/collector.h"

#include <algorithm>
#include <new>
#include <utility>

namespace vartml::profiling {

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
