// SPDX-License-Identifier: Apache-2.0
// What the sinks of brokers share. Each is driven by the publisher's thread alone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vartml/publish_broker.h>

namespace vartml::publish {

// The kinds. Their options were checked, and have a port.
std::unique_ptr<PublishSink> make_mqtt_sink(const BrokerOptions& options);
std::unique_ptr<PublishSink> make_redis_sink(const BrokerOptions& options);
std::unique_ptr<PublishSink> make_kafka_sink(const BrokerOptions& options);
std::unique_ptr<PublishSink> make_nats_sink(const BrokerOptions& options);

// "broker HOST:PORT: TEXT", or of a list of hosts "broker HOST,HOST: TEXT".
Error broker_error(const BrokerOptions& options, const std::string& text,
                   ErrorCode code = ErrorCode::io);
// Logs that no connection will ever take a record, so that it is lost: the ones behind it must not
// wait for it.
void log_lost(const BrokerOptions& options, const PublishLine& line, const std::string& topic,
              const std::string& why);
// Of `a, b:4223`, without spaces; none is empty.
std::vector<std::string> servers_of(const std::string& address);
// A record without its newline.
std::string_view payload_of(const PublishLine& line);

constexpr size_t most_window = 64;  // ours: records on their way to a broker
// With jitter at most 5 s.
constexpr PublishSink::Backoff broker_backoff = {.first_ms = 500, .most_ms = 4000};

}  // namespace vartml::publish
