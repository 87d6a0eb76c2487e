// SPDX-License-Identifier: Apache-2.0
// A broker as the place where records go. Not in libvartml, which needs no library of theirs: the
// plugin with vartmlpublish carries it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <vartml/publish.h>
#include <vartml/result.h>

namespace vartml {

enum class BrokerKind {
    mqtt,   ///< a message per record
    redis,  ///< an entry of a stream per record, with the field `record`; also Valkey
    kafka,  ///< a message per record, with the stream's name as key
    nats,   ///< a message of JetStream per record, with an id by which the server stores it once
};

struct BrokerOptions {
    std::string address = "localhost";  ///< of NATS several, with commas, each with a port or not
    unsigned port = 0;  ///< 0 = the usual one: 1883 of MQTT, 6379 of Redis, 9092 of Kafka, 4222
    /// MQTT's or Kafka's topic, Redis's key, NATS's subject, in which a `/` becomes a `.`.
    /// `{stream}` and `{model}` are replaced by those of the record.
    std::string topic = "vartml/{stream}";
    std::string client_id{};  ///< "" = random (MQTT), none (Redis), vartml (Kafka, NATS)
    std::string username{}, password{};
    std::string credentials_file{};  ///< of NATS (.creds)
    std::string tls_ca_file{};       ///< TLS when set; not with Redis
    std::string tls_cert_file{}, tls_key_file{};
    unsigned qos = 1;  ///< MQTT alone
    /// Seconds after which a silent connection is tested (MQTT), or a record that was not
    /// acknowledged has failed and is sent again (Redis, Kafka, NATS).
    unsigned keepalive_s = 30;
    uint64_t max_length = 0;  ///< Redis alone: entries that a stream keeps, about; 0 = all
};

/// Options with which no connection can ever be made.
struct BrokerFault {
    Error error;
    std::string BrokerOptions::* option;  ///< that is to be changed
};

/// Whether the options can work, without asking anybody: an address that is none, half of a login,
/// files of TLS that are absent or that the kind does not use. The error's message names the file,
/// and repeats no login.
std::optional<BrokerFault> check_broker(BrokerKind kind, const BrokerOptions& options);

/// A connection that is made, lost and made again. Whether the broker can be reached, and whether
/// its name is known, shows later. Errors: unsupported in a build without the library of this kind,
/// and those of check_broker().
Result<std::unique_ptr<PublishSink>> make_broker_sink(BrokerKind kind,
                                                      const BrokerOptions& options);

/// The topic or key of a record: characters that the kind forbids become `_`.
std::string broker_topic(BrokerKind kind, const std::string& pattern, const std::string& stream,
                         const std::string& model);

}  // namespace vartml
