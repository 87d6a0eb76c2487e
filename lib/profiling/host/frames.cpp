// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/host/frames.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace vartml::profiling {
namespace {

constexpr uint64_t remembered = 4096;
constexpr uint32_t max_streams = 8192;  // flow ids stay below 2^53

struct Frame {
    std::atomic<uint64_t> number{FrameKey::none}, lanes{0}, start_ns{0};
};

// The frame with number n is at n % remembered. Slots are filled under the mutex, in order.
struct Frames {
    std::array<std::atomic<int64_t>, remembered> pts{};
    std::array<Frame, remembered> frames;
    std::atomic<uint64_t> next{0};
    std::atomic<int64_t> latest_pts{-1};
    std::mutex mutex;  // a leaf
};

struct Stream {
    explicit Stream(std::string_view text) : id(text) {}
    const std::string id;
    std::atomic<Frames*> frames{nullptr};  // made with the first key, kept
    std::mutex mutex;                      // of making them
};

// Streams stay until the process ends: whoever has an index may use it.
struct Streams {
    std::mutex mutex;  // guards by_id and the order of the rest; a leaf
    std::map<std::string, uint32_t, std::less<>> by_id;
    std::array<std::atomic<Stream*>, max_streams> all{};
};

Streams& streams() {
    static Streams* const kept = new Streams;
    return *kept;
}

Stream* stream_at(uint32_t index) {
    return index < max_streams ? streams().all[index].load(std::memory_order_acquire) : nullptr;
}

Frames* frames_of(Stream& stream) {
    if (Frames* const frames = stream.frames.load(std::memory_order_acquire)) return frames;
    const std::lock_guard lock(stream.mutex);
    Frames* frames = stream.frames.load(std::memory_order_acquire);
    if (!frames) stream.frames.store(frames = new Frames, std::memory_order_release);
    return frames;
}

// The newest frame with that time stamp; none: not among those remembered.
uint64_t find(const Frames& f, int64_t pts) {
    if (pts > f.latest_pts.load(std::memory_order_acquire)) return FrameKey::none;
    const uint64_t next = f.next.load(std::memory_order_acquire);
    const uint64_t oldest = next > remembered ? next - remembered : 0;
    for (uint64_t n = next; n-- > oldest;) {
        if (f.pts[n % remembered].load(std::memory_order_relaxed) != pts) continue;
        // A frame that is just being added stands where its predecessor was.
        if (f.frames[n % remembered].number.load(std::memory_order_acquire) == n) return n;
    }
    return FrameKey::none;
}

uint64_t add(Frames& f, int64_t pts) {
    const uint64_t n = f.next.load(std::memory_order_relaxed);
    Frame& frame = f.frames[n % remembered];
    frame.number.store(FrameKey::none, std::memory_order_release);
    frame.lanes.store(0, std::memory_order_relaxed);
    frame.start_ns.store(0, std::memory_order_relaxed);
    f.pts[n % remembered].store(pts, std::memory_order_relaxed);
    frame.number.store(n, std::memory_order_release);
    f.next.store(n + 1, std::memory_order_release);
    if (pts > f.latest_pts.load(std::memory_order_relaxed))
        f.latest_pts.store(pts, std::memory_order_release);
    return n;
}

Frame* frame_of(FrameKey key) {
    Stream* const stream = key ? stream_at(key.stream()) : nullptr;
    Frames* const frames = stream ? stream->frames.load(std::memory_order_acquire) : nullptr;
    if (!frames) return nullptr;
    Frame& frame = frames->frames[key.number() % remembered];
    return frame.number.load(std::memory_order_acquire) == key.number() ? &frame : nullptr;
}

}  // namespace

uint32_t stream_index(std::string_view id) {
    Streams& s = streams();
    const std::lock_guard lock(s.mutex);
    if (const auto known = s.by_id.find(id); known != s.by_id.end()) return known->second;
    // Past the last index, streams share it and nothing is kept of them: a service that connects
    // again and again has new ones for ever.
    if (s.by_id.size() >= max_streams) return max_streams - 1;
    const auto index = static_cast<uint32_t>(s.by_id.size());
    s.all[index].store(new Stream(id), std::memory_order_release);
    s.by_id.emplace(id, index);
    return index;
}

std::string stream_id(uint32_t index) {
    const Stream* const stream = stream_at(index);
    return stream ? stream->id : std::string();
}

FrameKey frame_key(uint32_t index, int64_t pts, bool is_source, bool is_restart) {
    Stream* const stream = stream_at(index);
    if (!stream || pts < 0) return {};
    Frames& frames = *frames_of(*stream);
    // At the source a stamp comes again after a seek: another frame.
    const auto is_same = [&](uint64_t n) {
        if (n == FrameKey::none || !is_source) return n != FrameKey::none;
        return !is_restart && n + 1 == frames.next.load(std::memory_order_relaxed);
    };
    uint64_t number = find(frames, pts);
    if (!is_same(number)) {
        const std::lock_guard lock(frames.mutex);
        number = find(frames, pts);
        if (!is_same(number)) number = add(frames, pts);
    }
    return FrameKey(index, number);
}

FrameArrow frame_arrow(FrameKey key, uint64_t start_ns, bool at_sink, uint64_t lane_bit) {
    Frame* const frame = frame_of(key);
    if (!frame) return FrameArrow::none;
    // A frame that begins in a sink has nothing to be joined with.
    if (at_sink)
        return frame->lanes.load(std::memory_order_acquire) ? FrameArrow::end : FrameArrow::none;
    const uint64_t before = frame->lanes.fetch_or(lane_bit, std::memory_order_acq_rel);
    if (before == 0) {
        frame->start_ns.store(start_ns, std::memory_order_release);
        return FrameArrow::begin;
    }
    return before & lane_bit ? FrameArrow::none : FrameArrow::step;
}

uint64_t frame_start_ns(FrameKey key) {
    const Frame* const frame = frame_of(key);
    return frame ? frame->start_ns.load(std::memory_order_acquire) : 0;
}

}  // namespace vartml::profiling
