// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/job_trace.h"

#include <algorithm>

namespace vartml::runtime {
namespace {

using profiling::Capture;
using profiling::Descriptor;
using profiling::not_captured;
using profiling::Stamp;

}  // namespace

JobTrace::JobTrace(const ProfilerSetup& setup)
    : setup_(setup), network_(setup.descriptor ? setup.descriptor->network : setup.network) {
    for (unsigned core = 0; core < setup.threads; ++core)
        executions_.push_back(TraceText::intern("Core-" + std::to_string(core) + "-Execution"));
    if (!setup.descriptor || setup.descriptor->cores.empty()) return;
    const Descriptor& d = *setup.descriptor;
    for (const profiling::Group& group : d.cores[0].groups) {
        Group& own = groups_.emplace_back();
        own.engine = group.engine < d.engines.size() ? d.engines[group.engine] : std::string();
        if (own.engine == profiling::cpu_engine) own.category = TraceCategory::cpu;
        for (const profiling::Op& op : group.ops)
            own.ops.push_back(
                {TraceText::intern(d.kind(op)), TraceText::intern(op.name),
                 TraceText::intern(op.partition < d.partitions.size() ? d.partitions[op.partition]
                                                                      : std::string()),
                 !d.is_barrier(op)});
    }
}

unsigned JobTrace::level() {
    const uint32_t flags = HostTrace::flags();
    if (flags & trace_flag::ops) return profiling::level_operators;
    return flags & job_trace_flags ? profiling::level_inference : 0;
}

TraceArg JobTrace::job_key(const Recording& recording) const {
    return TraceArg::job("jobKey", setup_.numbers.program, setup_.numbers.activation,
                         recording.index);
}

TraceLane JobTrace::lane(const Recording& recording, uint32_t number) const {
    return TraceLane::of_device(0, recording.core, number);
}

void JobTrace::name_lanes() {
    for (unsigned core = 0; core < setup_.threads; ++core) {
        const std::string name = network_ + "_Core_" + std::to_string(core);
        const auto lane_of = [core](size_t n) {
            return TraceLane::of_device(0, core, static_cast<uint32_t>(n));
        };
        HostTrace::name_lane(lane_of(0), "device 0", name, static_cast<int>(core * 64));
        for (size_t g = 0; g < groups_.size(); ++g)
            HostTrace::name_lane(lane_of(1 + g), "device 0", name + '_' + groups_[g].engine,
                                 static_cast<int>(core * 64 + 1 + g));
    }
}

// ---- on the host
// ----------------------------------------------------------------------------------

void JobTrace::host(const Recording& recording, TraceText name, Recording::Stage from,
                    Recording::Stage to) const noexcept {
    const TraceArg args[] = {job_key(recording)};
    HostTrace::slice({.category = TraceCategory::host,
                      .name = name,
                      .args = args,
                      .frames = recording.frames_of_call()},
                     recording.host[from], recording.host[to]);
}

void JobTrace::queued(const Recording& recording) const noexcept {
    if (HostTrace::flags() & trace_flag::runs)
        host(recording, "enqueue", Recording::entered, Recording::queued);
}

void JobTrace::completed(const Recording& recording) const noexcept {
    const uint32_t flags = HostTrace::flags();
    if (flags & trace_flag::runs) {
        host(recording, "pre-process", Recording::taken, Recording::inputs_converted);
        host(recording, "submit", Recording::inputs_converted, Recording::doorbell);
        host(recording, "post-process", Recording::completed, Recording::outputs_converted);
    }
    if (flags & trace_flag::queues) {
        const TraceArg args[] = {job_key(recording),
                                 TraceArg("numInfInQueue", recording.jobs_in_queue)};
        const TraceEvent event{.category = TraceCategory::queue,
                               .name = "queue wait",
                               .args = args,
                               .frames = recording.frames_of_call()};
        const uint64_t id = HostTrace::async_id();
        HostTrace::async_begin(event, id, recording.host[Recording::queued]);
        HostTrace::async_end(event, id, recording.host[Recording::taken]);
    }
    if ((flags & trace_flag::copies) && recording.bytes_copied > 0) {
        const TraceArg args[] = {job_key(recording), TraceArg("bytes", recording.bytes_copied),
                                 TraceArg("reason", TraceText("conversion of CPU views"))};
        HostTrace::instant({.category = TraceCategory::host, .name = "copy", .args = args},
                           recording.host[Recording::outputs_converted]);
    }
}

// ---- on the device
// ----------------------------------------------------------------------------------

void JobTrace::device(const Recording& recording, uint32_t flags) noexcept {
    if (!(flags & (trace_flag::runs | trace_flag::ops))) return;
    try {
        std::call_once(named_, [this] { name_lanes(); });
    } catch (...) {  // no memory for names: lanes have numbers
    }
    const Capture& capture = recording.capture;
    if (flags & trace_flag::runs) {
        uint64_t start = not_captured, end = 0;
        for (const auto& thread : capture.threads) {
            start = std::min(start, thread.start);
            end = std::max(end, thread.end);
        }
        const TraceArg args[] = {job_key(recording)};
        if (start < end)
            HostTrace::slice({.category = TraceCategory::npu,
                              .name = executions_[recording.core],
                              .lane = lane(recording, 0),
                              .args = args,
                              .frames = recording.frames_of_call()},
                             start, end);
    }
    if (!(flags & trace_flag::ops)) return;
    for (uint16_t g = 0; g < groups_.size(); ++g) operators(recording, g);
}

// The threads of a group in one lane: an operator lasts from its first start to its last end.
void JobTrace::operators(const Recording& recording, uint16_t group) const noexcept {
    const Group& own = groups_[group];
    for (size_t o = 0; o < own.ops.size(); ++o) {
        const Op& op = own.ops[o];
        if (!op.is_shown) continue;
        Stamp all;
        for (const auto& thread : recording.capture.threads) {
            if (thread.group != group || o >= thread.ops.size() || thread.ops[o].end == 0) continue;
            const Stamp& stamp = thread.ops[o];
            all.start = all.end == 0 ? stamp.start : std::min(all.start, stamp.start);
            all.end = std::max(all.end, stamp.end);
        }
        if (all.end == 0) continue;
        const TraceArg args[] = {job_key(recording), TraceArg("opName", op.name),
                                 TraceArg("partition", op.partition)};
        HostTrace::slice({.category = own.category,
                          .name = op.kind,
                          .lane = lane(recording, 1U + group),
                          .args = args},
                         all.start, all.end);
    }
}

}  // namespace vartml::runtime
