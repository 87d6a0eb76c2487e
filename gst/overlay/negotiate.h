// SPDX-License-Identifier: Apache-2.0
// Which caps vartmloverlay takes and gives, and how it comes onto the picture.
#pragma once
#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <optional>
#include <string>

#include "gst/overlay/settings.h"

namespace vartml::gst::overlay {

// Attaching fits any frame, but only where downstream draws compositions; drawing fits formats and
// memory that the processor reaches. The caller owns all caps that are returned.

// What leaves for frames of `in`, which may be anything: with and without a composition.
GstCaps* src_caps(const GstCaps* in, OverlayMode mode);
// The same for the caps of a stream: with a composition where downstream is known to draw it, or,
// with mode=attach, does not refuse it.
GstCaps* chosen_src_caps(GstPad* src, const GstCaps* in, OverlayMode mode);

bool has_composition(const GstCaps* caps);
// Whether downstream draws compositions without saying so in its caps; asks for frames of `caps`.
bool wants_composition(GstPad* src, GstCaps* caps);

// How frames are mapped for drawing; empty for frames that cannot be drawn into.
std::optional<GstVideoInfo> drawable_info(const GstCaps* caps);

// What the sink pad can serve where downstream takes `downstream`.
GstCaps* sink_caps(const GstCaps* downstream, OverlayMode mode);
// Answers a caps query, and whether caps are accepted, of the sink pad. Frames that cannot be
// served are let in when upstream has nothing else to give, so that there is an error with a
// sentence instead of none at all.
void answer_caps(GstBaseTransform* base, GstQuery* query, OverlayMode mode);
bool accepts(GstBaseTransform* base, const GstCaps* caps, OverlayMode mode);

// "video format P010_10LE", or "memory GLMemory", which cannot be drawn into.
std::string describe(const GstCaps* caps);

}  // namespace vartml::gst::overlay
