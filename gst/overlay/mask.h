// SPDX-License-Identifier: Apache-2.0
// Masks and class maps: small pictures of region numbers.
#pragma once
#include <gst/video/video.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gst/overlay/canvas.h"

namespace vartml::gst::overlay {

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
    std::vector<bool> seen_;         // by region, in the rows at hand
    std::vector<uint16_t> present_;  // those seen
};

}  // namespace vartml::gst::overlay
