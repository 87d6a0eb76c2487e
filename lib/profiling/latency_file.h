// SPDX-License-Identifier: Apache-2.0
// The latency file: one row of times per sampled inference, as CSV behind four header lines.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "lib/profiling/capture.h"

namespace vartml::profiling {

struct LatencyHeader {
    uint32_t program_index = 0;
    std::string network;
    uint64_t samples_requested = 0;  // of all activations
    uint32_t stats_batchsize = 1;
};

// What was not captured is N/A.
std::string latency_text(const LatencyHeader& header, std::span<const Capture> samples);

}  // namespace vartml::profiling
