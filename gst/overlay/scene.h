// SPDX-License-Identifier: Apache-2.0
// What is to be seen on a frame, in pixels of the frame, whatever it is drawn with.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gst/overlay/shapes.h"

namespace vartml::gst::overlay {

// A small picture of region numbers, stretched over a rectangle.
struct MaskItem {
    GstBuffer* pixels = nullptr;  // GRAY8 or GRAY16_LE, with GstVideoMeta; a reference
    Rect rect;
    size_t first_color = 0, num_colors = 0;  // by region number; without opacity: not drawn
};

// A line of text on a plate.
struct LabelItem {
    Rect plate;
    Rgba color;  // of the plate
    size_t first_char = 0, num_chars = 0;
};

// Drawn in the order of the members, strokes in their order, the others from the last to
// the first: detections come in the order of their scores, and the surest lie on top. Keeps its
// memory when cleared. Thread-safety: none.
struct Scene {
    std::vector<MaskItem> masks;
    std::vector<Outline> outlines;
    std::vector<Stroke> strokes;
    std::vector<LabelItem> labels;

    std::vector<Rgba> colors;  // of masks
    std::string chars;         // of labels

    Scene() = default;
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;
    ~Scene() { clear(); }

    bool empty() const {
        return masks.empty() && outlines.empty() && strokes.empty() && labels.empty();
    }
    void clear();
    std::string_view text(const LabelItem& label) const {
        return std::string_view(chars).substr(label.first_char, label.num_chars);
    }
    std::span<const Rgba> colors_of(const MaskItem& mask) const {
        return std::span(colors).subspan(mask.first_color, mask.num_colors);
    }
};

// Between a plate's edge and its text.
int label_padding(int line_height);

}  // namespace vartml::gst::overlay
