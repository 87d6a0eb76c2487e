// SPDX-License-Identifier: Apache-2.0
// Cameras whose source calls a tensor a picture: the format that the device is set to decides.
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <optional>

#include "tests/support/gst_dma_frames.h"
#include "tests/support/gst_infer_harness.h"

namespace {

// The device behind descriptor `fd`.
struct FakeDevice {
    int fd = -1;
    uint32_t fourcc = 0, width = 0, height = 0;
    bool planes = false;  // of the interface with a memory per plane
};
FakeDevice device;

}  // namespace

// In the place of the C library's, for one descriptor.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list more;
    va_start(more, request);
    void* data = va_arg(more, void*);
    va_end(more);
    if (fd != device.fd || fd < 0) return int(syscall(SYS_ioctl, fd, request, data));
    auto* format = static_cast<v4l2_format*>(data);
    const uint32_t type =
        device.planes ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE : V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (request != VIDIOC_G_FMT || format->type != type) {
        errno = EINVAL;
        return -1;
    }
    auto& size = format->fmt.pix;
    size.width = device.width;
    size.height = device.height;
    (device.planes ? format->fmt.pix_mp.pixelformat : size.pixelformat) = device.fourcc;
    return 0;
}

// A source that keeps a V4L2 device, whose pad the test pushes from.
typedef struct {
    GstElement parent;
} TestCamera;
typedef struct {
    GstElementClass parent_class;
} TestCameraClass;
GType test_camera_get_type();
G_DEFINE_TYPE(TestCamera, test_camera, GST_TYPE_ELEMENT)
static void test_camera_init(TestCamera* self) {
    gst_element_add_pad(GST_ELEMENT(self), gst_pad_new("src", GST_PAD_SRC));
}
static void test_camera_class_init(TestCameraClass* klass) {
    GObjectClass* object_class = G_OBJECT_CLASS(klass);
    object_class->get_property = [](GObject*, guint, GValue* value, GParamSpec*) {
        g_value_set_int(value, device.fd);
    };
    g_object_class_install_property(
        object_class, 1,
        g_param_spec_int("device-fd", "", "", -1, G_MAXINT, -1,
                         GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

constexpr uint32_t hc48 = v4l2_fourcc('H', 'C', '4', '8'), hc83 = v4l2_fourcc('H', 'C', '8', '3');

// camera ! BETWEEN ! vartmlinfer, and what it said first.
class InferV4l2Tensor : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }

    void run(FakeInput input, const char* mode, const char* between, const char* format = "RGBx") {
        fake_model().input = input;
        pipeline_ = GST_PIPELINE(gst_object_ref_sink(gst_pipeline_new(nullptr)));
        bus_ = gst_pipeline_get_bus(pipeline_);
        auto* camera = GST_ELEMENT(g_object_new(test_camera_get_type(), nullptr));
        GstElement* middle = gst_element_factory_make(between, nullptr);
        infer_ = make_infer();
        gst_util_set_object_arg(G_OBJECT(infer_), "input-is-tensor", mode);
        GstElement* sink = gst_element_factory_make("fakesink", nullptr);
        g_object_set(sink, "async", FALSE, nullptr);
        gst_bin_add_many(GST_BIN(pipeline_), camera, middle, infer_, sink, nullptr);
        ASSERT_TRUE(gst_element_link_many(camera, middle, infer_, sink, nullptr));
        gst_element_set_state(GST_ELEMENT(pipeline_), GST_STATE_PLAYING);
        GstPad* pad = gst_element_get_static_pad(camera, "src");
        gst_pad_push_event(pad, gst_event_new_stream_start("s"));
        GstCaps* caps = gst_caps_from_string((std::string("video/x-raw,width=16,height=12,"
                                                          "framerate=30/1,format=") +
                                              format)
                                                 .c_str());
        gst_pad_push_event(pad, gst_event_new_caps(caps));
        gst_caps_unref(caps);
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_pad_push_event(pad, gst_event_new_segment(&segment));
        GstBuffer* frame = frame_of(dma_memory(fake_width * fake_height * 4));
        GST_BUFFER_PTS(frame) = 0;
        flow_ = gst_pad_push(pad, frame);
        if (flow_ == GST_FLOW_OK) gst_pad_push_event(pad, gst_event_new_eos());
        gst_object_unref(pad);
        GstMessage* message = gst_bus_timed_pop_filtered(
            bus_, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            GError* error = nullptr;
            gst_message_parse_error(message, &error, nullptr);
            error_ = error->message;
            g_error_free(error);
        }
        gst_message_unref(message);
        GstStructure* stats = nullptr;
        g_object_get(infer_, "stats", &stats, nullptr);
        EXPECT_TRUE(gst_structure_get(stats, "conversions", G_TYPE_UINT64, &conversions_, "imports",
                                      G_TYPE_UINT64, &imports_, nullptr));
        gst_structure_free(stats);
    }
    void TearDown() override {
        gst_element_set_state(GST_ELEMENT(pipeline_), GST_STATE_NULL);
        gst_object_unref(bus_);
        gst_object_unref(pipeline_);
        device = {};
    }

    GstPipeline* pipeline_ = nullptr;
    GstBus* bus_ = nullptr;
    GstElement* infer_ = nullptr;
    GstFlowReturn flow_ = GST_FLOW_OK;
    std::string error_;
    guint64 conversions_ = 0, imports_ = 0;
};

TEST_F(InferV4l2Tensor, IsTakenAsItLies) {
    device = {1000, hc48, 16, 12};
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
    EXPECT_EQ(conversions_, 0u);
    EXPECT_EQ(imports_, 1u);
}

TEST_F(InferV4l2Tensor, IsTakenFromADeviceWithAMemoryPerPlane) {
    device = {1000, hc48, 16, 12, true};
    run(FakeInput::codes, "auto", "capsfilter");
    EXPECT_EQ(error_, "");
    EXPECT_EQ(imports_, 1u);
}

TEST_F(InferV4l2Tensor, IsNotPreprocessedASecondTime) {
    device = {1000, hc48, 16, 12};
    run(FakeInput::codes, "no", "queue");
    EXPECT_NE(error_.find("frames of 'HC48' are the tensor that a camera's pre-processing made, "
                          "and input-is-tensor=no would pre-process them a second time"),
              std::string::npos)
        << error_;
}

TEST_F(InferV4l2Tensor, ThatIsForAnotherModelIsRefused) {
    device = {1000, hc48, 16, 12};
    run(FakeInput::four_bytes, "yes", "queue");
    EXPECT_NE(error_.find("for another model: their type is int8, and model 'fake' takes uint8; "
                          "program the camera for this one with `vartml camera`"),
              std::string::npos)
        << error_;
}

TEST_F(InferV4l2Tensor, PicturesStayPictures) {
    device = {1000, V4L2_PIX_FMT_RGBX32, 16, 12};
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
    EXPECT_EQ(conversions_, 1u);
}

// Another size, other bytes per pixel, or an element between them that may have made a picture.
TEST_F(InferV4l2Tensor, FramesThatAreNotTheDevicesOwnStayPictures) {
    device = {1000, hc48, 32, 24};
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(conversions_, 1u);
    TearDown();
    device = {1000, hc83, 16, 12};
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(conversions_, 1u);
    TearDown();
    device = {1000, hc48, 16, 12};
    run(FakeInput::codes, "auto", "valve");
    EXPECT_EQ(conversions_, 1u);
}

}  // namespace
