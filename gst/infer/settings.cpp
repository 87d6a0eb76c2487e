// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/settings.h"

namespace vartml::gst::infer {

void read_runner_options(Settings& settings, const GstStructure* s) {
    settings.runner_options.clear();
    settings.runner_options_error.clear();
    if (!s) return;
    for (int i = 0; i < gst_structure_n_fields(s); ++i) {
        const gchar* name = gst_structure_nth_field_name(s, guint(i));
        const GValue* v = gst_structure_get_value(s, name);
        if (G_VALUE_HOLDS_STRING(v)) {
            settings.runner_options[name] = g_value_get_string(v) ? g_value_get_string(v) : "";
        } else if (G_VALUE_HOLDS_BOOLEAN(v)) {
            settings.runner_options[name] = bool(g_value_get_boolean(v));
        } else if (G_VALUE_HOLDS_INT(v)) {
            settings.runner_options[name] = g_value_get_int(v);
        } else if (G_VALUE_HOLDS_UINT(v)) {
            settings.runner_options[name] = g_value_get_uint(v);
        } else {
            settings.runner_options_error = std::string("property 'runner-options': field '") +
                                            name + "' is a " + G_VALUE_TYPE_NAME(v) +
                                            ", expected string, boolean, int or uint";
        }
    }
}

GstStructure* runner_options_structure(const Settings& settings) {
    if (settings.runner_options.empty()) return nullptr;
    GstStructure* s = gst_structure_new_empty("options");
    for (const auto& [key, value] : settings.runner_options) {
        const char* name = key.c_str();
        if (const auto* text = std::get_if<std::string>(&value))
            gst_structure_set(s, name, G_TYPE_STRING, text->c_str(), nullptr);
        if (const auto* flag = std::get_if<bool>(&value))
            gst_structure_set(s, name, G_TYPE_BOOLEAN, gboolean(*flag), nullptr);
        if (const auto* number = std::get_if<int>(&value))
            gst_structure_set(s, name, G_TYPE_INT, *number, nullptr);
        if (const auto* number = std::get_if<unsigned>(&value))
            gst_structure_set(s, name, G_TYPE_UINT, *number, nullptr);
    }
    return s;
}

std::string runner_options_text(const Settings& settings) {
    GstStructure* s = runner_options_structure(settings);
    if (!s) return "";
    gchar* text = gst_structure_to_string(s);
    std::string copy = text;
    g_free(text);
    gst_structure_free(s);
    return copy;
}

}  // namespace vartml::gst::infer
