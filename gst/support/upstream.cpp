// SPDX-License-Identifier: Apache-2.0
#include "gst/support/upstream.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "gst/support/error.h"

namespace vartml::gst {
namespace {

using PadRef = std::unique_ptr<GstPad, ObjectUnref>;

std::string_view factory_of(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return factory ? gst_plugin_feature_get_name(GST_PLUGIN_FEATURE(factory)) : "";
}

std::string quoted(GstElement* element) {
    return std::string(factory_of(element)) + " '" + name_of(element) + "'";
}

// The pad of a real element that feeds `sink`: into bins and out of them.
PadRef feeding_pad(GstPad* sink) {
    PadRef pad(gst_pad_get_peer(sink));
    while (pad) {
        if (GST_IS_GHOST_PAD(pad.get())) {
            pad.reset(gst_ghost_pad_get_target(GST_GHOST_PAD(pad.get())));
        } else if (GST_IS_PROXY_PAD(pad.get())) {
            const PadRef ghost(GST_PAD(gst_proxy_pad_get_internal(GST_PROXY_PAD(pad.get()))));
            pad.reset(ghost ? gst_pad_get_peer(ghost.get()) : nullptr);
        } else {
            break;
        }
    }
    return pad;
}

void add_feeders(GstElement* element, std::vector<ElementRef>& all) {
    gst_element_foreach_sink_pad(
        element,
        [](GstElement*, GstPad* sink, gpointer data) -> gboolean {
            auto& found = *static_cast<std::vector<ElementRef>*>(data);
            const PadRef pad = feeding_pad(sink);
            ElementRef parent(pad ? gst_pad_get_parent_element(pad.get()) : nullptr);
            if (parent && std::ranges::find(found, parent.get(), &ElementRef::get) == found.end())
                found.push_back(std::move(parent));
            return TRUE;
        },
        &all);
}

const ElementRef* find(const std::vector<ElementRef>& elements, std::string_view factory) {
    const auto at = std::ranges::find_if(
        elements, [&](const ElementRef& e) { return factory_of(e.get()) == factory; });
    return at == elements.end() ? nullptr : &*at;
}

// Ours, or one of GStreamer's, whose class says it.
bool decodes_tensors(const ElementRef& e) {
    GstElementFactory* factory = gst_element_get_factory(e.get());
    if (!factory) return false;
    const char* klass = gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS);
    return factory_of(e.get()) == "vartmldecode" ||
           (klass && std::string_view(klass).find("Tensordecoder") != std::string_view::npos);
}

bool is_one_of(GstElement* element, std::initializer_list<std::string_view> factories) {
    return std::ranges::find(factories, factory_of(element)) != factories.end();
}

struct Cause {
    std::string sentence, fix;
};

// What stands between `infer` and the element and drops what infer attached.
Cause cause_between(const std::vector<ElementRef>& before, const ElementRef& infer) {
    std::string others;
    for (const ElementRef& e : before) {
        if (e == infer) break;
        // From 1.28 on these take metadata along.
        if (!GST_CHECK_VERSION(1, 28, 0) &&
            is_one_of(e.get(), {"videobox", "videocrop", "videoflip", "aspectratiocrop"}))
            return {quoted(e.get()) +
                        " between them drops it; place it before vartmlinfer or "
                        "after drawing",
                    "place " + std::string(factory_of(e.get())) + " before vartmlinfer"};
        if (!factory_of(e.get()).starts_with("vartml") &&
            !is_one_of(e.get(), {"queue", "queue2", "tee", "capsfilter", "identity"}))
            others += (others.empty() ? "" : ", ") + quoted(e.get());
    }
    if (others.empty()) return {"it has inferred no frame so far", ""};
    return {"one of the elements between them drops it: " + others +
                "; place those before vartmlinfer or after drawing",
            "place them before vartmlinfer"};
}

std::optional<Cause> cause_of(GstElement* element, const IdleNotice::Role& role, bool had_records) {
    const std::string self(factory_of(element));
    const std::vector<ElementRef> before = elements_before(element);
    const ElementRef* const infer = find(before, "vartmlinfer");
    const bool decode = std::ranges::any_of(before, decodes_tensors);
    const std::string chain = role.needs_decoder ? "vartmlinfer model=MODEL ! vartmldecode ! "
                                                 : "vartmlinfer model=MODEL ! ";
    if (role.needs_tracker && decode && !find(before, "vartmltrack")) {
        return Cause{
            "no vartmltrack stands between this element and vartmldecode, whose detections it "
            "would "
            "give tracks",
            "vartmltrack ! " + self};
    }
    if (had_records) {
        // The model sees nothing. Where no vartmlinfer is seen, no decoder would be.
        if (decode || !role.needs_decoder || !infer) return std::nullopt;
        return Cause{
            "no vartmldecode stands between this element and vartmlinfer, whose tensors "
            "it would turn into results",
            "vartmldecode ! " + self};
    }
    if (!infer) {
        const std::string text = "no vartmlinfer stands before this element";
        return Cause{
            role.needs_decoder ? text + "; if another element finds objects, it found none" : text,
            chain + self};
    }
    Cause cause = cause_between(before, *infer);
    cause.sentence =
        quoted(infer->get()) + " stands before, but nothing of it arrives: " + cause.sentence;
    return cause;
}

// Labels of what the decoders before have decoded so far; nothing where none has.
std::set<std::string> labels_before(GstElement* element) {
    std::set<std::string> labels;
    for (const ElementRef& e : elements_before(element)) {
        if (!is_one_of(e.get(), {"vartmldecode", "vartmltensordec"})) continue;
        GValue list = G_VALUE_INIT;
        g_value_init(&list, GST_TYPE_ARRAY);
        g_object_get_property(G_OBJECT(e.get()), "labels", &list);
        for (guint i = 0; i < gst_value_array_get_size(&list); ++i)
            labels.insert(g_value_get_string(gst_value_array_get_value(&list, i)));
        g_value_unset(&list);
    }
    return labels;
}

std::string listed(const std::set<std::string>& labels) {
    constexpr size_t most = 30;
    std::string text;
    size_t count = 0;
    for (const std::string& label : labels) {
        if (count++ == most) break;
        text += (text.empty() ? "" : ", ") + label;
    }
    return labels.size() > most ? text + ", … (" + std::to_string(labels.size()) + " in all)"
                                : text;
}

}  // namespace

std::vector<ElementRef> elements_before(GstElement* element) {
    std::vector<ElementRef> all;
    add_feeders(element, all);
    for (size_t i = 0; i < all.size(); ++i) {
        GstElement* const next = all[i].get();  // `all` moves while it grows
        add_feeders(next, all);
    }
    return all;
}

bool TrackLabels::are_kept(GstElement* element) {
    if (kept_) return *kept_;
    const auto mixes = [](const ElementRef& e) {
        gboolean per_class = TRUE;
        if (factory_of(e.get()) == "vartmltrack")
            g_object_get(e.get(), "per-class", &per_class, nullptr);
        return !per_class;
    };
    kept_ = std::ranges::none_of(elements_before(element), mixes);
    return *kept_;
}

void IdleNotice::frame(GstElement* element, const Role& role, bool has_work, bool has_record) {
    if (over_) return;
    had_records_ = had_records_ || has_record;
    over_ = has_work || ++frames_ == patience;
    if (has_work || !over_) return;
    const auto cause = cause_of(element, role, had_records_);
    if (!cause) return;
    post_warning(element, role.doing,
                 {.error = {vartml::ErrorCode::not_found, std::to_string(patience) +
                                                              " frames came without " + role.lacks +
                                                              ": " + cause->sentence},
                  .id = role.id,
                  .fix = cause->fix});
}

void LabelCheck::frame(GstElement* element, const char* property,
                       const std::vector<std::string>& labels) {
    if (!pending_) return;
    const std::set<std::string> known =
        labels.empty() ? std::set<std::string>() : labels_before(element);
    constexpr unsigned most_asked = 100;
    // A decoder that has decoded nothing yet is asked again.
    pending_ = !labels.empty() && known.empty() && ++asked_ < most_asked;
    if (labels.empty() || known.empty()) return;
    std::string unknown;
    for (const std::string& label : labels)
        if (!known.contains(label)) unknown += (unknown.empty() ? "'" : ", '") + label + "'";
    if (unknown.empty()) return;
    post_warning(
        element, "find all classes",
        {.error = {vartml::ErrorCode::invalid_argument,
                   std::string("property '") + property + "' has " + unknown +
                       ", which no model before this element knows; known are " + listed(known)},
         .id = "unknown-classes",
         .property = property,
         .found = unknown,
         .expected = listed(known)});
}

}  // namespace vartml::gst
