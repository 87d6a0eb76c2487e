// SPDX-License-Identifier: Apache-2.0
#include "gst/support/log.h"

#include <span>

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

// As gst-launch-1.0 reads it.
std::string written(const GValue& value) {
    if (!G_VALUE_HOLDS_FLAGS(&value)) {
        gchar* const text = gst_value_serialize(&value);
        std::string result = text ? text : "?";
        g_free(text);
        return result;
    }
    auto* const type = static_cast<GFlagsClass*>(g_type_class_ref(G_VALUE_TYPE(&value)));
    std::string result;
    for (const GFlagsValue& flag : std::span(type->values, type->n_values))
        if (flag.value && (g_value_get_flags(&value) & flag.value) == flag.value)
            result += (result.empty() ? "" : "+") + std::string(flag.value_nick);
    g_type_class_unref(type);
    return result.empty() ? "0" : result;
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

std::string settings_text(gpointer element) {
    guint count = 0;
    GParamSpec** const specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
    std::string text;
    for (GParamSpec* spec : std::span(specs, count)) {
        const auto needed = GParamFlags(G_PARAM_READABLE | G_PARAM_WRITABLE);
        if (spec->owner_type != G_OBJECT_TYPE(element) || (spec->flags & needed) != needed)
            continue;
        GValue value = G_VALUE_INIT;
        g_value_init(&value, spec->value_type);
        g_object_get_property(G_OBJECT(element), spec->name, &value);
        if (!g_param_value_defaults(spec, &value))
            text += (text.empty() ? "" : " ") + std::string(spec->name) + '=' + written(value);
        g_value_unset(&value);
    }
    g_free(specs);
    return text.empty() ? "all as by default" : text;
}

}  // namespace vartml::gst
