// SPDX-License-Identifier: Apache-2.0
// Names of the classes of data sets that most public models are trained on.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace vartml::vision {

struct KnownLabels {
    std::string_view source;  // "the 80 classes of COCO"; "" where there are none
    std::vector<std::string> labels;
};

// What the classes of a model are in all likelihood, by its family and their number, where nothing
// says what they are: COCO's of detectors of 80 classes, or of 90 to 92, which are its ids with
// gaps, whose labels are empty; PASCAL VOC's of segmentations of 21; the background and an object
// of those of 2; ImageNet's of classifiers of 1000 (and of
// 1001, whose first is the background), and "face" of detectors of faces.
KnownLabels known_labels(std::string_view family, unsigned classes);

}  // namespace vartml::vision
