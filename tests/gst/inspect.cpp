// SPDX-License-Identifier: Apache-2.0
// What gst-inspect-1.0 shows of every element of the plugins is complete, and is in the
// documentation.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

std::vector<GstElementFactory*> factories() {
    std::vector<GstElementFactory*> all;
    for (const char* plugin : {"vartml", "vartmlextra"}) {
        GList* list = gst_registry_get_feature_list_by_plugin(gst_registry_get(), plugin);
        for (GList* l = list; l; l = l->next)
            if (GST_IS_ELEMENT_FACTORY(l->data))
                all.push_back(GST_ELEMENT_FACTORY(gst_object_ref(l->data)));
        gst_plugin_feature_list_free(list);
    }
    return all;
}

// The part of docs/elements.md that is about an element.
std::string section_of(const std::string& element) {
    static const std::string page = slurp(std::getenv("VARTML_ELEMENTS_PAGE"));
    const size_t begin = page.find("\n## " + element + "\n");
    return begin == page.npos ? "" : page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

// A physical quantity in the name of a property, and the units that its text may have.
struct Quantity {
    const char* word;
    std::vector<const char*> units;
};
const Quantity quantities[] = {
    {"timeout", {"milliseconds", "Milliseconds", "seconds"}},
    {"latency", {"milliseconds", "Milliseconds", "nanoseconds"}},
    {"lost", {"Nanoseconds"}},
    {"tolerance", {"Nanoseconds"}},
    {"hold", {"Nanoseconds"}},
    {"size", {"pixel", "Frames", "frames", "bytes"}},
    {"width", {"pixel", "Pixel"}},
    {"depth", {"frames"}},
    {"interval", {"frame", "milliseconds"}},
    {"expand", {"part of"}},
    {"score", {"score"}},
    {"iou", {"verlap", "ntersection over union"}},
};

bool is_number(const GParamSpec* spec) {
    return G_IS_PARAM_SPEC_UINT(spec) || G_IS_PARAM_SPEC_INT(spec) ||
           G_IS_PARAM_SPEC_DOUBLE(spec) || G_IS_PARAM_SPEC_UINT64(spec);
}

void check_unit(const GParamSpec* spec, const std::string& blurb) {
    const std::string words = '-' + std::string(spec->name) + '-';
    for (const Quantity& quantity : quantities) {
        if (!is_number(spec) || !contains(words, '-' + std::string(quantity.word) + '-')) continue;
        // "The same in …" follows the property that it speaks of.
        bool any = blurb.starts_with("The same");
        for (const char* unit : quantity.units) any = any || contains(blurb, unit);
        EXPECT_TRUE(any) << "no unit: " << blurb;
    }
}

void check_values(GParamSpec* spec) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    for (guint i = 0; i < values->n_values; ++i) {
        const std::string nick = values->values[i].value_nick, text = values->values[i].value_name;
        for (const char c : nick)
            EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) ||
                        std::isdigit(static_cast<unsigned char>(c)) || c == '-')
                << nick;
        EXPECT_NE(text, "") << nick;
        EXPECT_NE(text, nick) << "a value that is not explained";
    }
}

void check_property(GParamSpec* spec, const std::string& section) {
    SCOPED_TRACE(spec->name);
    const gchar* text = g_param_spec_get_blurb(spec);
    const std::string blurb = text ? text : "";
    ASSERT_GE(blurb.size(), 10U) << "no text";
    EXPECT_FALSE(std::islower(static_cast<unsigned char>(blurb[0]))) << blurb;
    EXPECT_FALSE(blurb.ends_with('.')) << blurb;
    EXPECT_STRNE(g_param_spec_get_nick(spec), spec->name) << "no nick";
    if (!section.empty()) {
        EXPECT_TRUE(contains(section, "| `" + std::string(spec->name) + "` |"))
            << "not in docs/elements.md";
        EXPECT_TRUE(contains(section, blurb)) << "docs/elements.md says something else";
    }
    const bool writable = spec->flags & G_PARAM_WRITABLE;
    const int mutability = GST_PARAM_MUTABLE_READY | GST_PARAM_MUTABLE_PLAYING;
    EXPECT_TRUE(!writable || spec->flags & mutability) << "may it be written while playing?";
    if (G_IS_PARAM_SPEC_ENUM(spec)) check_values(spec);
    check_unit(spec, blurb);
    // gst-inspect shows "null", which says nothing.
    const bool has_null =
        (G_IS_PARAM_SPEC_STRING(spec) && !G_PARAM_SPEC_STRING(spec)->default_value) ||
        G_IS_PARAM_SPEC_BOXED(spec);
    if (writable && has_null) {
        EXPECT_TRUE(contains(blurb, "unset") || contains(blurb, "required")) << blurb;
    }
}

TEST(Inspect, ShowsEachPropertyWithTextUnitAndMutability) {
    for (GstElementFactory* factory : factories()) {
        const std::string name = GST_OBJECT_NAME(factory);
        SCOPED_TRACE(name);
        const std::string section = section_of(name);
        EXPECT_NE(section, "") << "docs/elements.md has no section of it";
        GstElement* element = gst_element_factory_create(factory, nullptr);
        ASSERT_NE(element, nullptr);
        gst_object_ref_sink(element);
        guint count = 0;
        GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
        for (guint i = 0; i < count; ++i)
            if (specs[i]->owner_type == G_OBJECT_TYPE(element)) check_property(specs[i], section);
        g_free(specs);
        gst_object_unref(element);
        gst_object_unref(factory);
    }
}

// Something else than the default that the property may have; of a structure none.
GValue other_value(GParamSpec* spec) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, spec->value_type);
    if (G_IS_PARAM_SPEC_STRING(spec)) g_value_set_static_string(&value, "another");
    if (G_IS_PARAM_SPEC_BOOLEAN(spec))
        g_value_set_boolean(&value, !G_PARAM_SPEC_BOOLEAN(spec)->default_value);
    if (G_IS_PARAM_SPEC_UINT(spec)) g_value_set_uint(&value, G_PARAM_SPEC_UINT(spec)->maximum);
    if (G_IS_PARAM_SPEC_INT(spec)) g_value_set_int(&value, G_PARAM_SPEC_INT(spec)->maximum);
    if (G_IS_PARAM_SPEC_UINT64(spec)) g_value_set_uint64(&value, 12'345'678'901);
    if (G_IS_PARAM_SPEC_DOUBLE(spec))
        g_value_set_double(&value, G_PARAM_SPEC_DOUBLE(spec)->maximum);
    if (G_IS_PARAM_SPEC_ENUM(spec)) {
        const GEnumClass* known = G_PARAM_SPEC_ENUM(spec)->enum_class;
        g_value_set_enum(&value, known->values[known->n_values - 1].value);
    }
    if (G_IS_PARAM_SPEC_FLAGS(spec))
        g_value_set_flags(&value, G_PARAM_SPEC_FLAGS(spec)->flags_class->mask &
                                      ~G_PARAM_SPEC_FLAGS(spec)->default_value);
    return value;
}

TEST(Inspect, EachPropertyIsReadAsItIsWrittenAndBeforeThatAsItsDefault) {
    unsigned written = 0;
    for (GstElementFactory* factory : factories()) {
        SCOPED_TRACE(GST_OBJECT_NAME(factory));
        GstElement* element = gst_element_factory_create(factory, nullptr);
        gst_object_ref_sink(element);
        guint count = 0;
        GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
        for (guint i = 0; i < count; ++i) {
            GParamSpec* spec = specs[i];
            const GParamFlags both = G_PARAM_READWRITE;
            if (spec->owner_type != G_OBJECT_TYPE(element) || (spec->flags & both) != both)
                continue;
            SCOPED_TRACE(spec->name);
            GValue value = G_VALUE_INIT;
            g_value_init(&value, spec->value_type);
            g_object_get_property(G_OBJECT(element), spec->name, &value);
            EXPECT_TRUE(g_param_value_defaults(spec, &value));
            GValue other = other_value(spec);
            g_object_set_property(G_OBJECT(element), spec->name, &other);
            g_object_get_property(G_OBJECT(element), spec->name, &value);
            EXPECT_EQ(g_param_values_cmp(spec, &value, &other), 0);
            written += !g_param_value_defaults(spec, &value);
            g_value_unset(&value);
            g_value_unset(&other);
        }
        g_free(specs);
        gst_object_unref(element);
        gst_object_unref(factory);
    }
    EXPECT_GT(written, 80u);
}

TEST(Inspect, SaysWhatEachElementIs) {
    unsigned elements = 0;
    for (GstElementFactory* factory : factories()) {
        const std::string name = GST_OBJECT_NAME(factory);
        SCOPED_TRACE(name);
        ++elements;
        const auto said = [&](const char* key) {
            const gchar* text = gst_element_factory_get_metadata(factory, key);
            return std::string(text ? text : "");
        };
        EXPECT_GE(said(GST_ELEMENT_METADATA_LONGNAME).size(), 8U);
        EXPECT_GE(said(GST_ELEMENT_METADATA_DESCRIPTION).size(), 20U);
        EXPECT_NE(said(GST_ELEMENT_METADATA_AUTHOR), "");
        // given: the first word of a classification says what the element does
        const std::string kind = said(GST_ELEMENT_METADATA_KLASS);
        bool known = false;
        for (const char* word :
             {"Filter/", "Analyzer/", "Visualization/", "Muxer/", "Source/", "Tensordecoder/"})
            known = known || kind.starts_with(word);
        EXPECT_TRUE(known) << kind;
        gst_object_unref(factory);  // the registry keeps it
        const std::string section = section_of(name);
        if (section.empty()) continue;
        EXPECT_TRUE(contains(section, "**Pads**")) << "docs/elements.md says nothing of its pads";
        for (const GList* l = gst_element_factory_get_static_pad_templates(factory); l;
             l = l->next) {
            const auto* pad = static_cast<const GstStaticPadTemplate*>(l->data);
            EXPECT_TRUE(contains(section, "`" + std::string(pad->name_template) + "`"))
                << "docs/elements.md does not name pad " << pad->name_template;
        }
    }
    EXPECT_GE(elements, 3U);
}

}  // namespace
}  // namespace vartml::test
