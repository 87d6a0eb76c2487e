// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/streams.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <string_view>
#include <utility>

namespace vartml {

namespace profiling {

namespace {

constexpr uint64_t remembered = 4096;
// Flow ids stay below 2^53.
constexpr uint32_t max_streams = TraceStream::none;
// Streams that have ended and still have their index: what is on its way from them names them.
constexpr uint32_t kept_ended = 64;

struct Frame {
    std::atomic<uint64_t> number{FrameKey::none}, lanes{0}, start_ns{0};
};

// The frame with number n is at n % remembered. Slots are filled under the mutex, in order.
struct Frames {
    std::array<std::atomic<int64_t>, remembered> pts{};
    std::array<Frame, remembered> frames;
    std::atomic<uint64_t> first{0}, next{0};  // numbers of the stream that has the index now
    std::atomic<int64_t> latest_pts{-1};
    std::mutex mutex;  // a leaf
};

// An index. It stays until the process ends: whoever has a key of it may use it.
struct Stream {
    const std::string* id = nullptr;  // in by_id
    uint32_t handles = 0;
    uint64_t end = 0;                      // of the last handle, counted in such ends
    std::atomic<Frames*> frames{nullptr};  // made with the first key, kept
    std::mutex mutex;                      // of making them
};

struct Streams {
    std::mutex mutex;  // guards all but the frames; before that of Frames
    std::map<std::string, uint32_t, std::less<>> by_id;
    uint32_t count = 0, without_handle = 0;
    uint64_t ends = 0;
    std::array<std::atomic<Stream*>, max_streams> all{};
};

Streams& streams() {
    static Streams* const kept = new Streams;
    return *kept;
}

Stream* stream_at(uint32_t index) {
    return index < max_streams ? streams().all[index].load(std::memory_order_acquire) : nullptr;
}

// The frames of the stream that had the index are none of the next one's: numbers go on, stamps are
// found no more.
void forget_frames(Stream& stream) {
    Frames* const frames = stream.frames.load(std::memory_order_acquire);
    if (!frames) return;
    const std::lock_guard lock(frames->mutex);
    frames->first.store(frames->next.load(std::memory_order_relaxed), std::memory_order_release);
    frames->latest_pts.store(-1, std::memory_order_release);
}

// With the mutex: that of which no handle is there for the longest time.
uint32_t longest_ended(const Streams& s) {
    const auto end = [](uint32_t index) {
        const Stream* const stream = stream_at(index);
        return stream->handles ? std::numeric_limits<uint64_t>::max() : stream->end;
    };
    return std::ranges::min(std::views::iota(0U, s.count), {}, end);
}

// With the mutex: the index of a stream that has none.
uint32_t add_stream(Streams& s, std::string_view id) {
    const bool is_full = s.count == max_streams;
    if (s.without_handle > (is_full ? 0 : kept_ended)) {
        std::string text(id);
        const uint32_t index = longest_ended(s);
        Stream& stream = *stream_at(index);
        auto named = s.by_id.extract(*stream.id);
        named.key() = std::move(text);
        stream.id = &s.by_id.insert(std::move(named)).position->first;
        forget_frames(stream);
        return index;
    }
    if (is_full) return TraceStream::none;
    auto stream = std::make_unique<Stream>();
    stream->id = &s.by_id.emplace(id, s.count).first->first;
    s.all[s.count].store(stream.release(), std::memory_order_release);
    ++s.without_handle;
    return s.count++;
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
    const uint64_t oldest = std::max(next > remembered ? next - remembered : 0,
                                     f.first.load(std::memory_order_acquire));
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

void stream_id(uint32_t index, std::string& id) {
    const std::lock_guard lock(streams().mutex);
    const Stream* const stream = stream_at(index);
    id.assign(stream ? std::string_view(*stream->id) : std::string_view());
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

}  // namespace profiling

TraceStream::TraceStream(std::string_view stream_id) {
    profiling::Streams& s = profiling::streams();
    const std::lock_guard lock(s.mutex);
    const auto known = s.by_id.find(stream_id);
    const uint32_t index =
        known == s.by_id.end() ? profiling::add_stream(s, stream_id) : known->second;
    if (index == none) return;
    if (profiling::stream_at(index)->handles++ == 0) --s.without_handle;
    index_ = index;
}

TraceStream::~TraceStream() {
    if (index_ == none) return;
    profiling::Streams& s = profiling::streams();
    const std::lock_guard lock(s.mutex);
    profiling::Stream& stream = *profiling::stream_at(index_);
    if (--stream.handles > 0) return;
    stream.end = ++s.ends;
    ++s.without_handle;
}

}  // namespace vartml
