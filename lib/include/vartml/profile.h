// SPDX-License-Identifier: Apache-2.0
// The host trace: one time line of pipeline, host and device, written as a file for Perfetto.
#pragma once
#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vartml/result.h>

namespace vartml {
namespace profiling {
class TraceSession;
}

/// What a trace records. Who emits an event tests the flag that it belongs to.
namespace trace_flag {
inline constexpr uint32_t frames = 1;       ///< element spans and frame arrows
inline constexpr uint32_t runs = 2;         ///< host stages and Core-<M>-Execution
inline constexpr uint32_t ops = 4;          ///< operators of NPU and CPU partitions
inline constexpr uint32_t queues = 8;       ///< waits between two threads, as async pairs
inline constexpr uint32_t copies = 16;      ///< instants with bytes and reason
inline constexpr uint32_t allocs = 32;      ///< instants with bytes and reason
inline constexpr uint32_t timeline = 31;    ///< all but allocs
inline constexpr uint32_t all = 63;         ///< every kind of event
inline constexpr uint32_t open = 1U << 31;  ///< set by HostTrace while a trace is open
}  // namespace trace_flag

/// `cat` of an event.
enum class TraceCategory : uint8_t { gst, queue, host, npu, cpu, frame, meta };

/// Text that outlives every trace: a literal, or what intern() keeps.
class TraceText {
public:
    /// Literals only.
    consteval TraceText(const char* literal) : text_(literal) {}
    /// Keeps one copy of each text until the process ends. Takes a lock and may allocate: for names
    /// that are known when something is set up. Thread-safety: may be called concurrently.
    static TraceText intern(std::string_view text);
    const char* c_str() const { return text_; }
    bool operator==(const TraceText&) const = default;

private:
    struct Kept {};
    TraceText(Kept, const char* text) : text_(text) {}
    const char* text_;
};

/// A frame in the trace: flow id = stream index · 2^40 + frame number.
struct FrameKey {
    static constexpr uint64_t none = ~uint64_t{0};
    uint64_t flow_id = none;

    constexpr FrameKey() = default;
    constexpr explicit FrameKey(uint64_t id) : flow_id(id) {}
    constexpr FrameKey(uint32_t stream, uint64_t number)
        : flow_id((uint64_t{stream} << 40) | (number & ((uint64_t{1} << 40) - 1))) {}
    constexpr explicit operator bool() const { return flow_id != none; }
    constexpr uint32_t stream() const { return static_cast<uint32_t>(flow_id >> 40); }
    constexpr uint64_t number() const { return flow_id & ((uint64_t{1} << 40) - 1); }
    bool operator==(const FrameKey&) const = default;
};

/// One who handles frames of a stream: while such a handle is there, the stream has its index,
/// which all handles of the same id share. Afterwards the index stays the stream's until 64 others
/// have ended, then a new stream gets it: a process whose cameras connect again and again takes no
/// more memory for it. Where 8191 streams are there at once, more have none, and their frames no
/// key.
///
/// Thread-safety: as a value's; two handles of one stream may be used concurrently.
class TraceStream {
public:
    static constexpr uint32_t none = 8191;
    TraceStream() noexcept = default;
    /// Takes a lock and may allocate.
    explicit TraceStream(std::string_view stream_id);
    TraceStream(TraceStream&& other) noexcept : index_(std::exchange(other.index_, none)) {}
    TraceStream& operator=(TraceStream&& other) noexcept {
        std::swap(index_, other.index_);
        return *this;
    }
    ~TraceStream();
    uint32_t index() const { return index_; }

private:
    uint32_t index_ = none;
};

/// What an inference is of. `key` is the trace's, `frame_seq` counts the frames that reached the
/// element that infers; they differ where frames were dropped before it.
struct TraceFrame {
    static constexpr uint64_t no_seq = ~uint64_t{0};
    FrameKey key;
    uint64_t frame_seq = no_seq;
    int64_t pts_ns = -1;  ///< -1: none
};

/// One member of `args`. Values are numbers or text; a value that is not known is left out.
struct TraceArg {
    /// How the value is written.
    enum class Kind : uint8_t {
        integer,
        natural,
        number,        ///< a double; left out where it is not finite
        text,          ///< a TraceText
        copied,        ///< text that is copied into the event
        microseconds,  ///< of nanoseconds, with three decimals
        frame,         ///< a flow id, written "<stream>:<number>"
        job,           ///< written "<program>/<activation>/<inference>"
    };
    TraceText key;
    Kind kind;
    uint32_t size = 0;   ///< of copied text
    uint64_t value = 0;  ///< bits of the number, pointer to the text

    template <std::integral T>
    constexpr TraceArg(TraceText k, T v)
        : key(k),
          kind(std::is_signed_v<T> ? Kind::integer : Kind::natural),
          value(static_cast<uint64_t>(v)) {}
    TraceArg(TraceText k, double v)
        : key(k), kind(Kind::number), value(std::bit_cast<uint64_t>(v)) {}
    TraceArg(TraceText k, TraceText v)
        : key(k), kind(Kind::text), value(reinterpret_cast<uintptr_t>(v.c_str())) {}
    TraceArg(TraceText k, FrameKey v) : key(k), kind(Kind::frame), value(v.flow_id) {}
    /// Text of any origin, at most 256 bytes of it; borrowed for the call.
    static TraceArg copy(TraceText key, std::string_view text) {
        return {key, Kind::copied, static_cast<uint32_t>(text.size() < 256 ? text.size() : 256),
                reinterpret_cast<uintptr_t>(text.data())};
    }
    /// A duration.
    static TraceArg us(TraceText key, uint64_t ns) { return {key, Kind::microseconds, 0, ns}; }
    /// A job's number: program and activation below 2^12, inference below 2^40.
    static TraceArg job(TraceText key, uint32_t program, uint32_t activation, uint64_t inference) {
        return {key, Kind::job, 0,
                (uint64_t{program & 0xFFF} << 52) | (uint64_t{activation & 0xFFF} << 40) |
                    (inference & ((uint64_t{1} << 40) - 1))};
    }

private:
    TraceArg(TraceText k, Kind what, uint32_t bytes, uint64_t v)
        : key(k), kind(what), size(bytes), value(v) {}
};

/// Where an event stands. The default is the calling thread.
struct TraceLane {
    uint32_t pid = 0, tid = 0;

    /// A lane of a device: numbers above those of threads, which Linux keeps below 2^22.
    /// Requires device < 64, core < 256, lane < 4096.
    static constexpr TraceLane of_device(uint32_t device, uint32_t core, uint32_t lane) {
        const uint32_t pid = (1U << 30) + (device << 24);
        return {pid, pid + 1 + (core << 12) + lane};
    }
    bool operator==(const TraceLane&) const = default;
};

/// A frame's arrow at a slice: its first slice begins it, the first one on each other lane
/// continues it, each sink ends it.
enum class FrameArrow : uint8_t { none, begin, step, end };

/// A slice, an instant or one end of an async pair. `args` and `frames` are borrowed for the call;
/// at most 15 arguments and 64 frames are taken.
struct TraceEvent {
    TraceCategory category = TraceCategory::host;
    TraceText name;
    TraceLane lane = {};
    std::span<const TraceArg> args = {};
    std::span<const TraceFrame> frames = {};  ///< `frame` and `frameSeq` in args
    /// Of a slice, one per frame: what HostTrace::arrow() said at its start. Without, slice() asks:
    /// right for slices that are recorded later than those of the threads before them.
    const FrameArrow* arrows = nullptr;
};

/// How a trace is recorded.
struct HostTraceOptions {
    uint32_t flags = trace_flag::timeline;
    /// Size of the file after which recording stops with one event that says so; 0: no limit.
    uint64_t max_bytes = 0;
    /// Size of each thread's ring, rounded up to a power of two, 16 KiB at least; 0: 256 KiB.
    uint32_t ring_kb = 0;
    /// "<field>: <reason>" of what cannot be in this trace; stands in the header.
    std::vector<std::string> not_captured = {};
};

/// What became of the events of a trace.
struct HostTraceTotals {
    uint64_t written = 0;  ///< events in the file
    uint64_t lost = 0;     ///< rings that were full
    uint64_t bytes = 0;    ///< of the file
    bool is_full = false;  ///< recording stopped at max_bytes, or because of a write error
};

/// The trace of this process: an array of JSON events, first `vartml_capture`, so that a file that
/// a crash cut off can still be read. Each thread records into a ring of its own, without locks,
/// and without allocations after the thread's first event; one thread writes the file, four times a
/// second at least. A full ring loses events and counts them; recording never waits.
///
/// A handle joins the trace that is open: the first open() decides path and sizes, the flags of all
/// that are open add up, and the last handle to go closes the file. A process that ends without
/// closing it closes it in std::exit().
///
/// Thread-safety: static members may be called concurrently, a handle by one thread at a time.
class HostTrace {
public:
    /// Creates the file, replacing what is there, or joins the open trace.
    /// Errors: io or not_found naming the path; invalid_argument for flags without a known one.
    static Result<HostTrace> open(const std::string& path, const HostTraceOptions& options = {});
    HostTrace(HostTrace&& other) noexcept;
    HostTrace& operator=(HostTrace&& other) noexcept;
    ~HostTrace();  ///< close()

    /// Leaves the trace; the last one writes what is in the rings and ends the file.
    void close();
    /// Writes what the rings hold now.
    void flush();
    HostTraceTotals totals() const;
    /// Of the file that is written, which for who joined is not the path it gave.
    const std::string& path() const;

    static bool is_open() noexcept { return flags() != 0; }
    /// Flags of the open trace and trace_flag::open; 0 without one. One relaxed load.
    static uint32_t flags() noexcept;
    /// CLOCK_MONOTONIC.
    static uint64_t now_ns() noexcept;
    /// now_ns(), and later than every other result on this thread, so that slices nest.
    static uint64_t stamp_ns() noexcept;

    // ---- events: without an open trace they do nothing; stamps are of CLOCK_MONOTONIC ----

    /// A complete slice. Slices of one lane nest or are disjoint; an enclosed one starts 1 ns later
    /// at least. One that takes no time is written with 1 ns.
    static void slice(const TraceEvent& event, uint64_t start_ns, uint64_t end_ns) noexcept;
    static void instant(const TraceEvent& event, uint64_t at_ns) noexcept;
    /// An async pair has equal category, name and id; the ends may come from different threads.
    static void async_begin(const TraceEvent& event, uint64_t id, uint64_t at_ns) noexcept;
    static void async_end(const TraceEvent& event, uint64_t id, uint64_t at_ns) noexcept;
    /// An id for an async pair that nobody else has, below 2^53.
    static uint64_t async_id() noexcept;
    /// Names a lane and the process that it is shown in, in any trace that gets events on it. Takes
    /// a lock and may allocate. Threads and their process are named by themselves.
    static void name_lane(TraceLane lane, std::string_view process, std::string_view thread,
                          int sort_index = 0);

    // ---- frames ----

    /// The id of a stream (TraceStream) into `id`, which keeps its memory; empty for an index that
    /// none has. Takes a lock.
    static void stream_id(uint32_t stream_index, std::string& id);
    /// Key of the frame with this time stamp in the stream; one that was not among the last 4096 is
    /// a new frame. `is_source`: the frame leaves its source now, so that an older one of the same
    /// stamp is another frame, and with `is_restart` (after a seek) the newest one too. Without PTS
    /// (-1) or without a trace: no key.
    static FrameKey frame_key(uint32_t stream_index, int64_t pts_ns, bool is_source = false,
                              bool is_restart = false) noexcept;
    /// The same for an element that counts frames: without a trace the key's number is `frame_seq`.
    static TraceFrame frame(uint32_t stream_index, int64_t pts_ns, uint64_t frame_seq) noexcept;
    /// What the arrow of the frame does at a slice that starts now; asked once per slice, at its
    /// start. None without a key, without trace_flag::frames, or for a frame too long ago.
    static FrameArrow arrow(FrameKey key, uint64_t start_ns, bool at_sink = false,
                            TraceLane lane = {}) noexcept;
    /// Start of the frame's first slice; 0 where none was recorded or it is too long ago.
    static uint64_t frame_start_ns(FrameKey key) noexcept;

private:
    HostTrace(std::shared_ptr<profiling::TraceSession> session, uint32_t flags);
    std::shared_ptr<profiling::TraceSession> session_;
    uint32_t flags_ = 0;
};

/// A slice on the calling thread from construction to end() or destruction. Costs one relaxed load
/// where none of `flags` is recorded.
class Span {
public:
    Span(uint32_t flags, TraceCategory category, TraceText name) noexcept
        : category_(category), name_(name) {
        if (HostTrace::flags() & flags) start_ns_ = HostTrace::stamp_ns();
    }
    ~Span() {
        if (start_ns_) end();
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

    bool is_recording() const { return start_ns_ != 0; }
    /// Adds an argument; more than six are left out. Copied text is borrowed until the end.
    Span& arg(const TraceArg& argument) noexcept {
        if (start_ns_ && num_args_ < max_args) args_[num_args_++] = {argument};
        return *this;
    }
    /// The frames that it is of, 16 at most; borrowed until the end. Call it at the start.
    Span& frames(std::span<const TraceFrame> frames) noexcept {
        if (start_ns_) take_frames(frames);
        return *this;
    }
    /// Ends it now. It is not recorded again.
    void end() noexcept;
    /// Nothing is recorded.
    void cancel() noexcept { start_ns_ = 0; }

private:
    static constexpr unsigned max_args = 6, max_frames = 16;
    void take_frames(std::span<const TraceFrame> frames) noexcept;
    union Slot {  // not initialised without a trace
        Slot() {}
        Slot(const TraceArg& a) : arg(a) {}
        TraceArg arg;
    };
    uint64_t start_ns_ = 0;
    TraceCategory category_;
    uint8_t num_args_ = 0;
    TraceText name_;
    std::span<const TraceFrame> frames_;
    Slot args_[max_args];
    FrameArrow arrows_[max_frames];
};

/// Says which frames the next `execute` or `execute_async` on this thread is of, in the order of
/// the batch. The frames are borrowed while it lives; scopes nest.
class FrameScope {
public:
    explicit FrameScope(std::span<const TraceFrame> frames) noexcept;
    ~FrameScope();
    FrameScope(const FrameScope&) = delete;
    FrameScope& operator=(const FrameScope&) = delete;

    /// For the runtime: the frames of the calling thread's innermost scope, once; empty for none.
    static std::span<const TraceFrame> take() noexcept;

private:
    std::span<const TraceFrame> frames_;
    FrameScope* outer_;
};

/// Runs that the calling thread asks for while one lives are warm-ups: a capture sink, such as the
/// runner option `ai_analyzer_profiling`, neither records nor counts them. Scopes nest.
class WarmUpScope {
public:
    WarmUpScope() noexcept;
    ~WarmUpScope();
    WarmUpScope(const WarmUpScope&) = delete;
    WarmUpScope& operator=(const WarmUpScope&) = delete;

    /// For the runtime: one lives on the calling thread.
    static bool is_open() noexcept;
};

namespace profile_detail {
extern std::atomic<uint32_t> trace_flags;
}
inline uint32_t HostTrace::flags() noexcept {
    return profile_detail::trace_flags.load(std::memory_order_relaxed);
}

}  // namespace vartml
