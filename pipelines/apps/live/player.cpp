// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/player.h"

#include <gst/analytics/analytics.h>
#include <gst/app/app.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace live {
namespace {

using demo::element_of;
using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;

// A camera sets the pace; files are held to theirs before the model, so that its figures are those
// of a camera: where it cannot follow, frames pass without inference.
std::string pipeline_text(Input input) {
    const std::string source = input == Input::camera
                                   ? "v4l2src name=source ! decodebin"
                                   : "filesrc name=source ! decodebin ! queue ! clocksync";
    return source +
           " ! queue max-size-buffers=3 max-size-bytes=0 max-size-time=0 ! "
           "vartmlinfer name=infer on-late=skip ! vartmldecode name=decode ! vartmltrack ! "
           "queue max-size-buffers=3 max-size-bytes=0 max-size-time=0 ! "
           "vartmloverlay name=overlay ! videoconvert ! jpegenc quality=80 ! "
           "appsink name=sink max-buffers=2 drop=true sync=false";
}

std::string model_name(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

// Whether the property, an enumeration, has the value.
bool knows(GstElement* element, const char* property, const std::string& text) {
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), property);
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_PARAM_SPEC_VALUE_TYPE(spec));
    const bool known = gst_value_deserialize(&value, text.c_str());
    g_value_unset(&value);
    return known;
}

double field(const GstStructure* s, const char* name) {
    const GValue* value = gst_structure_get_value(s, name);
    if (!value) return 0;
    return static_cast<double>(G_VALUE_HOLDS_UINT(value) ? g_value_get_uint(value)
                                                         : g_value_get_uint64(value));
}

}  // namespace

Player::Player(const Options& options, Callbacks callbacks)
    : options_(options), callbacks_(std::move(callbacks)) {}

Result<std::unique_ptr<Player>> Player::create(const Options& options, Callbacks callbacks) {
    std::unique_ptr<Player> player(new Player(options, std::move(callbacks)));
    if (auto built = player->build(); !built) return built.error();
    return player;
}

Player::~Player() {
    trial_.reset();
    if (running_) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
    if (bus_watch_) g_source_remove(bus_watch_);
}

Result<void> Player::build() {
    auto made = demo::make_pipeline(pipeline_text(options_.input));
    if (!made) return made.error();
    pipeline_ = std::move(*made);
    infer_ = element_of(pipeline_.get(), "infer");
    decode_ = element_of(pipeline_.get(), "decode");
    g_object_set(element_of(pipeline_.get(), "source").get(),
                 options_.input == Input::camera ? "device" : "location", options_.source.c_str(),
                 nullptr);
    g_object_set(infer_.get(), "model", models_[0].c_str(), nullptr);
    if (!options_.decoder.empty() && !knows(decode_.get(), "decoder", options_.decoder)) {
        return Error{ErrorCode::invalid_argument,
                     "there is no decoder '" + options_.decoder +
                         "'; gst-inspect-1.0 vartmldecode lists them, or leave out --decoder"};
    }
    set_decoder(decode_.get(), options_.decoder, options_.labels);
    watch();
    return {};
}

void Player::watch() {
    GstPad* pad = gst_element_get_static_pad(element_of(pipeline_.get(), "overlay").get(), "sink");
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad* p, GstPadProbeInfo* info, gpointer self) {
            static_cast<Player*>(self)->look_at(GST_PAD_PROBE_INFO_BUFFER(info), p);
            return GST_PAD_PROBE_OK;
        },
        this, nullptr);
    gst_object_unref(pad);
    GstAppSinkCallbacks callbacks{};
    callbacks.new_sample = [](GstAppSink* sink, gpointer self) {
        static_cast<Player*>(self)->take(gst_app_sink_pull_sample(sink));
        return GST_FLOW_OK;
    };
    gst_app_sink_set_callbacks(GST_APP_SINK(element_of(pipeline_.get(), "sink").get()), &callbacks,
                               this, nullptr);
    GstBus* bus = gst_element_get_bus(pipeline_.get());
    bus_watch_ = gst_bus_add_watch(
        bus,
        [](GstBus*, GstMessage* message, gpointer self) -> gboolean {
            static_cast<Player*>(self)->on_message(message);
            return G_SOURCE_CONTINUE;
        },
        this);
    gst_object_unref(bus);
}

Result<void> Player::play() {
    running_ = true;
    if (gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
        return {};
    }
    GstBus* bus = gst_element_get_bus(pipeline_.get());
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    gst_object_unref(bus);
    std::string text = "the pipeline does not start";
    if (message) {
        GError* error = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        text = error->message;
        g_error_free(error);
        gst_message_unref(message);
    }
    return Error{ErrorCode::io, text};
}

// Streaming thread: what the frame shows, before it is drawn.
void Player::look_at(GstBuffer* buffer, GstPad* pad) {
    std::vector<Object> objects;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd od, track;
    while (meta && gst_analytics_relation_meta_iterate(meta, &state,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        Object object{};
        gst_analytics_od_mtd_get_location(&od, &object.x, &object.y, &object.width, &object.height,
                                          &object.score);
        const char* label = g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&od));
        object.label = label ? label : "";
        object.track = -1;
        guint64 id;
        GstClockTime first, last;
        gboolean lost;
        if (gst_analytics_relation_meta_get_direct_related(
                meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                gst_analytics_tracking_mtd_get_mtd_type(), nullptr, &track) &&
            gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost)) {
            object.track = static_cast<int64_t>(id);
        }
        objects.push_back(std::move(object));
    }
    int width = 0, height = 0;
    if (GstCaps* caps = gst_pad_get_current_caps(pad)) {
        const GstStructure* s = gst_caps_get_structure(caps, 0);
        gst_structure_get(s, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, nullptr);
        gst_caps_unref(caps);
    }
    const std::lock_guard lock(mutex_);
    objects_ = std::move(objects);
    width_ = width, height_ = height;
    rate_.count(std::chrono::steady_clock::now());
}

// Streaming thread.
void Player::take(GstSample* sample) {
    if (!sample) return;
    GstMapInfo map;
    GstBuffer* buffer = gst_sample_get_buffer(sample);
    if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
        BytesPtr bytes(g_bytes_new(map.data, map.size));
        gst_buffer_unmap(buffer, &map);
        const std::lock_guard lock(mutex_);
        picture_ = std::move(bytes);
        ++pictures_;
    }
    gst_sample_unref(sample);
    callbacks_.picture();
}

BytesPtr Player::picture(uint64_t& number) {
    const std::lock_guard lock(mutex_);
    number = pictures_;
    return BytesPtr(picture_ ? g_bytes_ref(picture_.get()) : nullptr);
}

// From the start again.
void Player::again() {
    if (!gst_element_seek_simple(pipeline_.get(), GST_FORMAT_TIME,
                                 GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT), 0)) {
        callbacks_.stopped("the video has ended and cannot be played again: it does not seek");
    }
}

void Player::note_compilation(const GstStructure* s) {
    gint percent = 0;
    if (gst_structure_has_name(s, "vartml-compile") &&
        gst_structure_get_int(s, "percent", &percent)) {
        compiled_percent_ = percent < 100 ? percent : -1;
    }
}

void Player::on_element_message(const GstStructure* s) {
    note_compilation(s);
    if (gst_structure_has_name(s, "vartml-model-loaded")) {
        compiled_percent_ = -1;
        if (const char* device = gst_structure_get_string(s, "device")) device_ = device;
    } else if (gst_structure_has_name(s, "vartml-model-changed")) {
        notice_ = "now " + model_name(models_[model_]);
    } else if (gst_structure_has_name(s, "vartml-model-change-failed")) {
        const char* text = gst_structure_get_string(s, "reason");
        notice_ = "the model was not changed: " + std::string(text ? text : "no reason is known");
        // Back to the one that goes on.
        gchar* model = nullptr;
        g_object_get(infer_.get(), "model", &model, nullptr);
        const auto at = std::find(models_.begin(), models_.end(), model ? model : "");
        if (at != models_.end()) model_ = static_cast<size_t>(at - models_.begin());
        g_free(model);
    }
}

void Player::on_message(GstMessage* message) {
    GError* error = nullptr;
    switch (GST_MESSAGE_TYPE(message)) {
        case GST_MESSAGE_ERROR:
            gst_message_parse_error(message, &error, nullptr);
            callbacks_.stopped(error->message);
            g_error_free(error);
            break;
        case GST_MESSAGE_WARNING:
            gst_message_parse_warning(message, &error, nullptr);
            notice_ = error->message;
            g_error_free(error);
            break;
        case GST_MESSAGE_INFO:
            gst_message_parse_info(message, &error, nullptr);
            notice_ = error->message;
            g_error_free(error);
            break;
        case GST_MESSAGE_EOS:
            if (options_.input != Input::camera) {
                again();
            } else {
                callbacks_.stopped("the camera ended the stream");
            }
            break;
        case GST_MESSAGE_LATENCY:
            gst_bin_recalculate_latency(GST_BIN(pipeline_.get()));
            break;
        case GST_MESSAGE_ELEMENT:
            on_element_message(gst_message_get_structure(message));
            break;
        default:
            break;
    }
}

std::string Player::status() {
    using nlohmann::json;
    json j = {{"notice", notice_}, {"device", device_}, {"model", model_}};
    for (const std::string& model : models_) j["models"].push_back(model_name(model));
    if (compiled_percent_ >= 0) j["compiling_percent"] = compiled_percent_;
    if (threshold_ >= 0) j["threshold"] = threshold_;
    GstStructure* s = nullptr;
    g_object_get(infer_.get(), "stats", &s, nullptr);
    const double frames = field(s, "frames");
    j["frames"] = frames;
    j["inferred_share"] = frames > 0 ? field(s, "inferences") / frames : 0;
    j["copies"] = field(s, "copies");
    j["copied_bytes"] = field(s, "copied-bytes");
    j["in_flight"] = field(s, "in-flight");
    for (const char* name : {"pre", "wait", "run", "total"}) {
        for (const char* percent : {"p50", "p95", "p99"}) {
            j["ms"][name][percent] =
                field(s, (std::string(name) + "-" + percent + "-us").c_str()) / 1000;
        }
    }
    gst_structure_free(s);
    const std::lock_guard lock(mutex_);
    j["frames_per_second"] = rate_.per_second(std::chrono::steady_clock::now());
    j["width"] = width_, j["height"] = height_;
    j["objects"] = json::array();
    for (const Object& o : objects_) {
        json object = {{"label", o.label},
                       {"score", std::isfinite(o.score) ? o.score : 0},
                       {"box", {o.x, o.y, o.width, o.height}}};
        if (o.track >= 0) object["track"] = o.track;
        j["objects"].push_back(std::move(object));
    }
    return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<void> Player::set_model(size_t index) {
    if (index >= models_.size()) {
        return Error{ErrorCode::invalid_argument,
                     "model " + std::to_string(index) + " was asked for, there are " +
                         std::to_string(models_.size()) + ", counted from 0"};
    }
    int width = 640, height = 480;
    {
        const std::lock_guard lock(mutex_);
        if (width_ > 0 && height_ > 0) width = width_, height = height_;
    }
    notice_ = "loading " + model_name(models_[index]);
    trial_.reset();
    auto trial =
        Trial::start({models_[index], options_.decoder, options_.labels, width, height},
                     {.element = [this](const GstStructure* s) { note_compilation(s); },
                      .ended = [this, index](const std::string& error) { tried(index, error); }});
    if (!trial) return trial.error();
    trial_ = std::move(*trial);
    return {};
}

void Player::tried(size_t index, const std::string& error) {
    compiled_percent_ = -1;
    trial_.reset();
    if (!error.empty()) {
        notice_ = "the model was not changed: " + error;
        return;
    }
    model_ = index;
    g_object_set(infer_.get(), "model", models_[index].c_str(), nullptr);
}

Result<void> Player::set_threshold(double score) {
    if (!(score >= 0 && score <= 1)) {
        return Error{ErrorCode::invalid_argument,
                     "the threshold is a score from 0 to 1, not " + std::to_string(score)};
    }
    threshold_ = score;
    g_object_set(decode_.get(), "score-threshold", score, nullptr);
    return {};
}

}  // namespace live
