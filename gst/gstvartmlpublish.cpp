// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlpublish
 * @title: vartmlpublish
 * @short_description: writes what was found on frames as JSON lines
 *
 * Reads the analytics metadata of each frame (detections, classes, tracks, keypoints, masks,
 * embeddings, records of vartmlinfer), whose coordinates are pixels of the frame, and writes one
 * JSON object per frame, one per line, to standard output, a file, a unix socket or a broker (MQTT,
 * Redis, Kafka, NATS). It reads no tensors, so their shapes do not matter. Frames pass untouched
 * and at once, whatever the receiver does: a thread of its own writes.
 *
 * With #GstVartmlPublish:spool-dir records go to disk while the receiver is away, and are sent, the
 * oldest first, when it is back, also by the next process.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=3 ! vartmlpublish add-empty=true ! fakesink
 * ]| Three lines on standard output.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlpublish.h"

#include <atomic>
#include <memory>
#include <string>

#include "gst/publish/open.h"
#include "gst/publish/snapshot.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmlpublish_debug);
#define GST_CAT_DEFAULT vartmlpublish_debug

using namespace vartml::gst;

namespace {

struct State {
    // guarded by the object lock
    PublishSettings settings;
    std::shared_ptr<vartml::Publisher> publisher;  // between start and stop
    vartml::PublishCounts last_counts;             // of the publisher before
    std::string stream_id;

    std::atomic<bool> failed{false};  // the sink, for good

    // streaming thread, between start and stop
    SnapshotReader reader;
    std::string stream_name;  // the properties as they were at start
    uint64_t epoch = 0;
    guint64 frames = 0;  // since STREAM_START
    IdleNotice idle;
    FrameSize size;
};

}  // namespace

struct _GstVartmlPublish {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlPublish, gst_vartml_publish, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmlpublish, "vartmlpublish", GST_RANK_NONE, GST_TYPE_VARTML_PUBLISH)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_PUBLISH(object)->state;
}

std::shared_ptr<vartml::Publisher> publisher_of(gpointer object) {
    GST_OBJECT_LOCK(object);
    auto publisher = state_of(object).publisher;
    GST_OBJECT_UNLOCK(object);
    return publisher;
}

GstStructure* stats_of(GObject* object) {
    const auto publisher = publisher_of(object);
    vartml::PublishCounts c;
    if (publisher) {
        c = publisher->counts();
    } else {
        const ObjectLock lock(object);
        c = state_of(object).last_counts;
    }
    return gst_structure_new(
        "vartml-publish-stats", "queued", G_TYPE_UINT64, c.queued, "sent", G_TYPE_UINT64, c.sent,
        "spooled", G_TYPE_UINT64, c.spooled, "replayed", G_TYPE_UINT64, c.replayed, "dropped",
        G_TYPE_UINT64, c.dropped, "spool-bytes", G_TYPE_UINT64, c.spool_bytes, "spool-records",
        G_TYPE_UINT64, c.spool_records, "connected", G_TYPE_BOOLEAN, gboolean(c.connected),
        "reconnects", G_TYPE_UINT64, c.reconnects, nullptr);
}

constexpr GEnumValue method_values[] = {
    {static_cast<int>(PublishMethod::standard_output), "Standard output", "stdout"},
    {static_cast<int>(PublishMethod::file), "A file or FIFO", "file"},
    {static_cast<int>(PublishMethod::socket), "A listening unix socket", "socket"},
    {static_cast<int>(PublishMethod::mqtt), "An MQTT broker", "mqtt"},
    {static_cast<int>(PublishMethod::redis), "A stream of a Redis or Valkey server", "redis"},
    {static_cast<int>(PublishMethod::kafka), "A Kafka cluster", "kafka"},
    {static_cast<int>(PublishMethod::nats), "A stream of NATS JetStream", "nats"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue format_values[] = {
    {static_cast<int>(PublishFormat::json), "JSON lines, vartml.frame/1", "json"},
    {static_cast<int>(PublishFormat::onvif), "ONVIF metadata streams, XML on a line", "onvif"},
    {0, nullptr, nullptr},
};

constexpr GFlagsValue include_values[] = {
    {include_objects, "Detections", "objects"},
    {include_classes, "Classes of the picture and attributes of objects", "classes"},
    {include_tracks, "Track ids", "tracks"},
    {include_keypoints, "Joints and landmarks", "keypoints"},
    {include_timings, "Times of the inference", "timings"},
    {include_masks, "Masks as lengths of runs", "masks"},
    {include_embeddings, "Embedding vectors", "embeddings"},
    {include_texts, "Lines of text that were read", "texts"},
    {include_zones, "Zones and lines, who is there, and what happened", "zones"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<PublishSettings>> rows();
    static PublishSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject*) {}
};

std::span<const Property<PublishSettings>> Properties::rows() {
    using S = PublishSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"method", "Method", "Where records go", until_ready,
         P::choice<&S::method>("GstVartmlPublishMethod", method_values)},
        {"format", "Format", "How records are written", until_ready,
         P::choice<&S::format>("GstVartmlPublishFormat", format_values)},
        {"location", "Location", "File, FIFO or unix socket; required by methods file and socket",
         until_ready, P::Text{&S::location}},
        {"append", "Append", "Add to the file instead of replacing it", until_ready,
         P::Flag{&S::append}},
        {"address", "Address",
         "Host of the broker; of NATS also several HOST or HOST:PORT, with commas between them",
         until_ready, P::Text{&S::address}},
        {"port", "Port",
         "Port of the broker; 0 = 1883 (MQTT), 6379 (Redis), 9092 (Kafka), 4222 (NATS)",
         until_ready, P::Uint{&S::port, 0, 65535}},
        {"topic", "Topic",
         "Topic of MQTT and Kafka, key of Redis, subject of NATS; `{stream}` and `{model}` are "
         "replaced, and what is forbidden there becomes `_`",
         until_ready, P::Text{&S::topic}},
        {"client-id", "Client id",
         "Name of this client at the broker; unset: random (MQTT), none (Redis), vartml (Kafka, "
         "NATS)",
         until_ready, P::Text{&S::client_id}},
        {"username", "User name", "For the broker; unset: none", until_ready,
         P::Text{&S::username}},
        {"password", "Password", "For the broker; cannot be read back; unset: none", until_ready,
         P::Secret{&S::password}},
        {"credentials-file", "Credentials file",
         "Login for NATS with its key (.creds); unset: none", until_ready,
         P::Text{&S::credentials_file}},
        {"tls-ca-file", "CA file",
         "Certificates (PEM) that the broker's is checked by; unset: no TLS", until_ready,
         P::Text{&S::tls_ca_file}},
        {"tls-cert-file", "Certificate file", "Certificate (PEM) of this client; unset: none",
         until_ready, P::Text{&S::tls_cert_file}},
        {"tls-key-file", "Key file", "Key (PEM) of this client; unset: none", until_ready,
         P::Text{&S::tls_key_file}},
        {"mqtt-qos", "Quality of service",
         "Of MQTT; 0: at most once; 1: until the broker acknowledges; 2: exactly once per "
         "connection",
         until_ready, P::Uint{&S::qos, 0, 2}},
        {"keepalive", "Keep-alive",
         "Seconds after which a silent MQTT connection is tested, or a record that Redis, Kafka "
         "or NATS has not acknowledged is sent again",
         until_ready, P::Uint{&S::keepalive_s, 5, 65535}},
        {"redis-max-length", "Length of the Redis stream",
         "Entries that a Redis stream keeps, about; 0 = all", until_ready, P::Size{&S::max_length}},
        {"stream-name", "Stream name", "`stream` of records; unset: the stream id", until_ready,
         P::Text{&S::stream_name}},
        {"epoch", "Epoch",
         "`epoch` of records, greater for each owner of the stream that follows; 0: left out",
         until_ready, P::Size{&S::epoch}},
        {"include", "Include", "What records have", any_time,
         P::Flags{"GstVartmlPublishInclude", include_values, &S::include}},
        {"add-empty", "Add empty", "Also publish frames on which nothing was found", any_time,
         P::Flag{&S::add_empty}},
        {"every", "Every",
         "Publish every Nth frame, and those on which something enters or leaves a zone or crosses "
         "a line",
         any_time, P::Uint{&S::every, 1, G_MAXUINT}},
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
        P::stats<stats_of>("Counts since start: queued (now), sent, spooled, replayed, "
                           "dropped, spool-bytes and spool-records (now), connected, "
                           "reconnects"),
    };
    return all;
}

void post_state(GstElement* element, const char* name, const std::string& reason,
                const vartml::PublishCounts& counts) {
    GST_INFO_OBJECT(element, "%s %s", name, reason.c_str());
    GstStructure* s = gst_structure_new("vartml-publish-state", "state", G_TYPE_STRING, name,
                                        "reason", G_TYPE_STRING, reason.c_str(), "spool-records",
                                        G_TYPE_UINT64, counts.spool_records, "spool-bytes",
                                        G_TYPE_UINT64, counts.spool_bytes, nullptr);
    post_structure(element, s);
}

// They come from the publisher's thread, which keeps the element while it runs.
vartml::PublishEvents events_of(GstVartmlPublish* self, const PublishSettings& settings) {
    const std::shared_ptr<GstElement> element(GST_ELEMENT(gst_object_ref(self)),
                                              [](GstElement* e) { gst_object_unref(e); });
    PublishSettings shown = settings;
    shown.password.clear();
    vartml::PublishEvents events;
    events.state = [element](const char* name, const std::string& reason,
                             const vartml::PublishCounts& counts) {
        post_state(element.get(), name, reason, counts);
    };
    events.failed = [element, shown](const vartml::Error& error, bool disk_full) {
        state_of(element.get()).failed = true;
        post_error(element.get(), "publish records", write_failure(shown, error, disk_full));
    };
    events.spool_failed = [element, shown](const vartml::Error& error) {
        post_warning(element.get(), "keep records in the spool", spool_failure(shown, error));
    };
    return events;
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_PUBLISH(base);
    State& state = *self->state;
    install_log();
    GST_OBJECT_LOCK(self);
    const PublishSettings settings = state.settings;
    state.stream_id.clear();
    GST_OBJECT_UNLOCK(self);
    state.failed = false;
    state.stream_name = settings.stream_name;
    state.epoch = settings.epoch;
    state.frames = 0;
    state.idle.restart();
    state.size = {};
    auto opened = open_publisher(settings, events_of(self, settings));
    if (const auto* failure = std::get_if<Failure>(&opened))
        return post_error(self, "begin to publish", *failure);
    // An address that has a login is refused before.
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    GST_OBJECT_LOCK(self);
    state.publisher = std::move(std::get<std::unique_ptr<vartml::Publisher>>(opened));
    GST_OBJECT_UNLOCK(self);
    return TRUE;
}

gboolean stop(GstBaseTransform* base) {
    State& state = state_of(base);
    GST_OBJECT_LOCK(base);
    const unsigned timeout = state.settings.drain_timeout_ms;
    auto publisher = std::exchange(state.publisher, nullptr);
    GST_OBJECT_UNLOCK(base);
    state.reader.clear();
    if (!publisher) return TRUE;
    publisher->close(timeout);
    GST_OBJECT_LOCK(base);
    state.last_counts = publisher->counts();
    GST_OBJECT_UNLOCK(base);
    return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    state_of(base).size = video_size(in);
    return TRUE;
}

void drain(GstBaseTransform* base) {
    const auto publisher = publisher_of(base);
    GST_OBJECT_LOCK(base);
    const unsigned timeout = state_of(base).settings.drain_timeout_ms;
    GST_OBJECT_UNLOCK(base);
    if (publisher && !publisher->drain(timeout))
        GST_INFO_OBJECT(base, "not all records were delivered before EOS");
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    const auto publisher = publisher_of(base);
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_STREAM_START: {
            const gchar* id = nullptr;
            gst_event_parse_stream_start(event, &id);
            GST_OBJECT_LOCK(base);
            state.stream_id = id ? id : "";
            GST_OBJECT_UNLOCK(base);
            state.frames = 0;
            break;
        }
        case GST_EVENT_EOS:
            drain(base);
            break;
        case GST_EVENT_FLUSH_START:
            if (publisher) publisher->interrupt();
            break;
        case GST_EVENT_FLUSH_STOP:
            if (publisher) publisher->resume();
            break;
        default:
            break;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_publish_parent_class)->sink_event(base, event);
}

// What does not come from the analytics metadata.
void describe_frame(GstBaseTransform* base, GstBuffer* buffer, vartml::FrameRecord& record) {
    State& state = state_of(base);
    record.epoch = state.epoch;
    if (!state.stream_name.empty()) {
        record.stream = state.stream_name;
    } else if (record.stream.empty()) {
        record.stream = state.stream_id;
    }
    if (GST_BUFFER_PTS_IS_VALID(buffer)) record.pts_ns = GST_BUFFER_PTS(buffer);
    const GstClockTime running =
        base->segment.format == GST_FORMAT_TIME
            ? gst_segment_to_running_time(&base->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer))
            : GST_CLOCK_TIME_NONE;
    if (GST_CLOCK_TIME_IS_VALID(running)) record.running_ns = running;
    record.utc_ns = utc_of(GST_ELEMENT(base), buffer, running);
}

// Whether something entered or left a zone, or crossed a line, which no other frame tells.
bool has_zone_events(GstBuffer* buffer, unsigned include) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta || !(include & include_zones)) return false;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        const auto visit = get_zone_visit(mtd);
        if (visit && visit->kind != vartml::ZoneEventKind::inside) return true;
    }
    return false;
}

// Whatever `include` asks for. Where empty frames are asked for, a record of an inference will do.
void look_for_results(GstBaseTransform* base, GstBuffer* buffer, bool add_empty) {
    if (state_of(base).idle.is_over()) return;
    const bool has_record = get_inference(buffer, 0) != nullptr;
    bool has_result = add_empty && has_record;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer at = nullptr;
    GstAnalyticsMtd mtd;
    while (meta && !has_result &&
           gst_analytics_relation_meta_iterate(meta, &at, GST_ANALYTICS_MTD_TYPE_ANY, &mtd))
        has_result = gst_analytics_mtd_get_mtd_type(&mtd) != inference_mtd_type();
    state_of(base).idle.frame(
        GST_ELEMENT(base),
        {.id = "pub-idle", .doing = "publish results", .lacks = "results", .needs_decoder = true},
        has_result, has_record);
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    State& state = state_of(base);
    if (state.failed) return GST_FLOW_ERROR;
    GST_OBJECT_LOCK(base);
    const unsigned include = state.settings.include;
    const bool add_empty = state.settings.add_empty;
    const guint64 every = state.settings.every;
    vartml::Publisher* publisher = state.publisher.get();
    GST_OBJECT_UNLOCK(base);
    const guint64 frame = state.frames++;
    if (!publisher) return GST_FLOW_OK;
    look_for_results(base, buffer, add_empty);
    const bool turn = frame % every == 0;
    if (!turn && !has_zone_events(buffer, include)) return GST_FLOW_OK;
    auto record = publisher->take();
    record->frame_seq = frame;
    record->width = static_cast<guint>(state.size.width);
    record->height = static_cast<guint>(state.size.height);
    state.reader.read(buffer, include, *record);
    GST_LOG_OBJECT(base, "frame %" G_GUINT64_FORMAT ": %u inferences, %u objects%s", frame,
                   guint(record->num_inferences), guint(record->objects.size()),
                   record->empty() && !add_empty ? ", no record" : "");
    if (record->empty() && !add_empty) {
        publisher->give_back(std::move(record));
        return GST_FLOW_OK;
    }
    describe_frame(base, buffer, *record);
    publisher->put(std::move(record));
    return GST_FLOW_OK;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
    // EOS may wait in the streaming thread, which this waits for.
    const auto publisher = publisher_of(element);
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY && publisher) publisher->interrupt();
    return GST_ELEMENT_CLASS(gst_vartml_publish_parent_class)->change_state(element, transition);
}

}  // namespace

static void gst_vartml_publish_init(GstVartmlPublish* self) {
    self->state = new State;
    GstBaseTransform* base = GST_BASE_TRANSFORM(self);
    set_up_in_place(base);
    gst_base_transform_set_passthrough(base, TRUE);
}

static void gst_vartml_publish_class_init(GstVartmlPublishClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlpublish_debug, "vartmlpublish", 0, "metadata as JSON lines");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* element = GST_ELEMENT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlPublish>;
    element->change_state = change_state;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML publisher", "Analyzer/Metadata",
                    "Writes what was found on frames as JSON lines");

    base->start = start;
    base->stop = stop;
    base->set_caps = set_caps;
    base->sink_event = sink_event;
    base->transform_ip = transform_ip;
}
