// SPDX-License-Identifier: Apache-2.0
// What counts as motion, in every format of pictures.
#include <vartml/motion.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

namespace {

using namespace vartml;

constexpr uint32_t width = 100, height = 52;  // cells at the borders are larger

// A picture of one colour, with padded rows of 8 bytes a sample at most.
struct Painting {
    explicit Painting(PixelFormat format) : info{format, width, height} {
        for (unsigned p = 0; p < num_planes(format); ++p) {
            planes[p].assign(size_t(stride) * height, 100);
            picture.planes[p] = planes[p].data();
            picture.stride_bytes[p] = stride;
        }
    }
    static constexpr uint32_t stride = width * 4 + 7;
    PictureInfo info;
    std::array<std::vector<uint8_t>, 4> planes;
    Picture picture;
};

// Bytes of a plane that belong to the brightness of the pixel, and how much 1 more of each is in
// 255ths.
struct FormatCase {
    const char* name;
    unsigned plane, pixel_bytes;
    std::vector<unsigned> bytes;  // of the pixel
};
const FormatCase formats[] = {
    {"NV12", 0, 1, {0}},       {"NV21", 0, 1, {0}},       {"NV16", 0, 1, {0}},
    {"NV24", 0, 1, {0}},       {"I420", 0, 1, {0}},       {"YV12", 0, 1, {0}},
    {"Y42B", 0, 1, {0}},       {"GRAY8", 0, 1, {0}},      {"P010_10LE", 0, 2, {1}},
    {"YUY2", 0, 2, {0}},       {"UYVY", 0, 2, {1}},       {"RGB", 0, 3, {0, 1, 2}},
    {"BGR", 0, 3, {0, 1, 2}},  {"RGBA", 0, 4, {0, 1, 2}}, {"BGRA", 0, 4, {0, 1, 2}},
    {"RGBx", 0, 4, {0, 1, 2}}, {"BGRx", 0, 4, {0, 1, 2}}, {"xRGB", 0, 4, {1, 2, 3}},
    {"xBGR", 0, 4, {1, 2, 3}}, {"RGBP", 1, 1, {0}},       {"BGRP", 2, 1, {0}},
};

void paint(Painting& p, unsigned plane, unsigned pixel_bytes, const std::vector<unsigned>& bytes,
           uint32_t x0, uint32_t y0, uint32_t size, int more) {
    for (uint32_t y = y0; y < y0 + size && y < height; ++y) {
        for (uint32_t x = x0; x < x0 + size && x < width; ++x) {
            for (const unsigned b : bytes) {
                uint8_t& sample = p.planes[plane][size_t(y) * p.stride + x * pixel_bytes + b];
                sample = uint8_t(sample + more);
            }
        }
    }
}

TEST(MotionDetector, SeesACellOfEveryFormatThatChanged) {
    for (const FormatCase& f : formats) {
        SCOPED_TRACE(f.name);
        const PixelFormat format = parse_pixel_format(f.name);
        ASSERT_NE(format, PixelFormat::unknown);
        for (const auto& [x, y, size] :
             {std::array{0u, 0u, 16u}, {32u, 16u, 16u}, {80u, 32u, 20u}}) {
            Painting p(format);
            MotionDetector detector;
            detector.begin(p.info);
            EXPECT_TRUE(detector.moved(p.picture, 10)) << "nothing is kept";
            detector.keep();
            EXPECT_FALSE(detector.moved(p.picture, 10));
            const bool one_of_three =
                f.name == std::string("RGBP") || f.name == std::string("BGRP");
            // Of YUV 8.6 of the steps between 16 and 235 are 10 of 255.
            const bool yuv = f.bytes.size() == 1 && !one_of_three && format != PixelFormat::GRAY8;
            const int step = one_of_three ? 30 : yuv ? 8 : 10;
            paint(p, f.plane, f.pixel_bytes, f.bytes, x, y, size, step);
            EXPECT_FALSE(detector.moved(p.picture, 10)) << "as much as is allowed";
            paint(p, f.plane, f.pixel_bytes, f.bytes, x, y, size, one_of_three ? 3 : 1);
            EXPECT_TRUE(detector.moved(p.picture, 10));
            detector.keep();
            EXPECT_FALSE(detector.moved(p.picture, 10));
            detector.forget();
            EXPECT_TRUE(detector.moved(p.picture, 255));
        }
    }
}

TEST(MotionDetector, TakesLumaOfFullRangeAsItIs) {
    Painting p(PixelFormat::NV12);
    p.info.range = ColorRange::full;
    MotionDetector detector;
    detector.begin(p.info);
    detector.moved(p.picture, 10);
    detector.keep();
    paint(p, 0, 1, {0}, 0, 0, 16, 10);
    EXPECT_FALSE(detector.moved(p.picture, 10));
    paint(p, 0, 1, {0}, 0, 0, 16, 1);
    EXPECT_TRUE(detector.moved(p.picture, 10));
}

TEST(MotionDetector, ReadsBothBytesOfTenBits) {
    Painting p(PixelFormat::I420_10LE);
    for (size_t i = 0; i + 1 < p.planes[0].size(); ++i) p.planes[0][i] = 0;
    const auto fill = [&](unsigned value) {
        for (uint32_t y = 0; y < height; ++y) {
            for (uint32_t x = 0; x < width; ++x) {
                p.planes[0][size_t(y) * p.stride + 2 * x] = uint8_t(value);
                p.planes[0][size_t(y) * p.stride + 2 * x + 1] = uint8_t(value >> 8);
            }
        }
    };
    MotionDetector detector;
    detector.begin(p.info);
    fill(250);
    detector.moved(p.picture, 0);
    detector.keep();
    fill(260);  // over the carry: 2.5 of 255
    EXPECT_FALSE(detector.moved(p.picture, 3));
    EXPECT_TRUE(detector.moved(p.picture, 2));
    fill(1023);
    EXPECT_TRUE(detector.moved(p.picture, 190));
}

TEST(MotionDetector, NoiseOfACameraIsNone) {
    Painting p(PixelFormat::GRAY8);
    MotionDetector detector;
    detector.begin(p.info);
    std::mt19937 random(1);
    for (int frame = 0; frame < 50; ++frame) {
        for (uint8_t& sample : p.planes[0]) sample = uint8_t(100 + int(random() % 21) - 10);
        const bool moved = detector.moved(p.picture, 6);
        EXPECT_EQ(moved, frame == 0) << frame;
        if (moved) detector.keep();
    }
}

// Each frame differs from the one before by less than is seen.
TEST(MotionDetector, WhatChangesSlowlyIsSeenAfterAWhile) {
    Painting p(PixelFormat::GRAY8);
    MotionDetector detector;
    detector.begin(p.info);
    int seen = 0;
    for (int frame = 0; frame < 31; ++frame) {
        if (detector.moved(p.picture, 9)) {
            detector.keep();
            ++seen;
        }
        paint(p, 0, 1, {0}, 16, 16, 16, 1);
    }
    EXPECT_EQ(seen, 4);  // frames 0, 10, 20, 30
}

TEST(MotionDetector, TakesPicturesOfAnySize) {
    for (const auto& [w, h] : {std::pair(1u, 1u), {2u, 17u}, {17u, 2u}, {16u, 16u}, {33u, 19u}}) {
        std::vector<uint8_t> bytes(size_t(w) * h, 10);
        Picture picture;
        picture.planes[0] = bytes.data();
        picture.stride_bytes[0] = w;
        MotionDetector detector;
        detector.begin({PixelFormat::GRAY8, w, h});
        EXPECT_TRUE(detector.moved(picture, 5));
        detector.keep();
        EXPECT_FALSE(detector.moved(picture, 5));
        std::ranges::fill(bytes, uint8_t(20));
        EXPECT_TRUE(detector.moved(picture, 5));
    }
}

}  // namespace
