// SPDX-License-Identifier: Apache-2.0
// How often something happens.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>

namespace live {

// Thread-safety: none.
class Rate {
public:
    using Time = std::chrono::steady_clock::time_point;
    void count(Time now) { times_[next_++ % times_.size()] = now; }
    // Per second, over the last second.
    double per_second(Time now) const {
        const size_t known = std::min(next_, times_.size());
        const auto second = std::chrono::seconds(1);
        return static_cast<double>(
            std::count_if(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(known),
                          [&](Time t) { return now - t < second; }));
    }

private:
    std::array<Time, 512> times_{};
    size_t next_ = 0;
};

}  // namespace live
