// SPDX-License-Identifier: Apache-2.0
// The cameras of the kernel's driver vivid, which needs no hardware; ./dev vm-test has five of
// them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace vartml::test {

// Device file of the camera whose pictures lie in one memory each, or in one per plane.
std::optional<std::string> find_camera(bool memory_per_plane);
// One that gives pictures of every size, in one memory each.
std::optional<std::string> find_camera_of_every_size();

// Those whose pictures have the sizes of a webcam.
std::vector<std::string> find_webcams();

// A control by its name, as the kernel has it.
bool set_control(const std::string& device, const char* name, int32_t value);
std::optional<int32_t> get_control(const std::string& device, const char* name);

// As a plug that is pulled: the device is gone for all who have it open, and back when the last of
// them closed it. False where it cannot be.
bool disconnect_camera(const std::string& device);

// Takes the driver from its devices, whose files go away, and gives it back. False where it cannot
// be.
bool unbind_cameras();
bool bind_cameras();

// Where ./dev vm-test runs: nothing that its guest has may be missed.
inline bool in_guest() {
    return std::getenv("VARTML_GUEST") != nullptr;
}

}  // namespace vartml::test

// For tests outside of the guest; within it, the test fails.
#define VARTML_NEEDS(what, name)                                                              \
    if (!(what)) {                                                                            \
        if (vartml::test::in_guest()) FAIL() << (name) << " is missing in the guest";         \
        GTEST_SKIP() << (name) << " is not here; ./dev vm-test runs this in a guest with it"; \
    }
