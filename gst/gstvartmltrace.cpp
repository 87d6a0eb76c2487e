// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:tracer-vartmltrace
 * @title: vartmltrace
 * @short_description: one time line of pipeline, host and device
 *
 * Records for every pipeline of the process when each buffer was in which element, what waited in
 * queues, and, where vartmlinfer runs, the stages of each inference and the operators of the
 * device. The file opens in ui.perfetto.dev; arrows follow a frame from its source to its sinks. A
 * summary with percentiles is written beside it.
 *
 * A frame is known by the stream-id and PTS of its buffers. An element that changes PTS begins a
 * new frame. Buffers without PTS belong to the frame that their thread is at. Nothing is changed:
 * pipelines behave as without the tracer.
 *
 * ## Example launch line
 * |[
 * GST_TRACERS="vartmltrace(file=trace.json)" gst-launch-1.0 videotestsrc num-buffers=30 ! queue !
 * fakesink
 * ]|
 *
 * Since: 1.0
 */
#include "gst/gstvartmltrace.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gst/support/error.h"
#include "gst/support/property_table.h"
#include "gst/support/runtime.h"
#include "gst/support/tracer_parameters.h"
#include "gst/trace/objects.h"
#include "gst/trace/spans.h"

using namespace vartml;
using namespace vartml::gst::trace;
using vartml::gst::operators_not_reported;
using vartml::gst::Property;

namespace {

// The parameters, given once when the tracer is made.
struct TracerSettings {
    std::string file = "vartml-trace.json", elements;
    unsigned flags = trace_flag::timeline, ring_kb = 256;
    uint64_t max_bytes = 0;
    bool summary = true;
};

struct State {
    TracerSettings settings;
    std::unique_ptr<Objects> objects;
    std::unique_ptr<Spans> spans;
    std::once_flag opened;
    std::optional<HostTrace> trace;  // guarded by the mutex of open_tracers()
    pid_t process = 0;               // that opened the files: they are not those of its children
};

// The tracers whose files are open. Closed when GStreamer is deinitialised, else with the process.
struct OpenTracers {
    std::mutex mutex;
    std::vector<State*> all;
};
OpenTracers& open_tracers() {
    static OpenTracers* const kept = new OpenTracers;
    return *kept;
}

}  // namespace

struct _GstVartmlTrace {
    GstTracer parent;
    State* state;
};

G_DEFINE_FINAL_TYPE(GstVartmlTrace, gst_vartml_trace, GST_TYPE_TRACER)

namespace {

Spans& spans_of(GObject* tracer) {
    return *GST_VARTML_TRACE(tracer)->state->spans;
}
Objects& objects_of(GObject* tracer) {
    return *GST_VARTML_TRACE(tracer)->state->objects;
}

// ---- parameters ----

constexpr GFlagsValue flags_values[] = {
    {trace_flag::frames, "Element spans and frame arrows", "frames"},
    {trace_flag::runs, "Stages of inferences on host and device", "runs"},
    {trace_flag::ops, "Operators, of models compiled with --stats-level=70 or higher", "ops"},
    {trace_flag::queues, "Waits between two threads", "queues"},
    {trace_flag::copies, "Copies of frames and tensors, with bytes and reason", "copies"},
    {trace_flag::allocs, "Allocations of frame and tensor memory", "allocs"},
    {0, nullptr, nullptr},
};

struct Parameters {
    using Lock = vartml::gst::ObjectLock;
    static std::span<const Property<TracerSettings>> rows();
    static TracerSettings& settings(GObject* tracer) {
        return GST_VARTML_TRACE(tracer)->state->settings;
    }
    static void written(GObject*) {}
};

std::span<const Property<TracerSettings>> Parameters::rows() {
    using S = TracerSettings;
    using P = Property<S>;
    constexpr int once = G_PARAM_CONSTRUCT_ONLY;
    static const P all[] = {
        {"file", "File", "Trace to write; ui.perfetto.dev shows it", once, P::Text{&S::file}},
        {"flags", "Flags", "What is recorded, joined by +", once,
         P::Flags{"GstVartmlTraceFlags", flags_values, &S::flags}},
        {"max-bytes", "Largest file", "Size of the file after which recording stops, 0: no limit",
         once, P::Size{&S::max_bytes}},
        {"elements", "Elements",
         "Names of the elements that are recorded, as globs with commas between, in quotes; unset: "
         "all",
         once, P::Text{&S::elements}},
        {"ring-kb", "Ring of a thread",
         "KiB for the events that a thread has recorded and that are not written yet", once,
         P::Uint{&S::ring_kb, 16, 1024 * 1024}},
        {"summary", "Summary",
         "Write percentiles of self time and queue wait per element and of frame time per stream "
         "to <file>.txt",
         once, P::Flag{&S::summary}},
    };
    return all;
}

HostTraceOptions options_of(const TracerSettings& settings) {
    HostTraceOptions options{
        .flags = settings.flags, .max_bytes = settings.max_bytes, .ring_kb = settings.ring_kb};
    if (const char* reason = operators_not_reported())
        options.not_captured.push_back(std::string("operators: ") + reason);
    return options;
}

std::vector<std::string> element_globs(const TracerSettings& settings) {
    std::vector<std::string> globs;
    std::istringstream text(settings.elements);
    for (std::string one; std::getline(text, one, ',');)
        if (!one.empty()) globs.push_back(one);
    return globs;
}

void open_once(State& state);

// ---- hooks: (tracer, time since GStreamer's start, …); that time is another clock's ----

void push_pre(GObject* tracer, GstClockTime, GstPad* pad, GstBuffer* buffer) {
    spans_of(tracer).push_pre(pad, load_of(buffer));
}
void push_list_pre(GObject* tracer, GstClockTime, GstPad* pad, GstBufferList* list) {
    spans_of(tracer).push_pre(pad, load_of(list));
}
void chain_pre(GObject* tracer, GstClockTime, GstPad* pad, GstBuffer* buffer) {
    spans_of(tracer).chain_pre(pad, load_of(buffer));
}
void chain_list_pre(GObject* tracer, GstClockTime, GstPad* pad, GstBufferList* list) {
    spans_of(tracer).chain_pre(pad, load_of(list));
}
void post(GObject* tracer, GstClockTime, GstPad* pad, GstFlowReturn flow) {
    spans_of(tracer).post(pad, flow);
}

void push_event_pre(GObject* tracer, GstClockTime, GstPad* pad, GstEvent* event) {
    objects_of(tracer).event(pad, event);
}

void element_new(GObject* tracer, GstClockTime, GstElement* element) {
    open_once(*GST_VARTML_TRACE(tracer)->state);
    objects_of(tracer).add_element(element);
}
void element_add_pad(GObject* tracer, GstClockTime, GstElement* element, GstPad* pad) {
    objects_of(tracer).add_pad(element, pad);
}
void element_remove_pad(GObject* tracer, GstClockTime, GstElement*, GstPad* pad) {
    objects_of(tracer).remove_pad(pad);
}
void object_destroyed(GObject* tracer, GstClockTime, gpointer object) {
    objects_of(tracer).forget(object);
}

void change_state_post(GObject* tracer, GstClockTime, GstElement* element, GstStateChange change,
                       GstStateChangeReturn result) {
    open_once(*GST_VARTML_TRACE(tracer)->state);
    objects_of(tracer).refresh(element);
    if (GST_OBJECT_PARENT(element) || !HostTrace::is_open()) return;
    const TraceArg args[] = {
        TraceArg::copy("element", GST_OBJECT_NAME(element)),
        {"change", TraceText::intern(gst_state_change_get_name(change))},
        {"result", TraceText::intern(gst_element_state_change_return_get_name(result))},
    };
    HostTrace::instant({.category = TraceCategory::meta, .name = "state change", .args = args},
                       HostTrace::stamp_ns());
}

struct Hook {
    const char* name;
    GCallback function;
};
const Hook hooks[] = {
    {"pad-push-pre", G_CALLBACK(push_pre)},
    {"pad-push-post", G_CALLBACK(post)},
    {"pad-push-list-pre", G_CALLBACK(push_list_pre)},
    {"pad-push-list-post", G_CALLBACK(post)},
    {"pad-chain-pre", G_CALLBACK(chain_pre)},
    {"pad-chain-post", G_CALLBACK(post)},
    {"pad-chain-list-pre", G_CALLBACK(chain_list_pre)},
    {"pad-chain-list-post", G_CALLBACK(post)},
    {"pad-push-event-pre", G_CALLBACK(push_event_pre)},
    {"element-new", G_CALLBACK(element_new)},
    {"element-add-pad", G_CALLBACK(element_add_pad)},
    {"element-remove-pad", G_CALLBACK(element_remove_pad)},
    {"element-change-state-post", G_CALLBACK(change_state_post)},
    {"object-destroyed", G_CALLBACK(object_destroyed)},
};

// ---- open and close ----

void close(State& state) {
    if (!state.trace || getpid() != state.process) return;
    state.trace->flush();
    const HostTraceTotals totals = state.trace->totals();
    const std::string path = state.trace->path();
    state.trace.reset();
    if (!state.settings.summary) return;
    if (auto done = write_summary(path + ".txt", summary_text(*state.objects, totals)); !done)
        g_warning("vartmltrace: %s", done.error().message.c_str());
}

void close_all() {
    const std::lock_guard lock(open_tracers().mutex);
    for (State* state : open_tracers().all) close(*state);
    open_tracers().all.clear();
}

// With the first element, not with the tracer: gst-inspect-1.0 makes a tracer too, and must not
// replace a file.
void open_once(State& state) {
    std::call_once(state.opened, [&state] {
        auto trace = HostTrace::open(state.settings.file, options_of(state.settings));
        if (!trace) {
            g_warning("vartmltrace is not active: %s", trace.error().message.c_str());
            return;
        }
        const std::lock_guard lock(open_tracers().mutex);
        static const int at_exit = std::atexit(close_all);
        (void)at_exit;
        state.trace.emplace(*std::move(trace));
        state.process = getpid();
        open_tracers().all.push_back(&state);
    });
}

void constructed(GObject* object) {
    G_OBJECT_CLASS(gst_vartml_trace_parent_class)->constructed(object);
    State& state = *GST_VARTML_TRACE(object)->state;
    const auto taken =
        vartml::gst::read_parameters<Parameters>(object, "vartmltrace", state.settings);
    if (!taken) {
        g_warning("vartmltrace is not active: %s", taken.error().message.c_str());
        return;
    }
    state.objects = std::make_unique<Objects>(element_globs(state.settings));
    state.spans = std::make_unique<Spans>(*state.objects);
    for (const Hook& hook : hooks)
        gst_tracing_register_hook(GST_TRACER(object), hook.name, hook.function);
}

void finalize(GObject* object) {
    State* const state = GST_VARTML_TRACE(object)->state;
    {
        const std::lock_guard lock(open_tracers().mutex);
        std::erase(open_tracers().all, state);
        close(*state);
    }
    delete state;
    G_OBJECT_CLASS(gst_vartml_trace_parent_class)->finalize(object);
}

}  // namespace

static void gst_vartml_trace_init(GstVartmlTrace* self) {
    self->state = new State;
}

static void gst_vartml_trace_class_init(GstVartmlTraceClass* klass) {
    auto* object = G_OBJECT_CLASS(klass);
    object->constructed = constructed;
    object->finalize = finalize;
    vartml::gst::install_properties<Parameters>(object);
}
