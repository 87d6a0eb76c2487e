// SPDX-License-Identifier: Apache-2.0
// A broker as the place where records go. Not in libvartml, which needs no MQTT library: the plugin
// with vartmlpublish carries it.
#pragma once
#include <memory>
#include <string>

#include <vartml/publish.h>
#include <vartml/result.h>

namespace vartml {

struct MqttOptions {
    std::string address = "localhost";
    unsigned port = 1883;
    /// `{stream}` and `{model}` are replaced by those of the record.
    std::string topic = "vartml/{stream}";
    std::string client_id;  ///< "" = random
    std::string username, password;
    std::string tls_ca_file;  ///< TLS when set
    std::string tls_cert_file, tls_key_file;
    unsigned qos = 1;
    unsigned keepalive_s = 30;
};

/// A connection that is made, lost and made again. Whether the broker can be reached, and whether
/// its name is known, shows later. Errors: unsupported in a build without the library,
/// invalid_argument, not_found and io for files of TLS, naming the file.
Result<std::unique_ptr<PublishSink>> make_mqtt_sink(const MqttOptions& options);

/// The topic of a record: characters that MQTT forbids in topics become `_`.
std::string mqtt_topic(const std::string& pattern, const std::string& stream,
                       const std::string& model);

}  // namespace vartml
