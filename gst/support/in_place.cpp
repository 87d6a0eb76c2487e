// SPDX-License-Identifier: Apache-2.0
#include "gst/support/in_place.h"

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

namespace vartml::gst {
namespace {

// A copy of a buffer has lost them; the data is shared.
void copy_tensor_metas(GstBuffer* from, GstBuffer* to) {
    gpointer state = nullptr;
    while (GstMeta* meta =
               gst_buffer_iterate_meta_filtered(from, &state, GST_TENSOR_META_API_TYPE)) {
        const auto* tensors = reinterpret_cast<const GstTensorMeta*>(meta);
        if (!tensors->num_tensors) continue;
        GstTensor** list = g_new(GstTensor*, tensors->num_tensors);
        for (gsize i = 0; i < tensors->num_tensors; ++i) {
            list[i] = gst_tensor_copy(tensors->tensors[i]);
        }
        auto* copy = reinterpret_cast<GstTensorMeta*>(
            gst_buffer_add_meta(to, GST_TENSOR_META_INFO, nullptr));
        gst_tensor_meta_set(copy, static_cast<guint>(tensors->num_tensors), list);
    }
}

}  // namespace

gboolean propose_video_meta(GstBaseTransform* base, GstQuery*, GstQuery* query) {
    gst_pad_peer_query(base->srcpad, query);  // a peer that does not answer leaves it empty
    if (!gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr)) {
        gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    }
    return TRUE;
}

GstFlowReturn prepare_writable(GstBuffer* in, GstBuffer** out, bool& copied) {
    copied = false;
    if (gst_buffer_is_writable(in)) {
        *out = in;
        return GST_FLOW_OK;
    }
    *out = gst_buffer_copy(in);
    if (!*out) return GST_FLOW_ERROR;
    copied =
        gst_buffer_n_memory(in) && gst_buffer_peek_memory(in, 0) != gst_buffer_peek_memory(*out, 0);
    copy_tensor_metas(in, *out);
    return GST_FLOW_OK;
}

GstFlowReturn prepare_drawable(GstBuffer* in, GstBuffer** out, bool& copied) {
    copied = !gst_buffer_is_writable(in) || !gst_buffer_is_all_memory_writable(in);
    *out = copied ? gst_buffer_copy_deep(in) : in;
    if (!*out) return GST_FLOW_ERROR;
    if (copied) copy_tensor_metas(in, *out);
    return GST_FLOW_OK;
}

std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    gchar** list = g_strsplit(text.c_str(), ",", -1);
    for (gchar** part = list; *part; ++part) {
        if (*g_strstrip(*part)) parts.emplace_back(*part);
    }
    g_strfreev(list);
    return parts;
}

}  // namespace vartml::gst
