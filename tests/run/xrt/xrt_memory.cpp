// SPDX-License-Identifier: Apache-2.0
// Buffer objects of XRT as memory of tensors, on a double of its library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>

#include "tests/run/xrt/fake_xrt.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Options;
using vartml::runtime::Tensors;

std::string what(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

class XrtMemory : public testing::Test {
protected:
    void open(Options options = {}) {
        options.memory = "xrt";
        runner = make_runner(picture_model(), options);
        ASSERT_TRUE(runner);
        in = runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0];
        out = runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0];
        before = fake_xrt;
    }
    ~XrtMemory() override {
        runner.reset();
        EXPECT_EQ(fake_xrt.live, 0) << "buffer objects that are not given back";
    }
    StatusCode run(const NpuTensor& input, const NpuTensor& output) {
        const Tensors inputs{{input}};
        Tensors outputs{{output}};
        return runner->execute(inputs, outputs);
    }
    std::string last_error() {
        return std::any_cast<std::string>(runner->get_property("last_error"));
    }
    uint64_t count(const char* key) { return std::any_cast<uint64_t>(runner->get_property(key)); }

    FakeDevice device;  // copies its input
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    NpuTensorInfo in, out;
    FakeXrt before{};
};

size_t whole_pages(size_t size_bytes) {
    return (size_bytes + 4095) / 4096 * 4096;
}

xrt::bo application_bo(size_t size_bytes) {
    static const xrt::device device(0);
    return xrt::bo(device, whole_pages(size_bytes), xrt::bo::flags::host_only, 0);
}

TEST_F(XrtMemory, IsWhatARunnerAllocates) {
    open();
    EXPECT_EQ(std::any_cast<std::string>(runner->get_property("memory_provider")), "xrt");
    NpuTensor input = runner->allocate_npu_tensor(in);
    NpuTensor output = runner->allocate_npu_tensor(out, 1);
    EXPECT_EQ(fake_xrt.allocated - before.allocated, 2u);
    EXPECT_EQ(fake_xrt.last_bank, 1u);
    // What an application of XRT does with the buffer of a tensor.
    auto* const bo = static_cast<xrt::bo*>(input.get_buffer());
    EXPECT_EQ(bo->map(), input.get_virtual_address());
    EXPECT_EQ(bo->address(), input.get_physical_address());
    EXPECT_NE(bo->address(), 0u);
    EXPECT_EQ(bo->size(), whole_pages(in.size_in_bytes));
    std::ranges::fill(elements<uint16_t>(input), 7);
    EXPECT_EQ(run(input, output), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[79], 7);
    EXPECT_EQ(count("bytes_copied_in") + count("bytes_copied_out"), 0u);
}

TEST_F(XrtMemory, OfTheApplicationIsWorkedInWhereItLies) {
    open();
    xrt::bo input = application_bo(in.size_in_bytes), output = application_bo(out.size_in_bytes);
    NpuTensor wrapped(in, &input, MemoryType::XRT_BO);
    EXPECT_EQ(wrapped.get_buffer(), &input);
    EXPECT_EQ(wrapped.get_virtual_address(), input.map());
    EXPECT_EQ(wrapped.get_physical_address(), input.address());
    std::fill_n(static_cast<uint16_t*>(input.map()), in.size, uint16_t{9});
    EXPECT_EQ(run(wrapped, NpuTensor(out, &output, MemoryType::XRT_BO)), StatusCode::SUCCESS);
    EXPECT_EQ(static_cast<uint16_t*>(output.map())[79], 9);
    EXPECT_EQ(count("bytes_copied_in") + count("bytes_copied_out"), 0u);
    EXPECT_NE(what([&] { wrapped.sync_buffer(); }).find("by its own means"), std::string::npos);
}

// The application's buffer object may be given to a runner on host memory too.
TEST_F(XrtMemory, OfTheApplicationServesEveryRunner) {
    runner = make_runner(picture_model());
    ASSERT_TRUE(runner);
    in = runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0];
    out = runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0];
    xrt::bo input = application_bo(in.size_in_bytes);
    std::fill_n(static_cast<uint16_t*>(input.map()), in.size, uint16_t{3});
    NpuTensor output = runner->allocate_npu_tensor(out);
    EXPECT_EQ(run(NpuTensor(in, &input, MemoryType::XRT_BO), output), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[0], 3);
}

TEST_F(XrtMemory, ThatCannotHoldATensorIsRefused) {
    open();
    xrt::bo none, small = application_bo(1);
    NpuTensorInfo large = in;
    large.size_in_bytes = 8192;
    void* const odd = reinterpret_cast<std::byte*>(&none) + 1;
    EXPECT_NE(what([&] { NpuTensor(in, odd, MemoryType::XRT_BO); }).find("not aligned"),
              std::string::npos);
    EXPECT_NE(what([&] { NpuTensor(in, &none, MemoryType::XRT_BO); }).find("xrt::bo is empty"),
              std::string::npos);
    EXPECT_NE(what([&] {
                  NpuTensor(large, &small, MemoryType::XRT_BO);
              }).find("holds 4096 bytes, expected 8192"),
              std::string::npos);
}

TEST_F(XrtMemory, IsSyncedAroundARunUnlessThatIsSkipped) {
    struct Row {
        bool skip_in, skip_out;
        unsigned to_device, from_device;
    };
    for (const Row row :
         {Row{false, false, 1, 1}, Row{true, false, 0, 1}, Row{false, true, 1, 0}}) {
        Options options;
        options.skip_in_bo_sync = row.skip_in;
        options.skip_out_bo_sync = row.skip_out;
        open(options);
        NpuTensor input = runner->allocate_npu_tensor(in);
        NpuTensor output = runner->allocate_npu_tensor(out);
        before = fake_xrt;
        EXPECT_EQ(run(input, output), StatusCode::SUCCESS);
        EXPECT_EQ(fake_xrt.to_device - before.to_device, row.to_device);
        EXPECT_EQ(fake_xrt.from_device - before.from_device, row.from_device);
        input.sync_buffer();
        output.sync_buffer();
        EXPECT_EQ(fake_xrt.to_device - before.to_device, row.to_device + 1);
        EXPECT_EQ(fake_xrt.from_device - before.from_device, row.from_device + 1);
    }
}

TEST_F(XrtMemory, ThatCannotBeSyncedFailsTheRun) {
    open();
    NpuTensor input = runner->allocate_npu_tensor(in);
    NpuTensor output = runner->allocate_npu_tensor(out);
    fake_xrt.failing_syncs = 1;
    EXPECT_EQ(run(input, output), StatusCode::RUNTIME_ERROR);
    EXPECT_NE(last_error().find("XRT cannot sync to the device: sync failed"), std::string::npos)
        << last_error();
    EXPECT_EQ(run(input, output), StatusCode::SUCCESS);
    fake_xrt.failing_syncs = 1;
    EXPECT_NE(what([&] { input.sync_buffer(); }).find("XRT cannot sync"), std::string::npos);
}

TEST_F(XrtMemory, HasSubTensorsThatAreSubBuffers) {
    open();
    NpuTensorInfo both = in;
    both.size_in_bytes = 3 * 4096;
    NpuTensor parent = runner->allocate_npu_tensor(both);
    NpuTensor part = runner->allocate_sub_tensor(parent, in, 4096);
    auto* const bo = static_cast<xrt::bo*>(part.get_buffer());
    EXPECT_EQ(bo->map(), static_cast<std::byte*>(parent.get_virtual_address()) + 4096);
    EXPECT_EQ(part.get_virtual_address(), bo->map());
    EXPECT_EQ(part.get_physical_address(), parent.get_physical_address() + 4096);
    NpuTensor output = runner->allocate_npu_tensor(out);
    std::ranges::fill(elements<uint16_t>(part), 5);
    EXPECT_EQ(run(part, output), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[0], 5);

    fake_xrt.strict_subs = true;
    const std::string refusal = what([&] { (void)runner->allocate_sub_tensor(parent, in, 64); });
    fake_xrt.strict_subs = false;
    EXPECT_NE(refusal.find("allocate_sub_tensor: tensor '" + in.name + "'"), std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find("at offset 64: sub-buffer not aligned"), std::string::npos) << refusal;
}

// XRT's own descriptor ends with its buffer object; ours does not.
TEST_F(XrtMemory, IsExportedForOthers) {
    open();
    int fd = -1;
    {
        NpuTensor input = runner->allocate_npu_tensor(in);
        std::ranges::fill(elements<uint16_t>(input), 4);
        fd = input.export_buffer();
        ASSERT_GE(fd, 0);
    }
    NpuTensor output = runner->allocate_npu_tensor(out);
    before = fake_xrt;
    EXPECT_EQ(run(NpuTensor(in, static_cast<void*>(&fd), MemoryType::DMA_FD), output),
              StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[0], 4);
    close(fd);
}

TEST_F(XrtMemory, ImportsADescriptorOncePerTensor) {
    open();
    int fd = memfd_create("camera", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    NpuTensor output = runner->allocate_npu_tensor(out);
    const NpuTensor input(in, static_cast<void*>(&fd), MemoryType::DMA_FD);
    before = fake_xrt;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(input, output), StatusCode::SUCCESS);
    EXPECT_EQ(fake_xrt.imported - before.imported, 1u);
    EXPECT_EQ(fake_xrt.to_device - before.to_device, 3u);
    close(fd);
}

TEST_F(XrtMemory, RefusesADescriptorThatItCannotImport) {
    open();
    const int writable = memfd_create("camera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(writable, 4096), 0);
    ASSERT_EQ(fcntl(writable, F_ADD_SEALS, F_SEAL_WRITE), 0);
    int fd = writable;
    NpuTensor output = runner->allocate_npu_tensor(out);
    EXPECT_EQ(run(NpuTensor(in, static_cast<void*>(&fd), MemoryType::DMA_FD), output),
              StatusCode::INVALID_INPUT);
    EXPECT_NE(last_error().find("XRT cannot import the descriptor"), std::string::npos)
        << last_error();
    close(writable);
}

TEST_F(XrtMemory, NamesABankOrADeviceThatIsNotThere) {
    open();
    EXPECT_NE(what([&] {
                  (void)runner->allocate_npu_tensor(in, 5);
              }).find("in memory bank 5: no such memory bank"),
              std::string::npos);
    Options options;
    options.memory = "xrt";
    options.xdna_device_index = 3;
    const auto opened = vartml::runtime::open_memory(options);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("option 'vartml_memory' is 'xrt': XRT cannot open "
                                          "device 3: Could not open device"),
              std::string::npos)
        << opened.error().message;
}

// An input and an output in one buffer object are refused, however they are reached.
TEST_F(XrtMemory, IsKnownToBeShared) {
    open();
    NpuTensor input = runner->allocate_npu_tensor(in);
    EXPECT_EQ(run(input, NpuTensor(out, input.get_buffer(), MemoryType::XRT_BO)),
              StatusCode::INVALID_OUTPUT);
    int fd = input.export_buffer();
    EXPECT_EQ(run(input, NpuTensor(out, static_cast<void*>(&fd), MemoryType::DMA_FD)),
              StatusCode::INVALID_OUTPUT);
    close(fd);
}

}  // namespace
