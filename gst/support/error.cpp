// SPDX-License-Identifier: Apache-2.0
#include "gst/support/error.h"

#include <cstring>
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

GstDebugCategory* performance_log() {
    static GstDebugCategory* const known = [] {
        GstDebugCategory* category = nullptr;
        GST_DEBUG_CATEGORY_GET(category, "GST_PERFORMANCE");
        return category;
    }();
    return known;
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

namespace {

enum class Domain { core, library, resource, stream };

GQuark quark(Domain domain) {
    switch (domain) {
        case Domain::core:
            return GST_CORE_ERROR;
        case Domain::library:
            return GST_LIBRARY_ERROR;
        case Domain::resource:
            return GST_RESOURCE_ERROR;
        case Domain::stream:
            return GST_STREAM_ERROR;
    }
    return GST_LIBRARY_ERROR;
}

struct ById {
    const char* id;
    Domain domain;
    int code;
};
// Ids whose code is not that of the library's error.
constexpr ById by_id[] = {
    {"dec-unknown", Domain::stream, GST_STREAM_ERROR_TYPE_NOT_FOUND},
    {"infer-cache", Domain::resource, GST_RESOURCE_ERROR_OPEN_WRITE},
    {"infer-camera", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"infer-caps", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"infer-copy-forbidden", Domain::stream, GST_STREAM_ERROR_WRONG_TYPE},
    {"infer-model-unreadable", Domain::resource, GST_RESOURCE_ERROR_OPEN_READ},
    {"infer-tensors", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"join-caps", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"ovl-caps", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"pub-disk-full", Domain::resource, GST_RESOURCE_ERROR_NO_SPACE_LEFT},
    {"pub-location", Domain::resource, GST_RESOURCE_ERROR_OPEN_WRITE},
    {"pub-spool", Domain::resource, GST_RESOURCE_ERROR_OPEN_WRITE},
};

struct ByCode {
    vartml::ErrorCode code;
    Domain domain;
    int gst;
};
constexpr ByCode by_code[] = {
    {vartml::ErrorCode::invalid_argument, Domain::resource, GST_RESOURCE_ERROR_SETTINGS},
    {vartml::ErrorCode::not_found, Domain::resource, GST_RESOURCE_ERROR_NOT_FOUND},
    {vartml::ErrorCode::unsupported, Domain::stream, GST_STREAM_ERROR_NOT_IMPLEMENTED},
    {vartml::ErrorCode::bad_model, Domain::stream, GST_STREAM_ERROR_FORMAT},
    {vartml::ErrorCode::out_of_memory, Domain::library, GST_LIBRARY_ERROR_FAILED},
    {vartml::ErrorCode::busy, Domain::resource, GST_RESOURCE_ERROR_BUSY},
    {vartml::ErrorCode::timeout, Domain::resource, GST_RESOURCE_ERROR_FAILED},
    {vartml::ErrorCode::io, Domain::resource, GST_RESOURCE_ERROR_READ},
    {vartml::ErrorCode::device, Domain::resource, GST_RESOURCE_ERROR_FAILED},
    {vartml::ErrorCode::internal, Domain::library, GST_LIBRARY_ERROR_FAILED},
};

void set_if(GstStructure* s, const char* field, const char* text) {
    if (text && *text) gst_structure_set(s, field, G_TYPE_STRING, text, nullptr);
}

void post(gpointer element, GstMessageType type, const char* doing, const Failure& failure) {
    const MessageCode code = message_code(failure.error.code, failure.id);
    GstStructure* details =
        gst_structure_new("vartml-error", "id", G_TYPE_STRING, failure.id, "code", G_TYPE_STRING,
                          vartml::to_string(failure.error.code), nullptr);
    set_if(details, "property", failure.property);
    set_if(details, "file", failure.file.c_str());
    set_if(details, "found", failure.found.c_str());
    set_if(details, "expected", failure.expected.c_str());
    set_if(details, "fix", failure.fix.c_str());
    if (failure.recoverable)
        gst_structure_set(details, "recoverable", G_TYPE_BOOLEAN, gboolean(*failure.recoverable),
                          nullptr);
    gst_element_message_full_with_details(
        GST_ELEMENT(element), type, code.domain, code.code,
        g_strdup_printf("Could not %s: %s", doing, failure.error.message.c_str()),
        g_strdup_printf("id %s, code %s", failure.id, vartml::to_string(failure.error.code)),
        __FILE__, GST_FUNCTION, __LINE__, details);
}

}  // namespace

MessageCode message_code(vartml::ErrorCode code, const char* id) {
    for (const ById& row : by_id) {
        if (code == vartml::ErrorCode::busy) break;  // it is busy whatever it is
        if (!std::strcmp(row.id, id)) return {quark(row.domain), row.code};
    }
    for (const ByCode& row : by_code) {
        if (row.code == code) return {quark(row.domain), row.gst};
    }
    return {GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED};
}

gboolean post_error(gpointer element, const char* doing, const Failure& failure) {
    post(element, GST_MESSAGE_ERROR, doing, failure);
    return FALSE;
}

void post_warning(gpointer element, const char* doing, const Failure& failure) {
    // gst-launch-1.0 -q prints errors alone; the log is where such a user can read a warning.
    if (GstElementFactory* factory = gst_element_get_factory(GST_ELEMENT(element)))
        if (GstDebugCategory* log = _gst_debug_get_category(GST_OBJECT_NAME(factory)))
            GST_CAT_WARNING_OBJECT(log, element, "Could not %s: %s", doing,
                                   failure.error.message.c_str());
    post(element, GST_MESSAGE_WARNING, doing, failure);
}

void post_structure(gpointer element, GstStructure* structure) {
    gst_element_post_message(GST_ELEMENT(element),
                             gst_message_new_element(GST_OBJECT(element), structure));
}

std::string name_of(gpointer element) {
    gchar* const name = gst_object_get_name(GST_OBJECT(element));
    std::string copy = name;
    g_free(name);
    return copy;
}

void warn_if_fixed(GObject* object, const GParamSpec* property) {
    if (!GST_IS_ELEMENT(object) || (property->flags & GST_PARAM_MUTABLE_PLAYING)) return;
    GST_OBJECT_LOCK(object);
    const GstState state = GST_STATE(object);
    GST_OBJECT_UNLOCK(object);
    if (state <= GST_STATE_READY) return;
    const std::string name = property->name, now = gst_element_state_get_name(state);
    post_warning(object, "take over the property",
                 {.error = {vartml::ErrorCode::invalid_argument,
                            "property '" + name + "' was written in state " + now +
                                ", but is taken over on the way from READY to PAUSED alone: write "
                                "it in state NULL or READY"},
                  .id = "prop-fixed",
                  .property = property->name,
                  .found = now,
                  .expected = "READY",
                  .fix = "set the element to READY first"});
}

}  // namespace vartml::gst
