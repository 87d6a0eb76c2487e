// SPDX-License-Identifier: Apache-2.0
#include "gst/source/gate.h"

#include <atomic>
#include <utility>

#include "gst/source/timeline.h"

namespace vartml::gst {
namespace {

struct Gate {
    GstElement element;
    struct State* state;
};
struct GateClass {
    GstElementClass parent;
};

struct State {
    GstPad *sink = nullptr, *src = nullptr;  // owned by the element
    GateEvents events;                       // between gate_start calls
    bool live = false, repeats = false;
    GstClockTime latency = 0;

    // guarded by the object lock
    Timeline timeline;
    GstClockTime min = 0, max = GST_CLOCK_TIME_NONE;  // latency of the last connection

    // streaming thread, or none
    GstSegment segment;  // of the connection
    bool started = false, has_segment = false, first = true;

    std::atomic<guint64> frames{0};
    std::atomic<gint64> last_us{0};
    std::atomic<unsigned> busy{0};  // calls of the connection that may be in what follows
    std::atomic<bool> closed{false};
};

G_DEFINE_TYPE(Gate, vartml_source_gate, GST_TYPE_ELEMENT)

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                                                             GST_STATIC_CAPS("video/x-raw(ANY)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

Gate* gate_of(gpointer element) {
    return reinterpret_cast<Gate*>(element);
}

State& state_of(gpointer element) {
    return *gate_of(element)->state;
}

// A call of the connection that goes on to what follows, unless the gate is closed.
class Passage {
public:
    explicit Passage(State& state) : state_(state) {
        ++state.busy;
        open_ = !state.closed;  // behind the count: who closes then reads it
    }
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    ~Passage() {
        if (--state_.busy == 0 && state_.closed) state_.events.idle();
    }
    explicit operator bool() const { return open_; }

private:
    State& state_;
    bool open_;
};

// While there is a clock that runs.
std::optional<GstClockTime> running_time(GstElement* element) {
    const GstClockTime time = gst_element_get_current_running_time(element);
    if (!GST_CLOCK_TIME_IS_VALID(time)) return std::nullopt;
    return time;
}

void start_stream(Gate* gate) {
    State& state = *gate->state;
    if (std::exchange(state.started, true)) return;
    // The same for each connection: trackers and counters go on.
    gchar* const id = gst_pad_create_stream_id(state.src, &gate->element, nullptr);
    GstEvent* const start = gst_event_new_stream_start(id);
    gst_event_set_group_id(start, gst_util_group_id_next());
    gst_pad_push_event(state.src, start);
    g_free(id);
}

void open_segment(Gate* gate) {
    State& state = *gate->state;
    if (std::exchange(state.has_segment, true)) return;
    GstSegment all;
    gst_segment_init(&all, GST_FORMAT_TIME);
    gst_pad_push_event(state.src, gst_event_new_segment(&all));
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
    Gate* const gate = gate_of(parent);
    State& state = *gate->state;
    const Passage passage(state);
    if (!passage) {
        gst_buffer_unref(buffer);
        return GST_FLOW_FLUSHING;
    }
    std::optional<GstClockTime> time;
    GstClockTime duration = GST_BUFFER_DURATION(buffer);
    if (GST_BUFFER_PTS_IS_VALID(buffer) && state.segment.format == GST_FORMAT_TIME) {
        // A frame that reaches into what the connection shows begins there.
        guint64 pts = GST_BUFFER_PTS(buffer);
        if (GST_CLOCK_TIME_IS_VALID(duration)) {
            const GstClockTime end = pts + duration;
            gst_segment_clip(&state.segment, GST_FORMAT_TIME, pts, end, &pts, nullptr);
            duration = end - pts;
        }
        const GstClockTime running =
            gst_segment_to_running_time(&state.segment, GST_FORMAT_TIME, pts);
        if (!GST_CLOCK_TIME_IS_VALID(running)) {  // outside of it
            gst_buffer_unref(buffer);
            return GST_FLOW_OK;
        }
        time = running;
    }
    const std::optional<GstClockTime> now = running_time(&gate->element);
    buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_DURATION(buffer) = duration;
    GST_OBJECT_LOCK(gate);
    GST_BUFFER_PTS(buffer) = state.timeline.map(time, now, duration);
    GST_OBJECT_UNLOCK(gate);
    GST_BUFFER_DTS(buffer) = GST_CLOCK_TIME_NONE;
    const bool first = std::exchange(state.first, false);
    if (first) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
    open_segment(gate);
    const GstFlowReturn flow = gst_pad_push(state.src, buffer);
    state.last_us = g_get_monotonic_time();
    if (flow == GST_FLOW_OK) {
        ++state.frames;
        state.events.frame(first);
    } else if (flow != GST_FLOW_FLUSHING) {
        state.events.refused(flow);
    }
    return flow;
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
    Gate* const gate = gate_of(parent);
    State& state = *gate->state;
    const Passage passage(state);
    if (!passage) {
        gst_event_unref(event);
        return FALSE;
    }
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_STREAM_START:
            start_stream(gate);
            break;
        case GST_EVENT_SEGMENT:
            gst_event_copy_segment(event, &state.segment);
            break;
        case GST_EVENT_EOS:
            state.events.end();
            break;
        case GST_EVENT_CAPS:
            start_stream(gate);
            return gst_pad_event_default(pad, parent, event);
        case GST_EVENT_TAG:
        case GST_EVENT_CUSTOM_DOWNSTREAM:
        case GST_EVENT_CUSTOM_DOWNSTREAM_STICKY:
        case GST_EVENT_CUSTOM_DOWNSTREAM_OOB:
            return gst_pad_event_default(pad, parent, event);
        default:  // of the connection alone
            break;
    }
    gst_event_unref(event);
    return TRUE;
}

// A serialized query waits for what was pushed before it.
gboolean sink_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    const Passage passage(state_of(parent));
    return passage && gst_pad_query_default(pad, parent, query);
}

gboolean src_event(GstPad* pad, GstObject* parent, GstEvent* event) {
    State& state = state_of(parent);
    if (GST_EVENT_TYPE(event) == GST_EVENT_SEEK) {  // times of a connection are not the element's
        gst_event_unref(event);
        return FALSE;
    }
    if (GST_EVENT_TYPE(event) == GST_EVENT_QOS) {
        GstQOSType type;
        gdouble proportion;
        GstClockTimeDiff late;
        GstClockTime time;
        gst_event_parse_qos(event, &type, &proportion, &late, &time);
        GST_OBJECT_LOCK(parent);
        const GstClockTimeDiff offset = state.timeline.offset();
        GST_OBJECT_UNLOCK(parent);
        gst_event_unref(event);
        if (GstClockTimeDiff(time) < offset) return TRUE;  // of a connection before
        event = gst_event_new_qos(type, proportion, late, time - GstClockTime(offset));
    }
    return gst_pad_event_default(pad, parent, event);
}

// Also while nothing is connected: the pipeline asks once.
gboolean latency_query(GstObject* parent, GstQuery* query) {
    State& state = state_of(parent);
    gboolean live = state.live;
    GstClockTime min = 0, max = GST_CLOCK_TIME_NONE;
    const bool answered = gst_pad_peer_query(state.sink, query);
    if (answered) gst_query_parse_latency(query, &live, &min, &max);
    GST_OBJECT_LOCK(parent);
    if (answered && live) {
        state.min = min;
        state.max = max;
    } else {
        min = state.min;
        max = state.max;
    }
    GST_OBJECT_UNLOCK(parent);
    gst_query_set_latency(query, gboolean(state.live), state.live ? min : 0,
                          state.live ? max : GST_CLOCK_TIME_NONE);
    return TRUE;
}

gboolean src_query(GstPad* pad, GstObject* parent, GstQuery* query) {
    switch (GST_QUERY_TYPE(query)) {
        case GST_QUERY_LATENCY:
            return latency_query(parent, query);
        case GST_QUERY_SEEKING: {
            GstFormat format;
            gst_query_parse_seeking(query, &format, nullptr, nullptr, nullptr);
            gst_query_set_seeking(query, format, FALSE, 0, -1);
            return TRUE;
        }
        case GST_QUERY_POSITION:
        case GST_QUERY_SEGMENT:
            return FALSE;  // sinks know their own
        case GST_QUERY_DURATION:
            // A connection's would be that of one pass.
            return !state_of(parent).repeats && gst_pad_query_default(pad, parent, query);
        default:
            return gst_pad_query_default(pad, parent, query);
    }
}

void vartml_source_gate_init(Gate* gate) {
    gate->state = new State;
    State& state = *gate->state;
    gst_segment_init(&state.segment, GST_FORMAT_UNDEFINED);
    state.sink = gst_pad_new_from_static_template(&sink_template, "sink");
    gst_pad_set_chain_function(state.sink, chain);
    gst_pad_set_event_function(state.sink, sink_event);
    gst_pad_set_query_function(state.sink, sink_query);
    GST_PAD_SET_PROXY_CAPS(state.sink);
    GST_PAD_SET_PROXY_ALLOCATION(state.sink);
    state.src = gst_pad_new_from_static_template(&src_template, "src");
    gst_pad_set_event_function(state.src, src_event);
    gst_pad_set_query_function(state.src, src_query);
    GST_PAD_SET_PROXY_CAPS(state.src);
    gst_element_add_pad(&gate->element, state.sink);
    gst_element_add_pad(&gate->element, state.src);
}

void finalize(GObject* object) {
    delete gate_of(object)->state;
    G_OBJECT_CLASS(vartml_source_gate_parent_class)->finalize(object);
}

void vartml_source_gate_class_init(GateClass* klass) {
    G_OBJECT_CLASS(klass)->finalize = finalize;
    gst_element_class_set_static_metadata(&klass->parent, "Gate of vartmlsrc", "Generic",
                                          "Makes one stream of many connections",
                                          "The gst-vartml authors");
    gst_element_class_add_static_pad_template(&klass->parent, &sink_template);
    gst_element_class_add_static_pad_template(&klass->parent, &src_template);
}

}  // namespace

GstElement* make_gate() {
    return GST_ELEMENT(g_object_new(vartml_source_gate_get_type(), "name", "gate", nullptr));
}

void gate_start(GstElement* gate, bool live, bool repeats, GstClockTime latency,
                GateEvents events) {
    State& state = state_of(gate);
    state.events = std::move(events);
    state.live = live;
    state.repeats = repeats;
    state.started = state.has_segment = false;
    state.frames = 0;
    GST_OBJECT_LOCK(gate);
    state.timeline = {};
    state.min = latency;
    state.max = GST_CLOCK_TIME_NONE;
    GST_OBJECT_UNLOCK(gate);
}

void gate_begin(GstElement* gate, bool after_outage) {
    State& state = state_of(gate);
    // What the connection before left in the pad: its end, its flush, its sticky events.
    gst_pad_set_active(state.sink, FALSE);
    gst_pad_set_active(state.sink, TRUE);
    gst_segment_init(&state.segment, GST_FORMAT_UNDEFINED);
    state.first = true;
    state.closed = false;
    GST_OBJECT_LOCK(gate);
    state.timeline.begin(state.live, after_outage);
    GST_OBJECT_UNLOCK(gate);
}

void gate_close(GstElement* gate) {
    state_of(gate).closed = true;
}

void gate_end(GstElement* gate) {
    start_stream(gate_of(gate));
    open_segment(gate_of(gate));
    gst_pad_push_event(state_of(gate).src, gst_event_new_eos());
}

GateCounts gate_counts(GstElement* gate) {
    const State& state = state_of(gate);
    return {state.frames, state.last_us, state.busy > 0};
}

}  // namespace vartml::gst
