// SPDX-License-Identifier: Apache-2.0
// Whether boxes can be what a head takes them for. Shapes alone do not tell regressions from
// corners, or landmarks from scores; the numbers of all positions of a frame do.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "lib/vision/head.h"

namespace vartml::vision {

struct Expectation {
    float width = 0, height = 0;   // of the model's input
    float threshold = 0;           // from which a candidate counts
    bool sparse = false;           // a grid: most positions hold nothing
    bool corners = false;          // also boxes that do not count have their corners in order
    std::string_view logits = {};  // what the sidecar can put behind the scores; "": nothing
};

// Of the candidates of one frame, best all positions whatever their score: numbers that are finite,
// scores in 0 to 1, corners in order and not far from the picture, boxes over the picture and
// larger than a pixel, and few of a grid that count. What speaks against it as the rest of a
// sentence; "" = nothing.
std::string doubt_of_boxes(const Candidates& all, const Expectation& expected);

// Of the greatest score of a class in a frame, before the objectness makes it less: whether it is
// at most 1. The same kind of text.
std::string doubt_of_class_score(float greatest);

// Of the boxes of all positions of a grid: whether they stand near their cells, by `reach` cells,
// as what a model has decoded does. Levels may come in either order, anchors beside each other or
// one after the other. The same kind of text.
std::string doubt_of_places(std::span<const Candidate> all, const Grid& grid, float reach);

// Of boxes that were kept, as many as may be: whether they stand at the border of the frame or over
// each other, nearly all of them, as numbers that are no boxes do. The same kind of text.
std::string doubt_of_full_table(std::span<const Detection> kept, float width, float height);

// Of a vector: whether all numbers are in 0 to 1 and sum up to 1, as what a softmax makes.
bool are_probabilities(std::span<const float> values);

// Of the points of a thing, in pixels of the picture, numbers that are not finite left out: whether
// most lie in the picture, and not all in one place. The same kind of text.
std::string doubt_of_points(std::span<const Keypoint> points, float width, float height);

// Of a family that only shapes chose, without labels: what numbers are taken for, and what else
// they may be. A vector of sums of products may be the logits of classes, or angles, ages,
// coordinates; one of sigmoids the scores of labels, or measures between 0 and 1. A map of one
// channel may be the mask of a thing, or say where lines of text are, or how far away what is in
// the picture. A whole sentence; "" = nothing is presumed.
std::string presumption_of(std::string_view family, const ModelInfo& info,
                           std::string_view first_output, unsigned classes);

}  // namespace vartml::vision
