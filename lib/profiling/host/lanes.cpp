// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/host/lanes.h"

#include <map>
#include <mutex>
#include <utility>

namespace vartml::profiling {
namespace {

struct Lanes {
    std::mutex mutex;  // a leaf
    std::map<std::pair<uint32_t, uint32_t>, LaneName> names;
};

Lanes& lanes() {
    static Lanes* const kept = new Lanes;
    return *kept;
}

}  // namespace

void name_lane(TraceLane lane, std::string_view process, std::string_view thread, int sort_index) {
    const std::lock_guard lock(lanes().mutex);
    lanes().names.insert_or_assign({lane.pid, lane.tid},
                                   LaneName{std::string(process), std::string(thread), sort_index});
}

std::optional<LaneName> lane_name(TraceLane lane) {
    const std::lock_guard lock(lanes().mutex);
    const auto known = lanes().names.find({lane.pid, lane.tid});
    if (known == lanes().names.end()) return std::nullopt;
    return known->second;
}

}  // namespace vartml::profiling
