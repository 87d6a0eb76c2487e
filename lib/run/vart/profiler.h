// SPDX-License-Identifier: Apache-2.0
// What the jobs of a runner leave behind for whoever asked: the sink of the option
// "vartml_capture_sink".
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vartml/profile.h>

#include "lib/graph/graph.h"
#include "lib/run/exec/device.h"
#include "lib/run/exec/step_recorder.h"
#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"
#include "lib/trace/pmu.h"

namespace vartml::runtime {

// Where the stamps of a device's steps belong: groups and operators of the descriptor.

// A stamped program and what kind of partition it is.
struct ProfiledPartition {
    device::StampedProgram program;
    bool is_cpu = false;
};

// Thread-safety: immutable.
class OperatorMap {
public:
    static constexpr int32_t none = -1;

    struct Partition {
        uint16_t group = 0;
        int32_t sync = none;              // index of its sync in the group
        std::vector<int32_t> op_of_step;  // index in the group, or none
    };
    struct Group {
        uint16_t engine = 0;
        size_t num_ops = 0;
        std::vector<bool> has_barrier;  // per operator: the next one is its barrier
    };

    // Partitions in the order of execution. Without a descriptor, or with one below
    // level_operators, there are groups and no operators.
    OperatorMap(const std::vector<ProfiledPartition>& partitions,
                const profiling::Descriptor* descriptor);

    const std::vector<Partition>& partitions() const { return partitions_; }
    const std::vector<Group>& groups() const { return groups_; }
    // Steps whose operator the descriptor does not list; "" = none. A sentence.
    const std::string& unknown() const { return unknown_; }

private:
    void add_groups(const profiling::Descriptor& descriptor);
    Partition place(const ProfiledPartition& partition, const profiling::Descriptor& descriptor);

    std::vector<Partition> partitions_;
    std::vector<Group> groups_;
    std::string unknown_;
};

// Bytes that the operators of a model read and write, computed from the sizes of their tensors.

struct Traffic {
    uint64_t read_bytes = 0, write_bytes = 0;
};

// Of `batch` frames through the graph; constants are read once for all of them. For models whose
// descriptor lists no operators.
Traffic traffic_of(const graph::Graph& graph, uint64_t batch);

// Of all operators that the descriptor lists.
Traffic traffic_of(const profiling::Descriptor& descriptor);

class JobTrace;

// What a job writes while it goes through the runtime; used again by later ones.
class Recording {
public:
    // Index into HostStamps.
    enum Stage : size_t {
        entered,
        queued,
        taken,
        inputs_converted,
        doorbell,
        started,
        completed,
        outputs_converted,
        released
    };

    Recording(const std::vector<ProfiledPartition>& partitions, unsigned helpers);

    void stamp(Stage stage) { host[stage] = profiling::monotonic_ns(); }
    std::span<device::StepRecorder* const> recorders() const { return pointers_; }

    // The frames that the call is of; empty: not known.
    std::span<const TraceFrame> frames_of_call() const { return frame_keys; }

    unsigned level = 0;                        // that capture is filled for
    unsigned sink_level = 0, trace_level = 0;  // 0: does not ask
    uint64_t index = 0;
    std::vector<TraceFrame> frame_keys;
    profiling::HostStamps host{};
    uint32_t jobs_in_queue = 0;
    unsigned core = 0;
    bool is_first_of_core = false;
    uint64_t core_ready = 0;  // when the core had nothing to do any more
    uint64_t bytes_copied = 0;
    size_t turns = 0;  // groups of frames that went through the program

    // Of fill_capture(), with memory that stays.
    profiling::Capture capture;
    std::vector<profiling::ThreadCapture> spare_threads;
    std::vector<int32_t> thread_at;  // by group and row: index into capture.threads, or -1
    std::vector<uint64_t> complete_at, group_idle_since;
    uint64_t missing_kind = 0;  // what capture.missing was made for

private:
    std::vector<std::unique_ptr<device::StepRecorder>> recorders_;
    std::vector<device::StepRecorder*> pointers_;
};

struct ProfilerSetup {
    std::shared_ptr<profiling::CaptureSink> sink;             // null: nobody asks
    std::shared_ptr<const profiling::Descriptor> descriptor;  // null: the model has none
    std::string descriptor_fault;                             // or one that cannot be read: why
    profiling::Pmu pmu;                                       // of the descriptor
    bool has_traffic = false;
    Traffic traffic;  // of an inference
    unsigned compiled_level = 0;
    std::vector<ProfiledPartition> partitions;  // that leave stamps, in the order of execution
    unsigned threads = 1;                       // of the executor
    uint32_t queue_depth = 0;
    std::string network;  // where there is no descriptor
    profiling::ActivationNumbers numbers;
    uint64_t activated_at = 0;
    std::array<uint64_t, 2> activate_ns{};  // of the NPU's partitions, of the CPU's

    bool has_pmu() const { return !pmu.empty() && pmu.recipe != "HmxMacs"; }
};

// Thread-safety: all members may be called concurrently; core_* for a core only by whoever has it.
class Profiler {
public:
    explicit Profiler(ProfilerSetup setup);
    ~Profiler();

    // Somebody asks: the sink, or the open host trace.
    bool is_on() const;
    // The next inference of the runner, in the order of calls and on the thread of the call; null:
    // not captured. `entered` is when the call began. Calls the sink. Without memory the inference
    // is not captured, and the next capture counts what was lost.
    Recording* start(uint64_t entered) noexcept;
    // What the host trace shows: on the thread of the call, and on that of the run.
    void show_queued(const Recording& recording) const noexcept;
    void show_completed(const Recording& recording) const noexcept;
    // The core takes a job, and has run it; null: it is not captured.
    void core_takes(unsigned core, Recording& recording);
    void core_is_done(unsigned core, const Recording* recording);
    // Makes the capture, hands it to the sink and takes the recording back. Not with a lock held.
    void deliver(Recording& recording) noexcept;
    // Takes back the recording of a job that failed.
    void drop(Recording& recording) noexcept;

private:
    struct alignas(64) Core {
        uint64_t ready = 0;
        bool has_run = false;
    };

    Recording* take_free();
    void prepare(Recording& recording, uint64_t entered) const;
    void lose() noexcept;

    const ProfilerSetup setup_;
    const OperatorMap map_;
    const std::unique_ptr<JobTrace> trace_;
    uint64_t record_cost_ps_ = 0;
    std::atomic<uint64_t> next_index_{0};
    std::vector<Core> cores_;
    std::mutex mutex_;  // guards what follows; a leaf lock
    std::vector<std::unique_ptr<Recording>> all_;
    std::vector<Recording*> free_;  // room for all
    uint64_t lost_ = 0;             // records of captures that found no memory since the last one
};

}  // namespace vartml::runtime
