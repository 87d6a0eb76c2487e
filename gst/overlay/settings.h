// SPDX-License-Identifier: Apache-2.0
// What vartmloverlay is set to.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <string>

namespace vartml::gst {

enum class OverlayMode { automatic, attach, blend };
enum class ColorMode { by_class, by_track, fixed };

// What is drawn; bits of the property `draw`.
enum DrawFlag : unsigned {
    draw_boxes = 1,
    draw_labels = 2,
    draw_tracks = 4,
    draw_masks = 8,
    draw_keypoints = 16,
    draw_regions = 32,
    draw_zones = 64,
};

// As the user set them. Thread-safety: none.
struct OverlaySettings {
    OverlayMode mode = OverlayMode::automatic;
    unsigned draw =
        draw_boxes | draw_labels | draw_tracks | draw_masks | draw_keypoints | draw_zones;
    bool hud = false, tracked_only = false;
    unsigned line_width = 0;
    double font_scale = 0;
    ColorMode color_mode = ColorMode::by_class;
    unsigned color = 0xff00ff00;
    bool show_score = true;
    double mask_opacity = 0.4, keypoint_threshold = 0.3;
    std::string skeleton = "auto", classes, blur_classes;
    uint64_t hold = 0;

    // Pixels that are blurred have to be written, which attaching never does.
    OverlayMode effective_mode() const { return blur_classes.empty() ? mode : OverlayMode::blend; }
};

}  // namespace vartml::gst
