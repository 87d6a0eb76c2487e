// SPDX-License-Identifier: Apache-2.0
// The arguments of slices of a trace. What was not captured is left out, never 0.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/profiling/trace/trace_team.h"

namespace vartml::profiling {

// What all slices of one buffer have in common.
struct JobArgs {
    uint64_t ucycle_hz = 0;
    std::string job_key;             // "P/A/I"
    std::vector<uint64_t> flow_ids;  // of its frames
    std::string frames;              // as a JSON array; empty: none
    std::vector<std::string> pmu;    // names of the counters
};
JobArgs job_args(const BufferFile& buffer, uint64_t ucycle_hz);

// Members of the args of an operator's slice. `sync_ns`: how long its threads waited for each other
// at its end.
std::string op_args(const Descriptor& descriptor, const Op& op, const TeamInstance& instance,
                    const JobArgs& job, std::optional<uint64_t> sync_ns);

// Members of the args of Core-<M>-Execution: totals of the inference on this core.
Result<std::string> execution_args(const BufferFile& buffer, uint16_t core, const JobArgs& job);

}  // namespace vartml::profiling
