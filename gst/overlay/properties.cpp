// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/properties.h"

namespace vartml::gst {
namespace {

GType mode_type() {
    static const GEnumValue values[] = {
        {static_cast<int>(OverlayMode::automatic),
         "Attach where downstream draws overlay compositions, else blend", "auto"},
        {static_cast<int>(OverlayMode::attach), "Attach an overlay composition", "attach"},
        {static_cast<int>(OverlayMode::blend), "Draw into the frame", "blend"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_enum("GstVartmlOverlayMode", values);
    return type;
}

GType color_mode_type() {
    static const GEnumValue values[] = {
        {static_cast<int>(ColorMode::by_class), "A color per label", "class"},
        {static_cast<int>(ColorMode::by_track), "A color per track; without one, per label",
         "track"},
        {static_cast<int>(ColorMode::fixed), "The color of the property color", "fixed"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_enum("GstVartmlOverlayColorMode", values);
    return type;
}

GType draw_type() {
    static const GFlagsValue values[] = {
        {draw_boxes, "Outlines of detections", "boxes"},
        {draw_labels, "Labels with scores, and classes of the whole frame", "labels"},
        {draw_tracks, "Ids of tracks, and where they were", "tracks"},
        {draw_masks, "Masks of detections, and class maps", "masks"},
        {draw_keypoints, "Keypoints and skeletons", "keypoints"},
        {draw_regions, "Regions of interest and inferred regions", "regions"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_flags("GstVartmlOverlayDraw", values);
    return type;
}

}  // namespace

std::span<const Property<OverlaySettings>> overlay_properties() {
    using S = OverlaySettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"mode", "Mode", "How results come onto the picture", until_ready,
         P::choice<&S::mode>(mode_type)},
        {"draw", "Draw", "What is drawn", any_time, P::Flags{draw_type, &S::draw}},
        {"hud", "Head-up display",
         "Show frames per second, latency, skipped inferences and the model at the top left",
         any_time, P::Flag{&S::hud}},
        {"line-width", "Line width", "Pixels; 0 = one per 360 lines of the frame", any_time,
         P::Uint{&S::line_width, 0, 100}},
        {"font-scale", "Font scale",
         "Size of the text in percent of the frame's height; 0 = 2.5, at least 10 pixels", any_time,
         P::Real{&S::font_scale, 0, 50}},
        {"color-mode", "Color mode", "What chooses the color of a detection", any_time,
         P::choice<&S::color_mode>(color_mode_type)},
        {"color", "Color", "Color of color-mode=fixed as 0xaarrggbb", any_time,
         P::Uint{&S::color, 0, G_MAXUINT}},
        {"show-score", "Show scores", "Whether labels have scores", controlled,
         P::Flag{&S::show_score}},
        {"mask-opacity", "Opacity of masks", "0 = not seen, 1 = the picture below is not seen",
         controlled, P::Real{&S::mask_opacity, 0, 1}},
        {"keypoint-threshold", "Keypoint threshold", "Least score of a keypoint that is drawn",
         controlled, P::Real{&S::keypoint_threshold, 0, 1}},
        {"skeleton", "Skeleton",
         "Lines between keypoints: auto (what the model says, else those of the published skeleton "
         "of so many points), a skeleton such as coco17 or hand21, none, or pairs of point numbers "
         "such as 0-1;1-2",
         any_time, P::Text{&S::skeleton}},
        {"classes", "Classes", "Comma list of labels that are drawn; unset: all", any_time,
         P::Text{&S::classes}},
        {"hold", "Hold",
         "Nanoseconds for which the last results stay on frames that have none of their own",
         any_time, P::Time{&S::hold}},
    };
    return all;
}

}  // namespace vartml::gst
