// SPDX-License-Identifier: Apache-2.0
// The buffers that each thread is pushing, as spans of elements.
#pragma once
#include <gst/gst.h>

#include "gst/trace/objects.h"

namespace vartml::gst::trace {

// Of a buffer or list, read before it is given away.
struct Load {
    int64_t pts_ns = -1;
    uint64_t bytes = 0;
    bool is_discont = false;
};
Load load_of(GstBuffer* buffer);
Load load_of(GstBufferList* list);

// Thread-safety: called from the hooks of every thread. Nothing is allocated, locked or asked of
// GStreamer.
class Spans {
public:
    explicit Spans(Objects& objects) : objects_(objects) {}

    void push_pre(GstPad* pad, const Load& load);
    void chain_pre(GstPad* pad, const Load& load);
    // Of either.
    void post(GstPad* pad, GstFlowReturn flow);

private:
    struct Stack;
    struct Entry;
    static Stack& stack();
    void enter(Stack& stack, PadEntry& pad, GstPad* address, const Load& load, bool is_chain);
    void find_frame(const Stack& stack, Entry& entry, const Load& load) const;
    void record_wait(Entry& entry, uint64_t now_ns) const;
    void record(const Entry& entry, uint64_t end_ns, GstFlowReturn flow) const;

    Objects& objects_;
};

}  // namespace vartml::gst::trace
