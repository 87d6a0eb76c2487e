// SPDX-License-Identifier: Apache-2.0
// The GObject properties of vartmlinfer: one table of specs, read from and written to Settings.
#pragma once
#include <gst/gst.h>

#include "gst/infer/settings.h"

namespace vartml::gst::infer {

// Installs the properties; `stats` is the last and answered by the element itself.
void install_properties(GObjectClass* klass);
unsigned stats_property();
unsigned model_property();
unsigned sidecar_property();

// The property `runner-options` as text, equal for equal options.
std::string runner_options_text(const Settings& settings);

// False for an id that is not in the table.
bool set_property(Settings& settings, unsigned id, const GValue* value);
bool get_property(const Settings& settings, unsigned id, GValue* value);

}  // namespace vartml::gst::infer
