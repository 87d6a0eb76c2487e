// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/negotiate.h"

#include <gst/allocators/gstdmabuf.h>

#include <memory>

#include "gst/overlay/canvas.h"
#include "gst/support/picture_info.h"

namespace vartml::gst::overlay {
namespace {

constexpr char composition[] = GST_CAPS_FEATURE_META_GST_VIDEO_OVERLAY_COMPOSITION;

struct Unref {
    void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
};
using Caps = std::unique_ptr<GstCaps, Unref>;

GstCapsFeatures* features_of(const GstCaps* caps, guint i) {
    return gst_caps_get_features(caps, i);
}

bool is_raw(const GstCaps* caps, guint i) {
    return gst_structure_has_name(gst_caps_get_structure(caps, i), "video/x-raw");
}

// Named, not just anything.
bool names_composition(const GstCaps* caps, guint i) {
    const GstCapsFeatures* features = features_of(caps, i);
    return features && !gst_caps_features_is_any(features) &&
           gst_caps_features_contains(features, composition);
}

// System memory and dma-bufs in the formats that can be drawn into.
GstCaps* drawable_caps() {
    GValue formats = G_VALUE_INIT, fourccs = G_VALUE_INIT;
    g_value_init(&formats, GST_TYPE_LIST);
    g_value_init(&fourccs, GST_TYPE_LIST);
    for (const GstVideoFormat format : drawable_formats()) {
        GValue text = G_VALUE_INIT;
        g_value_init(&text, G_TYPE_STRING);
        g_value_set_string(&text, gst_video_format_to_string(format));
        gst_value_list_append_value(&formats, &text);
        if (const std::string fourcc = drm_fourcc(format); !fourcc.empty()) {
            g_value_set_string(&text, fourcc.c_str());
            gst_value_list_append_value(&fourccs, &text);
        }
        g_value_unset(&text);
    }
    GstCaps* caps = gst_caps_new_empty();
    GstStructure* plain = gst_structure_new_empty("video/x-raw");
    gst_structure_set_value(plain, "format", &formats);
    GstStructure* drm =
        gst_structure_new("video/x-raw", "format", G_TYPE_STRING, "DMA_DRM", nullptr);
    gst_structure_take_value(drm, "drm-format", &fourccs);
    g_value_unset(&formats);
    const auto dmabuf = [] {
        return gst_caps_features_new(GST_CAPS_FEATURE_MEMORY_DMABUF, nullptr);
    };
    gst_caps_append_structure(caps, plain);
    gst_caps_append_structure_full(caps, drm, dmabuf());
    gst_caps_append_structure_full(caps, gst_structure_copy(plain), dmabuf());
    return caps;
}

// One structure of `caps`, with or without the feature.
Caps single(const GstCaps* caps, guint i, bool with_composition) {
    GstCaps* one = gst_caps_new_empty();
    const GstCapsFeatures* features = features_of(caps, i);
    GstCapsFeatures* copy = features ? gst_caps_features_copy(features) : nullptr;
    if (copy && !gst_caps_features_is_any(copy)) {
        if (with_composition) {
            if (!gst_caps_features_contains(copy, composition)) {
                gst_caps_features_add(copy, composition);
            }
        } else {
            gst_caps_features_remove(copy, composition);
        }
    }
    gst_caps_append_structure_full(one, gst_structure_copy(gst_caps_get_structure(caps, i)), copy);
    return Caps(one);
}

void append(GstCaps*& to, Caps caps) {
    to = gst_caps_merge(to, caps.release());
}

// What of one structure can be drawn into; a composition that is there already is no obstacle.
Caps drawable(const GstCaps* caps, guint i) {
    const Caps plain = single(caps, i, false);
    const Caps known(drawable_caps());
    Caps both(gst_caps_intersect(plain.get(), known.get()));
    if (!names_composition(caps, i)) return both;
    GstCaps* result = gst_caps_new_empty();
    for (guint k = 0; k < gst_caps_get_size(both.get()); ++k) {
        append(result, single(both.get(), k, true));
    }
    return Caps(result);
}

// Whether downstream takes `caps`: named, or, when it need not be, among anything.
bool takes(GstPad* src, const GstCaps* caps, bool named) {
    const Caps peer(gst_pad_peer_query_caps(src, nullptr));
    if (!named) return gst_caps_can_intersect(peer.get(), caps);
    if (gst_caps_is_any(peer.get())) return false;
    for (guint i = 0; i < gst_caps_get_size(peer.get()); ++i) {
        if (!names_composition(peer.get(), i)) continue;
        const Caps one(gst_caps_copy_nth(peer.get(), i));
        if (gst_caps_can_intersect(one.get(), caps)) return true;
    }
    return false;
}

}  // namespace

bool has_composition(const GstCaps* caps) {
    return gst_caps_get_size(caps) && names_composition(caps, 0);
}

GstCaps* src_caps(const GstCaps* in, OverlayMode mode) {
    if (gst_caps_is_any(in)) return gst_caps_new_any();
    GstCaps* caps = gst_caps_new_empty();
    for (guint i = 0; i < gst_caps_get_size(in); ++i) {
        append(caps, Caps(gst_caps_copy_nth(in, i)));
        if (is_raw(in, i) && mode != OverlayMode::blend) append(caps, single(in, i, true));
    }
    return caps;
}

GstCaps* chosen_src_caps(GstPad* src, const GstCaps* in, OverlayMode mode) {
    if (is_raw(in, 0) && mode != OverlayMode::blend) {
        Caps with = single(in, 0, true);
        if (takes(src, with.get(), mode == OverlayMode::automatic)) return with.release();
    }
    return gst_caps_copy(in);
}

bool wants_composition(GstPad* src, GstCaps* caps) {
    GstQuery* query = gst_query_new_allocation(caps, FALSE);
    const bool wants =
        gst_pad_peer_query(src, query) &&
        gst_query_find_allocation_meta(query, GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE, nullptr);
    gst_query_unref(query);
    return wants;
}

std::optional<GstVideoInfo> drawable_info(const GstCaps* caps) {
    if (!is_raw(caps, 0)) return std::nullopt;
    const Caps plain = single(caps, 0, false), known(drawable_caps());
    if (!gst_caps_can_intersect(plain.get(), known.get())) return std::nullopt;
    const auto format = frame_format(plain.get());
    if (!format) return std::nullopt;
    return format->info;
}

GstCaps* sink_caps(const GstCaps* downstream, OverlayMode mode) {
    if (gst_caps_is_any(downstream)) {
        GstCaps* caps = drawable_caps();
        if (mode == OverlayMode::attach) {
            gst_caps_append_structure_full(caps, gst_structure_new_empty("video/x-raw"),
                                           gst_caps_features_new_any());
        }
        return caps;
    }
    GstCaps* caps = gst_caps_new_empty();
    for (guint i = 0; i < gst_caps_get_size(downstream); ++i) {
        const bool attach = mode == OverlayMode::attach || names_composition(downstream, i);
        if (!is_raw(downstream, i)) {
            append(caps, Caps(gst_caps_copy_nth(downstream, i)));
        } else if (mode != OverlayMode::blend && attach) {
            append(caps, single(downstream, i, false));
            append(caps, Caps(gst_caps_copy_nth(downstream, i)));
        } else {
            append(caps, drawable(downstream, i));
        }
    }
    return caps;
}

void answer_caps(GstBaseTransform* base, GstQuery* query, OverlayMode mode) {
    // Without the filter: what downstream takes among anything would seem to be named.
    const Caps downstream(gst_pad_peer_query_caps(base->srcpad, nullptr));
    Caps caps(sink_caps(downstream.get(), mode));
    GstCaps* filter = nullptr;
    gst_query_parse_caps(query, &filter);
    if (!filter) {  // who links asks like this
        GstCaps* any = gst_caps_new_full(gst_structure_new_empty("video/x-raw"), nullptr);
        gst_caps_set_features(any, 0, gst_caps_features_new_any());
        caps.reset(gst_caps_merge(caps.release(), any));
    } else {
        const Caps known(drawable_caps());
        caps.reset(gst_caps_intersect_full(filter, caps.get(), GST_CAPS_INTERSECT_FIRST));
        const bool possible = gst_caps_can_intersect(filter, known.get());
        if (!possible && gst_caps_is_empty(caps.get())) caps.reset(gst_caps_ref(filter));
    }
    gst_query_set_caps_result(query, caps.get());
}

bool accepts(GstBaseTransform* base, const GstCaps* caps, OverlayMode mode) {
    if (!is_raw(caps, 0)) return true;  // passes, if downstream takes it
    const Caps downstream(gst_pad_peer_query_caps(base->srcpad, nullptr));
    const Caps fitting(sink_caps(downstream.get(), mode)), known(drawable_caps());
    if (gst_caps_can_intersect(fitting.get(), caps)) return true;
    if (gst_caps_can_intersect(known.get(), caps)) return false;
    const Caps instead(gst_pad_peer_query_caps(base->sinkpad, fitting.get()));
    return gst_caps_is_empty(instead.get());
}

std::string describe(const GstCaps* caps) {
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    const GstCapsFeatures* features = features_of(caps, 0);
    if (!is_raw(caps, 0)) return std::string("caps ") + gst_structure_get_name(s);
    std::string text = "video format ";
    const gchar* format = gst_structure_get_string(s, "drm-format");
    if (!format) format = gst_structure_get_string(s, "format");
    text += format ? format : "unknown";
    for (guint i = 0; features && i < gst_caps_features_get_size(features); ++i) {
        const gchar* feature = gst_caps_features_get_nth(features, i);
        if (g_str_has_prefix(feature, "memory:") &&
            g_strcmp0(feature, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY) != 0) {
            text += std::string(" in ") + feature;
        }
    }
    return text;
}

}  // namespace vartml::gst::overlay
