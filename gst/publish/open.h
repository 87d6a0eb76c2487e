// SPDX-License-Identifier: Apache-2.0
// From properties to the publisher of the library.
#pragma once
#include <memory>
#include <optional>
#include <variant>

#include <gst/gst.h>

#include <vartml/publish.h>
#include <vartml/publish_broker.h>

#include "gst/support/error.h"

namespace vartml::gst {

enum class PublishMethod { standard_output, file, socket, mqtt, redis, kafka, nats };

enum class PublishFormat { json, onvif };

// What a record has.
enum Include : unsigned {
    include_objects = 1 << 0,
    include_classes = 1 << 1,
    include_tracks = 1 << 2,
    include_keypoints = 1 << 3,
    include_timings = 1 << 4,
    include_masks = 1 << 5,
    include_embeddings = 1 << 6,
    include_texts = 1 << 7,
    include_zones = 1 << 8,
};

// As the user set them. Thread-safety: none.
struct PublishSettings : vartml::BrokerOptions, vartml::PublishOptions {
    PublishMethod method = PublishMethod::standard_output;
    PublishFormat format = PublishFormat::json;
    std::string location, stream_name;
    bool append = false, add_empty = false;
    unsigned include = include_objects | include_classes | include_tracks | include_keypoints |
                       include_timings | include_texts | include_zones;
    uint64_t epoch = 0;
    unsigned every = 1, drain_timeout_ms = 1000;
    unsigned spool_max_age = 0;
};

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
