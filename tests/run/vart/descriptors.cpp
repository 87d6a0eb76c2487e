// SPDX-License-Identifier: Apache-2.0
// DMA_FD: what is taken, when it is mapped, and what is said where that is not possible; never a
// copy in its place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Tensors;

class Descriptors : public testing::Test {
protected:
    void SetUp() override {
        runner = make_runner(picture_model());
        ASSERT_TRUE(runner);
        in = runner->get_tensor_info_by_name("x", TensorType::HW);
        out = runner->get_tensor_info_by_name("y", TensorType::HW);
        fd = memfd_create("descriptor", MFD_CLOEXEC);
        ASSERT_EQ(ftruncate(fd, 160), 0);
    }
    void TearDown() override { close(fd); }
    static NpuTensor wrap(const NpuTensorInfo& info, int number) {
        return NpuTensor(info, static_cast<void*>(&number), MemoryType::DMA_FD);
    }
    StatusCode run(const NpuTensor& input, const NpuTensor& output) {
        Tensors inputs{{input}}, outputs{{output}};
        return runner->execute(inputs, outputs);
    }
    std::string last_error() {
        return std::any_cast<std::string>(runner->get_property("last_error"));
    }
    int read_only() const {
        return open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
    }

    FakeDevice device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    NpuTensorInfo in, out;
    int fd = -1;
    LogLines log;
};

TEST_F(Descriptors, NeedBeNoLongerThanTheTensor) {
    EXPECT_EQ(run(wrap(in, fd), runner->allocate_npu_tensor(out)), StatusCode::SUCCESS);
    ASSERT_EQ(ftruncate(fd, 159), 0);
    EXPECT_THROW(wrap(in, fd), std::runtime_error);
}

TEST_F(Descriptors, MayBeReadOnlyForInputsAlone) {
    const int number = read_only();
    ASSERT_GE(number, 0);
    EXPECT_EQ(run(wrap(in, number), runner->allocate_npu_tensor(out)), StatusCode::SUCCESS);
    EXPECT_EQ(run(runner->allocate_npu_tensor(in), wrap(out, number)), StatusCode::INVALID_OUTPUT);
    EXPECT_NE(last_error().find("output 'y' of batch element 0: cannot map descriptor"),
              std::string::npos)
        << last_error();
    EXPECT_NE(last_error().find("ermission denied"), std::string::npos) << last_error();
    EXPECT_EQ(device.started(), 1u);
    close(number);
}

TEST_F(Descriptors, MustStayOpenUntilTheirFirstUse) {
    const int number = dup(fd);
    const NpuTensor late = wrap(in, number), used = wrap(in, number);
    const NpuTensor output = runner->allocate_npu_tensor(out);
    EXPECT_EQ(run(used, output), StatusCode::SUCCESS);
    close(number);
    EXPECT_EQ(run(late, output), StatusCode::INVALID_INPUT);
    EXPECT_NE(last_error().find("input 'x' of batch element 0: cannot map descriptor"),
              std::string::npos)
        << last_error();
    // A mapping that was made is kept with the tensor and its copies.
    EXPECT_EQ(run(NpuTensor(used), output), StatusCode::SUCCESS);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_in")), 0u);
}

TEST_F(Descriptors, AreReadAndWrittenFromOffsetZero) {
    const int other = memfd_create("other", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(other, 8192), 0);  // longer than the tensor
    const uint16_t value = 0x3f80;
    ASSERT_EQ(pwrite(fd, &value, sizeof value, 158), 2);
    ASSERT_EQ(lseek(fd, 100, SEEK_SET), 100);  // no matter
    EXPECT_EQ(run(wrap(in, fd), wrap(out, other)), StatusCode::SUCCESS);
    uint16_t found = 0;
    ASSERT_EQ(pread(other, &found, sizeof found, 158), 2);
    EXPECT_EQ(found, value);
    close(other);
}

// An exported buffer is taken back, by this process or another one.
TEST_F(Descriptors, OfAllocatedMemoryCanBeWrapped) {
    NpuTensor memory = runner->allocate_npu_tensor(in);
    elements<uint16_t>(memory)[7] = 99;
    const int exported = memory.export_buffer();
    ASSERT_GE(exported, 0);
    NpuTensor output = runner->allocate_npu_tensor(out);
    EXPECT_EQ(run(wrap(in, exported), output), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[7], 99);
    close(exported);
}

TEST_F(Descriptors, OfAllocatedMemoryAreWrittenByAnotherProcess) {
    const NpuTensor memory = runner->allocate_npu_tensor(in);
    const int exported = memory.export_buffer();
    ASSERT_GE(exported, 0);
    const pid_t child = fork();
    if (child == 0) {
        void* const mapped = mmap(nullptr, 160, PROT_READ | PROT_WRITE, MAP_SHARED, exported, 0);
        if (mapped == MAP_FAILED) _exit(1);
        static_cast<uint16_t*>(mapped)[7] = 98;
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    close(exported);
    NpuTensor output = runner->allocate_npu_tensor(out);
    EXPECT_EQ(run(memory, output), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(output)[7], 98);
}

}  // namespace
