// SPDX-License-Identifier: Apache-2.0
// The properties of vartmltrack.
#pragma once
#include <gst/gst.h>

#include <string>

#include <vartml/track.h>

#include "gst/support/property_table.h"

namespace vartml::gst {

// As the user set them. Thread-safety: none.
struct TrackSettings : vartml::TrackOptions {
    std::string classes;
    bool predict = true;
};

std::span<const Property<TrackSettings>> track_properties();

}  // namespace vartml::gst
