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
    unsigned sure_false_alarms = 0;  // of these, such that score at least `sure`
    static constexpr double sure = 0.5;
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

// The boxes of all classes and frames.
class BoxTally {
public:
    void add(std::span<const Found> frame);
    unsigned boxes() const { return boxes_; }
    unsigned frames() const { return frames_; }  // with a box
    // Why such boxes are rarely objects: "3 of 4 score below 0.5", or "".
    std::string doubt() const;

private:
    unsigned boxes_ = 0, unsure_ = 0, frames_ = 0;
};

}  // namespace demo
