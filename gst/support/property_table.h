// SPDX-License-Identifier: Apache-2.0
// The properties of an element as one table over a plain struct of settings.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace vartml::gst {

// Registers an enumeration that belongs to a property; keep the result in a static.
inline GType register_property_enum(const char* name, const GEnumValue* values) {
    const GType type = g_enum_register_static(name, values);
    gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
    return type;
}

// The same for a set of flags.
inline GType register_property_flags(const char* name, const GFlagsValue* values) {
    const GType type = g_flags_register_static(name, values);
    gst_type_mark_as_plugin_api(type, static_cast<GstPluginAPIFlags>(0));
    return type;
}

// When a property may be written.
inline constexpr int until_ready = GST_PARAM_MUTABLE_READY;
inline constexpr int any_time = GST_PARAM_MUTABLE_PLAYING;
inline constexpr int controlled = any_time | GST_PARAM_CONTROLLABLE;

// One property: its text, its range and the setting behind it, whose initialiser is the default.
// Its id is its place in the table, from 1.
template <typename Settings>
struct Property {
    struct Text {
        std::string Settings::* field;
    };
    struct Flag {
        bool Settings::* field;
    };
    struct Uint {
        unsigned Settings::* field;
        guint min, max;
    };
    struct Real {
        double Settings::* field;
        gdouble min, max;
    };
    // Nanoseconds.
    struct Time {
        uint64_t Settings::* field;
    };
    struct Enum {
        GType (*type)();
        int (*get)(const Settings&);
        void (*set)(Settings&, int);
    };
    struct Flags {
        GType (*type)();
        unsigned Settings::* field;
    };
    // A text that can be written and not read.
    struct Secret {
        std::string Settings::* field;
    };

    const char *name, *nick, *blurb;
    int when;
    std::variant<Text, Flag, Uint, Real, Time, Enum, Flags, Secret> kind;

    template <auto Field>
    static Enum choice(GType (*type)()) {
        using T = std::remove_cvref_t<decltype(std::declval<Settings&>().*Field)>;
        return {type, [](const Settings& s) { return static_cast<int>(s.*Field); },
                [](Settings& s, int value) { s.*Field = static_cast<T>(value); }};
    }

    GParamSpec* spec() const;
    void write(Settings& settings, const GValue* value) const;
    void read(const Settings& settings, GValue* value) const;
};

template <typename... Functions>
struct PropertyVisitor : Functions... {
    using Functions::operator()...;
};

template <typename Settings>
GParamSpec* Property<Settings>::spec() const {
    const Settings defaults{};
    const auto flags = static_cast<GParamFlags>(when | G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
    return std::visit(
        PropertyVisitor{
            [&](const Text& k) {
                const std::string& text = defaults.*k.field;
                return g_param_spec_string(name, nick, blurb, text.empty() ? nullptr : text.c_str(),
                                           flags);
            },
            [&](const Flag& k) {
                return g_param_spec_boolean(name, nick, blurb, defaults.*k.field, flags);
            },
            [&](const Uint& k) {
                return g_param_spec_uint(name, nick, blurb, k.min, k.max, defaults.*k.field, flags);
            },
            [&](const Real& k) {
                return g_param_spec_double(name, nick, blurb, k.min, k.max, defaults.*k.field,
                                           flags);
            },
            [&](const Time& k) {
                return g_param_spec_uint64(name, nick, blurb, 0, G_MAXUINT64, defaults.*k.field,
                                           flags);
            },
            [&](const Enum& k) {
                return g_param_spec_enum(name, nick, blurb, k.type(), k.get(defaults), flags);
            },
            [&](const Flags& k) {
                return g_param_spec_flags(name, nick, blurb, k.type(), defaults.*k.field, flags);
            },
            [&](const Secret&) {
                const int written = flags & ~G_PARAM_READABLE;
                return g_param_spec_string(name, nick, blurb, nullptr,
                                           static_cast<GParamFlags>(written));
            },
        },
        kind);
}

template <typename Settings>
void Property<Settings>::write(Settings& settings, const GValue* value) const {
    std::visit(PropertyVisitor{
                   [&](const Text& k) {
                       const gchar* text = g_value_get_string(value);
                       settings.*k.field = text ? text : "";
                   },
                   [&](const Flag& k) { settings.*k.field = g_value_get_boolean(value); },
                   [&](const Uint& k) { settings.*k.field = g_value_get_uint(value); },
                   [&](const Real& k) { settings.*k.field = g_value_get_double(value); },
                   [&](const Time& k) { settings.*k.field = g_value_get_uint64(value); },
                   [&](const Enum& k) { k.set(settings, g_value_get_enum(value)); },
                   [&](const Flags& k) { settings.*k.field = g_value_get_flags(value); },
                   [&](const Secret& k) {
                       const gchar* text = g_value_get_string(value);
                       settings.*k.field = text ? text : "";
                   },
               },
               kind);
}

template <typename Settings>
void Property<Settings>::read(const Settings& settings, GValue* value) const {
    std::visit(PropertyVisitor{
                   [&](const Text& k) {
                       const std::string& text = settings.*k.field;
                       g_value_set_string(value, text.empty() ? nullptr : text.c_str());
                   },
                   [&](const Flag& k) { g_value_set_boolean(value, settings.*k.field); },
                   [&](const Uint& k) { g_value_set_uint(value, settings.*k.field); },
                   [&](const Real& k) { g_value_set_double(value, settings.*k.field); },
                   [&](const Time& k) { g_value_set_uint64(value, settings.*k.field); },
                   [&](const Enum& k) { g_value_set_enum(value, k.get(settings)); },
                   [&](const Flags& k) { g_value_set_flags(value, settings.*k.field); },
                   [](const Secret&) {},
               },
               kind);
}

// Installs the table, then the read-only `stats`; gives the id of the latter.
template <typename Settings>
guint install_properties(GObjectClass* klass, std::span<const Property<Settings>> table,
                         const char* stats_blurb) {
    guint id = 0;
    for (const auto& row : table) g_object_class_install_property(klass, ++id, row.spec());
    g_object_class_install_property(
        klass, ++id,
        g_param_spec_boxed("stats", "Statistics", stats_blurb, GST_TYPE_STRUCTURE,
                           static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
    return id;
}

// The row of an id; nullptr for an id that is not in the table.
template <typename Settings>
const Property<Settings>* find_property(std::span<const Property<Settings>> table, guint id) {
    return id >= 1 && id <= table.size() ? &table[id - 1] : nullptr;
}

}  // namespace vartml::gst
