// SPDX-License-Identifier: Apache-2.0
// Events into the ring of the calling thread.
#include "lib/profiling/host/host_trace.h"

#include <algorithm>
#include <array>

#include "lib/profiling/clock.h"
#include "lib/profiling/host/build.h"
#include "lib/profiling/host/frames.h"
#include "lib/profiling/host/lanes.h"

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

uint32_t HostTrace::stream_index(std::string_view id) {
    return profiling::stream_index(id);
}
std::string HostTrace::stream_id(uint32_t index) {
    return profiling::stream_id(index);
}

FrameKey HostTrace::frame_key(uint32_t stream, int64_t pts_ns, bool is_source,
                              bool is_restart) noexcept {
    if (!is_open()) return {};
    return profiling::frame_key(stream, pts_ns, is_source, is_restart);
}

TraceFrame HostTrace::frame(uint32_t stream, int64_t pts_ns, uint64_t frame_seq) noexcept {
    const FrameKey key = is_open() ? profiling::frame_key(stream, pts_ns, false, false)
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
