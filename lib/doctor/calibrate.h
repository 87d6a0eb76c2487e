// SPDX-License-Identifier: Apache-2.0
// Measures the peaks of this machine.
#pragma once
#include <functional>
#include <string>

#include "lib/doctor/peaks.h"

namespace vartml::doctor {

struct Workload {
    unsigned product_size = 2048;  // of the matrices
    size_t array_bytes = 0;        // of the triad; 0: four times the last-level cache
    unsigned repeats = 10;         // the best counts
};

// Best of `repeats` matrix products in f32, bf16 and int8 and of triads on `threads` threads. A
// type without instructions is absent; emulation is not measured. `progress` gets a line before
// each step. Errors: out_of_memory, device.
Result<Peaks> measure_peaks(unsigned threads, const Workload& workload,
                            const std::function<void(const std::string&)>& progress);

}  // namespace vartml::doctor
