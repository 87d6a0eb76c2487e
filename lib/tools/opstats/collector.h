// SPDX-License-Identifier: Apache-2.0
// Collects captures of one activation: which inferences, at which level, and how many are kept.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "lib/trace/capture.h"
#include "lib/trace/clock.h"

namespace vartml::profiling {

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

struct CollectorOptions {
    uint32_t program_index = 0, activation_index = 0;
    unsigned level = 0;          // of the samples
    unsigned level_of_rest = 0;  // of what follows them
    uint64_t num_samples = 0;  // the first ones are kept; later ones count in the statistics alone
    uint64_t every = 1;        // every n-th inference
    uint64_t duration_ns = 0;  // end of profiling after its begin; 0 = none
    uint64_t (*clock)() = monotonic_ns;
};

// Thread-safety: all members may be called by several threads at once.
class Collector final : public CaptureSink {
public:
    explicit Collector(const CollectorOptions& options) : options_(options) {}

    // Profiling begins, or begins again after end(), with the inference `first_index` of the
    // activation; nothing before is captured. Call it before that one is submitted.
    void begin(uint64_t first_index);
    // Nothing submitted from now on is captured.
    void end();

    unsigned level_of(uint64_t inference_index) noexcept override;
    void take(const Capture& capture) noexcept override;
    std::optional<ActivationNumbers> numbers() const noexcept override {
        return ActivationNumbers{options_.program_index, options_.activation_index};
    }

    // Captures that were asked for and did not arrive within that time.
    uint64_t wait_for_captures(std::chrono::milliseconds limit);
    // The samples by inference, with program and activation. Moves them out.
    std::vector<Capture> samples();
    DeviceStats device() const;
    bool out_of_memory() const { return out_of_memory_.load(std::memory_order_relaxed); }

private:
    static constexpr uint64_t never = std::numeric_limits<uint64_t>::max();
    // Whether it is one of those to keep.
    bool is_sample(uint64_t inference_index, uint64_t first) const;

    const CollectorOptions options_;
    std::atomic<uint64_t> first_{never};  // where profiling began
    std::atomic<bool> ended_{false};
    std::atomic<uint64_t> end_ns_{never};
    std::atomic<uint64_t> asked_{0};
    std::atomic<bool> out_of_memory_{false};
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable arrived_;
    uint64_t taken_ = 0;
    std::vector<Capture> samples_;
    DeviceStats device_;
};

}  // namespace vartml::profiling
