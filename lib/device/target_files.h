// SPDX-License-Identifier: Apache-2.0
// The data files of lib/device/targets, as the build put them into the program.
#pragma once
#include <span>
#include <string_view>

namespace vartml::device {

// A device, or a list of operators that devices name; both are JSON objects.
struct TargetFile {
    std::string_view name;  // without folder and ending
    std::string_view text;
};
std::span<const TargetFile> target_files();

}  // namespace vartml::device
