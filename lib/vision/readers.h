// SPDX-License-Identifier: Apache-2.0
// What could still be read of a model whose outputs fit no decoder as a whole.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

// "; heatmap reads 'heatmaps', segment reads 'segments': choose one with …": decoders that read one
// of several outputs once the sidecar gives it its role, with the lines to write. "" = there are
// none, or the model has one output only.
std::string partial_readers(const HeadRequest& request);

}  // namespace vartml::vision
