// SPDX-License-Identifier: Apache-2.0
#include "gst/join/matcher.h"

namespace vartml::gst {
namespace {

GstClockTime apart(GstClockTime a, GstClockTime b) {
    return a > b ? a - b : b - a;
}

}  // namespace

void Matcher::add(Kept kept) {
    if (full()) kept_.pop_front();
    kept_.push_back(std::move(kept));
}

std::optional<Matcher::Kept> Matcher::match(GstClockTime time, GstClockTime tolerance,
                                            GstClockTime& distance) const {
    const Kept* best = nullptr;
    distance = GST_CLOCK_TIME_NONE;
    for (const Kept& kept : kept_) {
        const GstClockTime d = apart(kept.time, time);
        if (best && (d > distance || (d == distance && kept.time >= best->time))) continue;
        best = &kept;
        distance = d;
    }
    if (!best || distance > tolerance) return std::nullopt;
    return *best;
}

void Matcher::prune(GstClockTime time, GstClockTime tolerance) {
    if (time < tolerance) return;
    std::erase_if(kept_, [&](const Kept& kept) { return kept.time < time - tolerance; });
}

}  // namespace vartml::gst
