// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/plan.h"

#include <algorithm>

namespace vartml::softnpu {

uint32_t items_for(const Extent& extent, unsigned threads) {
    constexpr int64_t least_ns = 4000, long_ns = 200'000, per_thread = 2;
    if (threads < 2) return 1;
    const int64_t worth = extent.cost_ns / least_ns;
    const int64_t most = threads * (extent.cost_ns > long_ns * threads ? per_thread : 1);
    return static_cast<uint32_t>(std::clamp<int64_t>(std::min(worth, extent.units), 1, most));
}

Plan Plan::for_another_run() const {
    Plan other;
    *other.state = *state;
    other.buffers = buffers;
    other.owners = owners;
    other.scratch_bytes = scratch_bytes;
    other.scratch_buffer = scratch_buffer;
    other.arena_bytes = arena_bytes;
    other.border_conversions = border_conversions;
    for (const auto& step : steps) {
        auto own = step->for_another_run(*other.state);
        other.steps.push_back(own ? std::move(own) : step);
    }
    return other;
}

}  // namespace vartml::softnpu
