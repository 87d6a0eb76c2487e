// SPDX-License-Identifier: Apache-2.0
// Frames of every pixel format with strides, and what they show in plain double arithmetic: the
// oracle of pre-processing.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <vartml/preprocess.h>

namespace vartml {

using Rgb = std::array<double, 3>;

// How many samples a plane holds, and of how many bytes each.
struct PlaneShape {
    uint32_t samples = 0, rows = 0, bytes = 1;
};

// Planes of a format as GStreamer documents them (video-format.h), odd sizes rounded up.
inline std::vector<PlaneShape> plane_shapes(PixelFormat f, uint32_t w, uint32_t h) {
    using enum PixelFormat;
    const uint32_t w2 = (w + 1) / 2, h2 = (h + 1) / 2;
    switch (f) {
        case NV12:
        case NV21:
            return {{w, h}, {2 * w2, h2}};
        case NV16:
            return {{w, h}, {2 * w2, h}};
        case NV24:
            return {{w, h}, {2 * w, h}};
        case I420:
        case YV12:
            return {{w, h}, {w2, h2}, {w2, h2}};
        case Y42B:
            return {{w, h}, {w2, h}, {w2, h}};
        case P010_10LE:
            return {{w, h, 2}, {2 * w2, h2, 2}};
        case I420_10LE:
            return {{w, h, 2}, {w2, h2, 2}, {w2, h2, 2}};
        case YUY2:
        case UYVY:
            return {{4 * w2, h}};
        case RGB:
        case BGR:
            return {{3 * w, h}};
        case RGBP:
        case BGRP:
            return {{w, h}, {w, h}, {w, h}};
        case GRAY8:
            return {{w, h}};
        default:
            return {{4 * w, h}};
    }
}

struct Frame {
    PictureInfo info;
    std::vector<std::vector<uint8_t>> planes;  // exact: no byte after the last sample
    Picture picture;

    // Noise, or a smooth picture, in planes whose rows are `gap` bytes apart.
    Frame(const PictureInfo& i, uint32_t gap, bool smooth, uint32_t seed) : info(i) {
        std::mt19937 random(seed);
        const std::vector<PlaneShape> shapes = plane_shapes(i.format, i.width, i.height);
        for (size_t p = 0; p < shapes.size(); ++p) {
            const PlaneShape& s = shapes[p];
            const uint32_t stride = s.samples * s.bytes + gap;
            std::vector<uint8_t> bytes(size_t{stride} * (s.rows - 1) + s.samples * s.bytes, 0xee);
            for (uint32_t y = 0; y < s.rows; ++y)
                for (uint32_t x = 0; x < s.samples; ++x) {
                    const double wave = 0.5 + 0.4 * std::sin(0.11 * x + 0.07 * y + seed);
                    const uint32_t value = smooth ? static_cast<uint32_t>(wave * 65535) : random();
                    uint8_t* at = &bytes[size_t{stride} * y + x * s.bytes];
                    if (s.bytes == 1) {
                        *at = static_cast<uint8_t>(smooth ? value >> 8 : value);
                    } else {
                        const uint32_t ten = (smooth ? value >> 6 : value) & 0x3ff;
                        const auto word = static_cast<uint16_t>(
                            i.format == PixelFormat::P010_10LE ? ten << 6 : ten);
                        std::memcpy(at, &word, 2);
                    }
                }
            planes.push_back(std::move(bytes));
            picture.planes[p] = planes.back().data();
            picture.stride_bytes[p] = stride;
        }
    }

    double sample(size_t plane, uint32_t x, uint32_t y) const {
        const uint8_t* row = picture.planes[plane] + size_t{picture.stride_bytes[plane]} * y;
        if (info.format != PixelFormat::P010_10LE && info.format != PixelFormat::I420_10LE)
            return row[x];
        uint16_t word;
        std::memcpy(&word, row + 2 * x, 2);
        return info.format == PixelFormat::P010_10LE ? word >> 6 : word;
    }

    // Full-range colour of a pixel, 0-255, limited to that; chroma is not interpolated.
    Rgb rgb(uint32_t x, uint32_t y) const {
        using enum PixelFormat;
        const std::string name(to_string(info.format));
        if (info.format == GRAY8) return {sample(0, x, y), sample(0, x, y), sample(0, x, y)};
        if (name == "RGBP" || name == "BGRP") {
            Rgb c{sample(0, x, y), sample(1, x, y), sample(2, x, y)};
            if (name == "BGRP") std::swap(c[0], c[2]);
            return c;
        }
        if (name.find('R') != std::string::npos && name.find('B') != std::string::npos) {
            const auto size = static_cast<uint32_t>(name.size());
            const auto byte = [&](char colour) {
                return sample(0, size * x + static_cast<uint32_t>(name.find(colour)), y);
            };
            return {byte('R'), byte('G'), byte('B')};
        }
        const auto [luma, u, v] = yuv(x, y);
        return colours(luma, u, v);
    }

    double luma(uint32_t x, uint32_t y) const {
        const std::string name(to_string(info.format));
        const Rgb c = rgb(x, y);
        const bool is_rgb = name.find('R') != std::string::npos;
        if (is_rgb) return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2];
        return colours(std::get<0>(yuv(x, y)), middle(), middle())[0];
    }

private:
    double middle() const { return top() > 255 ? 512 : 128; }
    double top() const {
        return info.format == PixelFormat::P010_10LE || info.format == PixelFormat::I420_10LE ? 1023
                                                                                              : 255;
    }

    std::tuple<double, double, double> yuv(uint32_t x, uint32_t y) const {
        using enum PixelFormat;
        const uint32_t x2 = x / 2, y2 = y / 2;
        switch (info.format) {
            case NV12:
            case P010_10LE:
                return {sample(0, x, y), sample(1, 2 * x2, y2), sample(1, 2 * x2 + 1, y2)};
            case NV21:
                return {sample(0, x, y), sample(1, 2 * x2 + 1, y2), sample(1, 2 * x2, y2)};
            case NV16:
                return {sample(0, x, y), sample(1, 2 * x2, y), sample(1, 2 * x2 + 1, y)};
            case NV24:
                return {sample(0, x, y), sample(1, 2 * x, y), sample(1, 2 * x + 1, y)};
            case I420:
            case I420_10LE:
                return {sample(0, x, y), sample(1, x2, y2), sample(2, x2, y2)};
            case YV12:
                return {sample(0, x, y), sample(2, x2, y2), sample(1, x2, y2)};
            case Y42B:
                return {sample(0, x, y), sample(1, x2, y), sample(2, x2, y)};
            case YUY2:
                return {sample(0, 2 * x, y), sample(0, 4 * x2 + 1, y), sample(0, 4 * x2 + 3, y)};
            case UYVY:
                return {sample(0, 2 * x + 1, y), sample(0, 4 * x2, y), sample(0, 4 * x2 + 2, y)};
            default:
                return {sample(0, x, y), middle(), middle()};
        }
    }

    // ITU-R BT.601, 709, 2020 in their textbook form.
    Rgb colours(double luma, double u, double v) const {
        constexpr double weights[3][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
        const auto [kr, kb] = weights[static_cast<size_t>(info.matrix)];
        const double unit = (top() + 1) / 256;
        double y, pb, pr;
        if (info.range == ColorRange::limited) {
            y = (luma / unit - 16) / 219;
            pb = (u / unit - 128) / 224;
            pr = (v / unit - 128) / 224;
        } else {
            y = luma / top();
            pb = (u - middle()) / top();
            pr = (v - middle()) / top();
        }
        const double r = y + 2 * (1 - kr) * pr, b = y + 2 * (1 - kb) * pb;
        const double g = (y - kr * r - kb * b) / (1 - kr - kb);
        const auto limit = [](double c) { return std::clamp(255 * c, 0.0, 255.0); };
        return {limit(r), limit(g), limit(b)};
    }
};

}  // namespace vartml
