// SPDX-License-Identifier: Apache-2.0
// A build without libmosquitto.
#include <vartml/publish_mqtt.h>

namespace vartml {

Result<std::unique_ptr<PublishSink>> make_mqtt_sink(const MqttOptions&) {
    return Error{ErrorCode::unsupported,
                 "this build has no MQTT; build with -Dmqtt=enabled, which needs libmosquitto, or "
                 "choose another method"};
}

}  // namespace vartml
