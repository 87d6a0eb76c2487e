// SPDX-License-Identifier: Apache-2.0
#include "gst/support/picture_info.h"

#include <gst/allocators/gstdmabuf.h>
#include <xf86drm.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace vartml::gst {
namespace {

using vartml::PixelFormat;

struct Format {
    GstVideoFormat gst;
    PixelFormat pixel;
};
// The order is that of preference in caps.
constexpr Format formats[] = {
    {GST_VIDEO_FORMAT_NV12, PixelFormat::NV12},
    {GST_VIDEO_FORMAT_NV21, PixelFormat::NV21},
    {GST_VIDEO_FORMAT_NV16, PixelFormat::NV16},
    {GST_VIDEO_FORMAT_NV24, PixelFormat::NV24},
    {GST_VIDEO_FORMAT_I420, PixelFormat::I420},
    {GST_VIDEO_FORMAT_YV12, PixelFormat::YV12},
    {GST_VIDEO_FORMAT_Y42B, PixelFormat::Y42B},
    {GST_VIDEO_FORMAT_P010_10LE, PixelFormat::P010_10LE},
    {GST_VIDEO_FORMAT_I420_10LE, PixelFormat::I420_10LE},
    {GST_VIDEO_FORMAT_YUY2, PixelFormat::YUY2},
    {GST_VIDEO_FORMAT_UYVY, PixelFormat::UYVY},
    {GST_VIDEO_FORMAT_RGB, PixelFormat::RGB},
    {GST_VIDEO_FORMAT_BGR, PixelFormat::BGR},
    {GST_VIDEO_FORMAT_RGBA, PixelFormat::RGBA},
    {GST_VIDEO_FORMAT_BGRA, PixelFormat::BGRA},
    {GST_VIDEO_FORMAT_RGBx, PixelFormat::RGBx},
    {GST_VIDEO_FORMAT_BGRx, PixelFormat::BGRx},
    {GST_VIDEO_FORMAT_xRGB, PixelFormat::xRGB},
    {GST_VIDEO_FORMAT_xBGR, PixelFormat::xBGR},
    {GST_VIDEO_FORMAT_RGBP, PixelFormat::RGBP},
    {GST_VIDEO_FORMAT_BGRP, PixelFormat::BGRP},
    {GST_VIDEO_FORMAT_GRAY8, PixelFormat::GRAY8},
};

vartml::ColorMatrix color_matrix(GstVideoColorMatrix matrix) {
    switch (matrix) {
        case GST_VIDEO_COLOR_MATRIX_BT709:
        case GST_VIDEO_COLOR_MATRIX_SMPTE240M:
            return vartml::ColorMatrix::bt709;  // 240M differs by less than 1 of 255
        case GST_VIDEO_COLOR_MATRIX_BT2020:
            return vartml::ColorMatrix::bt2020;
        default:
            return vartml::ColorMatrix::bt601;
    }
}

std::string taken(char* text) {
    std::string copy = text ? text : "";
    std::free(text);
    return copy;
}

// "INTEL_Y_TILED (0x0100000000000002)", as the kernel's headers name it; the number alone where
// libdrm does not know it.
std::string modifier_name(guint64 modifier) {
    const std::string vendor = taken(drmGetFormatModifierVendor(modifier));
    const std::string name = taken(drmGetFormatModifierName(modifier));
    char number[24];
    g_snprintf(number, sizeof number, "0x%016" G_GINT64_MODIFIER "x", modifier);
    if (name.empty()) return vendor.empty() ? number : std::string(number) + " of " + vendor;
    return (vendor.empty() ? "" : vendor + "_") + name + " (" + number + ")";
}

// Why DMA_DRM caps are not read; "" where their layout is not the reason.
std::string odd_layout(const GstCaps* caps) {
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    const char* format = gst_structure_get_string(s, "drm-format");
    guint64 modifier = 0;
    const guint32 fourcc = format ? gst_video_dma_drm_fourcc_from_string(format, &modifier) : 0;
    if (!fourcc || modifier == 0) return {};
    const std::string linear = taken(drmGetFormatName(fourcc));
    return "frames of fourcc " + linear + " in the layout " + modifier_name(modifier) +
           " cannot be read, expected the linear one; ask the source for drm-format=" + linear +
           ", or put its own converter before the element (vapostproc of VA-API, glupload ! "
           "gldownload)";
}

// GstVideoInfo of caps; a DMA_DRM one is turned into that of its linear layout, because mapping it
// asserts.
vartml::Result<GstVideoInfo> video_info(const GstCaps* caps) {
    GstVideoInfo info;
    if (gst_video_is_dma_drm_caps(caps)) {
        // 1.26 refuses `FOURCC:0x0` here, which plain parsing reports as DMA_DRM: refused below.
        GstVideoInfoDmaDrm drm;
        if (gst_video_info_dma_drm_from_caps(&drm, caps) && drm.drm_modifier == 0 &&
            gst_video_info_dma_drm_to_video_info(&drm, &info)) {
            return info;
        }
    } else if (gst_video_info_from_caps(&info, caps) &&
               GST_VIDEO_INFO_FORMAT(&info) != GST_VIDEO_FORMAT_DMA_DRM) {
        return info;
    }
    if (std::string why = odd_layout(caps); !why.empty())
        return vartml::Error{vartml::ErrorCode::unsupported, std::move(why)};
    gchar* text = gst_caps_to_string(caps);
    vartml::Error error = {vartml::ErrorCode::unsupported,
                           std::string("caps '") + text +
                               "' are no linear video frame; put videoconvert before the element"};
    g_free(text);
    return error;
}

GstStructure* structure(const char* field, bool drm) {
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const Format& format : formats) {
        const std::string name =
            drm ? drm_fourcc(format.gst) : gst_video_format_to_string(format.gst);
        if (name.empty()) continue;
        GValue v = G_VALUE_INIT;
        g_value_init(&v, G_TYPE_STRING);
        g_value_set_string(&v, name.c_str());
        gst_value_list_append_and_take_value(&list, &v);
    }
    GstStructure* s = gst_structure_new("video/x-raw", "width", GST_TYPE_INT_RANGE, 1, G_MAXINT,
                                        "height", GST_TYPE_INT_RANGE, 1, G_MAXINT, "framerate",
                                        GST_TYPE_FRACTION_RANGE, 0, 1, G_MAXINT, 1, nullptr);
    if (drm) gst_structure_set(s, "format", G_TYPE_STRING, "DMA_DRM", nullptr);
    gst_structure_take_value(s, field, &list);
    return s;
}

}  // namespace

GstCaps* picture_caps() {
    GstCaps* caps = gst_caps_new_empty();
    gst_caps_append_structure_full(
        caps, structure("drm-format", true),
        gst_caps_features_new_single_static_str(GST_CAPS_FEATURE_MEMORY_DMABUF));
    gst_caps_append_structure(caps, structure("format", false));
    gst_caps_append_structure_full(
        caps, structure("format", false),
        gst_caps_features_new_single_static_str(GST_CAPS_FEATURE_MEMORY_DMABUF));
    return caps;
}

std::string drm_fourcc(GstVideoFormat format) {
    const guint32 fourcc = gst_video_dma_drm_fourcc_from_format(format);
    if (!fourcc) return {};
    gchar* const text = gst_video_dma_drm_fourcc_to_string(fourcc, 0);  // linear
    std::string name = text;
    g_free(text);
    return name;
}

namespace {

vartml::Result<FrameFormat> tensor_format(const GstCaps* caps, TensorFrame&& tensor) {
    FrameFormat result{};
    gst_video_info_init(&result.info);
    if (!gst_video_info_set_format(&result.info, GST_VIDEO_FORMAT_GRAY8, tensor.row_bytes,
                                   tensor.rows))
        return vartml::Error{vartml::ErrorCode::unsupported,
                             "frames of " + tensor.name + " with " + std::to_string(tensor.rows) +
                                 " rows of " + std::to_string(tensor.row_bytes) +
                                 " bytes are larger than a buffer can be"};
    (void)gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate",
                                     &result.info.fps_n, &result.info.fps_d);
    result.info.stride[0] = int(tensor.row_bytes);
    result.info.size = gsize(tensor.row_bytes) * tensor.rows;
    result.picture.width = tensor.width;
    result.picture.height = tensor.height;
    result.picture.pixel_aspect_ratio = 1;
    result.tensor = std::move(tensor);
    return result;
}

}  // namespace

vartml::Result<FrameFormat> frame_format(const GstCaps* caps) {
    auto tensor = tensor_frame(caps);
    if (!tensor) return tensor.error();
    if (*tensor) return tensor_format(caps, *std::move(*tensor));
    const vartml::Result<GstVideoInfo> info = video_info(caps);
    if (!info) return info.error();
    FrameFormat result{*info, {}, {}};
    for (const Format& format : formats) {
        if (format.gst == GST_VIDEO_INFO_FORMAT(&*info)) result.picture.format = format.pixel;
    }
    if (result.picture.format == PixelFormat::unknown) {
        return vartml::Error{
            vartml::ErrorCode::unsupported,
            std::string("video format ") + GST_VIDEO_INFO_NAME(&*info) +
                " is not read by the pre-processing; put videoconvert before the element"};
    }
    result.picture.width = uint32_t(GST_VIDEO_INFO_WIDTH(&*info));
    result.picture.height = uint32_t(GST_VIDEO_INFO_HEIGHT(&*info));
    result.picture.matrix = color_matrix(GST_VIDEO_INFO_COLORIMETRY(&*info).matrix);
    result.picture.range = GST_VIDEO_INFO_COLORIMETRY(&*info).range == GST_VIDEO_COLOR_RANGE_0_255
                               ? vartml::ColorRange::full
                               : vartml::ColorRange::limited;
    result.picture.pixel_aspect_ratio =
        double(GST_VIDEO_INFO_PAR_N(&*info)) / GST_VIDEO_INFO_PAR_D(&*info);
    return result;
}

bool has_limited_colours(const GstVideoInfo& info) {
    return (GST_VIDEO_INFO_IS_RGB(&info) || GST_VIDEO_INFO_IS_GRAY(&info)) &&
           GST_VIDEO_INFO_COLORIMETRY(&info).range == GST_VIDEO_COLOR_RANGE_16_235;
}

namespace {

// Whether all pixels that a component is in lie within what is mapped, and each row for itself.
bool lies_inside(const GstVideoFrame& frame, unsigned component) {
    const int plane = GST_VIDEO_FRAME_COMP_PLANE(&frame, component);
    const GstMapInfo& map = frame.map[frame.meta ? plane : 0];
    const int64_t row = int64_t(GST_VIDEO_FRAME_COMP_WIDTH(&frame, component)) *
                        GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, component);
    const int64_t stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane);
    const int64_t height = GST_VIDEO_FRAME_COMP_HEIGHT(&frame, component);
    if (height > 1 && std::abs(stride) < row) return false;
    const int64_t rows = (height - 1) * stride;
    const int64_t first =
        static_cast<const guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, plane)) - map.data;
    return std::min(first, first + rows) >= 0 &&
           std::max(first, first + rows) + row <= int64_t(map.size);
}

}  // namespace

void ask_for_whole_frames(GstQuery* query) {
    if (!gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr))
        gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    guint index;
    while (gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, &index))
        gst_query_remove_nth_allocation_meta(query, index);
}

vartml::Result<void> expect_whole_frame(GstBuffer* buffer, const GstVideoInfo& info) {
    const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
    const auto width = guint(GST_VIDEO_INFO_WIDTH(&info)),
               height = guint(GST_VIDEO_INFO_HEIGHT(&info));
    if (!crop || (crop->x == 0 && crop->y == 0 && crop->width == width && crop->height == height))
        return {};
    return vartml::Error{
        vartml::ErrorCode::unsupported,
        "the frame has a GstVideoCropMeta (" + std::to_string(crop->width) + "x" +
            std::to_string(crop->height) + " at " + std::to_string(crop->x) + "," +
            std::to_string(crop->y) +
            "), which is not asked for and not read; crop the pixels with videocrop instead"};
}

bool map_frame(GstVideoFrame* frame, const GstVideoInfo& info, GstBuffer* buffer,
               GstMapFlags flags) {
    if (!gst_video_frame_map(frame, &info, buffer,
                             GstMapFlags(int(flags) | int(GST_VIDEO_FRAME_MAP_FLAG_NO_REF))))
        return false;
    for (unsigned i = 0; i < GST_VIDEO_FRAME_N_COMPONENTS(frame); ++i) {
        if (lies_inside(*frame, i)) continue;
        gst_video_frame_unmap(frame);
        return false;
    }
    return true;
}

MappedFrame::MappedFrame(const FrameFormat& format, GstBuffer* buffer) {
    mapped_ = map_frame(&frame_, format.info, buffer, GST_MAP_READ);
    for (unsigned i = 0; mapped_ && i < GST_VIDEO_FRAME_N_PLANES(&frame_); ++i) {
        if (GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i) >= 0) continue;
        gst_video_frame_unmap(&frame_);
        mapped_ = false;
    }
    if (!mapped_) return;
    picture_.interlaced = GST_VIDEO_FRAME_IS_INTERLACED(&frame_);  // mixed: as the buffer says
    for (unsigned i = 0; i < GST_VIDEO_FRAME_N_PLANES(&frame_); ++i) {
        picture_.planes[i] = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, i));
        picture_.stride_bytes[i] = uint32_t(GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i));
    }
}

MappedFrame::~MappedFrame() {
    if (mapped_) gst_video_frame_unmap(&frame_);
}

}  // namespace vartml::gst
