// SPDX-License-Identifier: Apache-2.0
// Greedy non-maximum suppression, and the way of boxes from the model's input to the frame.
#pragma once
#include <vector>

#include "lib/vision/head.h"

namespace vartml::vision {

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

}  // namespace vartml::vision
