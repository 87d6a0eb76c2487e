// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/lane_pool.h"

#include <algorithm>

namespace vartml::profiling {

Track LanePool::named(uint32_t number, const std::string& name) {
    const Track track{first_.pid, first_.tid + number};
    file_->name_thread(track, name, order_++);
    return track;
}

Track LanePool::lane_at(uint32_t number, const std::string& name) {
    return named(number, name);
}

std::optional<Track> LanePool::next(const std::string& name) {
    if (next_ >= max_lanes) return std::nullopt;
    return named(next_++, name);
}

NestingLane::NestingLane(LanePool& pool, Track lane, std::string name)
    : pool_(&pool), name_(std::move(name)) {
    levels_.push_back({lane, 0, {}});
}

bool NestingLane::fits(Level& level, uint64_t start_ns, uint64_t end_ns) {
    if (start_ns < level.latest_start) return false;
    level.latest_start = start_ns;
    while (!level.open.empty() && level.open.back().second <= start_ns) level.open.pop_back();
    if (level.open.empty()) return true;
    // Readers tell two slices of the same start apart by their order in the file at best.
    return level.open.back().first < start_ns && end_ns <= level.open.back().second;
}

std::optional<Track> NestingLane::place(uint64_t start_ns, uint64_t end_ns) {
    auto level = std::find_if(levels_.begin(), levels_.end(),
                              [&](Level& l) { return fits(l, start_ns, end_ns); });
    if (level == levels_.end()) {
        const auto track = pool_->next(name_ + '~' + std::to_string(levels_.size() + 1));
        if (!track) return std::nullopt;
        levels_.push_back({*track, start_ns, {}});
        level = levels_.end() - 1;
    }
    level->open.emplace_back(start_ns, end_ns);
    return level->track;
}

NestingLane* SharedLanes::lane(const std::string& name, std::optional<uint32_t> number) {
    if (const auto found = lanes_.find(name); found != lanes_.end()) return &found->second;
    const std::optional<Track> track = number ? pool_.lane_at(*number, name) : pool_.next(name);
    return track ? &lanes_.emplace(name, NestingLane(pool_, *track, name)).first->second : nullptr;
}

SharedLanes& LaneBook::at(TraceFile& file, Track first, uint32_t reserved, uint64_t order) {
    return lanes_.try_emplace(first.tid, LanePool(file, first, reserved, order)).first->second;
}

}  // namespace vartml::profiling
