// SPDX-License-Identifier: Apache-2.0
// The program vartml-pipeline, a child of `vartml doctor`: parses a line of gst-launch and tries
// the part of it that infers, in a process of its own, so that neither GStreamer nor a fault of a
// plugin gets into the doctor.
//
// usage: vartml-pipeline LINE      JSON objects on descriptor 3, a line each
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gst/gst.h>
#include <nlohmann/json.hpp>

namespace vartml::gst::doctor {

// What was found out, a JSON object per line on descriptor 3.

namespace {

using Json = nlohmann::ordered_json;

constexpr int lines_fd = 3;
// ours: readers drop a line of more than 16 KiB
constexpr size_t most_names = 250, most_text = 2000;

void write(const Json& json) {
    const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
    for (size_t done = 0; done < line.size();) {
        const ssize_t n = ::write(lines_fd, line.data() + done, line.size() - done);
        if (n <= 0) return;
        done += static_cast<size_t>(n);
    }
}

std::string taken(gchar* text) {
    std::string copy = text ? text : "";
    g_free(text);
    return copy;
}

std::string value_text(const GValue& value) {
    if (G_VALUE_HOLDS_STRING(&value)) {
        const gchar* text = g_value_get_string(&value);
        return text ? text : "";
    }
    if (G_VALUE_HOLDS_ENUM(&value)) {
        auto* type = static_cast<GEnumClass*>(g_type_class_ref(G_VALUE_TYPE(&value)));
        const GEnumValue* known = g_enum_get_value(type, g_value_get_enum(&value));
        std::string nick = known ? known->value_nick : "";
        g_type_class_unref(type);
        return nick;
    }
    return taken(gst_value_serialize(&value)).substr(0, most_text);
}

Json changed_properties(GstElement* element) {
    Json properties = Json::object();
    guint count = 0;
    GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
    for (guint i = 0; i < count; ++i) {
        GParamSpec* spec = specs[i];
        const bool both = (spec->flags & G_PARAM_READABLE) && (spec->flags & G_PARAM_WRITABLE);
        if (!both || G_IS_PARAM_SPEC_OBJECT(spec) || G_IS_PARAM_SPEC_POINTER(spec) ||
            !g_strcmp0(spec->name, "name"))
            continue;
        GValue value = G_VALUE_INIT;
        g_value_init(&value, spec->value_type);
        g_object_get_property(G_OBJECT(element), spec->name, &value);
        if (!g_param_value_defaults(spec, &value)) properties[spec->name] = value_text(value);
        g_value_unset(&value);
    }
    g_free(specs);
    return properties;
}

// The element that a linked pad leads to, a new reference; nullptr where there is none, or where it
// is in another bin.
GstElement* peer_element(GstPad* pad) {
    GstPad* peer = gst_pad_get_peer(pad);
    if (!peer) return nullptr;
    GstElement* element = gst_pad_get_parent_element(peer);
    gst_object_unref(peer);
    return element;
}

Json fed_by(GstElement* element) {
    Json names = Json::array();
    GST_OBJECT_LOCK(element);
    std::vector<GstPad*> pads;
    for (GList* l = element->srcpads; l; l = l->next)
        pads.push_back(GST_PAD(gst_object_ref(l->data)));
    GST_OBJECT_UNLOCK(element);
    for (GstPad* pad : pads) {
        if (GstElement* next = peer_element(pad)) {
            names.push_back(taken(gst_object_get_name(GST_OBJECT(next))));
            gst_object_unref(next);
        }
        gst_object_unref(pad);
    }
    return names;
}

}  // namespace

// Name of the factory; "" for an element without one.
std::string factory_name(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return factory ? GST_OBJECT_NAME(factory) : "";
}

// Classification of the factory, such as "Filter/Video".
std::string classification(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    const gchar* text =
        factory ? gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS) : nullptr;
    return text ? text : "";
}

// The line could not be parsed as it is. `names` are the element, property and value that the
// sentence speaks of; `known` are the names that would have been right.
void write_fault(const char* kind, const std::string& text, const std::vector<std::string>& names,
                 const std::vector<std::string>& known) {
    for (size_t at = 0; at < known.size(); at += most_names) {
        const auto end =
            known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), at + most_names));
        write({{"kind", "known"},
               {"names", std::vector(known.begin() + static_cast<std::ptrdiff_t>(at), end)}});
    }
    write({{"kind", "fault"}, {"fault", kind}, {"text", text}, {"names", names}});
}

// An element with the properties that are not at their default, and what it feeds.
void write_element(GstElement* element) {
    write({{"kind", "element"},
           {"name", taken(gst_object_get_name(GST_OBJECT(element)))},
           {"factory", factory_name(element)},
           {"class", classification(element)},
           {"properties", changed_properties(element)},
           {"feeds", fed_by(element)}});
}

// An ERROR or WARNING of the bus.
void write_message(GstMessage* message) {
    const bool is_error = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
    GError* error = nullptr;
    gchar* debug = nullptr;
    const GstStructure* details = nullptr;
    if (is_error) {
        gst_message_parse_error(message, &error, &debug);
        gst_message_parse_error_details(message, &details);
    } else {
        gst_message_parse_warning(message, &error, &debug);
        gst_message_parse_warning_details(message, &details);
    }
    GstObject* source = GST_MESSAGE_SRC(message);
    Json json = {{"kind", "message"},
                 {"error", is_error},
                 {"element", source ? taken(gst_object_get_name(source)) : ""},
                 {"factory", GST_IS_ELEMENT(source) ? factory_name(GST_ELEMENT(source)) : ""},
                 {"text", std::string(error->message).substr(0, most_text)},
                 {"debug", std::string(debug ? debug : "").substr(0, most_text)}};
    for (const char* field : {"id", "code", "property", "file", "found", "expected", "fix"}) {
        const gchar* text = details ? gst_structure_get_string(details, field) : nullptr;
        if (text) json[field] = std::string(text).substr(0, most_text);
    }
    g_error_free(error);
    g_free(debug);
    write(json);
}

// The last line: "done", "none" where there was nothing to try, "timeout".
void write_end(const char* trial) {
    write({{"kind", "end"}, {"trial", trial}, {"gstreamer", taken(gst_version_string())}});
}

namespace {

using Names = std::vector<std::string>;

// What stands in quotes, in order.
Names quoted(const std::string& text) {
    Names names;
    for (size_t at = text.find('"'); at != text.npos;) {
        const size_t end = text.find('"', at + 1);
        if (end == text.npos) break;
        names.push_back(text.substr(at + 1, end - at - 1));
        at = text.find('"', end + 1);
    }
    return names;
}

Names all_factories() {
    Names names;
    GList* list = gst_registry_get_feature_list(gst_registry_get(), GST_TYPE_ELEMENT_FACTORY);
    for (GList* l = list; l; l = l->next) names.emplace_back(GST_OBJECT_NAME(l->data));
    gst_plugin_feature_list_free(list);
    return names;
}

// "vartmlinfer0" is named after its factory; other names are the user's.
GstElement* find_element(GstElement* bin, const std::string& name) {
    if (GstElement* found = bin ? gst_bin_get_by_name(GST_BIN(bin), name.c_str()) : nullptr)
        return found;
    const std::string factory = name.substr(0, name.find_last_not_of("0123456789") + 1);
    GstElement* made = gst_element_factory_make(factory.c_str(), nullptr);
    return made ? GST_ELEMENT(gst_object_ref_sink(made)) : nullptr;
}

Names property_names(GstElement* element) {
    Names names;
    guint count = 0;
    GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
    for (guint i = 0; i < count; ++i)
        if (specs[i]->flags & G_PARAM_WRITABLE) names.emplace_back(specs[i]->name);
    g_free(specs);
    return names;
}

// Values that an enumeration or boolean takes; of other types the name alone.
Names values_of(GstElement* element, const std::string& property) {
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), property.c_str());
    if (!spec) return {};
    if (G_IS_PARAM_SPEC_BOOLEAN(spec)) return {"true", "false"};
    if (!G_IS_PARAM_SPEC_ENUM(spec)) return {g_type_name(spec->value_type)};
    Names names;
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    for (guint i = 0; i < values->n_values; ++i) names.emplace_back(values->values[i].value_nick);
    return names;
}

void write_missing(GstParseContext* context, const std::string& text) {
    gchar** missing = gst_parse_context_get_missing_elements(context);
    const Names known = all_factories();
    for (gchar** name = missing; name && *name; ++name)
        write_fault("no-element", text, {*name}, name == missing ? known : Names{});
    g_strfreev(missing);
}

// The names of the sentences: given, gstreamer/gst/parse/grammar.y.
void write_parse_error(GstElement* bin, GstParseContext* context, const GError& error) {
    const std::string text = error.message;
    Names names = quoted(text);
    const bool parse = error.domain == GST_PARSE_ERROR;
    if (parse && error.code == GST_PARSE_ERROR_NO_SUCH_ELEMENT) return write_missing(context, text);
    const bool property = parse && error.code == GST_PARSE_ERROR_NO_SUCH_PROPERTY;
    const bool value = parse && error.code == GST_PARSE_ERROR_COULD_NOT_SET_PROPERTY;
    if ((!property && !value) || names.size() < 2)
        return write_fault(parse && error.code == GST_PARSE_ERROR_LINK ? "link" : "syntax", text,
                           names, {});
    Names known;
    if (GstElement* element = find_element(bin, names[1])) {
        known = property ? property_names(element) : values_of(element, names[0]);
        names[1] = factory_name(element);
        gst_object_unref(element);
    }
    write_fault(property ? "no-property" : "value", text, names, known);
}

}  // namespace

// A bin, whatever the number of elements; nullptr after writing the faults.
GstElement* parse_line(const std::string& line) {
    GstParseContext* context = gst_parse_context_new();
    GError* error = nullptr;
    GstElement* bin =
        gst_parse_launch_full(line.c_str(), context, GST_PARSE_FLAG_PLACE_IN_BIN, &error);
    if (bin) gst_object_ref_sink(bin);
    // given: a single element is not placed in one.
    if (bin && G_OBJECT_TYPE(bin) != GST_TYPE_BIN && G_OBJECT_TYPE(bin) != GST_TYPE_PIPELINE) {
        GstElement* alone = std::exchange(bin, gst_bin_new(nullptr));
        gst_object_ref_sink(bin);
        gst_bin_add(GST_BIN(bin), alone);
        gst_object_unref(alone);
    }
    if (error) {
        write_parse_error(bin, context, *error);
        gst_clear_object(&bin);
        g_error_free(error);
    }
    gst_parse_context_free(context);
    return bin;
}

// Runs the part of a pipeline that infers, with pictures of a test source and nothing behind it:
// sources, files, sinks and encoders of the user are never started.

// Takes the elements out of `bin`. Writes what the elements say, then the end.
void try_inference(GstElement* bin);

}  // namespace vartml::gst::doctor

int main(int argc, char** argv) {
    using namespace vartml::gst::doctor;
    if (argc != 2) {
        std::fputs("usage: vartml-pipeline LINE\n", stderr);
        return 2;
    }
    ::setenv("LC_ALL", "C", 1);  // the names are read out of GStreamer's sentences
    ::unsetenv("LANGUAGE");
    gst_init(nullptr, nullptr);
    GstElement* bin = parse_line(argv[1]);
    if (!bin) {
        write_end("none");
        return 0;
    }
    for (GList* l = g_list_last(GST_BIN_CHILDREN(bin)); l; l = l->prev)
        write_element(GST_ELEMENT(l->data));
    try_inference(bin);
    // Without the destructors of whatever the elements loaded: all is said.
    ::_exit(0);
}

namespace vartml::gst::doctor {
namespace {

// Frames of each source: enough for a batch to close by the end of the stream.
constexpr int frames = 3;
// ours: a compile reports its progress, so silence of this length is a standstill
constexpr GstClockTime longest_silence = 60 * GST_SECOND;

struct Link {
    GstPad *src, *sink;
};
// Of elements and pads that the pipeline keeps alive.
struct Part {
    std::set<GstElement*> elements;
    std::vector<Link> links;
};

bool is_ours(GstElement* element) {
    for (const char* name : {"vartmlinfer", "vartmldecode", "vartmltrack", "vartmlzones",
                             "vartmlroi", "vartmlgallery", "vartmlpicture", "vartmloverlay"})
        if (factory_name(element) == name) return true;
    return false;
}

bool starts_inference(GstElement* element) {
    const std::string name = factory_name(element);
    return name == "vartmlinfer" || name == "onnxinference";
}

// Caps that a test source can give.
bool is_plain_filter(GstElement* element) {
    if (factory_name(element) != "capsfilter") return true;
    GstCaps* caps = nullptr;
    g_object_get(element, "caps", &caps, nullptr);
    bool plain = caps != nullptr;
    for (guint i = 0; plain && i < gst_caps_get_size(caps); ++i) {
        const GstCapsFeatures* features = gst_caps_get_features(caps, i);
        plain = gst_structure_has_name(gst_caps_get_structure(caps, i), "video/x-raw") &&
                (!features ||
                 gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY));
    }
    gst_clear_caps(&caps);
    return plain;
}

// An element of raw pictures in plain memory that may stand behind a test source.
bool may_be_tried(GstElement* element) {
    if (GST_IS_BIN(element) || element->numsinkpads != 1 || element->numsrcpads != 1) return false;
    const std::string kind = classification(element), name = factory_name(element);
    for (const char* other : {"Source", "Sink", "Decoder", "Encoder", "Demux", "Mux", "Parser",
                              "Payload", "Network", "Hardware"})
        if (kind.find(other) != kind.npos) return false;
    for (const char* other : {"gl", "va", "v4l2", "nv", "cuda", "vulkan"})
        if (name.starts_with(other) && !name.starts_with("vartml") && name != "valve") return false;
    return is_plain_filter(element);
}

void add_upstream(GstElement* element, Part& part) {
    while (element->numsinkpads == 1) {
        GstElement* before = peer_element(GST_PAD(element->sinkpads->data));
        if (!before) return;
        gst_object_unref(before);
        if (part.elements.contains(before) || !may_be_tried(before)) return;
        part.elements.insert(before);
        element = before;
    }
}

// Keeps what lies between `element` and the last of our elements behind it. True: one is there.
bool add_downstream(GstElement* element, Part& part, std::set<GstElement*>& seen) {
    if (!seen.insert(element).second) return part.elements.contains(element);
    bool any = is_ours(element) || starts_inference(element);
    if (GST_IS_BIN(element)) return false;
    for (GList* l = element->srcpads; l; l = l->next) {
        GstElement* next = peer_element(GST_PAD(l->data));
        if (!next) continue;
        gst_object_unref(next);
        if (add_downstream(next, part, seen)) any = true;
    }
    if (any) part.elements.insert(element);
    return any;
}

std::vector<GstElement*> children(GstElement* bin) {
    std::vector<GstElement*> all;
    for (GList* l = GST_BIN_CHILDREN(bin); l; l = l->next) all.push_back(GST_ELEMENT(l->data));
    std::ranges::reverse(all);  // given: the last one added comes first
    return all;
}

// Puts an identity in the place of each element that writes or sends what passes through it.
void replace_publishers(GstElement* bin) {
    for (GstElement* element : children(bin)) {
        const std::string name = factory_name(element);
        if (name != "vartmlpublish" && name != "gvametapublish") continue;
        GstElement* identity = gst_element_factory_make("identity", nullptr);
        gst_bin_add(GST_BIN(bin), identity);
        GstPad *sink = gst_element_get_static_pad(element, "sink"),
               *src = gst_element_get_static_pad(element, "src");
        GstPad *before = gst_pad_get_peer(sink), *after = gst_pad_get_peer(src);
        gst_bin_remove(GST_BIN(bin), element);  // unlinks its pads
        if (before) gst_pad_link(before, GST_PAD(identity->sinkpads->data));
        if (after) gst_pad_link(GST_PAD(identity->srcpads->data), after);
        for (GstPad* pad : {sink, src, before, after})
            if (pad) gst_object_unref(pad);
    }
}

Part inferring_part(GstElement* bin) {
    Part part;
    std::set<GstElement*> seen;
    for (GstElement* element : children(bin))
        if (starts_inference(element)) (void)add_downstream(element, part, seen);
    for (GstElement* element : children(bin))
        if (starts_inference(element)) add_upstream(element, part);
    for (GstElement* element : part.elements) {
        for (GList* l = element->srcpads; l; l = l->next) {
            auto* src = GST_PAD(l->data);
            GstElement* next = peer_element(src);
            if (!next) continue;
            gst_object_unref(next);
            if (part.elements.contains(next)) part.links.push_back({src, GST_PAD_PEER(src)});
        }
    }
    return part;
}

void move(GstElement* element, GstElement* from, GstElement* to) {
    gst_object_ref(element);
    gst_bin_remove(GST_BIN(from), element);  // unlinks its pads
    gst_bin_add(GST_BIN(to), element);
    gst_object_unref(element);
    if (factory_name(element) == "tee") g_object_set(element, "allow-not-linked", TRUE, nullptr);
}

void link_source(GstElement* trial, GstPad* sink) {
    GstElement* source = gst_element_factory_make("videotestsrc", nullptr);
    if (!source) return;
    g_object_set(source, "num-buffers", frames, nullptr);
    gst_bin_add(GST_BIN(trial), source);
    GstPad* pad = gst_element_get_static_pad(source, "src");
    gst_pad_link(pad, sink);
    gst_object_unref(pad);
}

void link_sink(GstElement* trial, GstPad* src) {
    GstElement* end = gst_element_factory_make("fakesink", nullptr);
    g_object_set(end, "sync", FALSE, "async", FALSE, nullptr);
    gst_bin_add(GST_BIN(trial), end);
    GstPad* pad = gst_element_get_static_pad(end, "sink");
    gst_pad_link(src, pad);
    gst_object_unref(pad);
}

GstElement* make_trial(GstElement* bin, const Part& part) {
    GstElement* trial = gst_pipeline_new("trial");
    for (GstElement* element : part.elements) {
        move(element, bin, trial);
        // Nobody in a test picture gets a name in the user's file.
        if (factory_name(element) != "vartmlgallery") continue;
        gchar* enrol = nullptr;
        g_object_get(element, "enrol", &enrol, nullptr);
        if (enrol && *enrol) g_object_set(element, "location", "", nullptr);
        g_free(enrol);
    }
    for (const Link& link : part.links) gst_pad_link(link.src, link.sink);
    for (GstElement* element : part.elements) {
        const bool is_tee = factory_name(element) == "tee";
        for (GList* l = element->sinkpads; l; l = l->next)
            if (!gst_pad_is_linked(GST_PAD(l->data))) link_source(trial, GST_PAD(l->data));
        for (GList* l = element->srcpads; l; l = l->next)
            if (!is_tee && !gst_pad_is_linked(GST_PAD(l->data))) link_sink(trial, GST_PAD(l->data));
    }
    return trial;
}

// Until the end of the streams or the first error, with the other errors that are there then.
const char* watch(GstElement* trial) {
    GstBus* bus = gst_element_get_bus(trial);
    const char* end = nullptr;
    for (bool failed = false; !end || failed;) {
        GstMessage* message = gst_bus_timed_pop(bus, failed ? 0 : longest_silence);
        if (!message) {
            end = failed ? "done" : "timeout";
            break;
        }
        switch (GST_MESSAGE_TYPE(message)) {
            case GST_MESSAGE_ERROR:
                failed = true;
                [[fallthrough]];
            case GST_MESSAGE_WARNING:
                write_message(message);
                break;
            case GST_MESSAGE_EOS:
                end = "done";
                break;
            default:
                break;
        }
        gst_message_unref(message);
    }
    gst_object_unref(bus);
    return end;
}

}  // namespace

void try_inference(GstElement* bin) {
    replace_publishers(bin);
    const Part part = inferring_part(bin);
    if (part.elements.empty()) return write_end("none");
    GstElement* trial = make_trial(bin, part);
    gst_element_set_state(trial, GST_STATE_PLAYING);
    const char* end = watch(trial);
    write_end(end);
    if (g_str_equal(end, "timeout")) return;  // it may not stop either; the process ends
    gst_element_set_state(trial, GST_STATE_NULL);
    gst_object_unref(trial);
}

}  // namespace vartml::gst::doctor
