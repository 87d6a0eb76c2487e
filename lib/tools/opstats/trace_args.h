// SPDX-License-Identifier: Apache-2.0
// The arguments of slices of a trace. What was not captured is left out, never 0.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

// The threads of one group of a core, and what they left of each operator.

// One operator on one or several threads of a group.
struct TeamInstance {
    uint64_t start_ns = 0, end_ns = 0;  // from the first start to the last end
    // Of the thread that took longest.
    uint64_t longest_start_ns = 0, longest_end_ns = 0;
    // Of the thread with most cycles, and its time.
    std::optional<uint64_t> pcycles;
    uint64_t pcycles_ns = 0;
    PmuRow pmu{};  // sums; not_captured where one of the threads lacks it

    uint64_t duration_ns() const { return std::max<uint64_t>(end_ns - start_ns, 1); }
};

class Member {
public:
    Member(const BufferFile& buffer, const format::ThreadRecord& thread)
        : buffer_(&buffer),
          thread_(&thread),
          stamps_(buffer.of_thread<Stamp>("OPTS", thread)),
          pcycles_(buffer.of_thread<uint64_t>("OPPC", thread)),
          pmu_(buffer.of_thread<PmuRow>("OPMU", thread)) {}

    const format::ThreadRecord& thread() const { return *thread_; }
    uint64_t size() const { return stamps_.size(); }
    // False: not executed, or a record that cannot be.
    bool times(uint64_t index, uint64_t& start_ns, uint64_t& end_ns);
    void add_to(TeamInstance& instance, uint64_t index, uint64_t start_ns, uint64_t end_ns);
    Result<void> status() const;

private:
    const BufferFile* buffer_;
    const format::ThreadRecord* thread_;
    Records<Stamp> stamps_;
    Records<uint64_t> pcycles_;
    Records<PmuRow> pmu_;
};

// The instance of operator `index` on these threads; absent where none executed it.
std::optional<TeamInstance> instance_of(std::span<Member> members, uint64_t index);

// The core of the descriptor that describes a core of a buffer; nullptr in a descriptor without.
const Core* core_of(const Descriptor& descriptor, uint16_t core);

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
