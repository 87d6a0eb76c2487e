// SPDX-License-Identifier: Apache-2.0
#include "gst/doctor/lines.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace vartml::gst::doctor {
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

std::string factory_name(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return factory ? GST_OBJECT_NAME(factory) : "";
}

std::string classification(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    const gchar* text =
        factory ? gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS) : nullptr;
    return text ? text : "";
}

GstElement* peer_element(GstPad* pad) {
    GstPad* peer = gst_pad_get_peer(pad);
    if (!peer) return nullptr;
    GstElement* element = gst_pad_get_parent_element(peer);
    gst_object_unref(peer);
    return element;
}

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

void write_element(GstElement* element) {
    write({{"kind", "element"},
           {"name", taken(gst_object_get_name(GST_OBJECT(element)))},
           {"factory", factory_name(element)},
           {"class", classification(element)},
           {"properties", changed_properties(element)},
           {"feeds", fed_by(element)}});
}

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

GstElement* parse_line(const std::string& line) {
    GstParseContext* context = gst_parse_context_new();
    GError* error = nullptr;
    GstElement* bin =
        gst_parse_launch_full(line.c_str(), context, GST_PARSE_FLAG_PLACE_IN_BIN, &error);
    if (bin) gst_object_ref_sink(bin);
    if (error) {
        write_parse_error(bin, context, *error);
        gst_clear_object(&bin);
        g_error_free(error);
    }
    gst_parse_context_free(context);
    return bin;
}

}  // namespace vartml::gst::doctor
