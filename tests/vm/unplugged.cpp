// SPDX-License-Identifier: Apache-2.0
// A camera that goes away in mid-stream: the source says so, vartmlinfer says nothing of its own,
// and everything ends.
#include "tests/support/gst_main.h"
#include "tests/vm/cameras.h"
#include "tests/vm/negation.h"
#include "tests/vm/pipeline.h"

namespace {

using namespace vartml::test;

class Unplugged : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const auto camera = find_camera(false);
        VARTML_NEEDS(camera, "a camera of vivid");
        device_ = *camera;
    }
    std::string device_;
};

std::string source(const std::string& device, const char* io_mode) {
    return "v4l2src name=source device=" + device + " io-mode=" + io_mode +
           " ! video/x-raw,format=NV12,width=640,height=480";
}

// v4l2src of GStreamer 1.26 reports the loss two or three times; nobody adds to that.
void expect_end(Pipeline& pipeline) {
    const Errors errors = pipeline.finish(Pipeline::Until::end_of_stream);
    EXPECT_GE(errors.of_source, 1u);
    EXPECT_EQ(errors.of_others, 0u) << errors.text;
    for (const Frame& frame : pipeline.frames()) EXPECT_EQ(frame.status, "inferred");
}

void expect_frames_again(const char* io_mode) {
    const auto device = find_camera(false);
    ASSERT_TRUE(device);
    Pipeline pipeline(source(*device, io_mode), "model=" + negation_model());
    pipeline.play();
    pipeline.wait_for_frames(2);
}

TEST_P(Unplugged, EndsTheStreamWithTheSourcesErrorAlone) {
    {
        Pipeline pipeline(source(device_, GetParam()), "model=" + negation_model());
        pipeline.play();
        pipeline.wait_for_frames(4);
        ASSERT_TRUE(disconnect_camera(device_));
        expect_end(pipeline);
    }
    expect_frames_again(GetParam());
}

TEST_P(Unplugged, TogetherWithItsDriverEndsTheStreamAsWell) {
    if (!in_guest()) GTEST_SKIP() << "takes the driver from all its devices";
    {
        Pipeline pipeline(source(device_, GetParam()), "model=" + negation_model());
        pipeline.play();
        pipeline.wait_for_frames(4);
        ASSERT_TRUE(unbind_cameras());
        expect_end(pipeline);
    }
    ASSERT_TRUE(bind_cameras());
    expect_frames_again(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Vivid, Unplugged, testing::Values("dmabuf", "mmap"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
