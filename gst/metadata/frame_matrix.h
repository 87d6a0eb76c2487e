// SPDX-License-Identifier: Apache-2.0
// What elements of GStreamer 1.28 say of a frame that they crop, scale or give borders: a matrix,
// where earlier ones name two sizes or drop what they do not understand.
#pragma once
#include <gst/video/gstvideometa.h>

#include <optional>

#include <vartml/preprocess.h>

namespace vartml::gst {

#if GST_CHECK_VERSION(1, 28, 0)
inline bool is_frame_matrix(GQuark transform) {
    return GST_VIDEO_META_TRANSFORM_IS_MATRIX(transform);
}

// From pixels before to pixels after, of `data` of such a transform; nothing where the frame is
// also turned or mirrored, or lines do not stay straight.
inline std::optional<vartml::Affine> read_frame_matrix(const void* data) {
    const auto& t = *static_cast<const GstVideoMetaTransformMatrix*>(data);
    const auto& m = t.matrix;
    if (m[0][1] != 0 || m[1][0] != 0 || m[2][0] != 0 || m[2][1] != 0 || m[2][2] != 1 ||
        !(m[0][0] > 0) || !(m[1][1] > 0))
        return std::nullopt;
    const double sx = double(m[0][0]), sy = double(m[1][1]);
    return vartml::Affine{.a = sx,
                          .b = 0,
                          .c = t.out_rectangle.x + double(m[0][2]) - sx * t.in_rectangle.x,
                          .d = 0,
                          .e = sy,
                          .f = t.out_rectangle.y + double(m[1][2]) - sy * t.in_rectangle.y};
}

// Whether the whole frame became the whole frame: nothing was cut off, no borders were added.
inline bool keeps_whole_frame(const void* data) {
    const auto& t = *static_cast<const GstVideoMetaTransformMatrix*>(data);
    const auto whole = [](const GstVideoRectangle& r, const GstVideoInfo& info) {
        return r.x == 0 && r.y == 0 && r.w == GST_VIDEO_INFO_WIDTH(&info) &&
               r.h == GST_VIDEO_INFO_HEIGHT(&info);
    };
    return whole(t.in_rectangle, *t.in_info) && whole(t.out_rectangle, *t.out_info);
}
#else
inline bool is_frame_matrix(GQuark) {
    return false;
}
inline std::optional<vartml::Affine> read_frame_matrix(const void*) {
    return std::nullopt;
}
inline bool keeps_whole_frame(const void*) {
    return true;
}
#endif

}  // namespace vartml::gst
