// SPDX-License-Identifier: Apache-2.0
// The frames inside an element, for how long they wait between the thread that brings and the one
// that takes them away.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include <vartml/profile.h>

namespace vartml::gst::trace {

// A frame that is forgotten because `capacity` others came after it has no wait in the trace.
// Thread-safety: all may be called concurrently; no locks, no allocations.
class Waits {
public:
    static constexpr size_t capacity = 512;

    // `thread` tells threads apart.
    void enter(FrameKey key, uint64_t at_ns, const void* thread) {
        Slot& slot = slot_of(key);
        slot.flow_id.store(FrameKey::none, std::memory_order_release);
        slot.at_ns.store(at_ns, std::memory_order_relaxed);
        slot.thread.store(thread, std::memory_order_relaxed);
        slot.flow_id.store(key.flow_id, std::memory_order_release);
    }
    // When the frame entered, if it was on another thread; once.
    std::optional<uint64_t> leave(FrameKey key, const void* thread) {
        Slot& slot = slot_of(key);
        if (slot.flow_id.load(std::memory_order_acquire) != key.flow_id) return std::nullopt;
        const uint64_t at_ns = slot.at_ns.load(std::memory_order_relaxed);
        const bool is_other = slot.thread.load(std::memory_order_relaxed) != thread;
        uint64_t mine = key.flow_id;
        if (!slot.flow_id.compare_exchange_strong(mine, FrameKey::none, std::memory_order_acq_rel))
            return std::nullopt;
        if (!is_other) return std::nullopt;
        return at_ns;
    }

private:
    struct Slot {
        std::atomic<uint64_t> flow_id{FrameKey::none}, at_ns{0};
        std::atomic<const void*> thread{nullptr};
    };
    Slot& slot_of(FrameKey key) { return slots_[(key.number() + key.stream() * 61) % capacity]; }
    std::array<Slot, capacity> slots_{};
};

}  // namespace vartml::gst::trace
