// SPDX-License-Identifier: Apache-2.0
// When a frame was taken, as UTC.
#pragma once
#include <gst/gst.h>

#include <optional>

namespace vartml::gst {

// Nanoseconds since 1970: from the buffer's reference timestamp (unix or NTP), else from the
// pipeline's clock at `running_time`, while the element plays; nothing without either.
std::optional<int64_t> utc_of(GstElement* element, GstBuffer* buffer, GstClockTime running_time);

}  // namespace vartml::gst
