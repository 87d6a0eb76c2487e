// SPDX-License-Identifier: Apache-2.0
// A scene as small rectangles of an overlay composition, which whoever shows the frame draws.
#pragma once
#include <gst/video/video.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "gst/overlay/scene.h"
#include "gst/overlay/text.h"

namespace vartml::gst::overlay {

// An outline is four thin rectangles that share a few pixels; a label is one; a mask is one, as
// small as the mask; lines and points are those tiles of the picture that they touch. Bitmaps of
// labels and colors are kept. Thread-safety: one thread at a time.
class Attacher {
public:
    Attacher() = default;
    Attacher(const Attacher&) = delete;
    Attacher& operator=(const Attacher&) = delete;
    ~Attacher() { clear(); }

    // The size of frames to come, and of their labels' text.
    void set_size(int width, int height, int text_size);
    void add(const Scene& scene, GstVideoOverlayComposition* composition);
    // Forgets bitmaps that were long not used, when there are many.
    void end_frame();
    void clear();
    // Of all bitmaps that were made since the start.
    void start() { bytes_made_ = 0; }
    uint64_t bytes_made() const { return bytes_made_; }

private:
    struct Bitmap {
        GstBuffer* pixels = nullptr;
        uint64_t last_use = 0;
    };
    struct Tile {
        GstBuffer* pixels;
        GstMapInfo map;
        int x, y;
    };

    GstBuffer* make_bitmap(int width, int height);
    void add_rectangle(GstBuffer* pixels, const Rect& rect, bool premultiplied);
    void add_fill(const Rect& rect, Rgba color);
    void add_mask(const MaskItem& mask, std::span<const Rgba> colors);
    void add_label(const LabelItem& label, std::string_view line);
    void paint(GstBuffer* pixels, const LabelItem& label, std::string_view line);
    void add_strokes(std::span<const Stroke> strokes);
    Tile& tile_at(int column, int row);

    int width_ = 0, height_ = 0, text_size_ = 0;
    double label_scale_ = 1;  // of bitmaps to what they are shown as
    Text text_;               // in the size of the bitmaps
    Canvas canvas_;
    std::unordered_map<uint32_t, GstBuffer*> colors_;
    std::unordered_map<std::string, Bitmap> labels_;
    std::string key_;
    std::vector<Tile> tiles_;
    std::vector<int> tile_index_;  // in tiles_, by place; -1: none
    uint64_t frame_ = 0, bytes_made_ = 0;
    GstVideoOverlayComposition* composition_ = nullptr;  // of the call at hand
};

// A composition for a frame, with the rectangles that are on it already, where this GStreamer knows
// one composition per frame. The caller owns it.
GstVideoOverlayComposition* begin_composition(GstBuffer* buffer);
// Puts it on the frame and takes it over. The buffer must be writable.
void attach(GstBuffer* buffer, GstVideoOverlayComposition* composition);

}  // namespace vartml::gst::overlay
