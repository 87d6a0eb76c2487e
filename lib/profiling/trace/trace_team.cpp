// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/trace/trace_team.h"

#include <algorithm>

namespace vartml::profiling {

bool Member::times(uint64_t index, uint64_t& start_ns, uint64_t& end_ns) {
    Stamp stamp;
    if (!stamps_.get(index, stamp) || stamp.start == 0 || stamp.end < stamp.start) return false;
    start_ns = buffer_->to_ns(stamp.start);
    end_ns = buffer_->to_ns(stamp.end);
    return end_ns >= start_ns;
}

void Member::add_to(TeamInstance& instance, uint64_t index, uint64_t start_ns, uint64_t end_ns) {
    const bool is_first = instance.start_ns == 0;
    instance.start_ns = is_first ? start_ns : std::min(instance.start_ns, start_ns);
    instance.end_ns = std::max(instance.end_ns, end_ns);
    if (is_first || end_ns - start_ns > instance.longest_end_ns - instance.longest_start_ns) {
        instance.longest_start_ns = start_ns;
        instance.longest_end_ns = end_ns;
    }
    uint64_t pcycles = not_captured;
    if (pcycles_.get(index, pcycles) && pcycles != not_captured &&
        pcycles >= instance.pcycles.value_or(0)) {
        instance.pcycles = pcycles;
        instance.pcycles_ns = end_ns - start_ns;
    }
    PmuRow row;
    row.fill(not_captured);
    pmu_.get(index, row);
    if (is_first) {
        instance.pmu = row;
        return;
    }
    for (size_t i = 0; i < row.size(); ++i) {
        uint64_t& sum = instance.pmu[i];
        sum = sum == not_captured || row[i] == not_captured ? not_captured : sum + row[i];
    }
}

Result<void> Member::status() const {
    for (const RecordWindow* window :
         {static_cast<const RecordWindow*>(&stamps_), static_cast<const RecordWindow*>(&pcycles_),
          static_cast<const RecordWindow*>(&pmu_)})
        if (!window->status()) return window->status();
    return {};
}

std::optional<TeamInstance> instance_of(std::span<Member> members, uint64_t index) {
    std::optional<TeamInstance> instance;
    for (Member& member : members) {
        uint64_t start_ns = 0, end_ns = 0;
        if (!member.times(index, start_ns, end_ns)) continue;
        if (!instance) instance.emplace();
        member.add_to(*instance, index, start_ns, end_ns);
    }
    return instance;
}

const Core* core_of(const Descriptor& descriptor, uint16_t core) {
    const auto found = std::ranges::find(descriptor.cores, core, &Core::index);
    if (found != descriptor.cores.end()) return &*found;
    // Cores above those listed are like the first.
    return descriptor.cores.empty() ? nullptr : &descriptor.cores.front();
}

}  // namespace vartml::profiling
