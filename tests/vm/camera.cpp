// SPDX-License-Identifier: Apache-2.0
// Frames of a camera of the kernel through vartmlinfer: what memory they keep, that nothing is
// copied, and that the model sees the pixels of the frame. gstreamer.md 3.5
#include <algorithm>

#include "tests/support/gst_main.h"
#include "tests/vm/cameras.h"
#include "tests/vm/negation.h"
#include "tests/vm/pipeline.h"

namespace {

using namespace vartml::test;

constexpr unsigned num_frames = 4;
// No two lines and no two frames are equal: a wrong row, plane or frame shows.
constexpr const char* noise = " extra-controls=c,test_pattern=21";

struct Case {
    const char* io_mode;
    const char* caps;  // what they say of the memory
    const char* format;
    int width, height;
    bool memory_per_plane;
    unsigned num_memories;
};

constexpr const char *plain = "", *drm = "(memory:DMABuf)";

const Case cases[] = {
    {"dmabuf", plain, "NV12", 640, 480, false, 1},
    {"dmabuf", plain, "NV12", 1280, 720, false, 1},
    {"dmabuf", plain, "NV12", 1920, 1080, false, 1},
    {"dmabuf", plain, "NV12", 640, 480, true, 2},  // the kernel's NV12M
    {"dmabuf", plain, "NV12", 1920, 1080, true, 2},
    {"dmabuf", plain, "YUY2", 640, 480, false, 1},
    {"dmabuf", plain, "RGB", 640, 480, false, 1},
    {"dmabuf", plain, "RGBx", 640, 480, false, 1},
    {"dmabuf", plain, "BGRx", 1280, 720, false, 1},
    {"dmabuf", drm, "NV12", 640, 480, false, 1},
    {"dmabuf", drm, "NV12", 1280, 720, true, 2},
    {"dmabuf", drm, "XR24", 640, 480, false, 1},
    {"dmabuf-import", plain, "NV12", 640, 480, false, 1},
    {"dmabuf-import", plain, "NV12", 1920, 1080, false, 1},
    {"dmabuf-import", plain, "BGRx", 1280, 720, true, 1},
    {"dmabuf-import", plain, "YUY2", 640, 480, false, 1},
    {"dmabuf-import", drm, "NV12", 640, 480, false, 1},
    {"dmabuf-import", drm, "XR24", 640, 480, false, 1},
    {"mmap", plain, "NV12", 640, 480, false, 1},
    {"mmap", plain, "NV12", 1280, 720, true, 2},
    {"mmap", plain, "BGRx", 640, 480, false, 1},
};

class Camera : public testing::TestWithParam<Case> {
protected:
    static std::string source(const std::string& device) {
        const Case& c = GetParam();
        return "v4l2src name=source device=" + device + " io-mode=" + c.io_mode + noise +
               " num-buffers=" + std::to_string(num_frames) + " ! video/x-raw" + c.caps +
               (c.caps == drm ? ",format=DMA_DRM,drm-format=" : ",format=") + c.format +
               ",width=" + std::to_string(c.width) + ",height=" + std::to_string(c.height);
    }
};

TEST_P(Camera, GivesItsFramesToTheModelWithoutACopy) {
    const auto device = find_camera(GetParam().memory_per_plane);
    VARTML_NEEDS(device, "a camera of vivid");
    Pipeline pipeline(source(*device), "output-tensor-type=hw model=" + negation_model());
    pipeline.play();
    const Errors errors = pipeline.finish();
    ASSERT_EQ(errors.text, "");
    ASSERT_EQ(pipeline.frames().size(), num_frames);
    const std::vector<bool> memories(GetParam().num_memories,
                                     GetParam().io_mode != std::string("mmap"));
    for (const Frame& frame : pipeline.frames()) {
        EXPECT_EQ(frame.is_dma_buf, memories);
        EXPECT_EQ(frame.status, "inferred");
        // Not EXPECT_EQ, which would print thousands of values.
        EXPECT_TRUE(values_of_hw_view(frame.tensor) == negated(pipeline.format(), frame.pixels));
    }
    EXPECT_FALSE(pipeline.frames().front().tensor == pipeline.frames().back().tensor);
    EXPECT_EQ(pipeline.counter("frames"), num_frames);
    EXPECT_EQ(pipeline.counter("copies"), 0u);
    EXPECT_EQ(pipeline.counter("copied-bytes"), 0u);
    EXPECT_EQ(pipeline.counter("conversions"), num_frames);
}

INSTANTIATE_TEST_SUITE_P(Vivid, Camera, testing::ValuesIn(cases), [](const auto& info) {
    const Case& c = info.param;
    return (c.io_mode == std::string("dmabuf-import") ? "import" : std::string(c.io_mode)) +
           (c.caps == drm ? "_drm_" : "_") + c.format + '_' + std::to_string(c.height) +
           (c.memory_per_plane ? "_per_plane" : "");
});

}  // namespace
