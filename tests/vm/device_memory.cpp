// SPDX-License-Identifier: Apache-2.0
// The runtime on dma-bufs of the kernel: exported ones are such, foreign ones are worked in.
#include <gtest/gtest.h>
#include <linux/dma-buf.h>

#include <any>

#include <vart/vart_runner_factory.hpp>

#include "tests/vm/cameras.h"
#include "tests/vm/dma_bufs.h"
#include "tests/vm/negation.h"

namespace {

using namespace vart;
using namespace vartml::test;

class DeviceMemory : public testing::Test {
protected:
    void SetUp() override {
        // The runner's own memory comes from it.
        VARTML_NEEDS(may_use(DmaBufSource::udmabuf), path_of(DmaBufSource::udmabuf));
        runner_ = RunnerFactory::create_runner(
            RunnerType::VAIML, negation_model(),
            {{"input_tensor_type", std::string("HW")}, {"output_tensor_type", std::string("HW")}});
        in_ = runner_->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0];
        out_ = runner_->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0];
    }
    uint64_t copied() const {
        return std::any_cast<uint64_t>(runner_->get_property("bytes_copied_in")) +
               std::any_cast<uint64_t>(runner_->get_property("bytes_copied_out"));
    }
    StatusCode run(const NpuTensor& input, const NpuTensor& output) {
        std::vector<std::vector<NpuTensor>> inputs{{input}}, outputs{{output}};
        return runner_->execute(inputs, outputs);
    }
    static NpuTensor wrap(const NpuTensorInfo& info, int fd) {
        return NpuTensor(info, static_cast<void*>(&fd), MemoryType::DMA_FD);
    }
    std::shared_ptr<Runner> runner_;
    NpuTensorInfo in_, out_;
};

class ForeignMemory : public DeviceMemory, public testing::WithParamInterface<DmaBufSource> {};

constexpr uint16_t one = 0x3f80, minus_one = 0xbf80;  // bf16

TEST_P(ForeignMemory, IsWorkedInWhereItLies) {
    VARTML_NEEDS(may_use(GetParam()), path_of(GetParam()));
    const DmaBuf input(GetParam(), in_.size_in_bytes), output(GetParam(), out_.size_in_bytes);
    ASSERT_GE(input.fd(), 0);
    ASSERT_GE(output.fd(), 0);
    constexpr size_t last_pixel = negation_width * negation_height - 1;
    input.data<uint16_t>()[0] = input.data<uint16_t>()[last_pixel * 4 + 2] = one;
    EXPECT_EQ(run(wrap(in_, input.fd()), wrap(out_, output.fd())), StatusCode::SUCCESS);
    EXPECT_EQ(output.data<uint16_t>()[0], minus_one);
    EXPECT_EQ(output.data<uint16_t>()[last_pixel * 4 + 2], minus_one);
    EXPECT_EQ(copied(), 0u);
}

// What export_buffer gives goes to other devices, so it must be more than a file.
TEST_F(DeviceMemory, IsExportedAsADmaBuf) {
    EXPECT_EQ(std::any_cast<std::string>(runner_->get_property("export_kind")), "dma-buf");
    NpuTensor input = runner_->allocate_npu_tensor(in_);
    *static_cast<uint16_t*>(input.get_virtual_address()) = one;
    const int fd = input.export_buffer();
    ASSERT_GE(fd, 0);
    dma_buf_sync begin{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ},
        end{DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ};
    EXPECT_EQ(ioctl(fd, DMA_BUF_IOCTL_SYNC, &begin), 0);
    EXPECT_EQ(ioctl(fd, DMA_BUF_IOCTL_SYNC, &end), 0);
    const NpuTensor output = runner_->allocate_npu_tensor(out_);
    EXPECT_EQ(run(wrap(in_, fd), output), StatusCode::SUCCESS);
    EXPECT_EQ(*static_cast<const uint16_t*>(output.get_virtual_address()), minus_one);
    close(fd);
}

INSTANTIATE_TEST_SUITE_P(Kernel, ForeignMemory,
                         testing::Values(DmaBufSource::udmabuf, DmaBufSource::heap,
                                         DmaBufSource::drm_prime),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
