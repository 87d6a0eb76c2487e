// SPDX-License-Identifier: Apache-2.0
// `vartml camera --set` on a device of the kernel: vivid's controls stand for those of a board's
// pre-processor (preprocessor.cpp), which the kernel finds by number, checks and keeps.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "tests/support/temp_dir.h"
#include "tests/vm/cameras.h"
#include "tests/vm/preprocessor.h"

namespace {

using namespace vartml::test;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

struct Finished {
    int status = -1;
    std::string out, err;
};

class CameraControls : public testing::Test {
protected:
    void SetUp() override {
        const auto camera = find_camera_of_every_size();
        VARTML_NEEDS(camera, "a camera of vivid of every size");
        device_ = *camera;
        before_ = values();
        ASSERT_EQ(before_.size(), std::size(stand_ins)) << "vivid lacks a control";
    }
    void TearDown() override {
        for (const auto& [name, value] : before_)
            EXPECT_TRUE(set_control(device_, name.c_str(), value)) << name;
    }
    // vartml camera MODEL --subdev DEVICE --set
    Finished camera(const std::string& model, bool as_preprocessor = true) const {
        const TempDir dir;
        const std::string stand_in = variable("VARTML_VM_PREPROCESSOR");
        const std::string command = (as_preprocessor ? "LD_PRELOAD='" + stand_in + "' '" : "'") +
                                    variable("VARTML_PROGRAM") + "' camera '" +
                                    variable("VARTML_VM_MODELS") + '/' + model + ".rai' --subdev " +
                                    device_ + " --set >" + (dir / "out") + " 2>" + (dir / "err");
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir / "out"),
                slurp(dir / "err")};
    }
    // Of the stand-ins, as the kernel has them.
    std::map<std::string, int32_t> values() const {
        std::map<std::string, int32_t> all;
        for (const StandIn& one : stand_ins)
            if (const auto value = get_control(device_, one.vivid)) all[one.vivid] = *value;
        return all;
    }
    std::pair<uint32_t, uint32_t> frame_size() const {
        v4l2_format format{};
        format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
        const int fd = open(device_.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(ioctl(fd, VIDIOC_G_FMT, &format), 0);
        close(fd);
        return {format.fmt.pix.width, format.fmt.pix.height};
    }

    std::string device_;
    std::map<std::string, int32_t> before_;
};

// (pixel - mean) * scale in steps of 1/64: 2^23 times the numbers of the model (meson.build).
TEST_F(CameraControls, AreThoseOfTheModel) {
    const Finished f = camera("narrow");
    ASSERT_EQ(f.status, 0) << f.err;
    const std::map<std::string, int32_t> expected = {
        {"Integer 32 Bits", 975'427'338},  // mean of green, 116.28
        {"Brightness", 200},               // of blue
        {"Contrast", 100},                 // of red
        {"Saturation", 90},                // scale of green
        {"Hue", 80},                       // of blue
        {"Alpha Component", 70},           // of red
        {"Fill Percentage of Frame", 2}};  // bits before the point
    EXPECT_EQ(values(), expected);
    EXPECT_EQ(frame_size(), std::pair(64u, 64u));
    for (const StandIn& one : stand_ins) {
        const std::string line = "v4l2-ctl -d " + device_ + " --set-ctrl=" + one.preprocessor +
                                 "=" + std::to_string(expected.at(one.vivid)) + "\n";
        EXPECT_NE(f.out.find(line), std::string::npos) << line << f.out;
    }
}

// All or nothing: the first control could be set.
TEST_F(CameraControls, StayWhereOneIsOutOfRange) {
    const Finished f = camera("wide");
    EXPECT_EQ(f.status, 4);
    EXPECT_NE(f.err.find("control 'preprocess_param_alpha_2' takes 0 to 255, and the model needs"),
              std::string::npos)
        << f.err;
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(values(), before_);
}

TEST_F(CameraControls, StayOnADeviceThatIsNoPreprocessor) {
    const Finished f = camera("narrow", false);
    EXPECT_EQ(f.status, 4);
    EXPECT_NE(f.err.find(device_ + ": has no control 'preprocess_param_alpha_1', so it is not the "
                                   "sub-device of a pre-processor"),
              std::string::npos)
        << f.err;
    EXPECT_EQ(values(), before_);
}

}  // namespace
