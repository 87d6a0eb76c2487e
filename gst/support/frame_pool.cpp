// SPDX-License-Identifier: Apache-2.0
#include "gst/support/frame_pool.h"

#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#include "gst/support/dmabuf_allocator.h"
#include "gst/support/picture_info.h"

namespace vartml::gst {
namespace {

// GstVideoBufferPool of 1.26 does not understand DMA_DRM caps; it gets those of the linear layout.
struct GstVartmlFramePool {
    GstVideoBufferPool parent;
};
struct GstVartmlFramePoolClass {
    GstVideoBufferPoolClass parent_class;
};

G_DEFINE_TYPE(GstVartmlFramePool, gst_vartml_frame_pool, GST_TYPE_VIDEO_BUFFER_POOL)

gboolean set_config(GstBufferPool* pool, GstStructure* config) {
    GstCaps* caps = nullptr;
    guint size, min, max;
    if (gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max) && caps &&
        gst_video_is_dma_drm_caps(caps)) {
        if (auto format = frame_format(caps)) {
            GstCaps* linear = gst_video_info_to_caps(&format->info);
            gst_buffer_pool_config_set_params(config, linear, size, min, max);
            gst_caps_unref(linear);
        }
    }
    return GST_BUFFER_POOL_CLASS(gst_vartml_frame_pool_parent_class)->set_config(pool, config);
}

void gst_vartml_frame_pool_init(GstVartmlFramePool*) {}

void gst_vartml_frame_pool_class_init(GstVartmlFramePoolClass* klass) {
    GST_BUFFER_POOL_CLASS(klass)->set_config = set_config;
}

}  // namespace

OfferedPool offer_pool(GstCaps* caps, guint min) {
    OfferedPool offer;
    gst_allocation_params_init(&offer.params);
    auto format = frame_format(caps);
    if (!format) return offer;
    offer.allocator = dmabuf_allocator_new();
    offer.size = guint(GST_VIDEO_INFO_SIZE(&format->info));
    offer.pool = GST_BUFFER_POOL(
        gst_object_ref_sink(g_object_new(gst_vartml_frame_pool_get_type(), nullptr)));
    if (!offer.allocator) offer.params.align = 63;
    GstStructure* config = gst_buffer_pool_get_config(offer.pool);
    gst_buffer_pool_config_set_params(config, caps, offer.size, min, 0);
    gst_buffer_pool_config_set_allocator(config, offer.allocator, &offer.params);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    if (!gst_buffer_pool_set_config(offer.pool, config)) {
        gst_clear_object(&offer.pool);
        gst_clear_object(&offer.allocator);
    }
    return offer;
}

}  // namespace vartml::gst
