// SPDX-License-Identifier: Apache-2.0
// A camera's frames from the kernel through vartmlinfer to a screen of the kernel: what is shown is
// the camera's own memory.
#include <fcntl.h>
#include <gst/allocators/gstdmabuf.h>
#include <gst/gst.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xf86drm.h>
#include <xf86drmMode.h>

#include <optional>
#include <set>
#include <string>

#include "tests/support/gst_main.h"
#include "tests/vm/cameras.h"
#include "tests/vm/dma_bufs.h"
#include "tests/vm/negation.h"

namespace {

using namespace vartml::test;

guint64 inode_of(int fd) {
    struct stat status{};
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// The dma-buf that the screen of a card reads; 0 where it is none.
guint64 shown(int card) {
    guint64 inode = 0;
    drmModePlaneRes* const planes = drmModeGetPlaneResources(card);
    for (uint32_t i = 0; planes && i < planes->count_planes; ++i) {
        drmModePlane* const plane = drmModeGetPlane(card, planes->planes[i]);
        drmModeFB2* const buffer = plane ? drmModeGetFB2(card, plane->fb_id) : nullptr;
        int fd = -1;
        if (buffer && drmPrimeHandleToFD(card, buffer->handles[0], DRM_CLOEXEC, &fd) == 0) {
            inode = inode_of(fd);
            close(fd);
        }
        drmModeFreeFB2(buffer);
        drmModeFreePlane(plane);
    }
    drmModeFreePlaneResources(planes);
    return inode;
}

// Written by the streaming thread, read after the end.
struct Seen {
    int card = -1;
    unsigned frames = 0;
    std::set<guint64> inodes;  // of the frames that came to the sink
    unsigned on_screen = 0;    // frames that the screen read when the next came
};

GstPadProbeReturn on_frame(GstPad*, GstPadProbeInfo* info, gpointer data) {
    auto& seen = *static_cast<Seen*>(data);
    GstMemory* const memory = gst_buffer_peek_memory(GST_PAD_PROBE_INFO_BUFFER(info), 0);
    if (seen.frames++ > 0 && seen.inodes.contains(shown(seen.card))) ++seen.on_screen;
    if (gst_is_dmabuf_memory(memory))
        seen.inodes.insert(inode_of(gst_dmabuf_memory_get_fd(memory)));
    return GST_PAD_PROBE_OK;
}

class Screen : public testing::TestWithParam<const char*> {};

TEST_P(Screen, ShowsTheCamerasOwnMemory) {
    const auto device = find_camera(false);
    VARTML_NEEDS(device, "a camera of vivid");
    const int card = open_drm("cirrus");
    VARTML_NEEDS(card >= 0, "a screen of the driver cirrus");
    drmDropMaster(card);  // the sink's
    ASSERT_EQ(drmSetClientCap(card, DRM_CLIENT_CAP_UNIVERSAL_PLANES, 1), 0);
    const std::string line =
        "v4l2src device=" + *device + " io-mode=dmabuf num-buffers=5 ! " + GetParam() +
        ",width=640,height=480 ! vartmlinfer on-late=block model=" + negation_model() +
        " ! kmssink name=sink driver-name=cirrus force-modesetting=true "
        "sync=false";
    GError* error = nullptr;
    GstElement* const pipeline = gst_parse_launch(line.c_str(), &error);
    ASSERT_FALSE(error) << error->message;
    Seen seen{card, 0, {}, 0};
    GstElement* const sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    GstPad* const pad = gst_element_get_static_pad(sink, "sink");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, &seen, nullptr);
    gst_object_unref(pad);
    gst_object_unref(sink);
    GstBus* const bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage* const message = gst_bus_timed_pop_filtered(
        bus, 60 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    ASSERT_TRUE(message) << "the pipeline did not end";
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gchar* debug = nullptr;
        gst_message_parse_error(message, &error, &debug);
        ADD_FAILURE() << error->message << '\n' << debug;
    }
    EXPECT_EQ(seen.frames, 5u);
    EXPECT_EQ(seen.on_screen, 4u) << "the screen shows a copy";
    gst_message_unref(message);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    close(card);
}

INSTANTIATE_TEST_SUITE_P(Cirrus, Screen,
                         testing::Values("video/x-raw,format=BGRx",
                                         "video/x-raw(memory:DMABuf),format=DMA_DRM,"
                                         "drm-format=XR24"),
                         [](const auto& info) { return info.index ? "drm_caps" : "plain"; });

}  // namespace
