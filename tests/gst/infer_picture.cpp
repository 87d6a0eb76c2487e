// SPDX-License-Identifier: Apache-2.0
// The device tensor that vartmlinfer makes of a frame: equal to the library's for every format and
// odd size, however the frame lies in memory.
#include <gst/allocators/gstdmabuf.h>
#include <gst/video/video.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <vartml/preprocess.h>

#include "gst/support/picture_info.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;

struct Size {
    int width, height;
};
constexpr Size sizes[] = {{32, 24}, {1, 1}, {17, 3}, {33, 25}};

std::string caps_of(GstVideoFormat format, Size size) {
    return std::string("video/x-raw,framerate=30/1,format=") + gst_video_format_to_string(format) +
           ",width=" + std::to_string(size.width) + ",height=" + std::to_string(size.height);
}

// A dense frame with bytes that tell places apart.
GstBuffer* dense_frame(const GstVideoInfo& info) {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    guint32 x = 12345;
    for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8((x = x * 1664525 + 1013904223) >> 24);
    gst_buffer_unmap(buffer, &map);
    return buffer;
}

std::vector<uint8_t> expected(const std::string& caps_text, GstBuffer* frame) {
    GstCaps* caps = gst_caps_from_string(caps_text.c_str());
    const auto format = vartml::gst::frame_format(caps);
    gst_caps_unref(caps);
    const auto input = fake_input();
    const auto preprocessor =
        vartml::Preprocessor::create(format->picture, {}, input.cpu, *input.hw, {});
    if (!preprocessor) {
        ADD_FAILURE() << preprocessor.error().message;
        return {};
    }
    std::vector<uint8_t> tensor(input.hw->size_bytes);
    const vartml::gst::MappedFrame mapped(*format, frame);
    preprocessor->run(mapped.picture(), tensor.data());
    return tensor;
}

std::vector<uint8_t> inferred(const std::string& caps, GstBuffer* frame) {
    reset_fake_model();
    InferHarness t(make_infer(), caps.c_str());
    EXPECT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
    t.pull_out();
    return fake_model().last_input;
}

// The same picture with other strides, plane offsets and gaps, all said by GstVideoMeta.
GstBuffer* padded_frame(const GstVideoInfo& info, GstBuffer* dense, bool one_memory_per_plane) {
    const guint planes = GST_VIDEO_INFO_N_PLANES(&info);
    gsize offsets[GST_VIDEO_MAX_PLANES] = {};
    gint strides[GST_VIDEO_MAX_PLANES] = {};
    GstBuffer* buffer = gst_buffer_new();
    gsize end = 0;
    GstMapInfo from;
    gst_buffer_map(dense, &from, GST_MAP_READ);
    for (guint p = 0; p < planes; ++p) {
        const gsize begin = 13 + 3 * p;  // bytes before the plane that belong to nobody
        gint component[GST_VIDEO_MAX_COMPONENTS];
        gst_video_format_info_component(info.finfo, p, component);
        const guint rows = guint(GST_VIDEO_INFO_COMP_HEIGHT(&info, component[0]));
        strides[p] = GST_VIDEO_INFO_PLANE_STRIDE(&info, p) + 19;
        const gsize size = begin + gsize(strides[p]) * rows;
        std::vector<guint8> bytes(size, 0xee);
        for (guint row = 0; row < rows; ++row) {
            std::copy_n(from.data + GST_VIDEO_INFO_PLANE_OFFSET(&info, p) +
                            row * gsize(GST_VIDEO_INFO_PLANE_STRIDE(&info, p)),
                        GST_VIDEO_INFO_PLANE_STRIDE(&info, p),
                        bytes.data() + begin + row * gsize(strides[p]));
        }
        if (one_memory_per_plane) {
            // The memory begins inside its block: `mem->offset` is not 0.
            GstMemory* whole = gst_allocator_alloc(nullptr, size, nullptr);
            GstMapInfo map;
            gst_memory_map(whole, &map, GST_MAP_WRITE);
            std::copy(bytes.begin(), bytes.end(), map.data);
            gst_memory_unmap(whole, &map);
            gst_memory_resize(whole, gssize(begin), size - begin);
            gst_buffer_append_memory(buffer, whole);
            offsets[p] = end;
            end += size - begin;
        } else {
            GstMemory* memory = gst_allocator_alloc(nullptr, size, nullptr);
            gst_buffer_append_memory(buffer, memory);
            gst_buffer_fill(buffer, end, bytes.data(), size);
            offsets[p] = end + begin;
            end += size;
        }
    }
    gst_buffer_unmap(dense, &from);
    if (!one_memory_per_plane) {
        GstMemory* all = gst_buffer_get_all_memory(buffer);
        gst_buffer_remove_all_memory(buffer);
        gst_buffer_append_memory(buffer, all);
    }
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                   guint(GST_VIDEO_INFO_WIDTH(&info)),
                                   guint(GST_VIDEO_INFO_HEIGHT(&info)), planes, offsets, strides);
    return buffer;
}

std::vector<GstVideoFormat> all_formats() {
    std::vector<GstVideoFormat> formats;
    GstCaps* caps = vartml::gst::picture_caps();
    const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps, 1), "format");
    for (guint i = 0; i < gst_value_list_get_size(list); ++i) {
        formats.push_back(
            gst_video_format_from_string(g_value_get_string(gst_value_list_get_value(list, i))));
    }
    gst_caps_unref(caps);
    return formats;
}

TEST(InferPicture, HasTheTensorOfTheLibraryHoweverItLiesInMemory) {
    for (const GstVideoFormat format : all_formats()) {
        for (const Size size : sizes) {
            const std::string caps = caps_of(format, size);
            SCOPED_TRACE(caps);
            GstVideoInfo info;
            ASSERT_TRUE(
                gst_video_info_set_format(&info, format, guint(size.width), guint(size.height)));
            GstBuffer* dense = dense_frame(info);
            const std::vector<uint8_t> want = expected(caps, dense);
            for (const bool per_plane : {false, true}) {
                EXPECT_EQ(inferred(caps, padded_frame(info, dense, per_plane)), want)
                    << "memory per plane: " << per_plane;
            }
            EXPECT_EQ(inferred(caps, dense), want) << "dense";
        }
    }
}

// Sizes of cameras and films, of which one is odd.
TEST(InferPicture, HasTheTensorOfTheLibraryAtTheSizesOfCameras) {
    for (const GstVideoFormat format : {GST_VIDEO_FORMAT_NV12, GST_VIDEO_FORMAT_I420,
                                        GST_VIDEO_FORMAT_YUY2, GST_VIDEO_FORMAT_RGBx}) {
        for (const Size size : {Size{1920, 1080}, Size{768, 432}, Size{641, 359}, Size{480, 640}}) {
            const std::string caps = caps_of(format, size);
            SCOPED_TRACE(caps);
            GstVideoInfo info;
            ASSERT_TRUE(
                gst_video_info_set_format(&info, format, guint(size.width), guint(size.height)));
            GstBuffer* dense = dense_frame(info);
            const std::vector<uint8_t> want = expected(caps, dense);
            EXPECT_EQ(inferred(caps, padded_frame(info, dense, true)), want);
            EXPECT_EQ(inferred(caps, padded_frame(info, dense, false)), want);
            EXPECT_EQ(inferred(caps, dense), want);
        }
    }
}

TEST(InferPicture, InADmaBufUnderEachOfItsCapsIsReadInPlace) {
    GstVideoInfo info;
    ASSERT_TRUE(gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 32, 24));
    GstBuffer* dense = dense_frame(info);
    const std::vector<uint8_t> want = expected(caps_of(GST_VIDEO_FORMAT_NV12, {32, 24}), dense);
    GstAllocator* allocator = gst_dmabuf_allocator_new();
    for (const char* caps :
         {"video/"
          "x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=32,height=24,framerate=30/1",
          "video/x-raw(memory:DMABuf),format=NV12,width=32,height=24,framerate=30/1",
          "video/x-raw,format=NV12,width=32,height=24,framerate=30/1"}) {
        SCOPED_TRACE(caps);
        const gsize size = GST_VIDEO_INFO_SIZE(&info);
        const int fd = memfd_create("frame", 0);  // what a dma-buf is to the processor
        ASSERT_GE(fd, 0);
        GstMapInfo map;
        gst_buffer_map(dense, &map, GST_MAP_READ);
        ASSERT_EQ(write(fd, map.data, size), ssize_t(size));
        gst_buffer_unmap(dense, &map);
        GstBuffer* frame = gst_buffer_new();
        gst_buffer_append_memory(frame, gst_dmabuf_allocator_alloc(allocator, fd, size));
        gst_buffer_add_video_meta(frame, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, 32, 24);
        EXPECT_EQ(inferred(caps, frame), want);
    }
    gst_object_unref(allocator);
    gst_buffer_unref(dense);
}

TEST(InferPicture, SmallerThanItsCapsIsAFailedFrame) {
    reset_fake_model();
    InferHarness t;
    ASSERT_EQ(gst_harness_push(t.h, InferHarness::frame(0, 10)), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, vartml::gst::InferenceStatus::failed);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
}

}  // namespace
