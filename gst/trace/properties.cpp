// SPDX-License-Identifier: Apache-2.0
#include "gst/trace/properties.h"

#include <memory>
#include <sstream>
#include <utility>

#include "gst/support/runtime.h"

namespace vartml::gst::trace {
namespace {

enum { prop_0, prop_file, prop_flags, prop_max_bytes, prop_elements, prop_ring_kb, prop_summary };

GType flags_type() {
    static const GFlagsValue values[] = {
        {trace_flag::frames, "Element spans and frame arrows", "frames"},
        {trace_flag::runs, "Stages of inferences on host and device", "runs"},
        {trace_flag::ops, "Operators, of models compiled with --stats-level=70 or higher", "ops"},
        {trace_flag::queues, "Waits between two threads", "queues"},
        {trace_flag::copies, "Copies of frames and tensors, with bytes and reason", "copies"},
        {trace_flag::allocs, "Allocations of frame and tensor memory", "allocs"},
        {0, nullptr, nullptr},
    };
    static const GType type = g_flags_register_static("GstVartmlTraceFlags", values);
    return type;
}

// A number that becomes a large one when it is converted.
bool is_negative(const GValue* value) {
    GValue number = G_VALUE_INIT;
    g_value_init(&number, G_TYPE_DOUBLE);
    const bool negative = g_value_transform(value, &number) && g_value_get_double(&number) < 0;
    g_value_unset(&number);
    return negative;
}

// Parameters are given once, when the tracer is made.
constexpr auto writable =
    static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);

}  // namespace

void install_properties(GObjectClass* klass) {
    const auto install = [&](guint id, GParamSpec* spec) {
        g_object_class_install_property(klass, id, spec);
    };
    install(prop_file,
            g_param_spec_string("file", "File", "Trace to write; ui.perfetto.dev shows it",
                                "vartml-trace.json", writable));
    install(prop_flags, g_param_spec_flags("flags", "Flags", "What is recorded, joined by +",
                                           flags_type(), trace_flag::timeline, writable));
    install(prop_max_bytes,
            g_param_spec_uint64("max-bytes", "Largest file",
                                "Size of the file after which recording stops, 0: no limit", 0,
                                G_MAXUINT64, 0, writable));
    install(prop_elements,
            g_param_spec_string("elements", "Elements",
                                "Names of the elements that are recorded, as globs with commas "
                                "between, in quotes; unset: all",
                                nullptr, writable));
    install(prop_ring_kb, g_param_spec_uint("ring-kb", "Ring of a thread",
                                            "KiB for the events that a thread has recorded and "
                                            "that are not written yet",
                                            16, 1024 * 1024, 256, writable));
    install(prop_summary,
            g_param_spec_boolean("summary", "Summary",
                                 "Write percentiles of self time and queue wait per element and of "
                                 "frame time per stream to <file>.txt",
                                 TRUE, writable));
}

bool Properties::set(guint id, const GValue* value) {
    const auto text = [&] {
        const gchar* s = g_value_get_string(value);
        return std::string(s ? s : "");
    };
    switch (id) {
        case prop_file:
            file = text();
            return true;
        case prop_flags:
            flags = g_value_get_flags(value);
            return true;
        case prop_max_bytes:
            max_bytes = g_value_get_uint64(value);
            return true;
        case prop_elements:
            elements = text();
            return true;
        case prop_ring_kb:
            ring_kb = g_value_get_uint(value);
            return true;
        case prop_summary:
            summary = g_value_get_boolean(value);
            return true;
        default:
            return false;
    }
}

bool Properties::get(guint id, GValue* value) const {
    switch (id) {
        case prop_file:
            g_value_set_string(value, file.c_str());
            return true;
        case prop_flags:
            g_value_set_flags(value, flags);
            return true;
        case prop_max_bytes:
            g_value_set_uint64(value, max_bytes);
            return true;
        case prop_elements:
            g_value_set_string(value, elements.empty() ? nullptr : elements.c_str());
            return true;
        case prop_ring_kb:
            g_value_set_uint(value, ring_kb);
            return true;
        case prop_summary:
            g_value_set_boolean(value, summary);
            return true;
        default:
            return false;
    }
}

// Not core's own reading of parameters as properties: before 1.26.4 it takes no integer for one
// that is not a gint.
Result<void> Properties::parse(GObjectClass* klass, const char* text) {
    if (!text || !*text) return {};
    const auto refuse = [](std::string why) {
        return Error{ErrorCode::invalid_argument, std::move(why)};
    };
    const std::string whole = std::string("vartmltrace,") + text;
    gchar* rest = nullptr;
    const std::unique_ptr<GstStructure, decltype(&gst_structure_free)> given(
        gst_structure_from_string(whole.c_str(), &rest), gst_structure_free);
    if (!given || (rest && *rest)) {
        return refuse(std::string("parameters '") + text +
                      "' are not of the form name=value,name=value; quote values with commas or "
                      "asterisks");
    }
    for (int i = 0; i < gst_structure_n_fields(given.get()); ++i) {
        const char* const name = gst_structure_nth_field_name(given.get(), unsigned(i));
        const GValue* const value = gst_structure_get_value(given.get(), name);
        GParamSpec* const spec = g_object_class_find_property(klass, name);
        if (!spec || spec->owner_type != G_OBJECT_CLASS_TYPE(klass)) {
            return refuse(std::string("parameter '") + name +
                          "' is unknown; there are file, flags, max-bytes, elements, ring-kb and "
                          "summary");
        }
        GValue wanted = G_VALUE_INIT;
        g_value_init(&wanted, spec->value_type);
        const bool is_text = G_VALUE_HOLDS_STRING(value);
        const bool fits =
            !is_negative(value) &&
            (is_text ? gst_value_deserialize_with_pspec(&wanted, g_value_get_string(value), spec)
                     : g_value_transform(value, &wanted)) &&
            !g_param_value_validate(spec, &wanted);
        if (fits) set(spec->param_id, &wanted);
        g_value_unset(&wanted);
        if (!fits) {
            return refuse(std::string("parameter '") + name +
                          "' has a value that it cannot have; " +
                          "it is: " + g_param_spec_get_blurb(spec));
        }
    }
    return {};
}

HostTraceOptions Properties::options() const {
    HostTraceOptions options{.flags = flags, .max_bytes = max_bytes, .ring_kb = ring_kb};
    if (const char* reason = operators_not_reported())
        options.not_captured.push_back(std::string("operators: ") + reason);
    return options;
}

std::vector<std::string> Properties::element_globs() const {
    std::vector<std::string> globs;
    std::istringstream text(elements);
    for (std::string one; std::getline(text, one, ',');)
        if (!one.empty()) globs.push_back(one);
    return globs;
}

}  // namespace vartml::gst::trace
