// SPDX-License-Identifier: Apache-2.0
// What the models found on a frame, read from its analytics metadata with upstream's calls alone.
#pragma once
#include <gst/gst.h>

#include <string>
#include <vector>

#include "pipelines/apps/demo/scoring.h"

namespace demo {

struct Findings {
    std::vector<Found> boxes;
    std::vector<Labelled> classes;  // of the whole picture, the best first
    std::vector<Labelled> areas;    // of class maps: label, share of the map's pixels
    unsigned masks = 0;             // of boxes
    unsigned keypoints = 0;         // lists of points: of a box, or of the picture
    unsigned embeddings = 0;
};

// Replaces `findings`. Of a class map the background, by its label, is left out; with
// `tracked_only` a box without a track, too.
void read_findings(GstBuffer* buffer, bool tracked_only, Findings& findings);

}  // namespace demo
