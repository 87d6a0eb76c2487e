// SPDX-License-Identifier: Apache-2.0
#include "gst/support/log.h"

#include <gst/gst.h>

#include <vartml/log.h>

GST_DEBUG_CATEGORY_STATIC(library_category);

namespace vartml::gst {
namespace {

GstDebugLevel gst_level(vartml::LogLevel level) {
    switch (level) {
        case vartml::LogLevel::error:
            return GST_LEVEL_ERROR;
        case vartml::LogLevel::warning:
            return GST_LEVEL_WARNING;
        case vartml::LogLevel::info:
            return GST_LEVEL_INFO;
        case vartml::LogLevel::debug:
            return GST_LEVEL_DEBUG;
    }
    return GST_LEVEL_LOG;
}

void forward(vartml::LogLevel level, std::string_view origin, std::string_view text, void*) {
    GST_CAT_LEVEL_LOG(library_category, gst_level(level), nullptr, "%.*s%s%.*s", int(origin.size()),
                      origin.data(), origin.empty() ? "" : ": ", int(text.size()), text.data());
}

}  // namespace

void install_log() {
    static gsize once = 0;
    if (!g_once_init_enter(&once)) return;
    GST_DEBUG_CATEGORY_INIT(library_category, "vartml", 0, "libvartml and its runtime");
    vartml::set_log_function(forward, nullptr);
    g_once_init_leave(&once, gsize(1));
}

void log_warning(const std::string& text) {
    GST_CAT_WARNING(library_category, "%s", text.c_str());
}

}  // namespace vartml::gst
