// SPDX-License-Identifier: Apache-2.0
// Events into the ring of the calling thread.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
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
#include "lib/trace/writer.h"

namespace vartml::profiling {

// What the calling thread has of the open trace.

// Its ring; nullptr: no trace is open.
TraceRing* this_threads_ring() noexcept;
// Later than all it gave on this thread before.
uint64_t rising_ns() noexcept;
// No other thread's, below 2^53.
uint64_t next_id() noexcept;

// The frames of each stream: numbers by order of first sight of a time stamp, where their arrows
// are.

// Thread-safety: all may be called concurrently. A known frame is found without a lock.
uint32_t stream_index(std::string_view id);
std::string stream_id(uint32_t index);
FrameKey frame_key(uint32_t stream, int64_t pts_ns, bool is_source, bool is_restart);
// `lane_bit` is one bit that stands for the slice's lane.
FrameArrow frame_arrow(FrameKey key, uint64_t start_ns, bool at_sink, uint64_t lane_bit);
uint64_t frame_start_ns(FrameKey key);

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
