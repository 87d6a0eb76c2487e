// SPDX-License-Identifier: Apache-2.0
// The unit of time of summaries. Stamps are converted by floor and durations are differences of
// converted stamps; sums are made in nanoseconds and rounded once.
#pragma once
#include <cstdint>
#include <limits>

namespace vartml::profiling {

class Ucycles {
public:
    explicit Ucycles(uint64_t hz) : hz_(hz) {}
    uint64_t hz() const { return hz_; }
    uint64_t stamp(uint64_t ns) const { return of(ns, 0); }
    uint64_t rounded(uint64_t ns) const { return of(ns, giga / 2); }

private:
    static constexpr unsigned __int128 giga = 1'000'000'000;
    uint64_t of(uint64_t ns, unsigned __int128 add) const {
        constexpr auto most = std::numeric_limits<uint64_t>::max();
        const unsigned __int128 value = (static_cast<unsigned __int128>(ns) * hz_ + add) / giga;
        return value > most ? most : static_cast<uint64_t>(value);
    }
    uint64_t hz_;
};

}  // namespace vartml::profiling
