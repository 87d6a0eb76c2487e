// SPDX-License-Identifier: Apache-2.0
#include "gst/support/error.h"

#include <cstring>

namespace vartml::gst {
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
    {"infer-caps", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {"infer-copy-forbidden", Domain::stream, GST_STREAM_ERROR_WRONG_TYPE},
    {"infer-model-unreadable", Domain::resource, GST_RESOURCE_ERROR_OPEN_READ},
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
    post(element, GST_MESSAGE_WARNING, doing, failure);
}

}  // namespace vartml::gst
