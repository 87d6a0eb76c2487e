// SPDX-License-Identifier: Apache-2.0
// The properties of an element, or of the tracer, as one table over a plain struct of settings.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "gst/support/error.h"

namespace vartml::gst {

// When a property may be written.
inline constexpr int until_ready = GST_PARAM_MUTABLE_READY;
inline constexpr int any_time = GST_PARAM_MUTABLE_PLAYING;
inline constexpr int controlled = any_time | GST_PARAM_CONTROLLABLE;

// Of a value and of its GValue. "" is nullptr there.
inline void load(std::string& text, const GValue* value) {
    const gchar* given = g_value_get_string(value);
    text = given ? given : "";
}
inline void load(bool& flag, const GValue* value) {
    flag = g_value_get_boolean(value);
}
inline void load(int& number, const GValue* value) {
    number = g_value_get_int(value);
}
inline void load(unsigned& number, const GValue* value) {
    number = g_value_get_uint(value);
}
inline void load(uint64_t& number, const GValue* value) {
    number = g_value_get_uint64(value);
}
inline void load(double& number, const GValue* value) {
    number = g_value_get_double(value);
}
inline void store(const std::string& text, GValue* value) {
    g_value_set_string(value, text.empty() ? nullptr : text.c_str());
}
inline void store(bool flag, GValue* value) {
    g_value_set_boolean(value, flag);
}
inline void store(int number, GValue* value) {
    g_value_set_int(value, number);
}
inline void store(unsigned number, GValue* value) {
    g_value_set_uint(value, number);
}
inline void store(uint64_t number, GValue* value) {
    g_value_set_uint64(value, number);
}
inline void store(double number, GValue* value) {
    g_value_set_double(value, number);
}

// One property: its text, when it may be written, its range and the setting behind it, whose
// initialiser is the default. Its id is its place in the table, from 1.
template <typename Settings>
struct Property {
    struct Text {
        std::string Settings::* field;
        GParamSpec* spec(const Property& p, const Settings& defaults, GParamFlags flags) const {
            const std::string& text = defaults.*field;
            return g_param_spec_string(p.name, p.nick, p.blurb,
                                       text.empty() ? nullptr : text.c_str(), flags);
        }
        void get(const Settings& s, GValue* value) const { store(s.*field, value); }
        void set(Settings& s, const GValue* value) const { load(s.*field, value); }
    };
    // A text that can be written and not read.
    struct Secret {
        std::string Settings::* field;
        GParamSpec* spec(const Property& p, const Settings&, GParamFlags flags) const {
            return g_param_spec_string(p.name, p.nick, p.blurb, nullptr,
                                       GParamFlags(flags & ~G_PARAM_READABLE));
        }
        void get(const Settings&, GValue*) const {}
        void set(Settings& s, const GValue* value) const { load(s.*field, value); }
    };
    struct Flag {
        bool Settings::* field;
        GParamSpec* spec(const Property& p, const Settings& defaults, GParamFlags flags) const {
            return g_param_spec_boolean(p.name, p.nick, p.blurb, defaults.*field, flags);
        }
        void get(const Settings& s, GValue* value) const { store(s.*field, value); }
        void set(Settings& s, const GValue* value) const { load(s.*field, value); }
    };
    template <typename T>
    struct Number {
        T Settings::* field;
        T min = 0, max = std::numeric_limits<T>::max();
        GParamSpec* spec(const Property& p, const Settings& defaults, GParamFlags flags) const {
            const auto make = [&](auto function) {
                return function(p.name, p.nick, p.blurb, min, max, defaults.*field, flags);
            };
            if constexpr (std::is_same_v<T, int>) return make(g_param_spec_int);
            if constexpr (std::is_same_v<T, unsigned>) return make(g_param_spec_uint);
            if constexpr (std::is_same_v<T, uint64_t>) return make(g_param_spec_uint64);
            if constexpr (std::is_same_v<T, double>) return make(g_param_spec_double);
        }
        void get(const Settings& s, GValue* value) const { store(s.*field, value); }
        void set(Settings& s, const GValue* value) const { load(s.*field, value); }
    };
    using Int = Number<int>;
    using Uint = Number<unsigned>;
    using Real = Number<double>;
    using Size = Number<uint64_t>;
    using Time = Size;  // nanoseconds
    struct Enum {
        const char* type;
        const GEnumValue* values;  // static
        int (*of)(const Settings&);
        void (*put)(Settings&, int);
        GParamSpec* spec(const Property& p, const Settings& defaults, GParamFlags flags) const {
            const GType made = g_enum_register_static(type, values);
            gst_type_mark_as_plugin_api(made, GstPluginAPIFlags(0));
            return g_param_spec_enum(p.name, p.nick, p.blurb, made, of(defaults), flags);
        }
        void get(const Settings& s, GValue* value) const { g_value_set_enum(value, of(s)); }
        void set(Settings& s, const GValue* value) const { put(s, g_value_get_enum(value)); }
    };
    template <auto Field>
    static Enum choice(const char* type, const GEnumValue* values) {
        using T = std::remove_cvref_t<decltype(std::declval<Settings&>().*Field)>;
        return {type, values, [](const Settings& s) { return static_cast<int>(s.*Field); },
                [](Settings& s, int value) { s.*Field = static_cast<T>(value); }};
    }
    struct Flags {
        const char* type;
        const GFlagsValue* values;  // static
        unsigned Settings::* field;
        GParamSpec* spec(const Property& p, const Settings& defaults, GParamFlags flags) const {
            const GType made = g_flags_register_static(type, values);
            gst_type_mark_as_plugin_api(made, GstPluginAPIFlags(0));
            return g_param_spec_flags(p.name, p.nick, p.blurb, made, defaults.*field, flags);
        }
        void get(const Settings& s, GValue* value) const { g_value_set_flags(value, s.*field); }
        void set(Settings& s, const GValue* value) const { s.*field = g_value_get_flags(value); }
    };
    // What none of the others is.
    struct Custom {
        GParamSpec* (*make)(const Property&, GParamFlags);
        void (*of)(const Settings&, GValue*);
        void (*put)(Settings&, const GValue*);
        GParamSpec* spec(const Property& p, const Settings&, GParamFlags flags) const {
            return make(p, flags);
        }
        void get(const Settings& s, GValue* value) const { of(s, value); }
        void set(Settings& s, const GValue* value) const { put(s, value); }
    };
    // No setting: read from the object, without the lock.
    struct Computed {
        GParamSpec* (*make)(const Property&, GParamFlags);
        void (*read)(GObject*, GValue*);
        GParamSpec* spec(const Property& p, const Settings&, GParamFlags flags) const {
            return make(p, GParamFlags(flags & ~G_PARAM_WRITABLE));
        }
        void get(const Settings&, GValue*) const {}
        void set(Settings&, const GValue*) const {}
    };
    // The read-only `stats`; `Make` gives a structure that the caller owns.
    template <auto Make>
    static Property stats(const char* blurb) {
        return {
            "stats", "Statistics", blurb, 0,
            Computed{
                [](const Property& p, GParamFlags flags) {
                    return g_param_spec_boxed(p.name, p.nick, p.blurb, GST_TYPE_STRUCTURE, flags);
                },
                [](GObject* object, GValue* value) { g_value_take_boxed(value, Make(object)); }}};
    }

    const char *name, *nick, *blurb;
    int when;
    std::variant<Text, Secret, Flag, Int, Uint, Real, Size, Enum, Flags, Custom, Computed> kind;
    // What else a write changes in the settings.
    void (*written)(Settings&) = nullptr;

    GParamSpec* spec() const {
        const auto flags = GParamFlags(when | G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
        return std::visit([&](const auto& k) { return k.spec(*this, Settings{}, flags); }, kind);
    }
    void get(const Settings& settings, GValue* value) const {
        std::visit([&](const auto& k) { k.get(settings, value); }, kind);
    }
    void set(Settings& settings, const GValue* value) const {
        std::visit([&](const auto& k) { k.set(settings, value); }, kind);
        if (written) written(settings);
    }
};

// The object lock for a scope.
class ObjectLock {
public:
    explicit ObjectLock(gpointer object) : object_(GST_OBJECT(object)) { GST_OBJECT_LOCK(object_); }
    ~ObjectLock() { GST_OBJECT_UNLOCK(object_); }
    ObjectLock(const ObjectLock&) = delete;
    ObjectLock& operator=(const ObjectLock&) = delete;

private:
    GstObject* const object_;
};

// A copy of what the table is over.
template <typename Element>
auto copy_settings(gpointer object) {
    const typename Element::Lock lock(G_OBJECT(object));
    return Element::settings(G_OBJECT(object));
}

// Makes the table of `Element` the properties of a class. `Element` has
//   rows()            the table
//   settings(object)  what it is over
//   Lock              guards that; made of the object
//   written(object)   called after each write, without the lock
template <typename Element>
void install_properties(GObjectClass* klass) {
    klass->set_property = [](GObject* object, guint id, const GValue* value, GParamSpec* spec) {
        {
            const typename Element::Lock lock(object);
            Element::rows()[id - 1].set(Element::settings(object), value);
        }
        Element::written(object);
        warn_if_fixed(object, spec);
    };
    klass->get_property = [](GObject* object, guint id, GValue* value, GParamSpec*) {
        using Settings = std::remove_reference_t<decltype(Element::settings(object))>;
        const auto& row = Element::rows()[id - 1];
        if (const auto* k = std::get_if<typename Property<Settings>::Computed>(&row.kind))
            return k->read(object, value);
        const typename Element::Lock lock(object);
        row.get(Element::settings(object), value);
    };
    guint id = 0;
    for (const auto& row : Element::rows())
        g_object_class_install_property(klass, ++id, row.spec());
}

}  // namespace vartml::gst
