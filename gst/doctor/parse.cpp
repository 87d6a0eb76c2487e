// SPDX-License-Identifier: Apache-2.0
#include "gst/doctor/parse.h"

#include "gst/doctor/lines.h"

namespace vartml::gst::doctor {
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
