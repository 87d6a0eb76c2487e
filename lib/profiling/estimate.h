// SPDX-License-Identifier: Apache-2.0
// Reads the static estimate of one NPU partition: a *_mla_stats.yaml, ours or another compiler's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::profiling {

struct EstimateLayer {
    uint64_t index = 0;  // its key in the file
    std::string name;
    uint64_t start_cycle = 0, end_cycle = 0;
    uint64_t cycles() const { return end_cycle - start_cycle + 1; }
};

struct Estimate {
    std::vector<EstimateLayer> layers;  // by index
    std::vector<std::string> warnings;  // sentences, each begins with `where`
};

// The two-level subset of YAML that such files are made of: an integer key per layer, below it
// name, start_cycle and end_cycle; comments, quoted names and any indentation. `where` begins each
// sentence. Gaps, overlaps and unknown keys are warnings. Errors: bad_model naming the line.
Result<Estimate> read_estimate(std::string_view text, const std::string& where);

}  // namespace vartml::profiling
