// SPDX-License-Identifier: Apache-2.0
// The figures of a trace as text, beside its file.
#pragma once
#include <string>

#include <vartml/profile.h>

#include "gst/trace/objects.h"

namespace vartml::gst::trace {

std::string summary_text(const Objects& objects, const HostTraceTotals& totals);
// Writes it whole or not at all. Errors: io naming the path.
Result<void> write_summary(const std::string& path, const std::string& text);

}  // namespace vartml::gst::trace
