// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/player.h"

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
                                   : "filesrc name=source ! decodebin ! queue ! clocksync ! "
                                     "videoconvert ! videoflip video-direction=auto";
    return source +
           " ! videoconvert ! queue max-size-buffers=3 max-size-bytes=0 max-size-time=0 ! "
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

struct StructureFree {
    void operator()(GstStructure* s) const { gst_structure_free(s); }
};
using StructurePtr = std::unique_ptr<GstStructure, StructureFree>;

StructurePtr stats_of(GstElement* element) {
    GstStructure* s = nullptr;
    g_object_get(element, "stats", &s, nullptr);
    return StructurePtr(s);
}

// A word of a shell, and of a launch line.
std::string quoted(const std::string& text) {
    gchar* quotes = g_shell_quote(text.c_str());
    const std::string word = quotes;
    g_free(quotes);
    return word == "'" + text + "'" &&
                   text.find_first_of(" \t\n\"\\!$&()*;<>?[]`{|}~#") == text.npos
               ? text
               : word;
}

std::string rounded(double score) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    return g_ascii_formatd(text, sizeof text, "%.2f", score);
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
    set_decoder(decode_.get(), options_.decoder, labels_of(options_, 0));
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
    watch_latency("sink", true);
    watch_latency("src", false);
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

void Player::watch_latency(const char* name, bool comes) {
    GstPad* pad = gst_element_get_static_pad(infer_.get(), name);
    const auto probe = comes ? +[](GstPad*, GstPadProbeInfo* info, gpointer self) {
        static_cast<Player*>(self)->comes(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
        return GST_PAD_PROBE_OK;
    } : +[](GstPad*, GstPadProbeInfo* info, gpointer self) {
        static_cast<Player*>(self)->leaves(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
        return GST_PAD_PROBE_OK;
    };
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, probe, this, nullptr);
    gst_object_unref(pad);
}

// Streaming threads.
void Player::comes(GstClockTime pts) {
    const std::lock_guard lock(mutex_);
    inside_.emplace_back(pts, std::chrono::steady_clock::now());
}

// Frames leave in the order in which they came; a flush takes some away.
void Player::leaves(GstClockTime pts) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    while (!inside_.empty() && inside_.front().first != pts) inside_.pop_front();
    if (inside_.empty()) return;
    const std::chrono::duration<double, std::milli> time = now - inside_.front().second;
    inside_.pop_front();
    history_.latency(now, time.count());
}

// Streaming thread: what the frame shows, before it is drawn.
void Player::look_at(GstBuffer* buffer, GstPad* pad) {
    std::vector<Sighting> seen = sightings_of(buffer);
    int width = 0, height = 0;
    if (GstCaps* caps = gst_pad_get_current_caps(pad)) {
        const GstStructure* s = gst_caps_get_structure(caps, 0);
        gst_structure_get(s, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, nullptr);
        gst_caps_unref(caps);
    }
    const std::lock_guard lock(mutex_);
    sightings_.frame(std::move(seen));
    width_ = width, height_ = height;
    const auto now = std::chrono::steady_clock::now();
    rate_.count(now);
    history_.frame(now);
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
    } else if (gst_structure_has_name(s, "vartml-decoder-selected")) {
        gst_structure_get_double(s, "score-threshold", &own_threshold_);
    } else if (gst_structure_has_name(s, "vartml-model-changed")) {
        notice("now " + model_name(models_[model_]));
        changed("the model was changed");
    } else if (gst_structure_has_name(s, "vartml-model-change-failed")) {
        const char* text = gst_structure_get_string(s, "reason");
        notice("the model was not changed: " + std::string(text ? text : "no reason is known"),
               true);
        // Back to the one that goes on.
        gchar* model = nullptr;
        g_object_get(infer_.get(), "model", &model, nullptr);
        const auto at = std::find(models_.begin(), models_.end(), model ? model : "");
        if (at != models_.end()) use_model(static_cast<size_t>(at - models_.begin()));
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
            notice(error->message, true);
            g_error_free(error);
            break;
        case GST_MESSAGE_INFO:
            gst_message_parse_info(message, &error, nullptr);
            notice(error->message);
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

void Player::notice(std::string text, bool warns) {
    notice_ = {notice_.number + 1, std::move(text), warns, std::chrono::steady_clock::now()};
}

// What is counted of the model from here on is of what holds now.
void Player::changed(std::string what) {
    const StructurePtr s = stats_of(infer_.get());
    change_ = {std::move(what), field(s.get(), "frames"), field(s.get(), "inferences"),
               field(s.get(), "copies"), field(s.get(), "copied-bytes")};
    const std::lock_guard lock(mutex_);
    sightings_.restart();
}

// What gst-launch-1.0 takes to show the same in a window.
std::string Player::launch_line() const {
    const bool camera = options_.input == Input::camera;
    const std::string labels = labels_of(options_, model_);
    std::string line = camera ? "gst-launch-1.0 v4l2src device=" + quoted(options_.source)
                              : "gst-launch-1.0 filesrc location=" + quoted(options_.source);
    line += " ! decodebin ! videoconvert";
    if (!camera) line += " ! videoflip video-direction=auto ! videoconvert";
    line += " ! vartmlinfer model=" + quoted(models_[model_]);
    if (camera) line += " on-late=skip";
    line += " ! vartmldecode";
    if (!options_.decoder.empty()) line += " decoder=" + quoted(options_.decoder);
    if (!labels.empty()) line += " label-file=" + quoted(labels);
    if (threshold_) line += " score-threshold=" + rounded(*threshold_);
    return line + " ! vartmltrack ! queue ! vartmloverlay hud=true ! videoconvert ! autovideosink";
}

std::string Player::status() {
    using nlohmann::json;
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> notice_age = now - notice_.since;
    json j = {{"notice", notice_.text},
              {"notice_number", notice_.number},
              {"notice_warns", notice_.warns},
              {"notice_age_s", notice_.number ? notice_age.count() : 0},
              {"device", device_},
              {"model", model_},
              {"launch", launch_line()}};
    for (const std::string& model : models_) j["models"].push_back(model_name(model));
    if (compiled_percent_ >= 0) j["compiling_percent"] = compiled_percent_;
    if (own_threshold_ >= 0) j["own_threshold"] = own_threshold_;
    if (threshold_ || own_threshold_ >= 0) j["threshold"] = threshold_.value_or(own_threshold_);
    const StructurePtr s = stats_of(infer_.get());
    j["frames"] = field(s.get(), "frames");
    j["in_flight"] = field(s.get(), "in-flight");
    const double frames = field(s.get(), "frames") - change_.frames;
    j["since"] = {{"what", change_.what},
                  {"frames", frames},
                  {"inferred_share",
                   frames > 0 ? (field(s.get(), "inferences") - change_.inferences) / frames : 0},
                  {"copies", field(s.get(), "copies") - change_.copies},
                  {"copied_bytes", field(s.get(), "copied-bytes") - change_.copied_bytes}};
    for (const char* name : {"pre", "wait", "run", "total"}) {
        for (const char* percent : {"p50", "p95", "p99"}) {
            j["ms"][name][percent] =
                field(s.get(), (std::string(name) + "-" + percent + "-us").c_str()) / 1000;
        }
    }
    const std::lock_guard lock(mutex_);
    j["frames_per_second"] = rate_.per_second(now);
    j["width"] = width_, j["height"] = height_;
    j["history"] = json::array();  // of a second: frames, mean milliseconds in vartmlinfer
    for (const History::Second& second : history_.list(now))
        j["history"].push_back({second.frames, std::round(second.mean_ms() * 100) / 100});
    j["objects"] = json::array();
    for (const Sighting& o : sightings_.newest()) {
        json object = {{"label", o.label}, {"score", std::isfinite(o.score) ? o.score : 0}};
        if (o.has_box) object["box"] = {o.x, o.y, o.width, o.height};
        if (o.track >= 0) object["track"] = o.track;
        j["objects"].push_back(std::move(object));
    }
    j["classes"] = json::array();
    for (const Sightings::Class& c : sightings_.classes())
        j["classes"].push_back(
            {{"label", c.label}, {"now", c.now}, {"frames", c.frames}, {"tracks", c.tracks}});
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
    notice("loading " + model_name(models_[index]));
    trial_.reset();
    auto trial =
        Trial::start({models_[index], options_.decoder, labels_of(options_, index), width, height},
                     {.element = [this](const GstStructure* s) { note_compilation(s); },
                      .ended = [this, index](const std::string& error) { tried(index, error); }});
    if (!trial) return trial.error();
    trial_ = std::move(*trial);
    return {};
}

void Player::use_model(size_t index) {
    model_ = index;
    if (options_.labels.size() > 1)
        g_object_set(decode_.get(), "label-file", options_.labels[index].c_str(), nullptr);
}

void Player::tried(size_t index, const std::string& error) {
    compiled_percent_ = -1;
    trial_.reset();
    if (!error.empty()) {
        notice("the model was not changed: " + error, true);
        return;
    }
    // Names of the classes before the model that has them: it may be there at once.
    use_model(index);
    g_object_set(infer_.get(), "model", models_[index].c_str(), nullptr);
}

Result<void> Player::set_threshold(std::optional<double> score) {
    if (score && !(*score >= 0 && *score <= 1)) {
        return Error{ErrorCode::invalid_argument,
                     "the threshold is a score from 0 to 1, or 'model' for the model's own, not " +
                         std::to_string(*score)};
    }
    threshold_ = score;
    g_object_set(decode_.get(), "score-threshold", score.value_or(-1), nullptr);
    changed("the least score was changed");
    return {};
}

}  // namespace live
