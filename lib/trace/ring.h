// SPDX-License-Identifier: Apache-2.0
// Events on their way from one thread to the writer of the trace: bounded, without locks, losing
// what does not fit.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>

#include <vartml/profile.h>

namespace vartml::profiling {

// One event in a thread's ring: a header, arguments, frames, copied text.

struct RecordStart {
    uint32_t size = 0;  // of the whole record, a multiple of 8
    char phase = 0;     // as in the file; 0: nothing follows, it fills the end of a ring
    uint8_t category = 0, num_args = 0, num_frames = 0;
};

struct RecordHeader : RecordStart {
    const char* name = nullptr;
    uint64_t at_ns = 0;
    uint64_t extra = 0;         // duration, or the id of an async pair
    uint32_t pid = 0, tid = 0;  // 0: the ring's thread
};

struct RecordArg {
    const char* key;
    uint64_t value;  // of copied text: nothing
    uint32_t kind, size;
};

// The arrow is in the highest byte of `seq`.
struct RecordFrame {
    uint64_t flow_id, seq;
};
inline constexpr uint64_t seq_mask = (uint64_t{1} << 56) - 1;

inline constexpr size_t max_record_args = 15, max_record_frames = 64;

// What follows a header, in the writer.
struct RecordView {
    const RecordHeader* header;
    std::span<const RecordArg> args;
    std::span<const RecordFrame> frames;
    const char* text;  // of the copied arguments, one after another

    explicit RecordView(const std::byte* record)
        : header(reinterpret_cast<const RecordHeader*>(record)),
          args(reinterpret_cast<const RecordArg*>(record + sizeof(RecordHeader)), header->num_args),
          frames(reinterpret_cast<const RecordFrame*>(args.data() + args.size()),
                 header->num_frames),
          text(reinterpret_cast<const char*>(frames.data() + frames.size())) {}
};

// Tells the writer that it should not wait longer.
class Doorbell {
public:
    void ring() {
        if (!rung_.exchange(true, std::memory_order_acq_rel)) semaphore_.release();
    }
    template <typename Duration>
    void wait(Duration longest) {
        if (semaphore_.try_acquire_for(longest)) rung_.store(false, std::memory_order_release);
    }

private:
    std::atomic<bool> rung_{false};
    std::binary_semaphore semaphore_{0};
};

// Thread-safety: one thread records, one other drains.
class TraceRing {
public:
    TraceRing(size_t size_bytes, uint32_t tid, std::string thread_name, uint32_t ordinal,
              std::shared_ptr<Doorbell> doorbell);

    const uint32_t tid;
    const uint32_t ordinal;  // of the ring in its trace
    const std::string thread_name;

    // ---- the thread ----

    // Room for a record, or nullptr when it is lost.
    std::byte* reserve(size_t bytes);
    void commit();
    void retire() { retired_.store(true, std::memory_order_release); }

    // ---- the writer ----

    // Calls `take` with each record that is there.
    template <typename Take>
    void drain(const Take& take) {
        const uint64_t head = head_.load(std::memory_order_acquire);
        uint64_t tail = tail_.load(std::memory_order_relaxed);
        while (tail != head) {
            const std::byte* const record = bytes_.get() + (tail & mask_);
            RecordStart start;
            std::memcpy(&start, record, sizeof start);
            if (start.phase != 0) take(record);
            tail += start.size;
            tail_.store(tail, std::memory_order_release);
        }
    }
    // Nothing comes any more; asked before a drain, true means that it was the last.
    bool is_retired() const { return retired_.load(std::memory_order_acquire); }
    uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

private:
    struct Release {
        void operator()(std::byte* bytes) const {
            ::operator delete[](bytes, std::align_val_t{64});
        }
    };
    const uint64_t mask_;
    const std::unique_ptr<std::byte[], Release> bytes_;
    const std::shared_ptr<Doorbell> doorbell_;

    // the thread's
    alignas(64) std::atomic<uint64_t> head_{0};
    uint64_t next_ = 0, known_tail_ = 0;
    std::atomic<uint64_t> lost_{0};
    std::atomic<bool> retired_{false};
    // the writer's
    alignas(64) std::atomic<uint64_t> tail_{0};
};

// Names of lanes that are no threads, kept for every trace of this process.

struct LaneName {
    std::string process, thread;
    int sort_index = 0;
};

// Thread-safety: may be called concurrently.
void name_lane(TraceLane lane, std::string_view process, std::string_view thread, int sort_index);
std::optional<LaneName> lane_name(TraceLane lane);

}  // namespace vartml::profiling
