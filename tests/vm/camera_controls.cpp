// SPDX-License-Identifier: Apache-2.0
// Setting controls of a V4L2 device of the kernel as `vartml camera --set` does. vivid has
// controls, but no pads: those of the kernel's sub-devices are answered here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/v4l2-subdev.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <map>

#include "lib/tools/camera_plan.h"
#include "tests/vm/cameras.h"

namespace {

using namespace vartml;
using tools::CameraPlan;

// The largest value that a pre-processor's means and scales have does not fit into fewer bits.
constexpr const char *wide = "Integer 32 Bits", *narrow = "Brightness";

class CameraControls : public testing::Test {
protected:
    void SetUp() override {
        const auto camera = test::find_camera(false);
        VARTML_NEEDS(camera, "a camera of vivid");
        path_ = *camera;
        fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_GE(fd_, 0);
    }
    void TearDown() override {
        if (fd_ >= 0) close(fd_);
    }
    Result<void> set(const CameraPlan& plan) {
        return tools::set_camera(plan, path_, [this](unsigned long request, void* data) {
            if (request != VIDIOC_SUBDEV_G_FMT && request != VIDIOC_SUBDEV_S_FMT)
                return ioctl(fd_, request, data);
            auto* format = static_cast<v4l2_subdev_format*>(data);
            auto& pad = pads_[format->pad];
            if (request == VIDIOC_SUBDEV_S_FMT) pad = format->format;
            format->format = pad;
            return 0;
        });
    }
    // As the kernel has it.
    int32_t value(const char* name) {
        v4l2_query_ext_ctrl query{};
        for (query.id = V4L2_CTRL_FLAG_NEXT_CTRL; ioctl(fd_, VIDIOC_QUERY_EXT_CTRL, &query) == 0;
             query.id |= V4L2_CTRL_FLAG_NEXT_CTRL) {
            if (std::strcmp(query.name, name) != 0) continue;
            v4l2_ext_control control{};
            control.id = query.id;
            v4l2_ext_controls request{};
            request.which = V4L2_CTRL_WHICH_CUR_VAL;
            request.count = 1;
            request.controls = &control;
            EXPECT_EQ(ioctl(fd_, VIDIOC_G_EXT_CTRLS, &request), 0);
            return control.value;
        }
        ADD_FAILURE() << "vivid has no control " << name;
        return 0;
    }
    static CameraPlan plan(std::vector<tools::CameraControl> controls) {
        CameraPlan plan;
        plan.pads[0] = {"RBG888_1X24", 1920, 1080};
        plan.pads[1] = {"RGBA8888_1X32", 640, 640};
        plan.controls = std::move(controls);
        return plan;
    }

    std::string path_;
    int fd_ = -1;
    std::map<uint32_t, v4l2_mbus_framefmt> pads_;
};

TEST_F(CameraControls, AreFoundByNameAndSetAtOnce) {
    const int32_t largest = std::numeric_limits<int32_t>::max();
    for (const int32_t wanted : {largest, 5 << 23}) {
        const auto done = set(plan({{wide, wanted}, {narrow, wanted == largest ? 17 : 200}}));
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(value(wide), wanted);
        EXPECT_EQ(value(narrow), wanted == largest ? 17 : 200);
    }
    EXPECT_EQ(pads_[1].width, 640u);
}

TEST_F(CameraControls, StayWhereOneIsMissingOrOutOfRange) {
    ASSERT_TRUE(set(plan({{wide, 42}, {narrow, 42}})));
    pads_.clear();
    struct Row {
        const char* name;
        int32_t value;
        const char* sentence;
    };
    for (const Row& row : {Row{narrow, 256, "control 'Brightness' takes 0 to 255"},
                           Row{"preprocess_param_alpha_1", 1,
                               "has no control 'preprocess_param_alpha_1', so it is not the "
                               "sub-device of a pre-processor"}}) {
        const auto done = set(plan({{wide, 7}, {row.name, row.value}}));
        ASSERT_FALSE(done) << row.name;
        EXPECT_NE(done.error().message.find(row.sentence), std::string::npos)
            << done.error().message;
        EXPECT_EQ(value(wide), 42);
        EXPECT_TRUE(pads_.empty());
    }
}

}  // namespace
