// SPDX-License-Identifier: Apache-2.0
// Outputs that share bytes with an input or another output are refused, however the memory is
// named.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Tensors;

class Overlap : public testing::Test {
protected:
    void SetUp() override {
        runner = make_runner(picture_model());
        ASSERT_TRUE(runner);
        in = runner->get_tensor_info_by_name("x", TensorType::HW);
        out = runner->get_tensor_info_by_name("y", TensorType::HW);
    }
    StatusCode run(const NpuTensor& input, const NpuTensor& output) {
        Tensors inputs{{input}}, outputs{{output}};
        return runner->execute(inputs, outputs);
    }
    static NpuTensor of_descriptor(const NpuTensorInfo& info, int fd) {
        return NpuTensor(info, static_cast<void*>(&fd), MemoryType::DMA_FD);
    }
    static NpuTensor of_pointer(const NpuTensorInfo& info, void* data) {
        return NpuTensor(info, data, MemoryType::USER_POINTER_CMA);
    }
    FakeDevice device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    NpuTensorInfo in, out;
    LogLines log;
};

TEST_F(Overlap, IsSeenBetweenPointersToTheByte) {
    alignas(64) static char memory[320];
    EXPECT_EQ(run(of_pointer(in, memory), of_pointer(out, memory + 158)),
              StatusCode::INVALID_OUTPUT);
    EXPECT_EQ(run(of_pointer(in, memory), of_pointer(out, memory + 160)), StatusCode::SUCCESS);
    EXPECT_EQ(run(of_pointer(in, memory + 160), of_pointer(out, memory)), StatusCode::SUCCESS);
}

TEST_F(Overlap, IsSeenBetweenDescriptorsOfOneMemory) {
    const int fd = memfd_create("a", MFD_CLOEXEC), other = memfd_create("b", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, 4096) + ftruncate(other, 4096), 0);
    const int duplicate = dup(fd);
    EXPECT_EQ(run(of_descriptor(in, fd), of_descriptor(out, fd)), StatusCode::INVALID_OUTPUT);
    EXPECT_EQ(run(of_descriptor(in, fd), of_descriptor(out, duplicate)),
              StatusCode::INVALID_OUTPUT);
    EXPECT_EQ(run(of_descriptor(in, fd), of_descriptor(out, other)), StatusCode::SUCCESS);
    close(fd);
    close(other);
    close(duplicate);
}

TEST_F(Overlap, IsSeenBetweenAnObjectAndItsExportedDescriptor) {
    NpuTensorInfo both = in;
    both.size_in_bytes = 320;
    const NpuTensor parent = runner->allocate_npu_tensor(both);
    if (std::any_cast<std::string>(runner->get_property("export_kind")) != "memfd")
        GTEST_SKIP() << "a dma-buf does not tell which memfd it was made of";
    const int fd = parent.export_buffer();  // of the whole parent: the data starts at offset 0
    EXPECT_EQ(run(of_descriptor(in, fd), runner->allocate_sub_tensor(parent, out, 0)),
              StatusCode::INVALID_OUTPUT);
    EXPECT_EQ(run(of_descriptor(in, fd), runner->allocate_sub_tensor(parent, out, 160)),
              StatusCode::SUCCESS);
    close(fd);
}

TEST_F(Overlap, IsSeenBetweenSubTensors) {
    NpuTensorInfo both = in;
    both.size_in_bytes = 480;
    const NpuTensor parent = runner->allocate_npu_tensor(both);
    const auto sub = [&](const NpuTensorInfo& info, size_t offset) {
        return runner->allocate_sub_tensor(parent, info, offset);
    };
    EXPECT_EQ(run(sub(in, 0), sub(out, 100)), StatusCode::INVALID_OUTPUT);
    EXPECT_EQ(run(sub(in, 0), sub(out, 160)), StatusCode::SUCCESS);
}

// Inputs may share: they are only read.
TEST_F(Overlap, OfInputsIsFine) {
    auto model = picture_model();
    model.desired_batch_size = model.actual_batch_size = 2;
    const auto two = make_runner(model);
    const NpuTensor shared = two->allocate_npu_tensor(in);
    Tensors inputs{{shared}, {shared}};
    Tensors outputs{{two->allocate_npu_tensor(out)}, {two->allocate_npu_tensor(out)}};
    EXPECT_EQ(two->execute(inputs, outputs), StatusCode::SUCCESS);
}

}  // namespace
