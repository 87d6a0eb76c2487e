// SPDX-License-Identifier: Apache-2.0
// Greedy non-maximum suppression, and the way of boxes from the model's input to the frame.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "lib/vision/head.h"

namespace vartml::vision {

// Boxes that are turned about their centres.

struct Point {
    double x = 0, y = 0;
};
using Quad = std::array<Point, 4>;  // clockwise on the screen

// The corners of a box after its turn.
Quad corners_of(const Candidate& box);

// Area that two convex quads have in common.
double common_area(const Quad& a, const Quad& b);

// The candidate in frame pixels: the least rectangle around what the map makes of it (a scale that
// differs in x and y makes a parallelogram) that keeps one of its directions. It is not clipped;
// false when nothing of it lies on the frame.
bool map_turned(const Candidate& candidate, const Affine& to_frame, uint32_t frame_width,
                uint32_t frame_height, Detection& detection);

// The boxes kept so far; keeps its memory over frames.
class Suppressor {
public:
    void clear();
    // Whether a kept box of the same group overlaps the candidate with more than `iou`; if not, it
    // is kept as well. Turned boxes overlap as polygons.
    bool suppresses(const Candidate& candidate, int32_t group, float iou);

private:
    bool overlaps_turned(const Candidate& candidate, int32_t group, float iou) const;

    std::vector<float> x0_, y0_, x1_, y1_, area_, angle_;
    std::vector<int32_t> group_;
    bool turned_ = false;  // one of the kept boxes is
};

// The candidate's corners in frame pixels, clipped to the frame; false when nothing is left.
bool map_to_frame(const Candidate& candidate, const Affine& to_frame, uint32_t frame_width,
                  uint32_t frame_height, Detection& detection);

// Non-maximum suppression that makes one box of those that overlap: their mean, weighted by score.

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
