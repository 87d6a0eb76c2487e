// SPDX-License-Identifier: Apache-2.0
#include "gst/trace/spans.h"

#include <array>

namespace vartml::gst::trace {
namespace {

struct FlowName {
    GstFlowReturn flow;
    TraceText name;
};
constexpr FlowName flow_names[] = {
    {GST_FLOW_OK, "ok"},
    {GST_FLOW_NOT_LINKED, "not-linked"},
    {GST_FLOW_FLUSHING, "flushing"},
    {GST_FLOW_EOS, "eos"},
    {GST_FLOW_NOT_NEGOTIATED, "not-negotiated"},
    {GST_FLOW_ERROR, "error"},
    {GST_FLOW_NOT_SUPPORTED, "not-supported"},
};

TraceText flow_name(GstFlowReturn flow) {
    for (const FlowName& one : flow_names)
        if (one.flow == flow) return one.name;
    return flow > GST_FLOW_OK ? TraceText("custom-success") : TraceText("custom-error");
}

}  // namespace

// One push or chain in progress. A push that is not the outermost of its thread only says which
// stream goes through: its time is that of the elements on both sides.
struct Spans::Entry {
    GstPad* address = nullptr;
    PadEntry* pad = nullptr;
    StreamStats* stream = nullptr;
    uint64_t start_ns = 0, nested_ns = 0;
    TraceFrame frame;
    Load load;
    FrameArrow arrow = FrameArrow::none;
    bool is_chain = false, is_recorded = false;
};

struct Spans::Stack {
    static constexpr unsigned most = 64;
    unsigned depth = 0;
    std::array<Entry, most> entries;
    const Entry* top() const { return depth ? &entries[depth - 1] : nullptr; }
};

// Threads need neither constructor nor destructor for it.
Spans::Stack& Spans::stack() {
    static constinit thread_local Stack stack{};
    return stack;
}

Load load_of(GstBuffer* buffer) {
    // gst_buffer_get_size() only reads the memories' sizes.
    return {GST_BUFFER_PTS_IS_VALID(buffer) ? static_cast<int64_t>(GST_BUFFER_PTS(buffer)) : -1,
            gst_buffer_get_size(buffer),
            GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DISCONT) != FALSE};
}

// A list is one frame or packets of one: the first speaks for all.
Load load_of(GstBufferList* list) {
    const guint length = gst_buffer_list_length(list);
    if (length == 0) return {};
    Load load = load_of(gst_buffer_list_get(list, 0));
    for (guint i = 1; i < length; ++i)
        load.bytes += gst_buffer_get_size(gst_buffer_list_get(list, i));
    return load;
}

void Spans::push_pre(GstPad* pad, const Load& load) {
    PadEntry* const known = objects_.pad(pad);
    if (known) enter(stack(), *known, pad, load, false);
}

void Spans::chain_pre(GstPad* pad, const Load& load) {
    PadEntry* const known = objects_.pad(pad);
    if (known) enter(stack(), *known, pad, load, true);
}

void Spans::find_frame(const Stack& stack, Entry& entry, const Load& load) const {
    const Entry* const outer = stack.top();
    entry.stream = entry.is_chain ? outer ? outer->stream : nullptr
                                  : entry.pad->stream.load(std::memory_order_acquire);
    const bool is_known = outer && outer->stream == entry.stream && outer->frame.key;
    if (is_known && (load.pts_ns < 0 || load.pts_ns == outer->load.pts_ns)) {
        entry.frame = outer->frame;
        return;
    }
    if (load.pts_ns < 0) {
        if (outer) entry.frame = outer->frame;
        return;
    }
    if (!entry.stream) return;
    const bool is_source = !entry.is_chain && entry.pad->is_origin.load(std::memory_order_acquire);
    entry.frame.key = HostTrace::frame_key(entry.stream->index.load(std::memory_order_relaxed),
                                           load.pts_ns, is_source, load.is_discont);
}

void Spans::enter(Stack& stack, PadEntry& pad, GstPad* address, const Load& load, bool is_chain) {
    if (stack.depth >= Stack::most) {
        ++stack.depth;
        return;
    }
    Entry& entry = stack.entries[stack.depth];
    entry = {};
    entry.address = address;
    entry.pad = &pad;
    entry.load = load;
    entry.is_chain = is_chain;
    find_frame(stack, entry, load);
    const ElementStats* const stats = pad.stats();
    entry.is_recorded = (is_chain || stack.depth == 0) && stats &&
                        stats->is_selected.load(std::memory_order_relaxed) &&
                        (HostTrace::flags() & trace_flag::frames);
    const bool is_outermost_push = !is_chain && stack.depth == 0;
    ++stack.depth;
    // Only these look at the clock.
    if (!entry.is_recorded && !is_outermost_push && !is_chain) return;
    entry.start_ns = HostTrace::stamp_ns();
    record_wait(entry, entry.start_ns);
    if (!entry.is_recorded) return;
    const ElementEntry* const element = pad.element.load(std::memory_order_acquire);
    const bool at_sink = is_chain && element && element->ends(entry.stream);
    entry.arrow = HostTrace::arrow(entry.frame.key, entry.start_ns, at_sink);
    if (!at_sink || !entry.stream || entry.arrow != FrameArrow::end) return;
    const uint64_t began_ns = HostTrace::frame_start_ns(entry.frame.key);
    if (began_ns && began_ns < entry.start_ns)
        entry.stream->frame_time.add(entry.start_ns - began_ns);
}

// A frame that enters on one thread and leaves on another has waited between.
void Spans::record_wait(Entry& entry, uint64_t now_ns) const {
    if (!entry.frame.key || !(HostTrace::flags() & trace_flag::queues)) return;
    ElementStats* const stats = entry.pad->stats();
    if (!stats || !stats->is_selected.load(std::memory_order_relaxed)) return;
    const void* const thread = &stack();
    if (entry.is_chain) {
        stats->waits.enter(entry.frame.key, now_ns, thread);
        return;
    }
    const auto entered_ns = stats->waits.leave(entry.frame.key, thread);
    if (!entered_ns || *entered_ns >= now_ns) return;
    stats->wait.add(now_ns - *entered_ns);
    const TraceText name = stats->name.load(std::memory_order_acquire);
    const TraceArg args[] = {{"element", name}};
    const TraceEvent wait{
        .category = TraceCategory::queue, .name = name, .args = args, .frames = {&entry.frame, 1}};
    const uint64_t id = HostTrace::async_id();
    HostTrace::async_begin(wait, id, *entered_ns);
    HostTrace::async_end({.category = TraceCategory::queue, .name = name}, id, now_ns);
}

void Spans::post(GstPad* address, GstFlowReturn flow) {
    Stack& stack = Spans::stack();
    if (stack.depth == 0) return;
    if (stack.depth > Stack::most) {
        if (objects_.pad(address)) --stack.depth;
        return;
    }
    const Entry& entry = stack.entries[stack.depth - 1];
    if (entry.address != address) return;  // of a pad that is not recorded
    --stack.depth;
    uint64_t taken_ns = entry.nested_ns;
    if (entry.is_recorded) {
        const uint64_t end_ns = HostTrace::stamp_ns();
        taken_ns = end_ns - entry.start_ns;
        record(entry, end_ns, flow);
    }
    if (stack.depth) stack.entries[stack.depth - 1].nested_ns += taken_ns;
}

void Spans::record(const Entry& entry, uint64_t end_ns, GstFlowReturn flow) const {
    ElementStats* const stats = entry.pad->stats();
    if (!stats) return;
    const uint64_t taken_ns = end_ns - entry.start_ns;
    const uint64_t self_ns = taken_ns > entry.nested_ns ? taken_ns - entry.nested_ns : 0;
    stats->self.add(self_ns);
    const TraceText name = stats->name.load(std::memory_order_acquire);
    const TraceArg args[] = {
        {"element", name},
        {"pad", entry.pad->name.load(std::memory_order_acquire)},
        TraceArg::us("selfUs", self_ns),
        {"bytes", entry.load.bytes},
        {"flow", flow_name(flow)},
        {"pts", entry.load.pts_ns},
    };
    const bool has_pts = entry.load.pts_ns >= 0;
    HostTrace::slice({.category = TraceCategory::gst,
                      .name = name,
                      .args = std::span(args).first(has_pts ? 6 : 5),
                      .frames = {&entry.frame, entry.frame.key ? 1U : 0U},
                      .arrows = &entry.arrow},
                     entry.start_ns, end_ns);
}

}  // namespace vartml::gst::trace
