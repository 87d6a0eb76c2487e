// SPDX-License-Identifier: Apache-2.0
// How many cameras a worker says that it can have: so many as it was measured to carry, fewer while
// they are late. What is too much then goes to others, without anybody who plans it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::fleet {

class Capacity {
public:
    /// `p95_ms`: of each camera's frames, what 95 of 100 take at most; 0: it is `most` for good.
    explicit Capacity(size_t most, double p95_ms = 0) : most_(most), p95_ms_(p95_ms), now_(most) {}

    size_t now() const { return now_; }
    /// What the worker sees, about once a second: its cameras, and the greatest 95th percentile of
    /// one, 0 where none is known.
    void report(size_t cameras, double worst_p95_ms, int64_t now_ms);

private:
    const size_t most_;
    const double p95_ms_;
    size_t now_;
    int64_t late_since_ms_ = -1, calm_since_ms_ = -1;
};

}  // namespace vartml::fleet
