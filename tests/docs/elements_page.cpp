// SPDX-License-Identifier: Apache-2.0
// Prints the properties of an element, or the parameters of a tracer, as the table of its page.
// usage: elements_page NAME      with the plugin on GST_PLUGIN_PATH
#define GST_USE_UNSTABLE_API
#include <gst/gst.h>

#include <cmath>
#include <cstdio>
#include <string>

namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

std::string choices(GParamSpec* spec) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    std::string text;
    for (guint i = 0; i < values->n_values; ++i)
        text += (i ? ", `" : "`") + std::string(values->values[i].value_nick) + '`';
    return text;
}

// The nicks of those that are set.
std::string flags(const GFlagsClass* values, guint set, const char* between) {
    std::string text;
    for (guint i = 0; i < values->n_values; ++i) {
        if (values->values[i].value & set)
            text += (text.empty() ? "" : between) + std::string(values->values[i].value_nick);
    }
    return '`' + text + '`';
}

// Type with range, and default.
void describe(GParamSpec* spec, std::string& type, std::string& fallback) {
    const auto numeric = [&](const char* name, double low, double high, double value) {
        type = std::string(name) + ' ' + number(low) + " to " + number(high);
        fallback = number(value);
    };
    if (G_IS_PARAM_SPEC_STRING(spec)) {
        const gchar* text = G_PARAM_SPEC_STRING(spec)->default_value;
        type = "string";
        fallback = text ? '`' + std::string(text) + '`' : "unset";
    } else if (G_IS_PARAM_SPEC_UINT(spec)) {
        const auto* p = G_PARAM_SPEC_UINT(spec);
        numeric("uint", p->minimum, p->maximum, p->default_value);
    } else if (G_IS_PARAM_SPEC_INT(spec)) {
        const auto* p = G_PARAM_SPEC_INT(spec);
        numeric("int", p->minimum, p->maximum, p->default_value);
    } else if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
        const auto* p = G_PARAM_SPEC_DOUBLE(spec);
        numeric("double", p->minimum, p->maximum, p->default_value);
    } else if (G_IS_PARAM_SPEC_UINT64(spec)) {
        const guint64 value = G_PARAM_SPEC_UINT64(spec)->default_value;
        type = "uint64";
        fallback = value == G_MAXUINT64 ? "none" : std::to_string(value);
    } else if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
        type = "boolean";
        fallback = G_PARAM_SPEC_BOOLEAN(spec)->default_value ? "true" : "false";
    } else if (G_IS_PARAM_SPEC_ENUM(spec)) {
        const auto* p = G_PARAM_SPEC_ENUM(spec);
        type = choices(spec);
        fallback =
            '`' + std::string(g_enum_get_value(p->enum_class, p->default_value)->value_nick) + '`';
    } else if (G_IS_PARAM_SPEC_FLAGS(spec)) {
        const auto* p = G_PARAM_SPEC_FLAGS(spec);
        type = flags(p->flags_class, G_MAXUINT, "`, `");
        fallback = flags(p->flags_class, p->default_value, "+");
    } else if (GST_IS_PARAM_SPEC_ARRAY_LIST(spec)) {
        type = "list of strings";
        fallback = "empty";
    } else {
        type = "structure";
        fallback = "unset";
    }
}

const char* when(const GParamSpec* spec) {
    if (!(spec->flags & G_PARAM_WRITABLE)) return "read only";
    if (spec->flags & GST_PARAM_CONTROLLABLE) return "controlled";
    if (!(spec->flags & G_PARAM_READABLE)) return "ready, write only";
    if (spec->flags & G_PARAM_CONSTRUCT_ONLY) return "start";
    return spec->flags & GST_PARAM_MUTABLE_PLAYING ? "playing" : "ready";
}

// The class of what the factory with that name makes; nullptr: there is none.
GObjectClass* class_of(const char* name) {
    GstPluginFeature* const known = gst_registry_lookup_feature(gst_registry_get(), name);
    if (!known) return nullptr;
    GstPluginFeature* const loaded = gst_plugin_feature_load(known);
    const GType type = GST_IS_ELEMENT_FACTORY(loaded)
                           ? gst_element_factory_get_element_type(GST_ELEMENT_FACTORY(loaded))
                           : gst_tracer_factory_get_tracer_type(GST_TRACER_FACTORY(loaded));
    gst_object_unref(loaded);
    gst_object_unref(known);
    return G_OBJECT_CLASS(g_type_class_ref(type));
}

}  // namespace

int main(int argc, char** argv) {
    gst_init(&argc, &argv);
    GObjectClass* const of = argc == 2 ? class_of(argv[1]) : nullptr;
    if (!of) {
        std::fprintf(stderr, "elements_page: no element %s\n", argc == 2 ? argv[1] : "named");
        return 1;
    }
    std::puts("| property | type | default | written | meaning |\n|---|---|---|---|---|");
    guint count = 0;
    GParamSpec** specs = g_object_class_list_properties(of, &count);
    for (guint i = 0; i < count; ++i) {
        if (specs[i]->owner_type != G_OBJECT_CLASS_TYPE(of)) continue;
        std::string type, fallback;
        describe(specs[i], type, fallback);
        std::printf("| `%s` | %s | %s | %s | %s |\n", specs[i]->name, type.c_str(),
                    fallback.c_str(), when(specs[i]), g_param_spec_get_blurb(specs[i]));
    }
    g_free(specs);
    g_type_class_unref(of);
    return 0;
}
