// SPDX-License-Identifier: Apache-2.0
// Running allocates nothing: the program's own operator new counts.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <vartml/tiles.h>

#include "lib/base/convert.h"
#include "tests/vision/frames.h"

namespace {
std::atomic<size_t> allocations{0};
}

void* operator new(size_t size) {
    ++allocations;
    void* memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr) std::abort();
    return memory;
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}

namespace vartml {
namespace {

TEST(Allocations, APreparedPreprocessorMakesNone) {
    const Frame frame({.format = PixelFormat::NV12, .width = 1300, .height = 40}, 0, true, 1);
    const TensorView cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 64, 700});
    for (const Interpolation how :
         {Interpolation::bilinear, Interpolation::nearest, Interpolation::area}) {
        for (const DataType type : {DataType::bf16, DataType::int8}) {
            const TensorView tensor = hw_view(cpu, Layout::HCWNC4, type);
            const auto pre =
                Preprocessor::create(frame.info, {}, cpu, tensor,
                                     {.resize = ResizeMode::letterbox, .interpolation = how});
            ASSERT_TRUE(pre);
            std::vector<uint8_t> out(tensor.size_bytes);
            const size_t before = allocations;
            pre->run(frame.picture, out.data());
            EXPECT_EQ(allocations, before);
        }
    }
}

TEST(Allocations, APreparedConversionMakesNone) {
    const TensorView cpu = make_view(DataType::float32, Layout::NCHW, {1, 20, 33, 33});
    for (const Layout layout : {Layout::HCWNC8, Layout::NHWC, Layout::NCHW}) {
        const TensorView hw = hw_view(cpu, layout, DataType::bf16);
        const auto conversion = Conversion::create(cpu, hw);
        ASSERT_TRUE(conversion);
        std::vector<uint8_t> src(cpu.size_bytes), dst(hw.size_bytes);
        const size_t before = allocations;
        conversion->run(src.data(), dst.data());
        EXPECT_EQ(allocations, before);
    }
}

// What a frame makes is given back by its end: it does not become more.
TEST(Allocations, TilesOfAFrameAreForgottenWithIt) {
    TileJoiner joiner;
    Decoded decoded, joined;
    for (uint32_t i = 0; i < 2; ++i) {
        Detection box{10, 10, 40, 40, 0.9f, int32_t(i)};
        box.first_keypoint = i, box.keypoints = 1, box.mask = int32_t(i);
        decoded.detections.push_back(box);
        decoded.keypoints.push_back({20, 20, 1});
        decoded.masks.push_back({10, 10, 40, 40, 4, 4, size_t{16} * i});
    }
    decoded.mask_pixels.assign(32, 1);
    const auto of_a_frame = [&] {
        const size_t before = allocations;
        joiner.begin(200, 100, 0.45, Nms::automatic);
        joiner.add(decoded, {0, 0, 120, 100}, 1);
        joiner.finish(joined);
        EXPECT_EQ(joined.keypoints.size(), 2u);
        EXPECT_EQ(joined.mask_pixels.size(), 32u);
        return allocations - before;
    };
    of_a_frame();
    const size_t usual = of_a_frame();
    for (int frame = 0; frame < 100; ++frame) EXPECT_EQ(of_a_frame(), usual) << frame;
}

}  // namespace
}  // namespace vartml
