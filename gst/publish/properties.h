// SPDX-License-Identifier: Apache-2.0
// The properties of vartmlpublish.
#pragma once
#include <gst/gst.h>

#include <string>

#include <vartml/publish.h>
#include <vartml/publish_mqtt.h>

#include "gst/support/property_table.h"

namespace vartml::gst {

enum class PublishMethod { standard_output, file, socket, mqtt };

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
};

// As the user set them. Thread-safety: none.
struct PublishSettings : vartml::MqttOptions, vartml::PublishOptions {
    PublishMethod method = PublishMethod::standard_output;
    std::string location, stream_name;
    bool append = false, add_empty = false;
    unsigned include = include_objects | include_classes | include_tracks | include_keypoints |
                       include_timings | include_texts;
    unsigned every = 1, drain_timeout_ms = 1000;
    unsigned spool_max_age = 0;
};

std::span<const Property<PublishSettings>> publish_properties();

}  // namespace vartml::gst
