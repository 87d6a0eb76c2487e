// SPDX-License-Identifier: Apache-2.0
// What the tracer knows of elements, pads and streams, so that no hook on the way of a buffer asks
// GStreamer for it.
#pragma once
#include <gst/gst.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vartml/profile.h>

#include "gst/trace/histogram.h"
#include "gst/trace/pointer_table.h"
#include "gst/trace/waits.h"

namespace vartml::gst::trace {

// Kept until the tracer goes, for the summary.
struct ElementStats {
    std::atomic<TraceText> name{TraceText("element")};
    std::atomic<bool> is_selected{true};
    Histogram self, wait;
    Waits waits;
};

struct StreamStats {
    uint32_t index = 0;
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
    std::map<uint32_t, std::unique_ptr<StreamStats>> streams_;
    std::map<uint32_t, const PadEntry*> origins_;
};

}  // namespace vartml::gst::trace
