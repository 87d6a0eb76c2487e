// SPDX-License-Identifier: Apache-2.0
#include "gst/metrics/exposition.h"

#include <algorithm>

namespace vartml::gst {
namespace {

std::string metric_name(std::string name) {
    std::ranges::replace(name, '-', '_');
    return name;
}

std::string label(const char* name, const std::string& value) {
    std::string text = std::string(name) + "=\"";
    for (const char c : value) {
        if (c == '\\' || c == '"') text += '\\';
        if (c == '\n') {
            text += "\\n";
        } else {
            text += c;
        }
    }
    return text + '"';
}

// "" for what is no number.
std::string number(const GValue* value) {
    if (G_VALUE_HOLDS_BOOLEAN(value)) return g_value_get_boolean(value) ? "1" : "0";
    if (G_VALUE_HOLDS_UINT64(value)) return std::to_string(g_value_get_uint64(value));
    if (G_VALUE_HOLDS_INT64(value)) return std::to_string(g_value_get_int64(value));
    if (G_VALUE_HOLDS_UINT(value)) return std::to_string(g_value_get_uint(value));
    if (G_VALUE_HOLDS_INT(value)) return std::to_string(g_value_get_int(value));
    if (!G_VALUE_HOLDS_DOUBLE(value)) return "";
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    return g_ascii_dtostr(text, sizeof text, g_value_get_double(value));
}

}  // namespace

void Exposition::add(const std::string& pipeline, const std::string& element,
                     const GstStructure* stats) {
    std::string prefix = gst_structure_get_name(stats);
    if (prefix.ends_with("-stats")) prefix.resize(prefix.size() - 6);
    add_fields(metric_name(prefix), label("pipeline", pipeline) + ',' + label("element", element),
               stats);
}

void Exposition::add_fields(const std::string& prefix, const std::string& labels,
                            const GstStructure* structure) {
    for (gint i = 0; i < gst_structure_n_fields(structure); ++i) {
        const gchar* const field = gst_structure_nth_field_name(structure, static_cast<guint>(i));
        const GValue* const value = gst_structure_get_value(structure, field);
        if (GST_VALUE_HOLDS_ARRAY(value)) {
            for (guint k = 0; k < gst_value_array_get_size(value); ++k) {
                const GValue* const one = gst_value_array_get_value(value, k);
                if (!GST_VALUE_HOLDS_STRUCTURE(one)) continue;
                const GstStructure* const part = gst_value_get_structure(one);
                const gchar* const name = gst_structure_get_string(part, "name");
                add_fields(metric_name(gst_structure_get_name(part)),
                           name ? labels + ',' + label("name", name) : labels, part);
            }
            continue;
        }
        const std::string text = number(value);
        if (text.empty()) continue;
        const std::string metric = prefix + '_' + metric_name(field);
        metrics_[metric] += metric + '{' + labels + "} " + text + '\n';
    }
}

std::string Exposition::text() const {
    std::string all;
    for (const auto& [name, lines] : metrics_) all += "# TYPE " + name + " untyped\n" + lines;
    return all;
}

}  // namespace vartml::gst
