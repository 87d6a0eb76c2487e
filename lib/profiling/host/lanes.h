// SPDX-License-Identifier: Apache-2.0
// Names of lanes that are no threads, kept for every trace of this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vartml/profile.h>

namespace vartml::profiling {

struct LaneName {
    std::string process, thread;
    int sort_index = 0;
};

// Thread-safety: may be called concurrently.
void name_lane(TraceLane lane, std::string_view process, std::string_view thread, int sort_index);
std::optional<LaneName> lane_name(TraceLane lane);

}  // namespace vartml::profiling
