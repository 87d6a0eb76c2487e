// SPDX-License-Identifier: Apache-2.0
// The parameters of vartmltrace.
#pragma once
#include <gst/gst.h>

#include <string>
#include <vector>

#include <vartml/profile.h>

namespace vartml::gst::trace {

struct Properties {
    std::string file, elements;
    guint flags = 0, ring_kb = 0;
    guint64 max_bytes = 0;
    gboolean summary = TRUE;

    bool set(guint id, const GValue* value);
    bool get(guint id, GValue* value) const;
    // What GST_TRACERS has in parentheses: `name=value` with commas between; nullptr: nothing.
    // Errors: invalid_argument naming the parameter.
    Result<void> parse(GObjectClass* klass, const char* text);
    HostTraceOptions options() const;
    std::vector<std::string> element_globs() const;
};

void install_properties(GObjectClass* klass);

}  // namespace vartml::gst::trace
