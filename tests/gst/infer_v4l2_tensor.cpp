// SPDX-License-Identifier: Apache-2.0
// Cameras whose source calls a tensor a picture: the format that the device is set to decides, and
// so do the controls of the pre-processor before it.
#include <fcntl.h>
#include <linux/media.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "tests/support/gst_dma_frames.h"
#include "tests/support/gst_infer_harness.h"

namespace {

// The device behind descriptor `fd`.
struct FakeDevice {
    int fd = -1;
    uint32_t fourcc = 0, width = 0, height = 0;
    bool planes = false;  // of the interface with a memory per plane
    std::map<std::string, int32_t> controls = {};
};
FakeDevice device;

// What is before it: pre-processor -> formatter -> the device, each with its file.
struct FakeBoard {
    bool there = false, linked = true;
    std::map<std::string, int32_t> controls;  // of the pre-processor
    int media = -1, preprocessor = -1;        // opened files
};
FakeBoard board;
constexpr unsigned video_major = 81, preprocessor_minor = 7, formatter_minor = 6, video_minor = 5;

int system_error(int number) {
    errno = number;
    return -1;
}

int give_topology(media_v2_topology& to) {
    media_v2_entity entities[3] = {};
    for (uint32_t i = 0; i < 3; ++i) entities[i].id = 1 + i;
    media_v2_pad pads[4] = {};
    for (const auto& [index, id, entity] :
         {std::tuple{0, 11, 1}, {1, 21, 2}, {2, 22, 2}, {3, 31, 3}})
        pads[index].id = uint32_t(id), pads[index].entity_id = uint32_t(entity);
    media_v2_interface interfaces[3] = {};
    media_v2_link links[5] = {};
    const unsigned minors[] = {preprocessor_minor, formatter_minor, video_minor};
    for (uint32_t i = 0; i < 3; ++i) {
        interfaces[i].id = 51 + i;
        interfaces[i].intf_type = i < 2 ? MEDIA_INTF_T_V4L_SUBDEV : MEDIA_INTF_T_V4L_VIDEO;
        interfaces[i].devnode.major = video_major;
        interfaces[i].devnode.minor = minors[i];
        links[i].source_id = 51 + i;
        links[i].sink_id = 1 + i;
        links[i].flags = MEDIA_LNK_FL_INTERFACE_LINK | MEDIA_LNK_FL_ENABLED;
    }
    for (const auto& [index, from, into] : {std::tuple{3, 11, 21}, {4, 22, 31}}) {
        links[index].source_id = uint32_t(from);
        links[index].sink_id = uint32_t(into);
        links[index].flags = board.linked ? MEDIA_LNK_FL_ENABLED : 0;
    }
    const auto give = [](const auto& rows, uint64_t address) {
        if (address) std::memcpy(reinterpret_cast<void*>(address), rows, sizeof rows);
        return uint32_t(std::size(rows));
    };
    to.num_entities = give(entities, to.ptr_entities);
    to.num_interfaces = give(interfaces, to.ptr_interfaces);
    to.num_pads = give(pads, to.ptr_pads);
    to.num_links = give(links, to.ptr_links);
    return 0;
}

// The requests about controls.
int control(const std::map<std::string, int32_t>& controls, unsigned long request, void* data) {
    constexpr uint32_t first = 0x00980900;
    const auto at = [&](uint32_t id) { return std::next(controls.begin(), int(id - first)); };
    if (request == VIDIOC_QUERY_EXT_CTRL) {
        auto& query = *static_cast<v4l2_query_ext_ctrl*>(data);
        const uint32_t last = query.id & ~V4L2_CTRL_FLAG_NEXT_CTRL;
        const uint32_t next = last < first ? first : last + 1;
        if (next - first >= controls.size()) return system_error(EINVAL);
        query = {};
        query.id = next;
        at(next)->first.copy(query.name, sizeof query.name - 1);
        return 0;
    }
    if (request != VIDIOC_G_EXT_CTRLS) return system_error(ENOTTY);
    const auto& get = *static_cast<v4l2_ext_controls*>(data);
    for (uint32_t i = 0; i < get.count; ++i) get.controls[i].value = at(get.controls[i].id)->second;
    return 0;
}

}  // namespace

// In the place of the C library's, for these descriptors and files.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list more;
    va_start(more, request);
    void* data = va_arg(more, void*);
    va_end(more);
    if (fd >= 0 && fd == board.media && request == MEDIA_IOC_G_TOPOLOGY)
        return give_topology(*static_cast<media_v2_topology*>(data));
    if (fd >= 0 && fd == board.preprocessor && _IOC_TYPE(request) == 'V')
        return control(board.controls, request, data);
    if (fd != device.fd || fd < 0) return int(syscall(SYS_ioctl, fd, request, data));
    if (request != VIDIOC_G_FMT) return control(device.controls, request, data);
    auto* format = static_cast<v4l2_format*>(data);
    const uint32_t type =
        device.planes ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE : V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (format->type != type) return system_error(EINVAL);
    auto& size = format->fmt.pix;
    size.width = device.width;
    size.height = device.height;
    (device.planes ? format->fmt.pix_mp.pixelformat : size.pixelformat) = device.fourcc;
    return 0;
}

extern "C" int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);  // of no meaning where nothing is made
    va_end(more);
    const std::string name = path;
    const bool media = name.starts_with("/dev/media"), sub = name.starts_with("/dev/v4l-subdev");
    if (!media && !sub) return int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    if (!board.there || (media && name != "/dev/media1")) return system_error(ENOENT);
    const int fd = int(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
    if (media) board.media = fd;
    if (name == "/dev/v4l-subdev7") board.preprocessor = fd;
    return fd;
}

extern "C" ssize_t readlink(const char* path, char* to, size_t size) noexcept {
    const std::string name = path;
    const std::string place = "/sys/dev/char/" + std::to_string(video_major) + ":";
    if (!board.there || !name.starts_with(place))
        return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
    const std::string target = "../../devices/x/video4linux/v4l-subdev" + name.substr(place.size());
    return ssize_t(target.copy(to, size));
}

extern "C" int fstat(int fd, struct stat* to) noexcept {
    if (fd < 0 || fd != device.fd) return int(syscall(SYS_newfstatat, fd, "", to, AT_EMPTY_PATH));
    *to = {};
    to->st_rdev = makedev(video_major, video_minor);
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
        g_object_set(infer_, "preprocess", pixels_, nullptr);
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
        board = {};
    }

    const char* pixels_ = "channels=rgb resize=stretch mean=0 scale=1";  // nullptr: nobody says
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

// ---- what the camera's pre-processor is set to ------------------------------------------------

// (pixel - 0) / 255 in steps of 1/64, as `vartml camera` sets it.
constexpr const char* plain_pixels = "channels=rgb resize=stretch mean=0 scale=0.00392157";
std::map<std::string, int32_t> plain_controls() {
    return {{"preprocess_int8_out_ibits", 2},    {"preprocess_param_alpha_1", 0},
            {"preprocess_param_alpha_2", 0},     {"preprocess_param_alpha_3", 0},
            {"preprocess_param_alpha_4", 1},     {"preprocess_param_beta_1", 32'897},
            {"preprocess_param_beta_2", 32'897}, {"preprocess_param_beta_3", 32'897}};
}

class InferSetCamera : public InferV4l2Tensor {
protected:
    void SetUp() override {
        InferV4l2Tensor::SetUp();
        pixels_ = plain_pixels;
        device = {1000, hc48, 16, 12};
        board.there = true;
        board.controls = plain_controls();
    }
};

TEST_F(InferSetCamera, ForThisModelIsTaken) {
    board.controls["preprocess_param_beta_2"] += 90;  // less than a code of white
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
    EXPECT_EQ(imports_, 1u);
}

TEST_F(InferSetCamera, ForAnotherModelIsRefusedWithTheFirstColour) {
    struct Row {
        const char* control;
        int32_t value;
        const char* sentence;
    };
    const Row rows[] = {
        {"preprocess_param_alpha_3", 10 << 23, "their red is (pixel - 10) * 0.250984, and"},
        {"preprocess_param_alpha_1", 1 << 26, "their green is (pixel - 8) * 0.250984, and"},
        {"preprocess_param_beta_2", 65'794, "their blue is (pixel - 0) * 0.501968, and"},
        {"preprocess_int8_out_ibits", 3, "their red is (pixel - 0) * 0.125492, and"},
    };
    for (const Row& row : rows) {
        SetUp();
        board.controls[row.control] = row.value;
        run(FakeInput::codes, "auto", "queue");
        EXPECT_NE(
            error_.find("frames are the tensor that a camera's pre-processing made for another "
                        "model: " +
                        std::string(row.sentence) +
                        " model 'fake' takes (pixel - 0) * 0.25098; program the camera for this "
                        "one with `vartml camera`"),
            std::string::npos)
            << error_;
        if (&row != std::end(rows) - 1) TearDown();
    }
}

// A driver may show the controls on the video device, and a format may be a picture's by its name.
TEST_F(InferSetCamera, IsReadFromTheVideoDeviceItself) {
    board.there = false;
    device.fourcc = V4L2_PIX_FMT_RGBX32;
    device.controls = plain_controls();
    device.controls["preprocess_param_alpha_3"] = 10 << 23;
    run(FakeInput::codes, "yes", "queue");
    EXPECT_NE(error_.find("their red is (pixel - 10)"), std::string::npos) << error_;
}

TEST_F(InferSetCamera, IsNotJudgedWhereNothingIsKnown) {
    board.controls["preprocess_param_alpha_3"] = 10 << 23;
    board.linked = false;  // of another camera
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
    TearDown();
    SetUp();
    board.controls["preprocess_param_alpha_3"] = 10 << 23;
    pixels_ = nullptr;
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
    TearDown();
    SetUp();
    board.controls = {{"preprocess_param_alpha_3", 10 << 23}};
    run(FakeInput::codes, "auto", "queue");
    EXPECT_EQ(error_, "");
}

}  // namespace
