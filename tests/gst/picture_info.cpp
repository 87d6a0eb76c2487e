// SPDX-License-Identifier: Apache-2.0
#include "gst/support/picture_info.h"

#include <gst/allocators/gstdmabuf.h>

#include "tests/support/gst_main.h"

namespace {

using vartml::ColorMatrix;
using vartml::ColorRange;
using vartml::PixelFormat;

struct Case {
    const char* why;
    const char* caps;
    PixelFormat format;  // unknown: refused
    ColorMatrix matrix;
    ColorRange range;
    double aspect;
};
const Case cases[] = {
    {"defaults of a small picture", "video/x-raw,format=NV12,width=640,height=480",
     PixelFormat::NV12, ColorMatrix::bt601, ColorRange::limited, 1},
    {"defaults of a large picture", "video/x-raw,format=I420,width=1920,height=1080",
     PixelFormat::I420, ColorMatrix::bt709, ColorRange::limited, 1},
    {"caps say it", "video/x-raw,format=NV12,width=64,height=48,colorimetry=bt2020",
     PixelFormat::NV12, ColorMatrix::bt2020, ColorRange::limited, 1},
    {"full range and pixel aspect",
     "video/x-raw,format=YUY2,width=64,height=48,colorimetry=1:4:0:0,pixel-aspect-ratio=4/3",
     PixelFormat::YUY2, ColorMatrix::bt601, ColorRange::full, 4.0 / 3},
    {"RGB", "video/x-raw,format=xBGR,width=1,height=1", PixelFormat::xBGR, ColorMatrix::bt601,
     ColorRange::full, 1},
    {"linear dma-buf",
     "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=64,height=48",
     PixelFormat::NV12, ColorMatrix::bt601, ColorRange::limited, 1},
    {"grey dma-buf",
     "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=\"R8  \",width=64,height=48",
     PixelFormat::GRAY8, ColorMatrix::bt601, ColorRange::full, 1},
    {"dma-buf in the style before 1.24",
     "video/x-raw(memory:DMABuf),format=BGRx,width=64,height=48", PixelFormat::BGRx,
     ColorMatrix::bt601, ColorRange::full, 1},
    {"tiled dma-buf is refused",
     "video/"
     "x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12:0x0100000000000002,width=64,height=48",
     PixelFormat::unknown,
     {},
     {},
     0},
    {"a format that is not read",
     "video/x-raw,format=AYUV64,width=64,height=48",
     PixelFormat::unknown,
     {},
     {},
     0},
};

class FrameFormat : public testing::TestWithParam<Case> {};
TEST_P(FrameFormat, FollowsTheCaps) {
    const Case& c = GetParam();
    SCOPED_TRACE(c.why);
    GstCaps* caps = gst_caps_from_string(c.caps);
    ASSERT_NE(caps, nullptr);
    const auto got = vartml::gst::frame_format(caps);
    gst_caps_unref(caps);
    ASSERT_EQ(got.has_value(), c.format != PixelFormat::unknown);
    if (!got) {
        const bool tiled = std::string_view(c.why).starts_with("tiled");
        EXPECT_NE(got.error().message.find(tiled ? "vapostproc" : "videoconvert"),
                  std::string::npos)
            << got.error().message;
        return;
    }
    EXPECT_EQ(got->picture.format, c.format);
    if (c.matrix != ColorMatrix::bt601 || got->picture.range == ColorRange::limited) {
        EXPECT_EQ(got->picture.matrix, c.matrix);
    }
    EXPECT_EQ(got->picture.range, c.range);
    EXPECT_DOUBLE_EQ(got->picture.pixel_aspect_ratio, c.aspect);
}
INSTANTIATE_TEST_SUITE_P(PictureInfo, FrameFormat, testing::ValuesIn(cases));

TEST(PictureCaps, OfferEveryFormatAndParseBack) {
    GstCaps* caps = vartml::gst::picture_caps();
    ASSERT_EQ(gst_caps_get_size(caps), 3u);
    EXPECT_TRUE(
        gst_caps_features_contains(gst_caps_get_features(caps, 0), GST_CAPS_FEATURE_MEMORY_DMABUF));
    const char* fields[] = {"drm-format", "format", "format"};
    // GStreamer knows S010, which is I420_10LE, from 1.28 on.
    const guint sizes[] = {GST_CHECK_VERSION(1, 28, 0) ? 20 : 19, 22, 22};
    for (guint i = 0; i < 3; ++i) {
        const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps, i), fields[i]);
        ASSERT_EQ(gst_value_list_get_size(list), sizes[i]);
        for (guint f = 0; f < sizes[i]; ++f) {
            GstCaps* fixed = gst_caps_new_empty();
            GstStructure* s = gst_structure_copy(gst_caps_get_structure(caps, i));
            gst_structure_set_value(s, fields[i], gst_value_list_get_value(list, f));
            gst_structure_set(s, "width", G_TYPE_INT, 17, "height", G_TYPE_INT, 3, "framerate",
                              GST_TYPE_FRACTION, 30, 1, nullptr);
            gst_caps_append_structure_full(fixed, s,
                                           gst_caps_features_copy(gst_caps_get_features(caps, i)));
            const auto got = vartml::gst::frame_format(fixed);
            EXPECT_TRUE(got) << g_value_get_string(gst_value_list_get_value(list, f));
            gst_caps_unref(fixed);
        }
    }
    gst_caps_unref(caps);
}

TEST(MappedFrame, ShowsPlanesByTheVideoMeta) {
    GstCaps* caps = gst_caps_from_string("video/x-raw,format=YV12,width=5,height=3");
    const auto format = vartml::gst::frame_format(caps);
    gst_caps_unref(caps);
    ASSERT_TRUE(format);
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 400, nullptr);
    const gsize offsets[GST_VIDEO_MAX_PLANES] = {7, 150, 260};
    const gint strides[GST_VIDEO_MAX_PLANES] = {33, 17, 19};
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_YV12, 5, 3,
                                   3, offsets, strides);
    {
        GstMapInfo map;
        ASSERT_TRUE(gst_buffer_map(buffer, &map, GST_MAP_READ));
        const vartml::gst::MappedFrame frame(*format, buffer);
        ASSERT_TRUE(frame.mapped());
        for (int p = 0; p < 3; ++p) {
            EXPECT_EQ(frame.picture().planes[p], map.data + offsets[p]);
            EXPECT_EQ(frame.picture().stride_bytes[p], uint32_t(strides[p]));
        }
        gst_buffer_unmap(buffer, &map);
    }
    gst_buffer_unref(buffer);
}

TEST(MappedFrame, TellsWhetherTheFrameIsInterlaced) {
    const std::tuple<const char*, guint, bool> cases[] = {
        {"progressive", 0, false},
        {"interleaved", 0, true},
        {"mixed", 0, false},
        {"mixed", GST_VIDEO_BUFFER_FLAG_INTERLACED, true},
    };
    for (const auto& [mode, flags, interlaced] : cases) {
        const std::string text =
            "video/x-raw,format=I420,width=16,height=8,interlace-mode=" + std::string(mode);
        GstCaps* caps = gst_caps_from_string(text.c_str());
        const auto format = vartml::gst::frame_format(caps);
        gst_caps_unref(caps);
        ASSERT_TRUE(format);
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, format->info.size, nullptr);
        GST_BUFFER_FLAG_SET(buffer, flags);
        {
            const vartml::gst::MappedFrame frame(*format, buffer);
            ASSERT_TRUE(frame.mapped());
            EXPECT_EQ(frame.picture().interlaced, interlaced) << mode << flags;
        }
        gst_buffer_unref(buffer);
    }
}

struct Place {
    const char* why;
    const char* format;
    gsize size, offsets[2];
    gint strides[2];
    bool mapped, read;  // by map_frame; by MappedFrame
};
// Of 4x4 pixels.
const Place places[] = {
    {"all of it", "RGB", 75, {0}, {21}, true, true},
    {"a byte less", "RGB", 74, {0}, {21}, false, false},
    {"begins too late", "RGB", 75, {1}, {21}, false, false},
    {"upwards", "RGB", 75, {63}, {-21}, true, false},
    {"upwards beyond the begin", "RGB", 75, {62}, {-21}, false, false},
    {"one row over the other", "RGB", 75, {0}, {11}, false, false},
    {"both planes", "NV12", 28, {0, 20}, {5, 4}, true, true},
    {"the second beyond the end", "NV12", 27, {0, 20}, {5, 4}, false, false},
    {"two bytes per sample", "P010_10LE", 48, {0, 32}, {8, 8}, true, true},
    {"half a sample less", "P010_10LE", 47, {0, 32}, {8, 8}, false, false},
};

TEST(MappedFrame, IsNotReadBeyondItsMemory) {
    for (const Place& place : places) {
        SCOPED_TRACE(place.why);
        GstCaps* caps = gst_caps_from_string(
            (std::string("video/x-raw,width=4,height=4,format=") + place.format).c_str());
        const auto format = vartml::gst::frame_format(caps);
        gst_caps_unref(caps);
        ASSERT_TRUE(format);
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, place.size, nullptr);
        const gsize offsets[GST_VIDEO_MAX_PLANES] = {place.offsets[0], place.offsets[1]};
        const gint strides[GST_VIDEO_MAX_PLANES] = {place.strides[0], place.strides[1]};
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE,
                                       GST_VIDEO_INFO_FORMAT(&format->info), 4, 4,
                                       GST_VIDEO_INFO_N_PLANES(&format->info), offsets, strides);
        GstVideoFrame frame;
        const bool mapped = vartml::gst::map_frame(&frame, format->info, buffer, GST_MAP_READ);
        if (mapped) gst_video_frame_unmap(&frame);
        EXPECT_EQ(mapped, place.mapped);
        EXPECT_EQ(vartml::gst::MappedFrame(*format, buffer).mapped(), place.read);
        gst_buffer_unref(buffer);
    }
}

TEST(LimitedColours, AreThoseOfRgbAndGreyWhoseCapsSaySo) {
    struct Case {
        const char* caps;
        bool limited;
    };
    const Case cases[] = {{"format=RGB", false},
                          {"format=RGB,colorimetry=2:1:5:1", true},
                          {"format=GRAY8", false},
                          {"format=GRAY8,colorimetry=2:4:5:1", true},
                          {"format=GRAY8,colorimetry=1:4:0:0", false},
                          {"format=I420,colorimetry=2:4:5:1", false}};
    for (const Case& c : cases) {
        GstCaps* caps =
            gst_caps_from_string((std::string("video/x-raw,width=4,height=4,") + c.caps).c_str());
        const auto format = vartml::gst::frame_format(caps);
        gst_caps_unref(caps);
        ASSERT_TRUE(format);
        EXPECT_EQ(vartml::gst::has_limited_colours(format->info), c.limited) << c.caps;
    }
}

}  // namespace
