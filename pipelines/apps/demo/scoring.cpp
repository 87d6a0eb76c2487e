// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/scoring.h"

#include <algorithm>
#include <set>

namespace demo {

void tally_known(std::span<const Found> found, std::span<const KnownCode> codes,
                 KnownTally& tally) {
    std::vector<const Found*> order;
    for (const Found& f : found) order.push_back(&f);
    std::stable_sort(order.begin(), order.end(),
                     [](const Found* a, const Found* b) { return a->score > b->score; });
    std::vector<bool> taken(codes.size());
    for (const Found* f : order) {
        size_t best = codes.size();
        double best_iou = 0.5;
        bool excused = false;
        for (size_t i = 0; i < codes.size(); ++i) {
            const double overlap = iou(f->box, codes[i].box);
            if (!taken[i] && overlap >= best_iou) best = i, best_iou = overlap;
            excused |= !codes[i].counted &&
                       intersection(f->box, codes[i].box).area() > 0.5 * f->box.area();
        }
        if (best < codes.size()) {
            taken[best] = true;
            tally.found += codes[best].counted;
        } else if (!excused) {
            ++tally.false_alarms;
            tally.sure_false_alarms += f->score >= KnownTally::sure;
        }
    }
    for (const KnownCode& code : codes) tally.known += code.counted;
}

void tally_classes(std::span<const Labelled> found, ClassTallies& tally) {
    std::set<std::string> seen;
    for (const Labelled& f : found) {
        ClassTally& row = tally[f.label];
        ++row.items;
        row.frames += seen.insert(f.label).second;
        row.best = std::max(row.best, f.value);
    }
}

void BoxTally::add(std::span<const Found> frame) {
    constexpr double unsure = 0.5;
    frames_ += !frame.empty();
    for (const Found& f : frame) ++boxes_, unsure_ += f.score < unsure;
}

std::string BoxTally::doubt() const {
    constexpr unsigned few = 10, crowd = 50;
    if (boxes_ < few) return {};
    if (boxes_ / frames_ >= crowd)
        return "that is " + std::to_string(boxes_ / frames_) + " on each";
    if (uint64_t{4} * unsure_ >= uint64_t{3} * boxes_) return "3 of 4 or more score below 0.5";
    return {};
}

}  // namespace demo
