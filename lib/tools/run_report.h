// SPDX-License-Identifier: Apache-2.0
// What `vartml run` measured, as console text and JSON, and what recording costs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/tools/opstats/collector.h"

namespace vartml::tools {

inline constexpr size_t least_overhead_pairs = 20;
inline constexpr double overhead_budget_percent = 2;

// The two order statistics around the median that hold it with at least 95 %, whatever the
// distribution: binomial tails of a fair coin. With fewer than 6 values the least and the largest.
struct MedianInterval {
    double median = 0, low = 0, high = 0;
};
MedianInterval median_interval(std::vector<double> values);

enum class OverheadVerdict { met, exceeded, inconclusive };

struct Overhead {
    unsigned level = 0;
    size_t pairs = 0;
    MedianInterval percent;
    double budget_percent = overhead_budget_percent;
    // Inconclusive where the interval spans the budget.
    OverheadVerdict verdict() const;
};

// "profiling overhead level 50: +0.4 % (median of 20 pairs, 95 % interval -0.1..+0.9), budget 2 %:
// met"
std::string overhead_text(const Overhead& overhead);

struct RunMeasurement {
    std::vector<double> round_trip_us;  // one per run, submission to completion
    double total_us = 0;
    uint64_t batch_size = 1;
    unsigned activations = 1, in_flight = 1, most_in_flight = 1;
    uint64_t bytes_copied = 0, conversions = 0;  // of all runs
    double cpu_seconds = 0;
    uint64_t peak_rss_bytes = 0;
    std::optional<double> joules;  // of the processors' packages, while it was measured
    std::string no_energy;         // why there are none
    std::string model, compute_type, backend, view;

    profiling::DeviceStats device;  // of the inferences that were recorded
    // Why there is none of it, and the way out.
    std::string no_execution, no_waits;
    std::string verdict;  // lines "# verdict…"

    std::string processor, version, onednn_version;
    unsigned threads = 0;
};

struct Summary {
    double mean = 0, min = 0, p50 = 0, p75 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0, deviation = 0;
};
// Percentiles by the nearest rank; `values` must not be empty.
Summary summarise(std::vector<double> values);

double inferences_per_second(const RunMeasurement& m);
std::string console_text(const RunMeasurement& m);

// Machine, versions, and the figures twice: as rows that `vartml diff` compares, and by name.
std::string json_text(const RunMeasurement& m);

// Of a run that measured what recording costs; of `m` machine, versions and model count.
std::string json_text(const RunMeasurement& m, const Overhead& overhead);

}  // namespace vartml::tools
