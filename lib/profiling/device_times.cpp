// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/device_times.h"

#include <algorithm>
#include <cmath>

namespace vartml::profiling {

std::optional<Execution> execution_of(const Capture& capture) {
    std::optional<Execution> execution;
    for (const ThreadCapture& thread : capture.threads) {
        if (thread.end == 0 || thread.end < thread.start) continue;
        if (!execution) execution = Execution{thread.start, thread.end};
        execution->begin_ns = std::min(execution->begin_ns, thread.start);
        execution->end_ns = std::max(execution->end_ns, thread.end);
    }
    return execution;
}

std::optional<double> longest_wait_us(const Capture& capture, bool is_output) {
    std::optional<double> longest;
    for (const PortWait& port : capture.ports)
        if (port.is_output == is_output && port.wait_ns != not_captured)
            longest = std::max(longest.value_or(0), static_cast<double>(port.wait_ns) / 1000.0);
    return longest;
}

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

}  // namespace vartml::profiling
