// SPDX-License-Identifier: Apache-2.0
// The list of cameras of a fleet, for people.
#pragma once
#include <string>

#include "gst/fleet/store.h"

namespace vartml::fleet {

/// Does `action` (add, remove, list, watch, import) of a request of `vartml cameras`, which is
/// JSON; returns the exit status.
int run_cameras(const StoreSettings& settings, const std::string& request);

}  // namespace vartml::fleet
