// SPDX-License-Identifier: Apache-2.0
// The summary of a raw stats buffer.
#pragma once
#include <cstdint>
#include <limits>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/summary.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

// The unit of time of summaries. Stamps are converted by floor and durations are differences of
// converted stamps; sums are made in nanoseconds and rounded once.

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

// Holds the identities. The descriptor must be the buffer's (check_match). `verdict` ends the
// notes. Errors: io; bad_model for a buffer of which no thread ran.
Result<SummaryText> build_summary(const BufferFile& file, const Descriptor& descriptor,
                                  const Verdict& verdict, uint64_t ucycle_hz = default_ucycle_hz);

}  // namespace vartml::profiling
