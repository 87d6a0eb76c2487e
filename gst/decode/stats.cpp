// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/stats.h"

#include <algorithm>
#include <cmath>

namespace vartml::gst {

void DecodeStats::add(const DecodedFrame& frame) {
    ++frames_;
    boxes_ += frame.boxes;
    suppressed_ += frame.suppressed;
    not_finite_ += frame.not_finite;
    reused_ += frame.reused;
    decoded_ += frame.decoded;
    if (frame.decoded && !frame.reused) times_us_[timed_++ % times_us_.size()] = frame.time_us;
}

GstStructure* DecodeStats::structure() const {
    std::array<guint32, 1024> sorted = times_us_;
    const auto count = static_cast<size_t>(std::min<guint64>(timed_, sorted.size()));
    std::sort(sorted.begin(), sorted.begin() + static_cast<long>(count));
    // The time below which `share` of the frames stayed.
    const auto percentile = [&](double share) -> guint64 {
        return count ? sorted[static_cast<size_t>(
                           std::lround(share * static_cast<double>(count - 1)))]
                     : 0;
    };
    return gst_structure_new(
        "vartml-decode-stats", "frames", G_TYPE_UINT64, frames_, "decoded", G_TYPE_UINT64, decoded_,
        "passed", G_TYPE_UINT64, frames_ - decoded_, "boxes", G_TYPE_UINT64, boxes_, "suppressed",
        G_TYPE_UINT64, suppressed_, "reused", G_TYPE_UINT64, reused_, "not-finite", G_TYPE_UINT64,
        not_finite_, "decode-p50-us", G_TYPE_UINT64, percentile(0.5), "decode-p95-us",
        G_TYPE_UINT64, percentile(0.95), "decode-p99-us", G_TYPE_UINT64, percentile(0.99), nullptr);
}

}  // namespace vartml::gst
