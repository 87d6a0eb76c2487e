// SPDX-License-Identifier: Apache-2.0
#include "gst/support/error.h"

#include "tests/support/gst_main.h"

namespace {

using vartml::ErrorCode;
using vartml::gst::Failure;

enum class Domain { core, library, resource, stream };
GQuark quark(Domain d) {
    return d == Domain::core       ? GST_CORE_ERROR
           : d == Domain::library  ? GST_LIBRARY_ERROR
           : d == Domain::resource ? GST_RESOURCE_ERROR
                                   : GST_STREAM_ERROR;
}

struct Case {
    ErrorCode code;
    const char* id;
    Domain domain;
    int want;
};
const Case cases[] = {
    // the library's code decides
    {ErrorCode::invalid_argument, "infer-option", Domain::resource, GST_RESOURCE_ERROR_SETTINGS},
    {ErrorCode::not_found, "infer-model-missing", Domain::resource, GST_RESOURCE_ERROR_NOT_FOUND},
    {ErrorCode::unsupported, "infer-compile", Domain::stream, GST_STREAM_ERROR_NOT_IMPLEMENTED},
    {ErrorCode::bad_model, "infer-model-bad", Domain::stream, GST_STREAM_ERROR_FORMAT},
    {ErrorCode::out_of_memory, "infer-run", Domain::library, GST_LIBRARY_ERROR_FAILED},
    {ErrorCode::busy, "infer-device-busy", Domain::resource, GST_RESOURCE_ERROR_BUSY},
    {ErrorCode::busy, "pub-spool", Domain::resource, GST_RESOURCE_ERROR_BUSY},
    {ErrorCode::timeout, "infer-run", Domain::resource, GST_RESOURCE_ERROR_FAILED},
    {ErrorCode::device, "infer-device-lost", Domain::resource, GST_RESOURCE_ERROR_FAILED},
    {ErrorCode::io, "infer-run", Domain::resource, GST_RESOURCE_ERROR_READ},
    {ErrorCode::internal, "infer-run", Domain::library, GST_LIBRARY_ERROR_FAILED},
    // the id decides
    {ErrorCode::io, "infer-model-unreadable", Domain::resource, GST_RESOURCE_ERROR_OPEN_READ},
    {ErrorCode::io, "infer-cache", Domain::resource, GST_RESOURCE_ERROR_OPEN_WRITE},
    {ErrorCode::unsupported, "infer-caps", Domain::core, GST_CORE_ERROR_NEGOTIATION},
    {ErrorCode::unsupported, "infer-copy-forbidden", Domain::stream, GST_STREAM_ERROR_WRONG_TYPE},
};

class MessageCode : public testing::TestWithParam<Case> {};
TEST_P(MessageCode, FollowsTheTable) {
    const Case& c = GetParam();
    const auto got = vartml::gst::message_code(c.code, c.id);
    EXPECT_EQ(got.domain, quark(c.domain));
    EXPECT_EQ(got.code, c.want);
}
INSTANTIATE_TEST_SUITE_P(Error, MessageCode, testing::ValuesIn(cases));

TEST(PostError, CarriesSentenceAndDetails) {
    GstElement* element = gst_bin_new("bin");
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    Failure failure{{ErrorCode::not_found, "model 'a.rai' does not exist"}, "infer-model-missing"};
    failure.property = "model";
    failure.file = "a.rai";
    EXPECT_FALSE(vartml::gst::post_error(element, "open the model", failure));

    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    const GstStructure* details = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(error->message, "Could not open the model: model 'a.rai' does not exist");
    ASSERT_NE(details, nullptr);
    EXPECT_TRUE(gst_structure_has_name(details, "vartml-error"));
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-model-missing");
    EXPECT_STREQ(gst_structure_get_string(details, "code"), "not_found");
    EXPECT_STREQ(gst_structure_get_string(details, "property"), "model");
    EXPECT_STREQ(gst_structure_get_string(details, "file"), "a.rai");
    EXPECT_FALSE(gst_structure_has_field(details, "found"));
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
}

}  // namespace
