// SPDX-License-Identifier: Apache-2.0
// What one inference left behind, in memory: the runtime fills it, the writer of raw stats buffers
// and the reports read it. Times are CLOCK_MONOTONIC in nanoseconds.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace vartml::profiling {

// In a counter: not captured.
inline constexpr uint64_t not_captured = std::numeric_limits<uint64_t>::max();

struct Stamp {
    uint64_t start = 0, end = 0;  // 0, 0: not executed
};

inline constexpr size_t max_pmu_events = 8;

struct PmuEvent {
    uint32_t perf_type = 0;
    int32_t status = 0;  // 0, or the errno of the refusal
    uint64_t config = 0;
    std::string name;  // at most 47 bytes
};

struct PmuCount {
    uint64_t enabled_ns = 0, running_ns = 0;
    std::array<uint64_t, max_pmu_events> values{};  // not_captured where refused or multiplexed
};

// A thread of a core's team. `ops`, `pcycles_of_ops` and `pmu_of_ops` are in the order of the
// group's operators in the descriptor and empty where the level does not ask for them, or where the
// thread has no stamps of its own.
struct ThreadCapture {
    uint16_t core = 0, thread = 0, group = 0, engine = 0;
    uint32_t os_tid = 0;
    bool is_stamped = true;  // operators are stamped on the thread itself
    uint64_t start = 0, end = 0;
    uint64_t pcycles = not_captured, activate_ns = not_captured, cpu_ns = not_captured;
    std::vector<Stamp> ops;
    std::vector<uint64_t> pcycles_of_ops;
    std::vector<std::array<uint64_t, max_pmu_events>> pmu_of_ops;
    PmuCount pmu;
};

inline constexpr uint16_t input_port = 100, output_port = 101;

struct PortWait {
    uint16_t core = 0, thread = 0, port = input_port;
    bool is_output = false;
    uint32_t count = 0;
    uint64_t wait_ns = 0;
};

struct Doorbell {
    uint16_t core = 0, port = input_port;
    uint32_t sequence = 0;
    uint64_t at = 0;
};

// A hand-over between partitions.
struct Semaphore {
    uint16_t core = 0, thread = 0;
    uint32_t semaphore = 0;
    uint64_t start = 0, end = 0;
};

struct MemoryTraffic {
    uint16_t core = 0;
    bool is_measured = false;
    uint64_t read_bytes = 0, write_bytes = 0;
};

// Stages of a job on the host: [0] call entered, [1] queued, [2] taken by the dispatcher, [3] input
// conversion done, [4] before the doorbell, [5] taken by the core, [6] completion seen, [7] output
// conversion done, [8] wait released or callback returned.
using HostStamps = std::array<uint64_t, 9>;

struct FrameRecord {
    uint32_t batch_slot = 0, stream_index = 0;
    uint64_t frame_number = 0;
    int64_t pts_ns = -1;
    uint64_t flow_id = 0;
};

struct StreamName {
    uint32_t index = 0;
    std::string id;
};

struct NotCaptured {
    std::string field, reason;
};

// Names of what may be absent, in NotCaptured::field and in reports.
namespace field {
inline constexpr const char* cpu_time = "cpu time";
inline constexpr const char* pcycles = "pcycles";
inline constexpr const char* ddr = "ddr";
inline constexpr const char* pmu = "pmu";
inline constexpr const char* port_waits = "port waits";
inline constexpr const char* output_wait = "output wait";
inline constexpr const char* doorbells = "doorbells";
inline constexpr const char* hand_overs = "hand-overs";
inline constexpr const char* operators = "operators";
inline constexpr const char* unlisted_operators = "operators outside the descriptor";
inline constexpr const char* later_frames = "operators of later frames";
inline constexpr const char* pcycles_of_operators = "pcycles of operators";
inline constexpr const char* pmu_of_operators = "pmu of operators";
inline constexpr const char* host_stamps = "host stamps";
inline constexpr const char* released = "release of the wait";
inline constexpr const char* frames = "frames";
}  // namespace field

struct Capture {
    uint32_t program_index = 0, activation_index = 0;
    uint64_t inference_index = 0;  // of this activation, saved or not
    uint32_t device_index = 0;
    uint16_t captured_level = 0;
    uint32_t core_count = 1;
    bool is_first_of_core = false;
    uint64_t begin_ns = 0, end_ns = 0;  // of the capture: the two anchors
    uint64_t record_count = 0, lost_records = 0, record_cost_ps = 0;

    std::vector<ThreadCapture> threads;
    std::vector<PmuEvent> pmu_events;
    std::vector<PortWait> ports;
    std::vector<Doorbell> doorbells;
    std::vector<Semaphore> semaphores;
    std::vector<MemoryTraffic> traffic;
    bool has_host = false;
    HostStamps host{};
    // Of the latency file; not in the raw buffer.
    uint32_t queue_depth = 0, jobs_in_queue = 0;
    uint64_t bytes_copied = 0;
    std::vector<FrameRecord> frames;
    std::vector<StreamName> streams;
    std::vector<NotCaptured> missing;
};

// Of a runner: a std::shared_ptr<CaptureSink>.
inline constexpr const char* capture_sink_option = "vartml_capture_sink";

// The first two of a job's three numbers, program / activation / inference.
struct ActivationNumbers {
    uint32_t program = 0, activation = 0;
};

// Decides which inferences are captured, and gets them.
// Thread-safety: called by the threads of the runtime, several at once.
class CaptureSink {
public:
    virtual ~CaptureSink() = default;
    // The level at which inference `inference_index` is captured; 0: not at all. What the model was
    // not compiled for is left out and listed as missing. Called in the order of the calls, before
    // the inference is queued and with a lock held: it does not call the runner.
    virtual unsigned level_of(uint64_t inference_index) noexcept = 0;
    // Called once per captured inference that succeeded, after wait() was released or the callback
    // returned and on that thread, in any order; with a runner's end for jobs that nobody waited
    // for. `capture` is valid during the call, its memory is used again. No lock is held.
    virtual void take(const Capture& capture) noexcept = 0;
    // Asked once, when the runner is made: stands in its captures and in the host trace. nullopt:
    // the runner's own, which no other in the process has.
    virtual std::optional<ActivationNumbers> numbers() const noexcept {
        return ActivationNumbers{};
    }
};

}  // namespace vartml::profiling
