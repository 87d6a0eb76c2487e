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

unsigned threads_worth(std::span<const std::shared_ptr<Step>> steps, uint32_t frames,
                       unsigned threads) {
    // Measured on a virtual machine: runs of 10 us take 14 with two threads, of 19 us 18, of 30 us
    // 24.
    constexpr int64_t least_ns = 8000;
    int64_t saved_ns = 0;
    for (const auto& step : steps) {
        const int64_t sharers = std::min(step->items() * frames, threads);
        if (sharers < 2) continue;
        const int64_t cost_ns = step->extent().cost_ns;
        if (cost_ns == 0) return threads;
        saved_ns += cost_ns * frames * (sharers - 1) / sharers;
    }
    return saved_ns < least_ns ? 1 : threads;
}

Plan Plan::for_another_run() const {
    Plan other;
    other.state->shapes = state->shapes;
    other.state->input_shapes = state->input_shapes;
    other.state->output_shapes = state->output_shapes;
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
