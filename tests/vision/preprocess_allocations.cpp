// SPDX-License-Identifier: Apache-2.0
// Running allocates nothing: the program's own operator new counts.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vartml
