// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlsrc
 * @title: vartmlsrc
 * @short_description: pictures of a camera that may go and come back
 *
 * Decodes the pictures of an RTSP or HTTP address, a file or a V4L2 camera, whatever their codec.
 * When a camera ends, falls silent or cannot be reached, the stream does not end: the element
 * connects again, and timestamps go on. What follows sees one stream with one segment; the first
 * frame after an outage has the flag DISCONT.
 *
 * Each change is an element message `vartml-src-state`; #GstVartmlSrc:stats has the same. User and
 * password of the address are in no message, log line of this plugin, property or dot file.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 vartmlsrc uri=rtsp://camera.local/stream ! videoconvert ! autovideosink
 * ]| A camera in a window, also after it was switched off and on.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlsrc.h"

#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "gst/source/gate.h"
#include "gst/source/keeper.h"
#include "gst/support/error.h"
#include "gst/support/property_table.h"

GST_DEBUG_CATEGORY_STATIC(vartmlsrc_debug);
#define GST_CAT_DEFAULT vartmlsrc_debug

using namespace vartml::gst;

namespace {

struct State {
    State(GstElement* element, GstElement* gate) : gate(gate), keeper(element, gate) {}
    SourceSettings settings;  // guarded by the object lock
    GstElement* gate;         // of the bin
    Keeper keeper;
    bool live = false;  // between READY and PAUSED, by who changes the state
};

}  // namespace

struct _GstVartmlSrc {
    GstBin parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlSrc, gst_vartml_src, GST_TYPE_BIN)
GST_ELEMENT_REGISTER_DEFINE(vartmlsrc, "vartmlsrc", GST_RANK_NONE, GST_TYPE_VARTML_SRC)

namespace {

GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                                                            GST_STATIC_CAPS("video/x-raw(ANY)"));

State& state_of(gpointer object) {
    return *GST_VARTML_SRC(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const State& state = state_of(object);
    const SourceStatus s = state.keeper.status();
    return gst_structure_new(
        "vartml-src-stats", "state", G_TYPE_STRING, s.state, "uri", G_TYPE_STRING, s.shown.c_str(),
        "reason", G_TYPE_STRING, s.reason.c_str(), "transport", G_TYPE_STRING, s.transport,
        "frames", G_TYPE_UINT64, gate_counts(state.gate).frames, "connections", G_TYPE_UINT64,
        guint64(s.connections), "failures", G_TYPE_UINT64, guint64(s.failures), "attempt",
        G_TYPE_UINT, s.attempt, "first-frame", G_TYPE_UINT64, guint64(s.first_frame_ns),
        "last-outage", G_TYPE_UINT64, guint64(s.last_outage_ns), nullptr);
}

constexpr GEnumValue transport_values[] = {
    {static_cast<int>(Transport::automatic), "UDP, and TCP where no packet comes that way", "auto"},
    {static_cast<int>(Transport::udp), "UDP alone", "udp"},
    {static_cast<int>(Transport::tcp), "TCP alone, in the connection of RTSP", "tcp"},
    {0, nullptr, nullptr},
};

constexpr GEnumValue at_end_values[] = {
    {static_cast<int>(AtEnd::automatic),
     "A file and a response of known length end the stream; a camera is connected again", "auto"},
    {static_cast<int>(AtEnd::stop), "The stream ends", "stop"},
    {static_cast<int>(AtEnd::repeat), "From the beginning, with timestamps that go on", "repeat"},
    {0, nullptr, nullptr},
};

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<SourceSettings>> rows();
    static SourceSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject*) {}
};

std::span<const Property<SourceSettings>> Properties::rows() {
    using S = SourceSettings;
    using P = Property<S>;
    static const P all[] = {
        {"uri", "URI",
         "Address (rtsp://, http://), file, or camera (/dev/video0); read back without user and "
         "password; required",
         until_ready,
         P::Custom{[](const P& p, GParamFlags flags) {
                       return g_param_spec_string(p.name, p.nick, p.blurb, nullptr, flags);
                   },
                   [](const S& s, GValue* value) { store(without_login(s.uri), value); },
                   [](S& s, const GValue* value) { load(s.uri, value); }}},
        {"login-file", "Login file",
         "File with one line USER:PASSWORD for the address, which others may not read; unset: what "
         "uri has",
         until_ready, P::Text{&S::login_file}},
        {"transport", "Transport", "How an RTSP camera sends its packets", until_ready,
         P::choice<&S::transport>("GstVartmlSrcTransport", transport_values)},
        {"latency", "Latency", "Milliseconds that packets of RTSP may be late", until_ready,
         P::Uint{&S::latency_ms, 0, 60000}},
        {"timeout", "Timeout",
         "Milliseconds without data after which a connection is lost; files have none", until_ready,
         P::Uint{&S::timeout_ms, 100, 3600000}},
        {"retry-delay", "Retry delay",
         "Longest pause in milliseconds before the next attempt; 30 s after a refused login or an "
         "unknown codec",
         until_ready, P::Uint{&S::retry_delay_ms, 1, 3600000}},
        {"retries", "Retries",
         "Attempts without a frame after which the element fails; -1: never; a file fails at once",
         until_ready, P::Int{&S::retries, -1, G_MAXINT}},
        {"at-end", "At the end", "What follows the end of what the address gives", until_ready,
         P::choice<&S::at_end>("GstVartmlSrcAtEnd", at_end_values)},
        P::stats<stats_of>("State (connecting, playing, waiting, ended, failed), uri, reason, "
                           "transport; since start: frames, connections, failures; attempt, "
                           "first-frame and last-outage (nanoseconds)"),
    };
    return all;
}

// Takes the login of the file; false with a failure.
bool read_login(const std::string& file, Address& address, Failure& failure) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    const size_t colon = line.find(':');
    if (!in.is_open() || colon == line.npos || colon == 0)
        return fail(failure, "src-login",
                    {in.is_open() ? vartml::ErrorCode::invalid_argument : vartml::ErrorCode::io,
                     file + (in.is_open() ? ": its first line is not USER:PASSWORD"
                                          : ": cannot be read, which property 'login-file' names")},
                    "login-file", file);
    address.user = line.substr(0, colon);
    address.password = line.substr(colon + 1);
    if (address.password.size() >= 3) address.secrets.push_back(address.password);
    return true;
}

bool start(GstVartmlSrc* self) {
    State& state = *self->state;
    install_log();
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    const SourceSettings settings = copy_settings<Properties>(self);
    auto address = parse_address(settings.uri);
    Failure failure;
    if (!address) {
        fail(failure, "src-uri", address.error(), "uri");
        return post_error(self, "begin", failure);
    }
    if (!settings.login_file.empty() && !read_login(settings.login_file, *address, failure))
        return post_error(self, "begin", failure);
    state.live = address->live();
    state.keeper.start(settings, std::move(*address));
    return true;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
    auto* self = GST_VARTML_SRC(element);
    State& state = *self->state;
    if (transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED) state.keeper.set_state(GST_STATE_PAUSED);
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) state.keeper.request_stop();
    const GstStateChangeReturn changed =
        GST_ELEMENT_CLASS(gst_vartml_src_parent_class)->change_state(element, transition);
    // The pads are not active now, so nothing holds a streaming thread up.
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) state.keeper.join();
    if (changed == GST_STATE_CHANGE_FAILURE) return changed;
    if (transition == GST_STATE_CHANGE_READY_TO_PAUSED && !start(self))
        return GST_STATE_CHANGE_FAILURE;
    if (transition == GST_STATE_CHANGE_PAUSED_TO_PLAYING) state.keeper.set_state(GST_STATE_PLAYING);
    const bool to_paused = transition == GST_STATE_CHANGE_READY_TO_PAUSED ||
                           transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED;
    // Of this element alone: the bin's answer also has that of the connection, which is NO_PREROLL
    // on the way to PLAYING, where it would keep sinks from waiting for their first frame.
    return to_paused && state.live ? GST_STATE_CHANGE_NO_PREROLL : GST_STATE_CHANGE_SUCCESS;
}

// The bin would hand EOS to the sources inside, whose end is that of a connection.
gboolean send_event(GstElement* element, GstEvent* event) {
    if (GST_EVENT_TYPE(event) != GST_EVENT_EOS)
        return GST_ELEMENT_CLASS(gst_vartml_src_parent_class)->send_event(element, event);
    gst_event_unref(event);
    return state_of(element).keeper.finish();
}

void handle_message(GstBin* bin, GstMessage* message) {
    State* const state = GST_VARTML_SRC(bin)->state;
    GstObject* const src = GST_MESSAGE_SRC(message);
    if (src != GST_OBJECT(bin) && src != GST_OBJECT(state->gate) && state->keeper.handle(message)) {
        gst_message_unref(message);
        return;
    }
    GST_BIN_CLASS(gst_vartml_src_parent_class)->handle_message(bin, message);
}

void dispose(GObject* object) {
    auto* self = GST_VARTML_SRC(object);
    delete std::exchange(self->state, nullptr);
    G_OBJECT_CLASS(gst_vartml_src_parent_class)->dispose(object);
}

}  // namespace

static void gst_vartml_src_init(GstVartmlSrc* self) {
    GstElement* const gate = make_gate();
    gst_bin_add(GST_BIN(self), gate);
    self->state = new State(GST_ELEMENT(self), gate);
    GstPad* const inner = gst_element_get_static_pad(gate, "src");
    GstPadTemplate* const made = gst_static_pad_template_get(&src_template);
    gst_element_add_pad(GST_ELEMENT(self), gst_ghost_pad_new_from_template("src", inner, made));
    gst_object_unref(made);
    gst_object_unref(inner);
    // Also while no connection is in it; else the pipeline would not hand it EOS.
    gst_bin_set_suppressed_flags(GST_BIN(self), GST_ELEMENT_FLAG_SOURCE);
    GST_OBJECT_FLAG_SET(self, GST_ELEMENT_FLAG_SOURCE);
}

static void gst_vartml_src_class_init(GstVartmlSrcClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlsrc_debug, "vartmlsrc", 0, "cameras that come back");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* element = GST_ELEMENT_CLASS(klass);
    gobject->dispose = dispose;
    element->change_state = change_state;
    element->send_event = send_event;
    GST_BIN_CLASS(klass)->handle_message = handle_message;
    install_properties<Properties>(gobject);
    gst_element_class_add_static_pad_template(element, &src_template);
    gst_element_class_set_static_metadata(
        element, "VART-ML source", "Source/Network/Video",
        "Decodes a camera's pictures, and connects again when it has gone",
        "The gst-vartml authors");
}
