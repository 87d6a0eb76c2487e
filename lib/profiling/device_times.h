// SPDX-License-Identifier: Apache-2.0
// Times of one inference on the device, and their statistics over many.
#pragma once
#include <cstdint>
#include <optional>

#include "lib/profiling/capture.h"

namespace vartml::profiling {

// From the first start to the last end of a thread; absent without thread records.
struct Execution {
    uint64_t begin_ns = 0, end_ns = 0;
    double us() const { return static_cast<double>(end_ns - begin_ns) / 1000.0; }
};
std::optional<Execution> execution_of(const Capture& capture);

// The longest wait on a port of that direction; absent without port records.
std::optional<double> longest_wait_us(const Capture& capture, bool is_output);

// Of values that arrive one after another; nothing is kept of them.
class RunningStats {
public:
    void add(double value);
    void add(const RunningStats& other);
    uint64_t count() const { return count_; }
    double mean() const { return mean_; }
    double min() const { return min_; }
    double max() const { return max_; }
    double deviation() const;  // of the population

private:
    uint64_t count_ = 0;
    double mean_ = 0, squares_ = 0, min_ = 0, max_ = 0;
};

struct DeviceStats {
    RunningStats execution_us, input_wait_us, output_wait_us;
    void add(const Capture& capture);
    void add(const DeviceStats& other);
};

}  // namespace vartml::profiling
