// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/properties.h"

namespace vartml::gst {
namespace {

GType method_type() {
    static const GEnumValue values[] = {
        {static_cast<int>(PublishMethod::standard_output), "Standard output", "stdout"},
        {static_cast<int>(PublishMethod::file), "A file or FIFO", "file"},
        {static_cast<int>(PublishMethod::socket), "A listening unix socket", "socket"},
        {static_cast<int>(PublishMethod::mqtt), "An MQTT broker", "mqtt"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_enum("GstVartmlPublishMethod", values);
    return type;
}

GType include_type() {
    static const GFlagsValue values[] = {
        {include_objects, "Detections", "objects"},
        {include_classes, "Classes of the picture and attributes of objects", "classes"},
        {include_tracks, "Track ids", "tracks"},
        {include_keypoints, "Joints and landmarks", "keypoints"},
        {include_timings, "Times of the inference", "timings"},
        {include_masks, "Masks as lengths of runs", "masks"},
        {include_embeddings, "Embedding vectors", "embeddings"},
        {include_texts, "Lines of text that were read", "texts"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_flags("GstVartmlPublishInclude", values);
    return type;
}

}  // namespace

std::span<const Property<PublishSettings>> publish_properties() {
    using S = PublishSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"method", "Method", "Where records go", until_ready, P::choice<&S::method>(method_type)},
        {"location", "Location", "File, FIFO or unix socket; required by methods file and socket",
         until_ready, P::Text{&S::location}},
        {"append", "Append", "Add to the file instead of replacing it", until_ready,
         P::Flag{&S::append}},
        {"address", "Address", "Host of the MQTT broker", until_ready, P::Text{&S::address}},
        {"port", "Port", "Port of the MQTT broker", until_ready, P::Uint{&S::port, 1, 65535}},
        {"topic", "Topic",
         "MQTT topic; `{stream}` and `{model}` are replaced, and what MQTT forbids becomes `_`",
         until_ready, P::Text{&S::topic}},
        {"client-id", "Client id", "Name of this MQTT client; unset: random", until_ready,
         P::Text{&S::client_id}},
        {"username", "User name", "For the MQTT broker; unset: none", until_ready,
         P::Text{&S::username}},
        {"password", "Password", "For the MQTT broker; cannot be read back; unset: none",
         until_ready, P::Secret{&S::password}},
        {"tls-ca-file", "CA file",
         "Certificates (PEM) that the broker's is checked by; unset: no TLS", until_ready,
         P::Text{&S::tls_ca_file}},
        {"tls-cert-file", "Certificate file", "Certificate (PEM) of this client; unset: none",
         until_ready, P::Text{&S::tls_cert_file}},
        {"tls-key-file", "Key file", "Key (PEM) of this client; unset: none", until_ready,
         P::Text{&S::tls_key_file}},
        {"mqtt-qos", "Quality of service",
         "0: at most once; 1: until the broker acknowledges; 2: exactly once per connection",
         until_ready, P::Uint{&S::qos, 0, 2}},
        {"keepalive", "Keep-alive", "Seconds after which a silent MQTT connection is tested",
         until_ready, P::Uint{&S::keepalive_s, 5, 65535}},
        {"stream-name", "Stream name", "`stream` of records; unset: the stream id", until_ready,
         P::Text{&S::stream_name}},
        {"include", "Include", "What records have", any_time, P::Flags{include_type, &S::include}},
        {"add-empty", "Add empty", "Also publish frames on which nothing was found", any_time,
         P::Flag{&S::add_empty}},
        {"every", "Every", "Publish every Nth frame", any_time, P::Uint{&S::every, 1, G_MAXUINT}},
        {"queue-size", "Queue size",
         "Frames that wait in memory; when full, the oldest is dropped or goes to the spool",
         until_ready, P::Uint{&S::queue_size, 1, 65536}},
        {"spool-dir", "Spool folder",
         "Folder for records while the receiver is away; unset: they are dropped when the queue is "
         "full",
         until_ready, P::Text{&S::spool_dir}},
        {"spool-max-bytes", "Spool size",
         "Bytes that the spool may take; when full, its oldest part is dropped", until_ready,
         P::Time{&S::spool_max_bytes}},
        {"spool-max-age", "Spool age",
         "Seconds after which records in the spool are dropped; 0: never", until_ready,
         P::Uint{&S::spool_max_age, 0, G_MAXUINT}},
        {"drain-timeout", "Drain timeout",
         "Milliseconds that EOS and the way to READY wait at most for records to be delivered",
         until_ready, P::Uint{&S::drain_timeout_ms, 0, 3600000}},
    };
    return all;
}

}  // namespace vartml::gst
