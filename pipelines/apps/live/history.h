// SPDX-License-Identifier: Apache-2.0
// What the last two minutes were like, second by second.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace live {

// Thread-safety: none.
class History {
public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr size_t kept = 120;

    struct Second {
        int64_t number = -1;  // since the clock's epoch; -1: nothing happened yet
        unsigned frames = 0, timed = 0;
        double sum_ms = 0;
        double mean_ms() const { return timed ? sum_ms / timed : 0; }
    };

    void frame(Time now) { ++at(now).frames; }
    void latency(Time now, double ms) {
        Second& second = at(now);
        ++second.timed;
        second.sum_ms += ms;
    }

    // The seconds that are over, the oldest first; those before the first frame are left out, those
    // in which nothing happened are empty.
    std::vector<Second> list(Time now) const {
        std::vector<Second> seconds;
        const int64_t end = number_of(now);
        for (int64_t n = std::max<int64_t>(first_, end - static_cast<int64_t>(kept)); n < end;
             ++n) {
            const Second& second = seconds_[static_cast<size_t>(n) % seconds_.size()];
            seconds.push_back(second.number == n ? second : Second{.number = n});
        }
        return seconds;
    }

private:
    static int64_t number_of(Time t) {
        return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count();
    }
    Second& at(Time now) {
        const int64_t number = number_of(now);
        first_ = std::min(first_, number);
        Second& second = seconds_[static_cast<size_t>(number) % seconds_.size()];
        if (second.number != number) second = {.number = number};
        return second;
    }

    std::array<Second, kept + 1> seconds_{};  // with the one that is not over
    int64_t first_ = INT64_MAX;
};

}  // namespace live
