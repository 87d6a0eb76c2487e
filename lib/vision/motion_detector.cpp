// SPDX-License-Identifier: Apache-2.0
#include <vartml/motion.h>

#include <algorithm>
#include <cstdlib>

#include "lib/vision/preprocess_plan.h"

namespace vartml {
namespace {

// ours: small enough for what a detector finds, large enough that noise is nothing in the mean
constexpr uint32_t cell = 16, row_step = 4;

template <unsigned Step>
uint32_t sum_of(const uint8_t* samples, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += samples[i * Step];
    return sum;
}

uint32_t sum_of(const uint8_t* samples, uint32_t count, unsigned step) {
    switch (step) {
        case 1:
            return sum_of<1>(samples, count);
        case 2:
            return sum_of<2>(samples, count);
        case 3:
            return sum_of<3>(samples, count);
        default:
            return sum_of<4>(samples, count);
    }
}

}  // namespace

std::span<const MotionDetector::Channel> MotionDetector::channels_of(PixelFormat format) {
    static constexpr Channel luma[] = {{}};
    static constexpr Channel high_byte[] = {{.first = 1, .step = 2}};
    static constexpr Channel ten_bits[] = {{.step = 2, .weight = 1},
                                           {.first = 1, .step = 2, .weight = 256}};
    static constexpr Channel even[] = {{.step = 2}}, odd[] = {{.first = 1, .step = 2}};
    static constexpr Channel three[] = {
        {.step = 3}, {.first = 1, .step = 3}, {.first = 2, .step = 3}};
    static constexpr Channel first_three[] = {
        {.step = 4}, {.first = 1, .step = 4}, {.first = 2, .step = 4}};
    static constexpr Channel last_three[] = {
        {.first = 1, .step = 4}, {.first = 2, .step = 4}, {.first = 3, .step = 4}};
    static constexpr Channel planes[] = {{}, {.plane = 1}, {.plane = 2}};
    switch (format) {
        case PixelFormat::P010_10LE:
            return high_byte;
        case PixelFormat::I420_10LE:
            return ten_bits;
        case PixelFormat::YUY2:
            return even;
        case PixelFormat::UYVY:
            return odd;
        case PixelFormat::RGB:
        case PixelFormat::BGR:
            return three;
        case PixelFormat::RGBA:
        case PixelFormat::BGRA:
        case PixelFormat::RGBx:
        case PixelFormat::BGRx:
            return first_three;
        case PixelFormat::xRGB:
        case PixelFormat::xBGR:
            return last_three;
        case PixelFormat::RGBP:
        case PixelFormat::BGRP:
            return planes;
        default:
            return luma;
    }
}

void MotionDetector::begin(const PictureInfo& picture) {
    picture_ = picture;
    channels_ = channels_of(picture.format);
    columns_ = std::max(1u, picture.width / cell);
    rows_ = std::max(1u, picture.height / cell);
    now_.assign(size_t(columns_) * rows_, 0);
    kept_.clear();
    kept_.reserve(now_.size());
    sums_.resize(columns_);
}

// The means of all cells. The last ones of a row or column have the rest of the picture: few pixels
// by themselves would be noise.
void MotionDetector::look(const Picture& picture) {
    const auto width_of = [this](unsigned column) {
        return column + 1 < columns_ ? cell : picture_.width - column * cell;
    };
    for (unsigned row = 0; row < rows_; ++row) {
        std::ranges::fill(sums_, 0);
        const uint32_t first = row * cell;
        const uint32_t end = row + 1 < rows_ ? first + cell : picture_.height;
        uint32_t lines = 0;
        // From the middle of each step, but for the rest of a picture.
        for (uint32_t y = std::min(first + row_step / 2, end - 1); y < end;
             y += row_step, ++lines) {
            for (const Channel& c : channels_) {
                const uint8_t* line =
                    picture.planes[c.plane] + size_t(y) * picture.stride_bytes[c.plane] + c.first;
                for (unsigned column = 0; column < columns_; ++column) {
                    const uint32_t x = column * cell;
                    sums_[column] +=
                        c.weight * sum_of(line + size_t(x) * c.step, width_of(column), c.step);
                }
            }
        }
        // The two bytes of a sample of ten bits are one.
        const uint32_t per_sample = channels_.front().weight == 4 ? uint32_t(channels_.size()) : 1;
        for (unsigned column = 0; column < columns_; ++column) {
            now_[size_t(row) * columns_ + column] =
                uint16_t(sums_[column] * 4 / (lines * width_of(column) * per_sample));
        }
    }
}

bool MotionDetector::moved(const Picture& picture, unsigned threshold) {
    look(picture);
    if (kept_.empty()) return true;
    // Luma of limited range has 219 steps for 255 of grey.
    const PixelLayout* const pixels = find_pixel_layout(picture_.format);
    const bool limited = pixels && is_yuv(pixels->kind) && picture_.range == ColorRange::limited;
    const int most = int(threshold) * 16 * (limited ? 219 : 255);
    for (size_t i = 0; i < now_.size(); ++i) {
        if (std::abs(int(now_[i]) - int(kept_[i])) * 255 > most) return true;
    }
    return false;
}

void MotionDetector::keep() {
    kept_.assign(now_.begin(), now_.end());
}

}  // namespace vartml
