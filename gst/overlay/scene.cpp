// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/scene.h"

namespace vartml::gst::overlay {

void Scene::clear() {
    for (const MaskItem& mask : masks) gst_buffer_unref(mask.pixels);
    masks.clear();
    outlines.clear();
    strokes.clear();
    labels.clear();
    colors.clear();
    chars.clear();
}

int label_padding(int line_height) {
    return std::max(2, line_height / 5);
}

}  // namespace vartml::gst::overlay
