// SPDX-License-Identifier: Apache-2.0
// Boxes that are turned about their centres.
#pragma once
#include <array>

#include "lib/vision/head.h"

namespace vartml::vision {

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

}  // namespace vartml::vision
