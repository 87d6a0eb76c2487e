// SPDX-License-Identifier: Apache-2.0
// What could still be read of a model whose outputs fit no decoder as a whole.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

// "; heatmap reads 'heatmaps', segment reads 'segments': choose one with …": decoders that read one
// of several outputs once the sidecar gives it its role, with the lines to write. "" = there are
// none, or the model has one output only.
std::string partial_readers(const HeadRequest& request);

// "; boxes in it are read by fastestdet with x-vartml-num-classes=4, yolo-v5 with
// x-vartml-anchors=…": detectors that read the outputs once somebody says what these leave open.
// "" = there are none.
std::string readers_in_need(const HeadRequest& request);

}  // namespace vartml::vision
