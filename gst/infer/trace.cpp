// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/trace.h"

namespace vartml::gst::infer {
namespace {

bool is_recorded(uint32_t flags) {
    return HostTrace::flags() & flags;
}

TraceArg element_arg(GstElement* element) {
    const char* const name = GST_OBJECT_NAME(element);
    return TraceArg::copy("element", name ? name : "");
}

}  // namespace

void trace_skip(GstElement* element, InferenceStatus status, const TraceFrame& frame) {
    if (!HostTrace::is_open()) return;
    const TraceArg args[] = {element_arg(element), TraceArg::copy("reason", status_nick(status))};
    HostTrace::instant({.category = TraceCategory::meta,
                        .name = "frame not inferred",
                        .args = args,
                        .frames = {&frame, 1}},
                       HostTrace::stamp_ns());
}

void trace_copy(GstElement* element, const char* reason, uint64_t bytes) {
    if (!is_recorded(trace_flag::copies)) return;
    const TraceArg args[] = {
        element_arg(element), {"bytes", bytes}, TraceArg::copy("reason", reason)};
    HostTrace::instant({.category = TraceCategory::host, .name = "copy", .args = args},
                       HostTrace::stamp_ns());
}

void trace_caps(GstElement* element, const GstCaps* caps) {
    if (!HostTrace::is_open()) return;
    gchar* const text = gst_caps_to_string(caps);
    const TraceArg args[] = {element_arg(element), TraceArg::copy("caps", text)};
    HostTrace::instant({.category = TraceCategory::meta, .name = "caps change", .args = args},
                       HostTrace::stamp_ns());
    g_free(text);
}

void trace_wait(const Request& request) {
    if (!is_recorded(trace_flag::queues) || request.started <= request.submitted) return;
    const uint64_t id = HostTrace::async_id();
    TraceEvent event{.category = TraceCategory::queue,
                     .name = "wait for the device",
                     .frames = {&request.trace_frame, 1}};
    HostTrace::async_begin(event, id, trace_ns(request.submitted));
    event.frames = {};
    HostTrace::async_end(event, id, trace_ns(request.started));
}

}  // namespace vartml::gst::infer
