// SPDX-License-Identifier: Apache-2.0
// From properties to the publisher of the library.
#pragma once
#include <memory>
#include <optional>
#include <variant>

#include <gst/gst.h>

#include <vartml/publish.h>

#include "gst/publish/properties.h"
#include "gst/support/error.h"

namespace vartml::gst {

// The publisher, or what to post.
std::variant<std::unique_ptr<vartml::Publisher>, Failure> open_publisher(
    const PublishSettings& settings, vartml::PublishEvents events);

// What to post when a sink failed for good.
Failure write_failure(const PublishSettings& settings, const vartml::Error& error, bool disk_full);
Failure spool_failure(const PublishSettings& settings, const vartml::Error& error);

// When a frame was taken, as UTC.

// Nanoseconds since 1970: from the buffer's reference timestamp (unix or NTP), else from the
// pipeline's clock at `running_time`, while the element plays; nothing without either.
std::optional<int64_t> utc_of(GstElement* element, GstBuffer* buffer, GstClockTime running_time);

}  // namespace vartml::gst
