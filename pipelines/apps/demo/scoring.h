// SPDX-License-Identifier: Apache-2.0
// Counts what was found: against known places, or by class.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pipelines/apps/demo/geometry.h"
#include "pipelines/apps/demo/scene.h"

namespace demo {

// A box that the decoder put on a frame.
struct Found {
    Box box;
    double score = 0;
    std::string label;
};

struct KnownTally {
    unsigned known = 0, found = 0, false_alarms = 0;
};

// Matches boxes with codes, best score first, each at most once, at an IoU of 0.5 and more. A box
// that matches nothing is a false alarm unless most of it lies on a code that is not counted.
void tally_known(std::span<const Found> found, std::span<const KnownCode> codes, KnownTally& tally);

// A class, and how certain it is or how much of the picture.
struct Labelled {
    std::string label;
    double value = 0;
};

struct ClassTally {
    unsigned items = 0, frames = 0;
    double best = 0;
};
using ClassTallies = std::map<std::string, ClassTally>;  // by label

// Adds one frame.
void tally_classes(std::span<const Labelled> found, ClassTallies& tally);

}  // namespace demo
