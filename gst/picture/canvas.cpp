// SPDX-License-Identifier: Apache-2.0
#include "gst/picture/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace vartml::gst {

namespace {

// Whole pixels of what lies between two numbers.
struct Span {
    int first, last;
    int size() const { return last - first; }
};
Span rounded(double first, double last, double most) {
    return {int(std::lround(std::clamp(first, 0., most))),
            int(std::lround(std::clamp(last, 0., most)))};
}

bool set_gray(GstVideoInfo& info, int width, int height) {
    return gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, guint(width), guint(height));
}

// A buffer for frames of that format; the one that is there, where it is of it.
void renew(GstBuffer*& buffer, GstVideoInfo& info, int width, int height) {
    if (buffer && GST_VIDEO_INFO_WIDTH(&info) == width && GST_VIDEO_INFO_HEIGHT(&info) == height)
        return;
    gst_clear_buffer(&buffer);
    if (set_gray(info, width, height))
        buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
}

}  // namespace

std::optional<Shown> shown_part(const vartml::Affine& map, unsigned model_width,
                                unsigned model_height, unsigned picture_width,
                                unsigned picture_height, FrameSize frame) {
    if (!frame.width || !model_width || !model_height)
        return Shown{{0, 0, picture_width, picture_height}, {}, false};
    if (map.b != 0 || map.d != 0 || map.a <= 0 || map.e <= 0) return std::nullopt;
    const double sx = double(picture_width) / model_width;
    const double sy = double(picture_height) / model_height;
    const Span x = rounded(-map.c / map.a * sx, (frame.width - map.c) / map.a * sx, picture_width);
    const Span y =
        rounded(-map.f / map.e * sy, (frame.height - map.f) / map.e * sy, picture_height);
    if (x.size() <= 0 || y.size() <= 0) return std::nullopt;
    const Span fx = rounded(map.a * x.first / sx + map.c, map.a * x.last / sx + map.c, frame.width);
    const Span fy =
        rounded(map.e * y.first / sy + map.f, map.e * y.last / sy + map.f, frame.height);
    if (fx.size() <= 0 || fy.size() <= 0) return std::nullopt;
    Shown shown{{uint32_t(x.first), uint32_t(y.first), uint32_t(x.size()), uint32_t(y.size())},
                {fx.first, fy.first, fx.size(), fy.size()},
                false};
    // A pixel of the picture may be several of the frame: what rounding leaves out is no part.
    const double slack_x = std::max(1., map.a / sx), slack_y = std::max(1., map.e / sy);
    shown.whole = fx.first <= slack_x && fy.first <= slack_y && fx.last >= frame.width - slack_x &&
                  fy.last >= frame.height - slack_y;
    if (shown.whole) shown.frame = {0, 0, frame.width, frame.height};
    return shown;
}

Fraction pixel_aspect(const Shown& shown, Fraction of_frame) {
    if (shown.frame.empty()) return {};
    const double stretch = double(shown.frame.width) * shown.cut.height /
                           (double(shown.frame.height) * shown.cut.width);
    // Borders that were rounded to whole pixels are no other shape.
    if (std::abs(stretch - 1) * std::min(shown.cut.width, shown.cut.height) <= 1) return of_frame;
    Fraction aspect;
    gint n, d;
    if (!gst_util_fraction_multiply(shown.frame.width, shown.frame.height, gint(shown.cut.height),
                                    gint(shown.cut.width), &n, &d) ||
        !gst_util_fraction_multiply(n, d, of_frame.n, of_frame.d, &aspect.n, &aspect.d))
        return of_frame;
    return aspect;
}

bool PictureConverter::run(GstVideoFrame* src, const Rectangle& src_part, GstVideoFrame* dst,
                           const Rectangle& dst_part) {
    if (!converter_ || !gst_video_info_is_equal(&src_, &src->info) ||
        !gst_video_info_is_equal(&dst_, &dst->info) || src_part != src_part_ ||
        dst_part != dst_part_) {
        src_ = src->info, dst_ = dst->info;
        src_part_ = src_part, dst_part_ = dst_part;
        GstVideoInfo to = dst_;
        // They are equal for it, whatever the streams are.
        to.fps_n = src_.fps_n, to.fps_d = src_.fps_d;
        to.interlace_mode = src_.interlace_mode;
        converter_.reset(gst_video_converter_new(
            &src_, &to,
            gst_structure_new("options", GST_VIDEO_CONVERTER_OPT_SRC_X, G_TYPE_INT, src_part.x,
                              GST_VIDEO_CONVERTER_OPT_SRC_Y, G_TYPE_INT, src_part.y,
                              GST_VIDEO_CONVERTER_OPT_SRC_WIDTH, G_TYPE_INT, src_part.width,
                              GST_VIDEO_CONVERTER_OPT_SRC_HEIGHT, G_TYPE_INT, src_part.height,
                              GST_VIDEO_CONVERTER_OPT_DEST_X, G_TYPE_INT, dst_part.x,
                              GST_VIDEO_CONVERTER_OPT_DEST_Y, G_TYPE_INT, dst_part.y,
                              GST_VIDEO_CONVERTER_OPT_DEST_WIDTH, G_TYPE_INT, dst_part.width,
                              GST_VIDEO_CONVERTER_OPT_DEST_HEIGHT, G_TYPE_INT, dst_part.height,
                              GST_VIDEO_CONVERTER_OPT_FILL_BORDER, G_TYPE_BOOLEAN, FALSE,
                              GST_VIDEO_CONVERTER_OPT_RESAMPLER_METHOD,
                              GST_TYPE_VIDEO_RESAMPLER_METHOD, GST_VIDEO_RESAMPLER_METHOD_LINEAR,
                              nullptr)));
    }
    if (!converter_) return false;
    gst_video_converter_frame(converter_.get(), src, dst);
    return true;
}

void AlphaWriter::clear() {
    gst_clear_buffer(&small_);
    gst_clear_buffer(&large_);
}

bool AlphaWriter::run(vartml::OutputPicture& picture, const Shown& shown, VideoMapping& rgba,
                      size_t& not_finite) {
    const Rectangle small = {0, 0, int(shown.cut.width), int(shown.cut.height)};
    const Rectangle large = {0, 0, shown.frame.width, shown.frame.height};
    renew(small_, small_info_, small.width, small.height);
    renew(large_, large_info_, large.width, large.height);
    if (!small_ || !large_) return false;
    {
        VideoMapping mask(small_info_, small_, GST_MAP_WRITE);
        if (!mask) return false;
        not_finite = picture.write(shown.cut, mask.row(0, 0), mask.stride(0));
    }
    {
        VideoMapping from(small_info_, small_, GST_MAP_READ);
        VideoMapping to(large_info_, large_, GST_MAP_WRITE);
        if (!from || !to || !converter_.run(from.frame(), small, to.frame(), large)) return false;
    }
    VideoMapping mask(large_info_, large_, GST_MAP_READ);
    if (!mask) return false;
    const int width = GST_VIDEO_FRAME_WIDTH(rgba.frame()),
              height = GST_VIDEO_FRAME_HEIGHT(rgba.frame());
    for (int y = 0; y < height; ++y) {
        uint8_t* const alpha = rgba.row(0, y) + 3;
        const bool outside = y < shown.frame.y || y >= shown.frame.y + shown.frame.height;
        const uint8_t* const opacity = outside ? nullptr : mask.row(0, y - shown.frame.y);
        for (int x = 0; x < width; ++x) {
            const int at = x - shown.frame.x;
            const bool inside = opacity && at >= 0 && at < shown.frame.width;
            alpha[4 * ptrdiff_t{x}] = inside ? opacity[at] : 0;
        }
    }
    return true;
}

}  // namespace vartml::gst
