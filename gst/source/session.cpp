// SPDX-License-Identifier: Apache-2.0
#include "gst/source/session.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace vartml::gst {
namespace {

// ---- sources whose login cannot be read back ------------------------------------------------

constexpr const char* hidden[] = {"location", "user-id", "user-pw", "uri", "passphrase"};

void set_hidden(GObject* object, guint, const GValue* value, GParamSpec* spec) {
    auto* const parent =
        static_cast<GObjectClass*>(g_type_class_peek(g_type_parent(spec->owner_type)));
    GParamSpec* const of_parent = g_object_class_find_property(parent, spec->name);
    parent->set_property(object, of_parent->param_id, value, of_parent);
}

void hide(gpointer klass, gpointer) {
    auto* const object = static_cast<GObjectClass*>(klass);
    object->set_property = set_hidden;
    guint id = 0;
    for (const char* name : hidden) {
        const GParamSpec* const known = g_object_class_find_property(object, name);
        if (!known || known->value_type != G_TYPE_STRING || !(known->flags & G_PARAM_WRITABLE))
            continue;
        g_object_class_install_property(
            object, ++id,
            g_param_spec_string(name, name, "Cannot be read back", nullptr,
                                GParamFlags(G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS)));
    }
}

// The element's own type with those properties write-only: rtspsrc, souphttpsrc and srtsrc let
// secrets of the address be read, and a dot file of the pipeline would show them.
GType hidden_type(GType type) {
    static std::mutex once;
    const std::lock_guard lock(once);
    const std::string name = "Vartml" + std::string(g_type_name(type));
    if (const GType known = g_type_from_name(name.c_str())) return known;
    GTypeQuery size;
    g_type_query(type, &size);
    return g_type_register_static_simple(type, name.c_str(), guint(size.class_size), hide,
                                         guint(size.instance_size), nullptr, GTypeFlags(0));
}

// ---- a source for each kind of address --------------------------------------------------------

struct Factory {
    AddressKind kind;
    const char *name, *package;
};
// given: Debian 13's packages
constexpr Factory factories[] = {
    {AddressKind::rtsp, "rtspsrc", "gstreamer1.0-plugins-good"},
    {AddressKind::http, "souphttpsrc", "gstreamer1.0-plugins-good"},
    {AddressKind::file, "filesrc", "libgstreamer1.0-0"},
    {AddressKind::device, "v4l2src", "gstreamer1.0-plugins-good"},
};

Error not_installed(const std::string& name, const std::string& package) {
    return {ErrorCode::not_found,
            "GStreamer does not find element " + name + "; install " + package};
}

Result<GstElement*> make_known(const Factory& row) {
    GstElementFactory* const found = gst_element_factory_find(row.name);
    GstPluginFeature* const loaded =
        found ? gst_plugin_feature_load(GST_PLUGIN_FEATURE(found)) : nullptr;
    if (found) gst_object_unref(found);
    if (!loaded) return not_installed(row.name, row.package);
    GType type = gst_element_factory_get_element_type(GST_ELEMENT_FACTORY(loaded));
    gst_object_unref(loaded);
    if (row.kind == AddressKind::rtsp || row.kind == AddressKind::http) type = hidden_type(type);
    return GST_ELEMENT(g_object_new(type, "name", "source", nullptr));
}

Result<GstElement*> make_other(const Address& address) {
    const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::unsupported, "property 'uri' is '" + address.shown + "', " + why +
                                                 "; use rtsp://, http://, a file or /dev/video0"};
    };
    GError* fault = nullptr;
    GstElement* const found =
        gst_element_make_from_uri(GST_URI_SRC, address.uri.c_str(), "source", &fault);
    if (!found) {
        const std::string why = fault ? address.scrub(fault->message) : "unknown";
        g_clear_error(&fault);
        return refuse("which no installed source takes (" + why + ")");
    }
    const GType type = G_OBJECT_TYPE(found);
    gst_object_unref(found);
    if (!address.user.empty())
        return refuse("whose user and password element " + std::string(g_type_name(type)) +
                      " is not given here");
    GstElement* const source =
        GST_ELEMENT(g_object_new(hidden_type(type), "name", "source", nullptr));
    gst_uri_handler_set_uri(GST_URI_HANDLER(source), address.uri.c_str(), nullptr);
    return source;
}

void set_up_rtsp(GstElement* source, const SessionSettings& settings, bool tcp) {
    // Each attempt has one transport: rtspsrc itself would wait, and try TCP anew each time.
    gst_util_set_object_arg(G_OBJECT(source), "protocols", tcp ? "tcp" : "udp+udp-mcast");
    const guint64 timeout_us = guint64(settings.timeout_ms) * 1000;
    g_object_set(source, "latency", settings.latency_ms, "tcp-timeout", timeout_us, "timeout",
                 // Of UDP before the first packet: a firewall's silence is known soon.
                 std::min<guint64>(timeout_us, 2'000'000), nullptr);
}

Result<GstElement*> make_source(const SessionSettings& settings, bool tcp) {
    const Address& address = settings.address;
    const Factory* row = nullptr;
    for (const Factory& known : factories)
        if (known.kind == address.kind) row = &known;
    auto source = row ? make_known(*row) : make_other(address);
    if (!source) return source;
    const auto set = [&](const char* name, const std::string& text) {
        if (!text.empty()) g_object_set(*source, name, text.c_str(), nullptr);
    };
    switch (address.kind) {
        case AddressKind::file:
            set("location", address.path);
            break;
        case AddressKind::device:
            set("device", address.path);
            break;
        case AddressKind::rtsp:
            set_up_rtsp(*source, settings, tcp);
            [[fallthrough]];
        case AddressKind::http:
            set("location", address.uri);
            set("user-id", address.user);
            set("user-pw", address.password);
            break;
        case AddressKind::other:
            break;
    }
    if (address.kind == AddressKind::http)
        g_object_set(*source, "timeout", std::max(settings.timeout_ms / 1000, 1u), "retries", 0,
                     nullptr);
    return source;
}

bool is_video(const GstStructure* s) {
    const gchar* const media = gst_structure_get_string(s, "media");
    return !media || !g_strcmp0(media, "video");
}

}  // namespace

Session::Session(GstBin* owner, GstPad* sink, AddressKind kind, std::function<void()> refused)
    : owner_(owner), sink_(sink), refused_(std::move(refused)), kind_(kind) {}

bool Session::is_endless() const {
    gint64 bytes = 0;
    if (kind_ != AddressKind::http) return kind_ != AddressKind::file;
    return !gst_element_query_duration(source_, GST_FORMAT_BYTES, &bytes) || bytes <= 0;
}

Result<std::unique_ptr<Session>> Session::open(GstBin* owner, GstPad* sink,
                                               const SessionSettings& settings, bool tcp,
                                               std::function<void()> refused) {
    auto source = make_source(settings, tcp);
    if (!source) return source.error();
    GstElement* const decoder = gst_element_factory_make("decodebin", "decoder");
    if (!decoder) {
        gst_object_unref(*source);
        return not_installed("decodebin", "gstreamer1.0-plugins-base");
    }
    std::unique_ptr<Session> self(
        new Session(owner, sink, settings.address.kind, std::move(refused)));
    self->source_ = *source;
    // Sound is not decoded.
    gst_util_set_object_arg(G_OBJECT(decoder), "caps", "video/x-raw(ANY)");
    g_object_set(decoder, "expose-all-streams", FALSE, nullptr);
    self->decoder_ = decoder;
    self->bin_ = gst_bin_new("connection");
    gst_bin_add_many(GST_BIN(self->bin_), *source, decoder, nullptr);

    const auto pad_added = [](GstElement*, GstPad* pad, gpointer session) {
        static_cast<Session*>(session)->link_source(pad);
    };
    g_signal_connect(*source, "pad-added", G_CALLBACK(+pad_added), self.get());
    if (settings.address.kind == AddressKind::rtsp) {
        const auto described = [](GstElement*, gpointer, gpointer session) {
            static_cast<Session*>(session)->described_ = true;
        };
        g_signal_connect(*source, "on-sdp", G_CALLBACK(+described), self.get());
        const auto select = [](GstElement*, guint, GstCaps* caps, gpointer) -> gboolean {
            return is_video(gst_caps_get_structure(caps, 0));
        };
        g_signal_connect(*source, "select-stream", G_CALLBACK(+select), nullptr);
    }
    const auto decoded = [](GstElement*, GstPad* pad, gpointer session) {
        static_cast<Session*>(session)->expose(pad);
    };
    g_signal_connect(decoder, "pad-added", G_CALLBACK(+decoded), self.get());
    const auto added = [](GstBin*, GstElement* element, gpointer) {
        // Else decodebin waits until 8 MB have come: a camera's multipart never says that it has
        // no second stream.
        GstElementFactory* const factory = gst_element_get_factory(element);
        if (factory && g_str_equal(GST_OBJECT_NAME(factory), "multipartdemux"))
            g_object_set(element, "single-stream", TRUE, nullptr);
    };
    g_signal_connect(decoder, "element-added", G_CALLBACK(+added), nullptr);
    if (GstPad* pad = gst_element_get_static_pad(*source, "src")) {
        self->link_source(pad);
        gst_object_unref(pad);
    }
    // Its states are its keeper's: a camera that is away is no failure of the pipeline.
    gst_element_set_locked_state(self->bin_, TRUE);
    gst_bin_add(owner, self->bin_);
    return self;
}

Session::~Session() {
    if (!bin_) return;
    // Out of its owner first: a change of the owner's state waits for the lock of each child's, and
    // a thread of this one may wait for memory that what follows holds until such a change.
    gst_object_ref(bin_);
    gst_bin_remove(owner_, bin_);
    gst_element_set_state(bin_, GST_STATE_NULL);
    gst_object_unref(bin_);
}

void Session::set_state(GstState state, GstClockTime base_time) {
    if (state == GST_STATE_PLAYING) gst_element_set_base_time(bin_, base_time);
    gst_element_set_state(bin_, state);
}

void Session::link_source(GstPad* pad) {
    if (GstCaps* caps = gst_pad_get_current_caps(pad)) {
        const bool video = is_video(gst_caps_get_structure(caps, 0));
        gst_caps_unref(caps);
        if (!video) return;
    }
    GstPad* const sink = gst_element_get_static_pad(decoder_, "sink");
    if (!gst_pad_is_linked(sink) && gst_pad_link(pad, sink) == GST_PAD_LINK_OK) {
        const auto seen = [](GstPad*, GstPadProbeInfo*, gpointer session) {
            static_cast<Session*>(session)->last_data_us_ = g_get_monotonic_time();
            return GST_PAD_PROBE_OK;
        };
        gst_pad_add_probe(
            pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST), +seen,
            this, nullptr);
    }
    gst_object_unref(sink);
}

void Session::expose(GstPad* pad) {
    if (exposed_.exchange(true)) return;  // the first picture of a file with several
    GstPad* const ghost = gst_ghost_pad_new("src", pad);
    gst_pad_set_active(ghost, TRUE);
    gst_element_add_pad(bin_, ghost);
    if (gst_pad_link(ghost, sink_) != GST_PAD_LINK_OK) refused_();
}

}  // namespace vartml::gst
