// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/latency_promise.h"

#include <algorithm>

#include "gst/infer/stats.h"

namespace vartml::gst::infer {

uint64_t promise_us(std::span<uint32_t> times_us, bool shared) {
    if (!shared) return percentile(times_us, 99);
    return std::max<uint64_t>(percentile(times_us, 95), 2 * uint64_t(percentile(times_us, 50)));
}

std::optional<uint64_t> LatencyPromise::frame(uint64_t held_us, uint64_t promised_us) {
    held_[next_++ % window] = held_us;
    if (held_us <= promised_us) return std::nullopt;
    uint64_t shortest = held_us;
    unsigned above = 0;
    for (const uint64_t held : held_) {
        if (held <= promised_us) continue;
        shortest = std::min(shortest, held);
        ++above;
    }
    if (above < too_many) return std::nullopt;
    return shortest;
}

}  // namespace vartml::gst::infer
