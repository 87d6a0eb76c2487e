// SPDX-License-Identifier: Apache-2.0
// The latency file: one row of times per sampled inference, as CSV behind four header lines.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/trace/capture.h"

namespace vartml::profiling {

// From the first start to the last end of a thread; absent without thread records.
struct Execution {
    uint64_t begin_ns = 0, end_ns = 0;
    double us() const { return static_cast<double>(end_ns - begin_ns) / 1000.0; }
};
std::optional<Execution> execution_of(const Capture& capture);

// The longest wait on a port of that direction; absent without port records.
std::optional<double> longest_wait_us(const Capture& capture, bool is_output);

struct LatencyHeader {
    uint32_t program_index = 0;
    std::string network;
    uint64_t samples_requested = 0;  // of all activations
    uint32_t stats_batchsize = 1;
};

// What was not captured is N/A.
std::string latency_text(const LatencyHeader& header, std::span<const Capture> samples);

}  // namespace vartml::profiling
