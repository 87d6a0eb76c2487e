// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/ring.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace vartml::profiling {
namespace {

// Records are multiples of 8 bytes, so that what is left at the end holds at least a filler.
static_assert(sizeof(RecordStart) == 8);

size_t ring_bytes(size_t wanted) {
    return std::bit_ceil(std::max<size_t>(wanted, 16 * 1024));
}

}  // namespace

TraceRing::TraceRing(size_t size_bytes, uint32_t thread, std::string name, uint32_t number,
                     std::shared_ptr<Doorbell> doorbell)
    : tid(thread),
      ordinal(number),
      thread_name(std::move(name)),
      mask_(ring_bytes(size_bytes) - 1),
      bytes_(static_cast<std::byte*>(::operator new[](mask_ + 1, std::align_val_t{64}))),
      doorbell_(std::move(doorbell)) {}

std::byte* TraceRing::reserve(size_t bytes) {
    const uint64_t size = mask_ + 1;
    const uint64_t head = head_.load(std::memory_order_relaxed);
    const uint64_t to_end = size - (head & mask_);
    const uint64_t filler = bytes > to_end ? to_end : 0;
    const auto used = [&] { return head + filler + bytes - known_tail_; };
    // The writer is asked before the ring is full, and once per half of it.
    if (used() > size / 2) {
        known_tail_ = tail_.load(std::memory_order_acquire);
        if (used() > size / 2) doorbell_->ring();
        if (used() > size) {
            lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            return nullptr;
        }
    }
    if (filler) {
        const RecordStart gap{.size = static_cast<uint32_t>(filler)};
        std::memcpy(bytes_.get() + (head & mask_), &gap, sizeof gap);
    }
    next_ = head + filler + bytes;
    return bytes_.get() + ((head + filler) & mask_);
}

void TraceRing::commit() {
    head_.store(next_, std::memory_order_release);
}

namespace {

struct Lanes {
    std::mutex mutex;  // a leaf
    std::map<std::pair<uint32_t, uint32_t>, LaneName> names;
};

Lanes& lanes() {
    static Lanes* const kept = new Lanes;
    return *kept;
}

}  // namespace

void name_lane(TraceLane lane, std::string_view process, std::string_view thread, int sort_index) {
    const std::lock_guard lock(lanes().mutex);
    lanes().names.insert_or_assign({lane.pid, lane.tid},
                                   LaneName{std::string(process), std::string(thread), sort_index});
}

std::optional<LaneName> lane_name(TraceLane lane) {
    const std::lock_guard lock(lanes().mutex);
    const auto known = lanes().names.find({lane.pid, lane.tid});
    if (known == lanes().names.end()) return std::nullopt;
    return known->second;
}

}  // namespace vartml::profiling
