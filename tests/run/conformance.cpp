// SPDX-License-Identifier: Apache-2.0
// What a device promises, seen through a runner: the zero-copy matrix, both views, padding.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"
#include "tests/support/graphs.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::Layout;
using vartml::make_view;
using vartml::runtime::Tensors;

// A picture through a convolution; three input channels, so that the HW view is padded.
vartml::artifact::CompiledModel conv_model() {
    const auto in = make_view(vartml::DataType::float32, Layout::NCHW, {1, 3, 6, 5});
    const auto out = make_view(vartml::DataType::float32, Layout::NCHW, {1, 4, 6, 5});
    auto model = fake_model({tensor("x", in, Layout::HCWNC4, vartml::DataType::bf16)},
                            {tensor("y", out, Layout::HCWNC4, vartml::DataType::float32)});
    model.target = model.partitions[0].target = "softnpu-1";
    model.partitions[0].graph = vartml::graph::must_parse(R"(graph conv
input %x : f32[1,3,6,5]
const %w : f32[4,3,1,1] = {1.0, 2.0, -1.0, 0.5, 0.25, 1.0, -2.0, 1.0, 1.0, 0.0, 3.0, 0.125}
%y = Conv %x, %w, _ : f32[1,4,6,5]
output %y
)");
    return model;
}

// Multiples of 1/8 below 8 are exact in bf16.
std::vector<float> pixels() {
    std::mt19937 engine(7);
    std::vector<float> values(90);
    for (float& v : values) v = static_cast<float>(engine() % 64) / 8;
    return values;
}

std::vector<float> expected() {
    const float w[4][3] = {{1, 2, -1}, {0.5f, 0.25f, 1}, {-2, 1, 1}, {0, 3, 0.125f}};
    const auto x = pixels();
    std::vector<float> y(120);
    for (size_t o = 0; o < 4; ++o)
        for (size_t i = 0; i < 30; ++i)
            y[o * 30 + i] = w[o][0] * x[i] + w[o][1] * x[30 + i] + w[o][2] * x[60 + i];
    return y;
}

// The HW bytes of the picture; `padding` in the fourth channel.
void fill_hw(uint16_t* hw, uint16_t padding) {
    const auto x = pixels();
    for (size_t i = 0; i < 30; ++i)
        for (size_t c = 0; c < 4; ++c) {
            uint32_t bits = 0;
            if (c < 3) std::memcpy(&bits, &x[c * 30 + i], 4);
            hw[i * 4 + c] = c < 3 ? static_cast<uint16_t>(bits >> 16) : padding;
        }
}

void expect_hw(const float* y) {
    const auto want = expected();
    for (size_t i = 0; i < 30; ++i)
        for (size_t c = 0; c < 4; ++c) ASSERT_EQ(y[i * 4 + c], want[c * 30 + i]) << i << " " << c;
}

TEST(SoftnpuConformance, CpuViewsGiveTheModelsNumbers) {
    const auto runner = make_runner(conv_model(), cpu_views());
    ASSERT_TRUE(runner);
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    std::ranges::copy(pixels(), elements<float>(in[0][0]).begin());
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    const auto want = expected();
    for (size_t i = 0; i < 120; ++i) ASSERT_EQ(elements<float>(out[0][0])[i], want[i]) << i;
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_in")), 360u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_out")), 480u);
}

TEST(SoftnpuConformance, HwViewsOfEveryMemoryGiveTheSameBytesWithoutACopy) {
    const auto runner = make_runner(conv_model());
    ASSERT_TRUE(runner);
    const auto x = runner->get_tensor_info_by_name("x", TensorType::HW);
    const auto y = runner->get_tensor_info_by_name("y", TensorType::HW);
    alignas(64) static uint16_t in[120];
    alignas(64) static float out[120];

    fill_hw(in, 0);
    Tensors ins{{NpuTensor(x, static_cast<const void*>(in), MemoryType::USER_POINTER_CMA)}};
    Tensors outs{{NpuTensor(y, static_cast<void*>(out), MemoryType::USER_POINTER_CMA)}};
    ASSERT_EQ(runner->execute(ins, outs), StatusCode::SUCCESS);
    expect_hw(out);

    Tensors bo_in = allocate(*runner, TensorDirection::INPUT);
    Tensors bo_out = allocate(*runner, TensorDirection::OUTPUT);
    // Whatever finite value lies in the padding, it never counts.
    fill_hw(static_cast<uint16_t*>(bo_in[0][0].get_virtual_address()), 0x4448);
    ASSERT_EQ(runner->execute(bo_in, bo_out), StatusCode::SUCCESS);
    expect_hw(static_cast<float*>(bo_out[0][0].get_virtual_address()));

    int fd_in = memfd_create("in", MFD_CLOEXEC), fd_out = memfd_create("out", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd_in, 4096) + ftruncate(fd_out, 4096), 0);
    ASSERT_EQ(pwrite(fd_in, in, sizeof in, 0), static_cast<ssize_t>(sizeof in));
    Tensors fd_ins{{NpuTensor(x, static_cast<void*>(&fd_in), MemoryType::DMA_FD)}};
    Tensors fd_outs{{NpuTensor(y, static_cast<void*>(&fd_out), MemoryType::DMA_FD)}};
    std::memset(out, 0, sizeof out);
    ASSERT_EQ(runner->execute(fd_ins, fd_outs), StatusCode::SUCCESS);
    ASSERT_EQ(pread(fd_out, out, sizeof out, 0), static_cast<ssize_t>(sizeof out));
    expect_hw(out);
    close(fd_in);
    close(fd_out);

    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_in")), 0u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_out")), 0u);
    EXPECT_EQ(std::any_cast<std::string>(runner->get_property("backend")), "softnpu");
}

// Primitives keep scratch memory with the thread that made them; runs come from many threads.
TEST(SoftnpuConformance, RunsFromAnyThreadOfTheApplication) {
    const auto runner = make_runner(conv_model(), cpu_views());
    ASSERT_TRUE(runner);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            Tensors in = allocate(*runner, TensorDirection::INPUT);
            Tensors out = allocate(*runner, TensorDirection::OUTPUT);
            std::ranges::copy(pixels(), elements<float>(in[0][0]).begin());
            for (int i = 0; i < 10; ++i) {
                ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
                const auto want = expected();
                for (size_t k = 0; k < 120; ++k) ASSERT_EQ(elements<float>(out[0][0])[k], want[k]);
            }
        });
    for (auto& thread : threads) thread.join();
}

}  // namespace
