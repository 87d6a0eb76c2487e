// SPDX-License-Identifier: Apache-2.0
// The parameters of a tracer, NAME(a=1,b=2), as its properties, read once when it is made.
#pragma once
#include <memory>
#include <string>

#include <vartml/result.h>

#include "gst/support/property_table.h"

namespace vartml::gst {

// A number that becomes a large one when it is converted.
inline bool is_negative(const GValue* value) {
    GValue number = G_VALUE_INIT;
    g_value_init(&number, G_TYPE_DOUBLE);
    const bool negative = g_value_transform(value, &number) && g_value_get_double(&number) < 0;
    g_value_unset(&number);
    return negative;
}

// "from 0 to 65535", "one or more of frames+queues", "a gboolean".
inline std::string expected_of(GParamSpec* spec) {
    const auto range = [](const auto* number) {
        return "from " + std::to_string(number->minimum) + " to " + std::to_string(number->maximum);
    };
    if (G_IS_PARAM_SPEC_UINT(spec)) return range(G_PARAM_SPEC_UINT(spec));
    if (G_IS_PARAM_SPEC_UINT64(spec)) return range(G_PARAM_SPEC_UINT64(spec));
    if (!G_IS_PARAM_SPEC_FLAGS(spec)) return std::string("a ") + g_type_name(spec->value_type);
    std::string names = "one or more of ";
    const GFlagsClass* const flags = G_PARAM_SPEC_FLAGS(spec)->flags_class;
    for (guint i = 0; i < flags->n_values; ++i)
        names += (i ? "+" : "") + std::string(flags->values[i].value_nick);
    return names;
}

// Writes what the parameter `params` of the tracer `name` says to the settings. Not core's own
// reading of parameters as properties: before 1.26.4 it takes no integer for one that is not a
// gint. Errors: invalid_argument.
template <typename Parameters, typename Settings>
Result<void> read_parameters(GObject* tracer, const char* name, Settings& settings) {
    gchar* given_text = nullptr;
    g_object_get(tracer, "params", &given_text, nullptr);
    const std::unique_ptr<gchar, decltype(&g_free)> text(given_text, g_free);
    if (!text || !*text) return {};
    const auto refuse = [](std::string why) {
        return Error{ErrorCode::invalid_argument, std::move(why)};
    };
    const std::string whole = std::string(name) + "," + text.get();
    gchar* rest = nullptr;
    const std::unique_ptr<GstStructure, decltype(&gst_structure_free)> given(
        gst_structure_from_string(whole.c_str(), &rest), gst_structure_free);
    if (!given || (rest && *rest)) {
        return refuse(std::string("parameters '") + text.get() +
                      "' are not of the form name=value,name=value; quote values with commas or "
                      "asterisks");
    }
    GObjectClass* const klass = G_OBJECT_GET_CLASS(tracer);
    for (int i = 0; i < gst_structure_n_fields(given.get()); ++i) {
        const char* const field = gst_structure_nth_field_name(given.get(), unsigned(i));
        const GValue* const value = gst_structure_get_value(given.get(), field);
        GParamSpec* const spec = g_object_class_find_property(klass, field);
        if (!spec || spec->owner_type != G_OBJECT_CLASS_TYPE(klass)) {
            std::string known;
            const auto rows = Parameters::rows();
            for (size_t k = 0; k < rows.size(); ++k)
                known += (k == 0                 ? ""
                          : k + 1 == rows.size() ? " and "
                                                 : ", ") +
                         std::string(rows[k].name);
            return refuse(std::string("parameter '") + field + "' is unknown; there are " + known);
        }
        GValue wanted = G_VALUE_INIT;
        g_value_init(&wanted, spec->value_type);
        const bool is_text = G_VALUE_HOLDS_STRING(value);
        const bool fits =
            !is_negative(value) &&
            (is_text ? gst_value_deserialize_with_pspec(&wanted, g_value_get_string(value), spec)
                     : g_value_transform(value, &wanted)) &&
            !g_param_value_validate(spec, &wanted);
        if (fits) Parameters::rows()[spec->param_id - 1].set(settings, &wanted);
        g_value_unset(&wanted);
        if (!fits) {
            const std::unique_ptr<gchar, decltype(&g_free)> found(gst_value_serialize(value),
                                                                  g_free);
            return refuse(std::string("parameter '") + field + "' is " +
                          (found ? found.get() : "?") + ", expected " + expected_of(spec) +
                          "; it is: " + g_param_spec_get_blurb(spec));
        }
    }
    return {};
}

}  // namespace vartml::gst
