// SPDX-License-Identifier: Apache-2.0
// The element between the connections of a source and what follows it: one stream, one segment.
#pragma once
#include <gst/gst.h>

#include <functional>
#include <optional>

namespace vartml::gst {

/// A frame has left; `first`: of its connection. Comes from the streaming thread.
struct GateEvents {
    std::function<void(bool first)> frame;
    std::function<void()> end;                   // of a connection
    std::function<void(GstFlowReturn)> refused;  // by what follows
    std::function<void()> idle;                  // closed, and what follows holds nothing
};

/// The pads are `sink`, to which a connection is linked, and `src`.
GstElement* make_gate();
/// `repeats`: another connection follows the end of each, so that the stream has no duration. Call
/// while no state is above READY.
void gate_start(GstElement* gate, bool live, bool repeats, GstClockTime latency, GateEvents events);
/// The next connection. Call while nothing is linked to `sink`.
void gate_begin(GstElement* gate, bool after_outage);
/// Nothing of the connection goes on any more; does not wait for what follows, which may hold a
/// frame of it: `busy` until `idle`.
void gate_close(GstElement* gate);
/// Ends the stream. Call while nothing is linked to `sink`.
void gate_end(GstElement* gate);
/// Frames since gate_start, and how long nothing has left, in microseconds of the monotonic clock;
/// 0 while what follows holds a frame.
struct GateCounts {
    guint64 frames;
    gint64 last_us;  // when the last frame left
    bool busy;       // what follows holds one, or an event
};
GateCounts gate_counts(GstElement* gate);

}  // namespace vartml::gst
