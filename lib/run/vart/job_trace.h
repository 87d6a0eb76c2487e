// SPDX-License-Identifier: Apache-2.0
// A runner's jobs in the open host trace: stages on the host, the wait in the queue, the execution
// on its core and the operators.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <vartml/profile.h>

#include "lib/run/vart/profiler.h"

namespace vartml::runtime {

// The flags of a trace that jobs have events for.
inline constexpr uint32_t job_trace_flags =
    trace_flag::runs | trace_flag::ops | trace_flag::queues | trace_flag::copies;

// Thread-safety: all members may be called concurrently.
class JobTrace {
public:
    explicit JobTrace(const ProfilerSetup& setup);

    // The level of captures that the open trace needs; 0: none.
    static unsigned level();

    // On the thread that made the call, when the job was queued.
    void queued(const Recording& recording) const noexcept;
    // On the thread that ran the job, when its outputs are there.
    void completed(const Recording& recording) const noexcept;
    // The device's part, when the capture is filled for level().
    void device(const Recording& recording, uint32_t flags) noexcept;

private:
    struct Op {
        TraceText kind, name, partition;
        bool is_shown = true;  // barriers are not
    };
    struct Group {
        TraceCategory category = TraceCategory::npu;
        std::string engine;
        std::vector<Op> ops;
    };

    TraceArg job_key(const Recording& recording) const;
    TraceLane lane(const Recording& recording, uint32_t number) const;
    void host(const Recording& recording, TraceText name, Recording::Stage from,
              Recording::Stage to) const noexcept;
    void name_lanes();
    void operators(const Recording& recording, uint16_t group) const noexcept;

    const ProfilerSetup& setup_;
    const std::string network_;
    std::vector<Group> groups_;
    std::vector<TraceText> executions_;  // by core
    std::once_flag named_;
};

}  // namespace vartml::runtime
