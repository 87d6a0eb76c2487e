// SPDX-License-Identifier: Apache-2.0
// Serialized queries: passed on behind the frames, ALLOCATION with what this element adds.
#include <gst/video/gstvideometa.h>

#include "gst/infer/stream.h"
#include "gst/support/frame_pool.h"

namespace vartml::gst::infer {
namespace {

// What upstream should know of strides: 64-byte rows are read fastest; a frame that is the tensor
// has no padding at all.
GstStructure* alignment_params(bool dense) {
    const guint align = dense ? 0 : 63;
    return gst_structure_new("video-meta", "padding-top", G_TYPE_UINT, 0u, "padding-bottom",
                             G_TYPE_UINT, 0u, "padding-left", G_TYPE_UINT, 0u, "padding-right",
                             G_TYPE_UINT, 0u, "stride-align0", G_TYPE_UINT, align, "stride-align1",
                             G_TYPE_UINT, align, "stride-align2", G_TYPE_UINT, align,
                             "stride-align3", G_TYPE_UINT, align, nullptr);
}

void add_video_meta(GstQuery* query, bool dense) {
    GstStructure* params = alignment_params(dense);
    guint index;
    if (gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, &index)) {
        const GstStructure* theirs = nullptr;
        gst_query_parse_nth_allocation_meta(query, index, &theirs);
        GstStructure* both = nullptr;
        if (theirs &&
            gst_meta_api_type_aggregate_params(GST_VIDEO_META_API_TYPE, &both, theirs, params)) {
            gst_structure_free(params);
            params = both;
        }
        gst_query_remove_nth_allocation_meta(query, index);
    }
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, params);
    gst_structure_free(params);
}

void offer_own_pool(GstQuery* query, guint min) {
    GstCaps* caps = nullptr;
    gboolean need_pool = FALSE;
    gst_query_parse_allocation(query, &caps, &need_pool);
    if (!caps || !need_pool) return;
    OfferedPool offer = offer_pool(caps, min);
    if (!offer.pool) return;
    // Upstream looks at the first of each; one without pool only says a size.
    if (gst_query_get_n_allocation_pools(query) > 0) {
        gst_query_set_nth_allocation_pool(query, 0, offer.pool, offer.size, min, 0);
    } else {
        gst_query_add_allocation_pool(query, offer.pool, offer.size, min, 0);
    }
    if (offer.allocator && gst_query_get_n_allocation_params(query) > 0) {
        gst_query_set_nth_allocation_param(query, 0, offer.allocator, &offer.params);
    } else if (offer.allocator) {
        gst_query_add_allocation_param(query, offer.allocator, &offer.params);
    }
    gst_object_unref(offer.pool);
    gst_clear_object(&offer.allocator);
}

}  // namespace

void Stream::answer_query(Entry& entry) {
    GstQuery* query = GST_QUERY_CAST(entry.object);
    bool result = gst_pad_peer_query(src_, query);
    if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
        answer_allocation(query);
        result = true;
    }
    const std::lock_guard lock(signal_->mutex);
    query_active_ = false;
    query_done_ = true;
    query_result_ = result;
    signal_->changed.notify_all();
}

// The peer's answer, with strides and offsets allowed and room for the frames that wait here; a
// pool of ours where the peer has none.
void Stream::answer_allocation(GstQuery* query) {
    unsigned depth = 2;
    bool dense = started_.input_is_tensor == InputIsTensor::yes;
    {
        const std::lock_guard lock(signal_->mutex);
        if (lane_) {
            depth = lane_->depth();
            dense = dense || (started_.input_is_tensor == InputIsTensor::automatic &&
                              lane_->takes_pictures());
        }
    }
    add_video_meta(query, dense);
    bool pool_offered = false;
    for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
        GstBufferPool* pool;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
        min += depth;
        if (max != 0) max += depth;
        gst_query_set_nth_allocation_pool(query, i, pool, size, min, max);
        pool_offered = pool_offered || pool != nullptr;
        gst_clear_object(&pool);
    }
    if (!pool_offered) offer_own_pool(query, depth + 1);
}

void Stream::narrow_caps(GstQuery* query) {
    GstCaps* narrow = nullptr;
    {
        const std::lock_guard lock(signal_->mutex);
        if (narrow_) narrow = gst_caps_ref(narrow_);
    }
    if (!narrow) return;
    GstCaps* answer;
    gst_query_parse_caps_result(query, &answer);
    GstCaps* both = gst_caps_intersect_full(answer, narrow, GST_CAPS_INTERSECT_FIRST);
    // Where upstream has nothing that fits, its caps come and are refused with a sentence; "not
    // negotiated" would name nothing.
    if (!gst_caps_is_empty(both)) gst_query_set_caps_result(query, both);
    gst_caps_unref(both);
    gst_caps_unref(narrow);
}

}  // namespace vartml::gst::infer
