// SPDX-License-Identifier: Apache-2.0
// The properties of vartmlmetajoin.
#pragma once
#include <gst/gst.h>

#include <string>

#include "gst/support/property_table.h"

namespace vartml::gst {

// As the user set them. Thread-safety: none.
struct JoinSettings {
    uint64_t tolerance = GST_CLOCK_TIME_NONE;
    bool sync = true;
    uint64_t timeout = 0;
    std::string region;
};

std::span<const Property<JoinSettings>> join_properties();

}  // namespace vartml::gst
