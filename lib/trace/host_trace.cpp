// SPDX-License-Identifier: Apache-2.0
// Events into the ring of the calling thread.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <vartml/profile.h>

#include "lib/trace/clock.h"
#include "lib/trace/ring.h"
#include "lib/trace/sessions.h"
#include "lib/trace/streams.h"
#include "lib/trace/writer.h"

namespace vartml::profiling {

// What the calling thread has of the open trace.

// Its ring; nullptr: no trace is open.
TraceRing* this_threads_ring() noexcept;
// Later than all it gave on this thread before.
uint64_t rising_ns() noexcept;
// No other thread's, below 2^53.
uint64_t next_id() noexcept;

}  // namespace vartml::profiling

namespace vartml {

namespace {

void record(char phase, const TraceEvent& event, uint64_t at_ns, uint64_t extra) noexcept {
    profiling::TraceRing* const ring = profiling::this_threads_ring();
    if (!ring) return;
    const size_t size = profiling::record_bytes(event);
    std::byte* const place = ring->reserve(size);
    if (!place) return;
    profiling::build_record(place, size, phase, event, at_ns, extra);
    ring->commit();
}

// Threads share the lower 48 bits, lanes of devices the rest.
uint64_t bit_of(TraceLane lane) noexcept {
    if (lane.tid) return uint64_t{1} << (48 + lane.tid % 16);
    const profiling::TraceRing* const ring = profiling::this_threads_ring();
    return ring ? uint64_t{1} << (ring->ordinal % 48) : 1;
}

}  // namespace

uint64_t HostTrace::now_ns() noexcept {
    return profiling::monotonic_ns();
}
uint64_t HostTrace::stamp_ns() noexcept {
    return profiling::rising_ns();
}

void HostTrace::slice(const TraceEvent& event, uint64_t start_ns, uint64_t end_ns) noexcept {
    const uint32_t set = flags();
    if (!set) return;
    const uint64_t duration_ns = end_ns > start_ns ? end_ns - start_ns : 1;
    if (event.arrows || event.frames.empty() || !(set & trace_flag::frames))
        return record('X', event, start_ns, duration_ns);
    std::array<FrameArrow, profiling::max_record_frames> arrows;
    TraceEvent with = event;
    with.arrows = arrows.data();
    const auto frames = profiling::frames_of(event);
    std::ranges::transform(frames, arrows.begin(), [&](const TraceFrame& frame) {
        return arrow(frame.key, start_ns, false, event.lane);
    });
    record('X', with, start_ns, duration_ns);
}

void HostTrace::instant(const TraceEvent& event, uint64_t at_ns) noexcept {
    if (is_open()) record('i', event, at_ns, 0);
}

void HostTrace::async_begin(const TraceEvent& event, uint64_t id, uint64_t at_ns) noexcept {
    if (is_open()) record('b', event, at_ns, id);
}

void HostTrace::async_end(const TraceEvent& event, uint64_t id, uint64_t at_ns) noexcept {
    if (is_open()) record('e', event, at_ns, id);
}

uint64_t HostTrace::async_id() noexcept {
    return profiling::next_id();
}

void HostTrace::name_lane(TraceLane lane, std::string_view process, std::string_view thread,
                          int sort_index) {
    profiling::name_lane(lane, process, thread, sort_index);
}

void HostTrace::stream_id(uint32_t index, std::string& id) {
    profiling::stream_id(index, id);
}

FrameKey HostTrace::frame_key(uint32_t stream, int64_t pts_ns, bool is_source,
                              bool is_restart) noexcept {
    if (!is_open()) return {};
    return profiling::frame_key(stream, pts_ns, is_source, is_restart);
}

TraceFrame HostTrace::frame(uint32_t stream, int64_t pts_ns, uint64_t frame_seq) noexcept {
    const FrameKey key = is_open() ? profiling::frame_key(stream, pts_ns, false, false)
                         : stream == TraceStream::none ? FrameKey()
                                                       : FrameKey(stream, frame_seq);
    return {key, frame_seq, pts_ns};
}

FrameArrow HostTrace::arrow(FrameKey key, uint64_t start_ns, bool at_sink,
                            TraceLane lane) noexcept {
    if (!key || !(flags() & trace_flag::frames)) return FrameArrow::none;
    return profiling::frame_arrow(key, start_ns, at_sink, bit_of(lane));
}

uint64_t HostTrace::frame_start_ns(FrameKey key) noexcept {
    return profiling::frame_start_ns(key);
}

void Span::take_frames(std::span<const TraceFrame> frames) noexcept {
    frames_ = frames.first(std::min<size_t>(frames.size(), max_frames));
    for (size_t i = 0; i < frames_.size(); ++i)
        arrows_[i] = HostTrace::arrow(frames_[i].key, start_ns_);
}

void Span::end() noexcept {
    const uint64_t start_ns = start_ns_;
    start_ns_ = 0;
    if (!start_ns) return;
    HostTrace::slice({.category = category_,
                      .name = name_,
                      .args = {&args_[0].arg, num_args_},
                      .frames = frames_,
                      .arrows = arrows_},
                     start_ns, HostTrace::stamp_ns());
}

}  // namespace vartml

namespace vartml::profiling {

// What a thread keeps of the trace it records into.
namespace {

// Without constructor and destructor, so that it can be used until the thread is gone.
struct OwnRing {
    TraceRing* ring;
    uint64_t generation;  // of the trace it belongs to
    uint64_t latest_ns;
    uint32_t ordinal;  // of the thread, from 1; 0: it has none yet
    uint32_t ids;      // that it gave
    bool is_over;      // the thread is ending
};
constinit thread_local OwnRing own{};

// Keeps the ring, and tells the writer when the thread ends.
struct RingOwner {
    std::shared_ptr<TraceRing> ring;
    RingOwner() = default;
    RingOwner(const RingOwner&) = delete;
    ~RingOwner() {
        own.is_over = true;
        own.ring = nullptr;
        if (ring) ring->retire();
    }
};

TraceRing* join_trace() noexcept {
    static thread_local RingOwner owner;
    if (own.is_over) return nullptr;
    try {
        const auto [ring, generation] = new_ring();
        if (owner.ring) owner.ring->retire();
        owner.ring = ring;
        own.ring = ring.get();
        own.generation = generation;
    } catch (...) {  // no memory: tried again with the next event
        own.ring = nullptr;
    }
    return own.ring;
}

}  // namespace

TraceRing* this_threads_ring() noexcept {
    if (own.generation == trace_generation.load(std::memory_order_relaxed)) return own.ring;
    return join_trace();
}

uint64_t rising_ns() noexcept {
    own.latest_ns = std::max(monotonic_ns(), own.latest_ns + 1);
    return own.latest_ns;
}

uint64_t next_id() noexcept {
    static constinit std::atomic<uint32_t> threads{0};
    if (own.ordinal == 0) own.ordinal = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return uint64_t{own.ordinal & 0x1FFFFF} << 32 | own.ids++;
}

}  // namespace vartml::profiling

namespace vartml {

// Which frames the next run on this thread is of.
namespace {

constinit thread_local FrameScope* innermost = nullptr;

}  // namespace

FrameScope::FrameScope(std::span<const TraceFrame> frames) noexcept
    : frames_(frames), outer_(std::exchange(innermost, this)) {}
FrameScope::~FrameScope() {
    innermost = outer_;
}

std::span<const TraceFrame> FrameScope::take() noexcept {
    if (!innermost) return {};
    return std::exchange(innermost->frames_, {});
}

namespace {
thread_local unsigned open_warm_ups = 0;
}

WarmUpScope::WarmUpScope() noexcept {
    ++open_warm_ups;
}
WarmUpScope::~WarmUpScope() {
    --open_warm_ups;
}
bool WarmUpScope::is_open() noexcept {
    return open_warm_ups > 0;
}

// Texts that are kept for good.

TraceText TraceText::intern(std::string_view text) {
    struct Texts {
        std::mutex mutex;  // a leaf
        std::set<std::string, std::less<>> all;
    };
    static Texts* const kept = new Texts;
    const std::lock_guard lock(kept->mutex);
    auto known = kept->all.find(text);
    if (known == kept->all.end()) known = kept->all.emplace(text).first;
    return {Kept{}, known->c_str()};
}

}  // namespace vartml
