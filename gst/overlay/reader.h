// SPDX-License-Identifier: Apache-2.0
// From a frame's metadata to a scene.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gst/metadata/mtd.h"
#include "gst/overlay/scene.h"
#include "gst/overlay/settings.h"
#include "gst/overlay/text.h"
#include "gst/overlay/trails.h"

namespace vartml::gst::overlay {

// How a frame is drawn: the settings, made out for the size of the frames.
struct Look {
    int width = 0, height = 0;
    unsigned draw = 0;
    int line = 1;        // pixels
    int text_size = 10;  // pixels per em
    ColorMode color_mode = ColorMode::by_class;
    Rgba color;
    bool show_score = true, tracked_only = false;
    bool tracks_keep_label = true;  // see TrackLabels
    double mask_opacity = 0, keypoint_threshold = 0;
    std::vector<GQuark> classes;                // empty = all
    std::vector<GQuark> blur_classes;           // empty = none
    std::optional<std::vector<Bone>> skeleton;  // unset = auto
};
// `settings.skeleton` must be understood by parse_skeleton; else it counts as auto.
Look make_look(const OverlaySettings& settings, int width, int height);

// What a frame brings along.
struct FrameResults {
    bool record = false;    // of vartmlinfer
    bool inferred = false;  // by it, now or earlier; its results may be none
    bool drawable = false;  // something that can be drawn
    bool lacking = false;   // of one vartmlinfer at least, though the frame was to be inferred
    // Results of its own, were they none.
    bool own() const { return inferred || drawable; }
};
FrameResults results_on(GstBuffer* buffer);
// Whether the frame has a result of the vartmlinfer with that infer_id.
bool has_result_of(GstBuffer* buffer, GQuark infer_id);

// Thread-safety: one thread at a time.
class Reader {
public:
    // Adds what the look asks for to the scene. `top`: lines at the top left that are taken.
    void read(GstBuffer* buffer, const Look& look, Text& text, int top, Scene& scene);
    // Another stream, or another place in it.
    void forget_tracks() { trails_.clear(); }

private:
    struct Object;

    void read_object(const GstAnalyticsODMtd& od);
    void find_details(const GstAnalyticsMtd& mtd, Object& object);
    bool is_class_map(const GstAnalyticsMtd& mtd);
    GQuark source_of(guint id) const;
    Rgba color_of(const Object& object) const;
    bool wanted(GQuark label) const;
    bool is_blurred(GQuark label) const;
    void add_blur(const Object& object);
    void add_blur(const GstAnalyticsSegmentationMtd& class_map);
    void add_box(const Object& object);
    void add_trail(const Object& object);
    void add_object_label(const Object& object);
    bool taken(const Rect& plate) const;
    Rect label_size(std::string_view line);
    void add_label(size_t first_char, int x, std::span<const int> heights, Rgba color);
    void add_mask(const GstAnalyticsSegmentationMtd& mask, std::optional<Rgba> color);
    template <typename ColorOf>
    void add_mask(const GstAnalyticsSegmentationMtd& mask, std::vector<MaskItem>& to,
                  ColorOf&& color_of_region);
    std::optional<GstAnalyticsMtd> classes_of(const GstAnalyticsSegmentationMtd& mask);
    Rgba region_color(const GstAnalyticsMtd* classes, gsize index, guint region) const;
    void add_keypoints(const Keypoints& keypoints, Rgba color);
    std::span<const Bone> bones_of(const Keypoints& keypoints);
    void add_classes(const GstAnalyticsClsMtd& classes);
    void add_text_line(const TextLine& line);
    void add_zone(const Zone& zone);
    void add_regions(GstBuffer* buffer);
    void add_region(const Rect& rect, const char* label);
    void add_loose(const GstAnalyticsMtd& mtd);

    // of the call at hand
    const Look* look_ = nullptr;
    Text* text_ = nullptr;
    Scene* scene_ = nullptr;
    GstAnalyticsRelationMeta* meta_ = nullptr;
    GstBuffer* buffer_ = nullptr;  // whose that is
    int top_ = 0;

    std::vector<bool> owned_;  // by Mtd: belongs to an object or mask
    std::vector<GstAnalyticsMtd> details_;
    Trails trails_;
    std::unordered_map<GQuark, std::vector<Bone>> skeletons_;
};

}  // namespace vartml::gst::overlay
