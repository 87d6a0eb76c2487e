// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/cameras.h"

#include <fcntl.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace vartml::test {
namespace {

constexpr const char* driver = "/sys/bus/platform/drivers/vivid/";

class Device {
public:
    explicit Device(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
    ~Device() {
        if (fd_ >= 0) close(fd_);
    }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    bool call(unsigned long request, void* argument) const {
        return ioctl(fd_, request, argument) == 0;
    }

private:
    int fd_;
};

bool is_camera(const std::string& path, bool memory_per_plane) {
    v4l2_capability capability{};
    const Device device(path);
    return device.call(VIDIOC_QUERYCAP, &capability) &&
           std::strcmp(reinterpret_cast<const char*>(capability.driver), "vivid") == 0 &&
           (capability.device_caps &
            (memory_per_plane ? V4L2_CAP_VIDEO_CAPTURE_MPLANE : V4L2_CAP_VIDEO_CAPTURE));
}

bool gives_every_size(const std::string& path) {
    v4l2_format format{};
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    format.fmt.pix.width = format.fmt.pix.height = 632;  // of no webcam
    format.fmt.pix.pixelformat = V4L2_PIX_FMT_RGBX32;
    return Device(path).call(VIDIOC_TRY_FMT, &format) && format.fmt.pix.width == 632 &&
           format.fmt.pix.height == 632;
}

// Its number; 0: the device has none.
uint32_t find_control(const Device& device, const char* name) {
    v4l2_query_ext_ctrl query{};
    for (query.id = V4L2_CTRL_FLAG_NEXT_CTRL; device.call(VIDIOC_QUERY_EXT_CTRL, &query);
         query.id |= V4L2_CTRL_FLAG_NEXT_CTRL) {
        if (std::strcmp(query.name, name) == 0) return query.id;
    }
    return 0;
}

bool tell_driver(const char* what) {
    std::ofstream file(std::string(driver) + what);
    file << "vivid.0" << std::flush;
    return bool(file);
}

}  // namespace

std::optional<std::string> find_camera(bool memory_per_plane) {
    for (int number = 0; number < 64; ++number) {
        const std::string path = "/dev/video" + std::to_string(number);
        if (std::filesystem::exists(path) && is_camera(path, memory_per_plane)) return path;
    }
    return std::nullopt;
}

std::optional<std::string> find_camera_of_every_size() {
    for (int number = 0; number < 64; ++number) {
        const std::string path = "/dev/video" + std::to_string(number);
        if (std::filesystem::exists(path) && is_camera(path, false) && gives_every_size(path))
            return path;
    }
    return std::nullopt;
}

std::vector<std::string> find_webcams() {
    std::vector<std::string> found;
    for (int number = 0; number < 64; ++number) {
        const std::string path = "/dev/video" + std::to_string(number);
        if (std::filesystem::exists(path) &&
            (is_camera(path, true) || (is_camera(path, false) && !gives_every_size(path))))
            found.push_back(path);
    }
    return found;
}

bool set_control(const std::string& path, const char* name, int32_t value) {
    const Device device(path);
    v4l2_control control{find_control(device, name), value};
    return control.id != 0 && device.call(VIDIOC_S_CTRL, &control);
}

std::optional<int32_t> get_control(const std::string& path, const char* name) {
    const Device device(path);
    v4l2_control control{find_control(device, name), 0};
    if (control.id == 0 || !device.call(VIDIOC_G_CTRL, &control)) return std::nullopt;
    return control.value;
}

bool disconnect_camera(const std::string& path) {
    return set_control(path, "Disconnect", 1);
}

bool unbind_cameras() {
    return tell_driver("unbind");
}

bool bind_cameras() {
    return tell_driver("bind");
}

}  // namespace vartml::test
