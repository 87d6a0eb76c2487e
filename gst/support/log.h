// SPDX-License-Identifier: Apache-2.0
// The library's log in GStreamer's debug category `vartml`.
#pragma once
#include <string>

namespace vartml::gst {

// From now on lines of the library go to the category `vartml` and no longer to standard error.
// Safe to call often.
void install_log();

// A line of ours in the same category.
void log_warning(const std::string& text);

}  // namespace vartml::gst
