// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_overhead.h"

#include <chrono>
#include <vector>

#include "lib/trace/clock.h"

namespace vartml::tools {
namespace {

constexpr uint64_t least_jobs = 20, least_ns = 200'000'000;

Result<double> median_of_block(Activation& a, bool is_recorded) {
    if (is_recorded) a.collector->begin(a.submitted);
    const uint64_t begin_ns = profiling::monotonic_ns();
    auto times = run_jobs(a, [&](uint64_t submitted) {
        return submitted >= least_jobs && profiling::monotonic_ns() - begin_ns >= least_ns;
    });
    if (!times) return times.error();
    if (is_recorded) {
        a.collector->end();
        // What is done with a capture belongs to the block that made it.
        a.collector->wait_for_captures(std::chrono::seconds(10));
    }
    return median_interval(std::move(times->round_trip_us)).median;
}

}  // namespace

Result<Overhead> measure_overhead(const RunOptions& o, Activation& activation, unsigned level) {
    if (auto warm = warm_up(o, activation); !warm) return warm.error();
    // A machine whose speed drifts gives both halves of ABBA the same.
    std::vector<double> percents;
    for (size_t pair = 0; pair < least_overhead_pairs; ++pair) {
        const bool recorded_first = pair % 2 == 1;
        auto first = median_of_block(activation, recorded_first);
        if (!first) return first.error();
        auto second = median_of_block(activation, !recorded_first);
        if (!second) return second.error();
        const double with = recorded_first ? *first : *second;
        const double without = recorded_first ? *second : *first;
        percents.push_back((with / without - 1) * 100);
    }
    Overhead overhead{level, percents.size(), median_interval(percents)};
    if (o.profile.overhead_limit) overhead.budget_percent = *o.profile.overhead_limit;
    return overhead;
}

}  // namespace vartml::tools
