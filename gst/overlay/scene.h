// SPDX-License-Identifier: Apache-2.0
// What is to be seen on a frame, in pixels of the frame, whatever it is drawn with.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gst/gst.h>
#include <gst/video/video.h>

#include "gst/overlay/canvas.h"
#include "gst/overlay/text.h"

namespace vartml::gst::overlay {

// Masks and class maps: small pictures of region numbers.

// A mask's picture, mapped for reading. The buffer must outlive it.
class MaskPixels {
public:
    explicit MaskPixels(GstBuffer* buffer);
    ~MaskPixels();
    MaskPixels(const MaskPixels&) = delete;
    MaskPixels& operator=(const MaskPixels&) = delete;

    // False for another format than GRAY8 and GRAY16_LE, or where the memory is too small.
    bool valid() const { return width_ > 0; }
    int width() const { return width_; }
    int height() const { return height_; }
    uint16_t at(int x, int y) const {
        const uint8_t* const row = data_ + static_cast<ptrdiff_t>(y) * stride_;
        return wide_ ? static_cast<uint16_t>(row[2 * x] | row[2 * x + 1] << 8) : row[x];
    }

private:
    GstBuffer* buffer_;
    GstMapInfo map_;
    bool mapped_ = false, wide_ = false;
    const uint8_t* data_ = nullptr;
    int width_ = 0, height_ = 0;
    ptrdiff_t stride_ = 0;
};

// Lays regions over a canvas. Keeps scratch memory. Thread-safety: one thread at a time.
class MaskPainter {
public:
    // Makes what lies there unreadable: a mosaic of at most `blur_blocks` blocks along the longer
    // side of `rect`, where a region of the mask has a color, and up to a pixel of the mask beyond.
    // Without a mask that can be read, all of the rectangle; the same without such a region, if
    // something `is_there`.
    void blur(Canvas& canvas, const MaskPixels* mask, const Rect& rect,
              std::span<const Rgba> colors, bool is_there);
    static constexpr int blur_blocks = 6;
    static constexpr int least_block = 8;  // pixels

    // Stretches the mask over `rect`; region r has the color colors[r], none beyond the last. A
    // pixel belongs to the region that has the most of it when the mask is interpolated bilinearly
    // (of equals, the greater number), so that outlines are round however small the mask is.
    void draw(Canvas& canvas, const MaskPixels& mask, const Rect& rect,
              std::span<const Rgba> colors);

private:
    // Between which two columns (or rows) of the mask a pixel lies, and how near the second, in
    // 1/256.
    struct Place {
        int first = 0, second = 0;
        unsigned weight = 0;
        bool operator==(const Place&) const = default;
    };
    static Place place(int at, int origin, int length, int samples);
    void fill_row(const MaskPixels& mask, const Place& row, std::vector<uint16_t>& regions);
    void note(uint16_t region);

    std::vector<Place> columns_;
    std::vector<uint16_t> regions_[2];
    std::vector<uint8_t> covered_;   // by pixel of what is blurred
    std::vector<bool> seen_;         // by region, in the rows at hand
    std::vector<uint16_t> present_;  // those seen
};

// What is drawn, as rows of coverage on a canvas.

void fill(Canvas& canvas, const Rect& rect, Rgba color);

// The sides of a rectangle, `line` pixels inwards; its corners are drawn once.
struct Outline {
    Rect rect;
    int line = 1;
    Rgba color;
};
// Top, bottom, left, right; empty where the line fills the rectangle.
std::array<Rect, 4> sides(const Outline& outline);
void draw(Canvas& canvas, const Outline& outline);

// A line with round ends, or a disc when both ends are the same. Pixel (x, y) has its centre at
// (x + 0.5, y + 0.5). Edges are anti-aliased.
struct Stroke {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    float radius = 1;
    Rgba color;
};
// What it may cover.
Rect bounds(const Stroke& stroke);
void draw(Canvas& canvas, const Stroke& stroke);

// A small picture of region numbers, stretched over a rectangle.
struct MaskItem {
    GstBuffer* pixels = nullptr;  // GRAY8 or GRAY16_LE, with GstVideoMeta; a reference; of what is
                                  // blurred it may be none: all of the rectangle
    Rect rect;
    size_t first_color = 0, num_colors = 0;  // by region number; without opacity: not drawn
    bool is_there = false;  // what is blurred: where no region has a color, all of the rectangle
    GQuark source = 0;      // of what is blurred: the infer_id of whose result it is; 0: nobody's
    GstClockTime time = GST_CLOCK_TIME_NONE;  // of what is blurred: of the frame it is of
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
    std::vector<MaskItem> blurred;  // where a region has any color
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
        return blurred.empty() && masks.empty() && outlines.empty() && strokes.empty() &&
               labels.empty();
    }
    void clear();
    // Begins anew with nothing but what `from` blurs; `from` is empty then.
    void take_blurred(Scene& from);
    // Also blurs what `from` does and `keeps` a reason for; `from` blurs nothing then.
    template <typename Keeps>
    void add_blurred(Scene& from, Keeps&& keeps) {
        for (MaskItem item : from.blurred) {
            if (!keeps(item)) {
                if (item.pixels) gst_buffer_unref(item.pixels);
                continue;
            }
            const std::span<const Rgba> own = from.colors_of(item);
            item.first_color = colors.size();
            colors.insert(colors.end(), own.begin(), own.end());
            blurred.push_back(item);
        }
        from.blurred.clear();
    }
    // Frames have become larger by these factors: what is blurred stays so, of what is drawn
    // nothing is left.
    void rescale(double x, double y);
    std::string_view text(const LabelItem& label) const {
        return std::string_view(chars).substr(label.first_char, label.num_chars);
    }
    std::span<const Rgba> colors_of(const MaskItem& mask) const {
        return std::span(colors).subspan(mask.first_color, mask.num_colors);
    }

private:
    void clear_drawn();
};

// Between a plate's edge and its text.
int label_padding(int line_height);

// Draws a scene into a canvas.

// A label with its plate at `plate`, its text in the size of `text`.
void draw_label(Canvas& canvas, Text& text, const Rect& plate, Rgba color, std::string_view line);

// Thread-safety: one thread at a time.
class Painter {
public:
    void draw(Canvas& canvas, Text& text, const Scene& scene);

private:
    MaskPainter masks_;
};

}  // namespace vartml::gst::overlay
