// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression that makes one box of those that overlap: their mean, weighted by score.
#pragma once
#include <span>
#include <vector>

#include "lib/vision/head.h"

namespace vartml::vision {

class WeightedNms {
public:
    // Of `boxes`, best first, makes at most `most` means, best first; each has the score, class and
    // position of its best box. Boxes belong to the best one that is left when they overlap it with
    // more than `iou`, and with `per_class` are of its class.
    void run(std::span<const Candidate> boxes, bool per_class, float iou, size_t most);

    const std::vector<Candidate>& means() const { return means_; }
    // What means()[i] was made of, best first.
    std::span<const Candidate> members(size_t i) const;
    unsigned suppressed() const { return static_cast<unsigned>(members_.size() - means_.size()); }

private:
    std::vector<Candidate> means_, members_, left_, rest_;
    std::vector<size_t> ends_;  // in members_
};

// Adds points to sums that are weighted by score; `sum` takes the size of the first `points`.
void add_weighted(std::vector<Keypoint>& sum, std::span<const Keypoint> points, float weight);
// Divides by the sum of weights.
void finish_weighted(std::vector<Keypoint>& sum, float weights);

}  // namespace vartml::vision
