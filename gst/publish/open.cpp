// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/open.h"

#include <algorithm>

namespace vartml::gst {
namespace {

using SinkResult = vartml::Result<std::unique_ptr<vartml::PublishSink>>;

// Methods that send to a broker.
struct BrokerMethod {
    PublishMethod method;
    vartml::BrokerKind kind;
    const char* absent;  // id of the error in a build without
};
constexpr BrokerMethod broker_methods[] = {
    {PublishMethod::mqtt, vartml::BrokerKind::mqtt, "pub-no-mqtt"},
    {PublishMethod::redis, vartml::BrokerKind::redis, "pub-no-redis"},
    {PublishMethod::kafka, vartml::BrokerKind::kafka, "pub-no-kafka"},
    {PublishMethod::nats, vartml::BrokerKind::nats, "pub-no-nats"},
};
const BrokerMethod* broker_of(PublishMethod method) {
    const auto it = std::ranges::find(broker_methods, method, &BrokerMethod::method);
    return it == std::end(broker_methods) ? nullptr : it;
}

SinkResult make_sink(const PublishSettings& settings) {
    if (const BrokerMethod* broker = broker_of(settings.method))
        return vartml::make_broker_sink(broker->kind, settings);
    switch (settings.method) {
        case PublishMethod::file:
            return vartml::make_file_sink(settings.location, settings.append);
        case PublishMethod::socket:
            return vartml::make_socket_sink(settings.location);
        default:
            return vartml::make_stdout_sink();
    }
}

// What only brokers read.
struct BrokerSetting {
    std::string vartml::BrokerOptions::* option;
    const char* property;
    const char* fault;  // id of the error where it cannot work; nullptr: it always can
    bool file;
};
using Options = vartml::BrokerOptions;
constexpr BrokerSetting broker_settings[] = {
    {&Options::address, "address", "pub-address", false},
    {&Options::topic, "topic", nullptr, false},
    {&Options::client_id, "client-id", nullptr, false},
    {&Options::username, "username", "pub-login", false},
    {&Options::password, "password", "pub-login", false},
    {&Options::credentials_file, "credentials-file", "pub-tls", true},
    {&Options::tls_ca_file, "tls-ca-file", "pub-tls", true},
    {&Options::tls_cert_file, "tls-cert-file", "pub-tls", true},
    {&Options::tls_key_file, "tls-key-file", "pub-tls", true},
};

std::optional<Failure> broker_setting_without_broker(const PublishSettings& settings) {
    if (broker_of(settings.method)) return std::nullopt;
    const PublishSettings unset;
    for (const BrokerSetting& setting : broker_settings)
        if (settings.*setting.option != unset.*setting.option)
            return Failure{
                .error = {vartml::ErrorCode::invalid_argument,
                          std::string("property '") + setting.property +
                              "' is set, and records go to no broker; set method=mqtt, redis, "
                              "kafka or nats, or leave it unset"},
                .id = "pub-method",
                .property = setting.property};
    return std::nullopt;
}

std::optional<Failure> broker_setting_that_cannot_work(const PublishSettings& settings) {
    const BrokerMethod* broker = broker_of(settings.method);
    if (!broker) return std::nullopt;
    auto found = vartml::check_broker(broker->kind, settings);
    if (!found) return std::nullopt;
    const auto setting = std::ranges::find(broker_settings, found->option, &BrokerSetting::option);
    found->error.code = vartml::ErrorCode::invalid_argument;
    return Failure{.error = std::move(found->error),
                   .id = setting->fault,
                   .property = setting->property,
                   .file = setting->file ? settings.*setting->option : ""};
}

Failure sink_failure(const PublishSettings& settings, vartml::Error error) {
    if (const BrokerMethod* broker = broker_of(settings.method))
        return {.error = std::move(error), .id = broker->absent, .property = "method"};
    return {.error = std::move(error),
            .id = "pub-location",
            .property = "location",
            .file = settings.location};
}

}  // namespace

Failure write_failure(const PublishSettings& settings, const vartml::Error& error, bool disk_full) {
    const bool file = settings.method == PublishMethod::file;
    return {.error = error,
            .id = disk_full ? "pub-disk-full" : "pub-location",
            .property = file ? "location" : "method",
            .file = file ? settings.location : ""};
}

Failure spool_failure(const PublishSettings& settings, const vartml::Error& error) {
    return {.error = error, .id = "pub-spool", .property = "spool-dir", .file = settings.spool_dir};
}

std::variant<std::unique_ptr<vartml::Publisher>, Failure> open_publisher(
    const PublishSettings& settings, vartml::PublishEvents events) {
    if (settings.method != PublishMethod::file && settings.method != PublishMethod::socket &&
        !settings.location.empty())
        return Failure{.error = {vartml::ErrorCode::invalid_argument,
                                 "property 'location' is '" + settings.location +
                                     "', and records go to no file or socket; set method=file or "
                                     "method=socket, or leave it unset"},
                       .id = "pub-location",
                       .property = "location"};
    if (auto failure = broker_setting_without_broker(settings)) return *std::move(failure);
    if (auto failure = broker_setting_that_cannot_work(settings)) return *std::move(failure);
    auto sink = make_sink(settings);
    if (!sink) return sink_failure(settings, sink.error());
    if (settings.format == PublishFormat::onvif) *sink = vartml::make_onvif_sink(std::move(*sink));
    vartml::PublishOptions options = settings;
    options.spool_max_age_s = settings.spool_max_age;
    auto publisher = vartml::Publisher::open(std::move(*sink), options, std::move(events));
    if (!publisher) return spool_failure(settings, publisher.error());
    return std::move(*publisher);
}

namespace {

constexpr int64_t unix_after_ntp = 2208988800LL * GST_SECOND;  // given: RFC 5905, figure 4

std::optional<int64_t> reference_time(GstBuffer* buffer) {
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               buffer, &state, GST_REFERENCE_TIMESTAMP_META_API_TYPE)) {
        const auto* reference = reinterpret_cast<const GstReferenceTimestampMeta*>(meta);
        const GstStructure* s = gst_caps_get_structure(reference->reference, 0);
        const auto time = static_cast<int64_t>(reference->timestamp);
        if (gst_structure_has_name(s, "timestamp/x-unix")) return time;
        if (!gst_structure_has_name(s, "timestamp/x-ntp")) continue;
        // given, RFC 4330, 3: seconds whose highest bit is not set are of the era from 2036 on.
        constexpr int64_t half_era = (int64_t{1} << 31) * GST_SECOND;
        return time + (time < half_era ? 2 * half_era : 0) - unix_after_ntp;
    }
    return std::nullopt;
}

}  // namespace

std::optional<int64_t> utc_of(GstElement* element, GstBuffer* buffer, GstClockTime running_time) {
    if (const auto time = reference_time(buffer)) return time;
    if (!GST_CLOCK_TIME_IS_VALID(running_time)) return std::nullopt;
    // Until the element plays, the base time may be that of before.
    GST_OBJECT_LOCK(element);
    const bool playing = GST_STATE(element) == GST_STATE_PLAYING;
    GST_OBJECT_UNLOCK(element);
    if (!playing) return std::nullopt;
    GstClock* clock = gst_element_get_clock(element);
    if (!clock) return std::nullopt;
    // The clock counts from anywhere; it and the calendar are read together.
    const auto now = static_cast<int64_t>(gst_clock_get_time(clock));
    const int64_t utc_now = g_get_real_time() * GST_USECOND;
    gst_object_unref(clock);
    const auto then = static_cast<int64_t>(gst_element_get_base_time(element) + running_time);
    // What is not live comes before its time: it was not taken later than now.
    return std::min(utc_now, utc_now - (now - then));
}

}  // namespace vartml::gst
