// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/trace/lane_pool.h"

namespace vartml::profiling {

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
        const auto track = pool_->create(name_ + '~' + std::to_string(levels_.size() + 1), {});
        if (!track) return std::nullopt;
        levels_.push_back({*track, start_ns, {}});
        level = levels_.end() - 1;
    }
    level->open.emplace_back(start_ns, end_ns);
    return level->track;
}

std::optional<Track> LanePool::create(const std::string& name, std::optional<uint32_t> number) {
    if (!number || !taken_.insert(*number).second) {
        while (next_ < max_lanes && !taken_.insert(next_).second) ++next_;
        if (next_ >= max_lanes) return std::nullopt;
        number = next_++;
    }
    const Track track{first_.pid, first_.tid + *number};
    file_->name_thread(track, name, order_++);
    return track;
}

NestingLane* LanePool::lane(const std::string& name, std::optional<uint32_t> number) {
    if (const auto known = lanes_.find(name); known != lanes_.end()) return &known->second;
    const auto track = create(name, number);
    if (!track) return nullptr;
    return &lanes_.try_emplace(name, *this, *track, name).first->second;
}

LanePool& TraceLanes::of_core(uint32_t device, uint16_t core) {
    const uint64_t pid = device_pid(device), first = uint64_t{core} << 12;
    return pools_.try_emplace({pid, core}, *file_, Track{pid, pid + 1 + first}, first)
        .first->second;
}

LanePool& TraceLanes::of_host(uint32_t pid) {
    const auto known = pools_.find({pid, 0});
    if (known != pools_.end()) return known->second;
    const Track first{pid, first_job_tid + hosts_++ * max_lanes};
    return pools_.try_emplace({pid, 0}, *file_, first, 0).first->second;
}

}  // namespace vartml::profiling
