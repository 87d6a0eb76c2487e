// SPDX-License-Identifier: Apache-2.0
// From properties to the publisher of the library.
#pragma once
#include <memory>
#include <variant>

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

}  // namespace vartml::gst
