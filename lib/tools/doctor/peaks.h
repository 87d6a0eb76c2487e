// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, as `vartml doctor --calibrate` measured it: the yardstick of
// verdicts and benchmarks. Kept in the user's cache folder, one file per processor model, number of
// threads and oneDNN version.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include <vartml/result.h>

namespace vartml::doctor {

struct PeaksKey {
    std::string processor;  // model
    unsigned threads = 1;
    std::string onednn;  // version
    bool operator==(const PeaksKey&) const = default;
};
// Of this machine; 0 threads: as many as the runtime uses.
PeaksKey peaks_key(unsigned threads = 0);

struct Peaks {
    PeaksKey key;
    // Operations per second, a multiply-add is two; absent: no instructions for the type.
    std::optional<double> f32 = {}, bf16 = {}, int8 = {};
    double bytes_per_second = 0;
};
// Of "fp32", "bf16" or "int8"; absent also for other types.
std::optional<double> ops_per_second(const Peaks& peaks, const std::string& type);

// The file in `folder`; "" is the user's cache folder.
std::string peaks_path(const PeaksKey& key, const std::string& folder = {});
// Errors: not_found when nothing was measured yet (the sentence says how), bad_model for a damaged
// file or one of another key, io.
Result<Peaks> read_peaks(const PeaksKey& key, const std::string& folder = {});
// Leaves the old or the new file. Errors: io.
Result<void> write_peaks(const Peaks& peaks, const std::string& folder = {});

// Measures the peaks of this machine.

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
