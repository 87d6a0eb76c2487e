// SPDX-License-Identifier: Apache-2.0
// The library's log in GStreamer's debug category `vartml`.
#pragma once
#include <gst/gst.h>

#include <string>

namespace vartml::gst {

// From now on lines of the library go to the category `vartml` and no longer to standard error.
// Safe to call often.
void install_log();

// A line of ours in the same category.
void log_warning(const std::string& text);

// What the user chose: the element's own properties that are not as by default, as
// `name=value name=value`; those that cannot be read back (passwords) are left out.
std::string settings_text(gpointer element);

}  // namespace vartml::gst
