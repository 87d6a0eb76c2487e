// SPDX-License-Identifier: Apache-2.0
// What the tracer knows of elements, pads and streams, so that no hook on the way of a buffer asks
// GStreamer for it.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gst/gst.h>

#include <vartml/profile.h>

namespace vartml::gst::trace {

// Durations counted in buckets of at most 3 % width: percentiles without keeping the values.

// Thread-safety: add() may be called concurrently; no locks, no allocations.
class Histogram {
public:
    void add(uint64_t ns) {
        counts_[index(ns)].fetch_add(1, std::memory_order_relaxed);
        total_.fetch_add(1, std::memory_order_relaxed);
    }
    uint64_t count() const { return total_.load(std::memory_order_relaxed); }

    // The middle of the bucket in which the value with that share (0 to 1) of values below lies.
    uint64_t percentile(double share) const {
        uint64_t left = static_cast<uint64_t>(share * static_cast<double>(count()));
        for (unsigned i = 0; i < num_buckets; ++i) {
            const uint64_t here = counts_[i].load(std::memory_order_relaxed);
            if (here > left) return middle(i);
            left -= here;
        }
        return 0;
    }

private:
    // 32 buckets for each power of two, the first of one nanosecond each; the last ends at 2^43 ns.
    static constexpr unsigned steps_log2 = 5, steps = 1 << steps_log2, last_power = 42;
    static constexpr unsigned num_buckets = (last_power - steps_log2 + 2) * steps;

    static unsigned index(uint64_t ns) {
        if (ns < steps) return static_cast<unsigned>(ns);
        if (ns >> (last_power + 1)) return num_buckets - 1;
        const unsigned power = static_cast<unsigned>(std::bit_width(ns)) - 1;
        const unsigned step = (ns >> (power - steps_log2)) & (steps - 1);
        return (power - steps_log2 + 1) * steps + step;
    }
    static uint64_t middle(unsigned index) {
        if (index < steps) return index;
        const unsigned shift = index / steps - 1;
        const uint64_t low = static_cast<uint64_t>(steps + index % steps) << shift;
        return low + ((uint64_t{1} << shift) >> 1);
    }

    std::array<std::atomic<uint32_t>, num_buckets> counts_{};
    std::atomic<uint64_t> total_{0};
};

// What is known of an object, by its address: found without a lock, from any hook.

// An `Entry` is default-constructed and has reset(), which makes it like new. Entries stay in
// memory as long as the table: who looks one up while it is removed sees another object's values,
// never freed memory.
// Thread-safety: all may be called concurrently. The mutex is a leaf.
template <typename Entry>
class PointerTable {
public:
    ~PointerTable() {
        for (std::atomic<Node*>& head : heads_) {
            for (Node* n = head.load(); n;) delete std::exchange(n, n->next);
        }
    }

    Entry* find(const void* key) const {
        for (Node* n = heads_[slot(key)].load(std::memory_order_acquire); n; n = n->next)
            if (n->key.load(std::memory_order_acquire) == key) return &n->entry;
        return nullptr;
    }
    // The entry of the object, new where there is none.
    Entry* add(const void* key) {
        const std::lock_guard lock(mutex_);
        if (Entry* const known = find(key)) return known;
        std::atomic<Node*>& head = heads_[slot(key)];
        for (Node* n = head.load(std::memory_order_relaxed); n; n = n->next) {
            if (n->key.load(std::memory_order_relaxed)) continue;
            n->entry.reset();
            n->key.store(key, std::memory_order_release);
            return &n->entry;
        }
        Node* const made = new Node;
        made->key.store(key, std::memory_order_relaxed);
        made->next = head.load(std::memory_order_relaxed);
        head.store(made, std::memory_order_release);
        return &made->entry;
    }
    void remove(const void* key) {
        if (!find(key)) return;
        const std::lock_guard lock(mutex_);
        for (Node* n = heads_[slot(key)].load(std::memory_order_relaxed); n; n = n->next)
            if (n->key.load(std::memory_order_relaxed) == key)
                n->key.store(nullptr, std::memory_order_release);
    }

private:
    struct Node {
        std::atomic<const void*> key{nullptr};
        Node* next = nullptr;  // immutable once it is in the list
        Entry entry;
    };
    static size_t slot(const void* key) {
        const auto address = reinterpret_cast<uintptr_t>(key);
        return ((address >> 4) ^ (address >> 14)) % num_slots;
    }
    static constexpr size_t num_slots = 1024;
    std::array<std::atomic<Node*>, num_slots> heads_{};
    std::mutex mutex_;
};

// The frames inside an element, for how long they wait between the thread that brings and the one
// that takes them away.

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

// Kept until the tracer goes, for the summary.
struct ElementStats {
    std::atomic<TraceText> name{TraceText("element")};
    std::atomic<bool> is_selected{true};
    Histogram self, wait;
    Waits waits;
};

struct StreamStats {
    std::string id;
    std::atomic<uint32_t> index{TraceStream::none};  // in the trace, while a pad has the stream
    Histogram frame_time;
};

struct ElementEntry {
    std::atomic<ElementStats*> stats{nullptr};
    std::atomic<int> sinks{0}, srcs{0};  // pads
    // Of the last STREAM_START that a src pad sent.
    std::atomic<StreamStats*> out_stream{nullptr};
    void reset() {
        stats = nullptr;
        sinks = srcs = 0;
        out_stream = nullptr;
    }
    // Its frames go no further as what they are: into a file or a display, or into a stream that it
    // makes of them, as muxers do.
    bool ends(const StreamStats* stream) const {
        if (is_sink()) return true;
        const StreamStats* const out = out_stream.load(std::memory_order_acquire);
        return out && stream && out != stream;
    }
    // Of elements that have come to be: sinks have nothing behind them.
    bool is_sink() const { return srcs.load(std::memory_order_relaxed) == 0; }
    bool is_source() const { return sinks.load(std::memory_order_relaxed) == 0; }
};

struct PadEntry {
    std::atomic<ElementEntry*> element{nullptr};
    std::atomic<TraceText> name{TraceText("pad")};
    // Of the stream whose STREAM_START a src pad sent last.
    std::atomic<StreamStats*> stream{nullptr};
    std::atomic<bool> is_origin{false};  // its frames get their numbers here
    std::atomic<bool> is_src{false};
    void reset() {
        element = nullptr;
        stream = nullptr;
        is_origin = is_src = false;
    }
    ElementStats* stats() const {
        const ElementEntry* const e = element.load(std::memory_order_acquire);
        return e ? e->stats.load(std::memory_order_acquire) : nullptr;
    }
};

// Thread-safety: all may be called concurrently. Locks: the mutex is a leaf; no object of GStreamer
// is locked under it.
class Objects {
public:
    // `names`: globs of the elements that are recorded; empty: all.
    explicit Objects(const std::vector<std::string>& names);
    ~Objects();

    void add_element(GstElement* element);
    // Its name may have been set since it was made.
    void refresh(GstElement* element);
    void add_pad(GstElement* element, GstPad* pad);
    void remove_pad(GstPad* pad);
    void forget(gpointer object);
    // Looks at STREAM_START alone. Before 1.26.4 `pad` may be locked and `event` NULL: the event is
    // read, and our own tables.
    void event(GstPad* pad, GstEvent* event);

    PadEntry* pad(GstPad* pad) const { return pads_.find(pad); }

    // In the order in which they came, with what was recorded until now.
    std::vector<const ElementStats*> elements() const;
    std::vector<const StreamStats*> streams() const;

private:
    ElementEntry* entry(GstElement* element);
    void start_stream(PadEntry& pad, const gchar* stream_id);
    void name(ElementStats& stats, const std::string& text);

    std::vector<GPatternSpec*> names_;
    PointerTable<ElementEntry> elements_;
    PointerTable<PadEntry> pads_;

    mutable std::mutex mutex_;  // guards all below
    std::vector<std::unique_ptr<ElementStats>> stats_;
    std::vector<std::unique_ptr<StreamStats>> streams_;
    std::map<const StreamStats*, const PadEntry*> origins_;
    std::map<const PadEntry*, TraceStream> handles_;  // of the stream that a pad has
};

std::string summary_text(const Objects& objects, const HostTraceTotals& totals);
// Writes it whole or not at all. Errors: io naming the path.
Result<void> write_summary(const std::string& path, const std::string& text);

}  // namespace vartml::gst::trace
