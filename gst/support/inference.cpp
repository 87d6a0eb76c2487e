// SPDX-License-Identifier: Apache-2.0
#include "gst/support/inference.h"

#include <gst/video/gstvideometa.h>

#include <cstring>
#include <mutex>

namespace vartml::gst {
namespace {

constexpr char mtd_name[] = "vartml-inference";

// What lies in the relation meta: its bytes are moved by realloc and copied by memcpy, so it is one
// pointer to an object of ours. The object belongs to exactly one Mtd.
struct Payload {
    Inference* inference;
};

// Objects without an owner, kept with the memory of their strings and vectors: frames come and go,
// allocations do not.
struct Spare {
    std::mutex mutex;  // guards the two below; nothing is taken while it is held
    Inference* objects[64] = {};
    unsigned count = 0;
};
constinit Spare spare;

Inference* take_spare() {
    const std::lock_guard lock(spare.mutex);
    return spare.count ? spare.objects[--spare.count] : nullptr;
}

void release(Inference* inference) {
    for (GstBuffer* data : inference->data) gst_buffer_unref(data);
    inference->data.clear();
    inference->record.reset();
    {
        const std::lock_guard lock(spare.mutex);
        if (spare.count < std::size(spare.objects)) {
            spare.objects[spare.count++] = inference;
            return;
        }
    }
    delete inference;
}

Inference* duplicate(const Inference& from) {
    Inference* copy = take_spare();
    if (!copy) copy = new Inference;
    *copy = from;
    for (GstBuffer* data : copy->data) gst_buffer_ref(data);
    return copy;
}

Payload* payload_of(const GstAnalyticsMtd& mtd) {
    return static_cast<Payload*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
}

// Display aspect of a picture as a fraction; false where it overflows.
bool display_aspect(const GstVideoInfo& info, int& n, int& d) {
    return GST_VIDEO_INFO_HEIGHT(&info) > 0 && GST_VIDEO_INFO_PAR_D(&info) > 0 &&
           gst_util_fraction_multiply(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                      GST_VIDEO_INFO_PAR_N(&info), GST_VIDEO_INFO_PAR_D(&info), &n,
                                      &d);
}

// Equal sizes count as a copy (videoconvert calls it a scale); equal display aspects scale the map;
// anything else may have added borders, which the transform does not tell.
void scale_geometry(Inference& inference, const GstVideoInfo& in, const GstVideoInfo& out) {
    const int iw = GST_VIDEO_INFO_WIDTH(&in), ih = GST_VIDEO_INFO_HEIGHT(&in);
    const int ow = GST_VIDEO_INFO_WIDTH(&out), oh = GST_VIDEO_INFO_HEIGHT(&out);
    if (iw == ow && ih == oh) return;
    int in_n, in_d, out_n, out_d;
    if (!display_aspect(in, in_n, in_d) || !display_aspect(out, out_n, out_d) || in_n != out_n ||
        in_d != out_d) {
        inference.geometry_valid = false;
        return;
    }
    const double sx = double(ow) / iw, sy = double(oh) / ih;
    vartml::Affine& map = inference.to_frame;
    map.a *= sx, map.b *= sx, map.c *= sx;
    map.d *= sy, map.e *= sy, map.f *= sy;
}

// 1.26.2 has copied the bytes already and ignores the return value: whatever the type, the new Mtd
// gets an object of its own.
gboolean mtd_transform(GstBuffer*, GstAnalyticsMtd* mtd, GstBuffer*, GQuark type, gpointer data) {
    Payload* payload = payload_of(*mtd);
    payload->inference = duplicate(*payload->inference);
    if (GST_META_TRANSFORM_IS_COPY(type)) return TRUE;
    if (GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) {
        const auto* scale = static_cast<const GstVideoMetaTransform*>(data);
        scale_geometry(*payload->inference, *scale->in_info, *scale->out_info);
    } else {
        payload->inference->geometry_valid = false;
    }
    return TRUE;
}

void mtd_clear(GstBuffer*, GstAnalyticsMtd* mtd) {
    Payload* payload = payload_of(*mtd);
    release(payload->inference);
    payload->inference = nullptr;
}

GstAnalyticsMtdImpl make_impl() {
    GstAnalyticsMtdImpl impl{};
    impl.name = mtd_name;
    impl.mtd_meta_transform = mtd_transform;
    impl.mtd_meta_clear = mtd_clear;
    return impl;
}

const GstAnalyticsMtdImpl* mtd_impl() {
    static const GstAnalyticsMtdImpl impl = make_impl();
    return &impl;
}

// Both plugin objects carry this file, so the type is known by its name, not by its address.
bool is_inference(const GstAnalyticsMtd& mtd) {
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    return type == inference_mtd_type() ||
           !std::strcmp(gst_analytics_mtd_type_get_name(type), mtd_name);
}

template <typename Function>
void for_each(GstBuffer* buffer, Function&& function) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta) return;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        if (is_inference(mtd) && !function(mtd)) return;
    }
}

}  // namespace

const char* status_nick(InferenceStatus status) {
    constexpr const char* nicks[] = {
        "inferred",     "skipped-interval", "skipped-late", "skipped-busy", "skipped-slo",
        "skipped-flag", "skipped-region",   "failed",       "carried",      "pending"};
    static_assert(std::size(nicks) == num_statuses);
    return nicks[static_cast<int>(status)];
}

GstAnalyticsMtdType inference_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(mtd_impl());
}

bool add_inference(GstBuffer* buffer, const Inference& inference, unsigned expected_boxes) {
    // A box takes an OD and a class; the square of the order is allocated, so it stays modest and
    // grows when needed.
    GstAnalyticsRelationMetaInitParams params = {8, 1024};
    if (expected_boxes) params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta) return false;
    GstAnalyticsMtd mtd;
    auto* payload = static_cast<Payload*>(
        gst_analytics_relation_meta_add_mtd(meta, mtd_impl(), sizeof(Payload), &mtd));
    if (!payload) return false;
    payload->inference = duplicate(inference);
    return true;
}

const Inference* get_inference(GstBuffer* buffer, unsigned index, GstAnalyticsMtd* found) {
    const Inference* result = nullptr;
    for_each(buffer, [&](const GstAnalyticsMtd& mtd) {
        if (index-- != 0) return true;
        result = payload_of(mtd)->inference;
        if (found) *found = mtd;
        return false;
    });
    return result;
}

void drop_inference_tensors(GstBuffer* buffer) {
    for_each(buffer, [](const GstAnalyticsMtd& mtd) {
        Inference* inference = payload_of(mtd)->inference;
        for (GstBuffer* data : inference->data) gst_buffer_unref(data);
        inference->data.clear();
        return true;
    });
}

}  // namespace vartml::gst
