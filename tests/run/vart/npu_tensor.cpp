// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

#include "lib/run/memory/host_memory.h"
#include "lib/run/vart/tensor_info.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using vartml::test::FakeDevice;
using vartml::test::make_runner;
using vartml::test::picture_model;

// The example of the interface description.
NpuTensorInfo good_info() {
    NpuTensorInfo info;
    info.name = "input";
    info.data_type = DataType::INT8;
    info.memory_layout = MemoryLayout::HCWNC4;
    info.shape = {224, 1, 224, 1, 4};
    info.strides = {896, 896, 4, 4, 1};
    info.size = info.size_in_bytes = 200704;
    return info;
}

class Descriptor {
public:
    explicit Descriptor(off_t size) : fd(memfd_create("test", MFD_CLOEXEC)) {
        EXPECT_EQ(ftruncate(fd, size), 0);
    }
    ~Descriptor() { close(fd); }
    int fd;
};

std::string what(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& e) {
        return std::string("invalid_argument: ") + e.what();
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

TEST(NpuTensorInfo, PrintsOneLine) {
    EXPECT_EQ(vartml::runtime::to_text(good_info()),
              "name=input direction=INPUT tensor_type=HW data_type=INT8 memory_layout=HCWNC4 "
              "shape=[224,1,224,1,4] strides=[896,896,4,4,1] size=200704 size_in_bytes=200704");
    NpuTensorInfo info = good_info();
    info.memory_layout = MemoryLayout::GENERIC;
    info.memory_layout_order = {0, 3, 1, 2};
    info.name = "a\nb";
    EXPECT_NE(vartml::runtime::to_text(info).find("name=a\\x0ab direction"), std::string::npos);
    EXPECT_NE(vartml::runtime::to_text(info).find(
                  "memory_layout=GENERIC memory_layout_order=[0,3,1,2] shape"),
              std::string::npos);
}

// Fixing one fault after another shows the order of the checks.
TEST(NpuTensor, NamesTheFirstFaultOfADescription) {
    struct Row {
        const char* text;
        std::function<void(NpuTensorInfo&)> fix;
    };
    const Row rows[] = {
        {"NpuTensor '': the name is empty", [](auto& i) { i.name = "input"; }},
        {"NpuTensor 'input': data_type is UNKNOWN",
         [](auto& i) { i.data_type = static_cast<DataType>(99); }},
        {"data_type is UNKNOWN", [](auto& i) { i.data_type = DataType::INT8; }},
        {"memory_layout is UNKNOWN", [](auto& i) { i.memory_layout = MemoryLayout::GENERIC; }},
        {"shape has 0 dimensions, expected 1 to 8", [](auto& i) { i.shape.assign(9, 1); }},
        {"shape has 9 dimensions, expected 1 to 8", [](auto& i) { i.shape = {2, 0}; }},
        {"shape [2,0] has a dimension of 0", [](auto& i) { i.shape = {2, 3}; }},
        {"strides [] do not match shape [2,3]", [](auto& i) { i.strides = {3, 1}; }},
        {"memory_layout_order [] is no permutation",
         [](auto& i) { i.memory_layout_order = {1, 1}; }},
        {"memory_layout_order [1,1] is no permutation",
         [](auto& i) { i.memory_layout_order = {0, 2}; }},
        {"memory_layout_order [0,2] is no permutation",
         [](auto& i) { i.memory_layout_order = {1, 0}; }},
        {"size is 0", [](auto& i) { i.size = 6; }},
        {"size_in_bytes is 0", [](auto& i) { i.size_in_bytes = 5; }},
        {"size_in_bytes is 5, shape [2,3] of INT8 needs 6", [](auto& i) { i.size_in_bytes = 6; }},
        {"cannot use USER_POINTER_NON_CMA", [](auto& i) { i.tensor_type = TensorType::CPU; }},
    };
    static char buffer[6];
    NpuTensorInfo info;
    const auto make = [&](void* data, MemoryType type) {
        return what([&] { NpuTensor(info, data, type); });
    };
    EXPECT_NE(make(nullptr, MemoryType::UNKNOWN).find("the buffer is null"), std::string::npos);
    EXPECT_NE(make(buffer, MemoryType::UNKNOWN).find("the memory type is UNKNOWN"),
              std::string::npos);
    for (const Row& row : rows) {
        const std::string text = make(buffer, MemoryType::USER_POINTER_NON_CMA);
        EXPECT_NE(text.find(row.text), std::string::npos) << text << "\nexpected: " << row.text;
        row.fix(info);
    }
    EXPECT_EQ(make(buffer, MemoryType::USER_POINTER_NON_CMA), "");
    info.shape.assign(2, 0xffffffff);
    info.data_type = DataType::INT64;
    EXPECT_NE(make(buffer, MemoryType::USER_POINTER_CMA).find("needs more"), std::string::npos);
}

TEST(NpuTensor, RefusesPairsOfViewAndMemoryThatTheNpuCannotReach) {
    NpuTensorInfo info = good_info();
    info.name = "images";
    static char buffer[200704];
    EXPECT_EQ(
        what(
            [&] { NpuTensor(info, static_cast<void*>(buffer), MemoryType::USER_POINTER_NON_CMA); }),
        "NpuTensor 'images': TensorType HW cannot use USER_POINTER_NON_CMA memory, the NPU cannot "
        "reach it; allocate it with allocate_npu_tensor or use TensorType CPU");
    info.tensor_type = TensorType::CPU;
    EXPECT_EQ(what([&] {
                  NpuTensor(info, static_cast<void*>(buffer), MemoryType::USER_POINTER_NON_CMA);
              }),
              "");
    info.direction = TensorDirection::OUTPUT;
    EXPECT_NE(what([&] {
                  NpuTensor(info, static_cast<const void*>(buffer), MemoryType::USER_POINTER_CMA);
              }).find("an OUTPUT cannot use a const buffer"),
              std::string::npos);
    // No object of ours, no descriptor of ours, not aligned.
    EXPECT_NE(what([&] {
                  NpuTensor(info, static_cast<void*>(buffer), MemoryType::XRT_BO);
              }).find("no live buffer object"),
              std::string::npos);
    int closed = 1000000;
    EXPECT_NE(what([&] {
                  NpuTensor(info, static_cast<void*>(&closed), MemoryType::DMA_FD);
              }).find("Bad file descriptor"),
              std::string::npos);
    Descriptor small(4096);
    EXPECT_NE(what([&] {
                  NpuTensor(info, static_cast<void*>(&small.fd), MemoryType::DMA_FD);
              }).find("is 4096 bytes long, expected 200704"),
              std::string::npos);
    info.data_type = DataType::FLOAT32;
    info.shape = info.strides = {1, 1, 1, 1, 1};
    EXPECT_NE(what([&] {
                  NpuTensor(info, static_cast<void*>(buffer + 1), MemoryType::USER_POINTER_CMA);
              }).find("not aligned to the element size of 4"),
              std::string::npos);
}

TEST(NpuTensor, AnEmptyOrMovedFromTensorGivesSentinels) {
    static char buffer[200704];
    NpuTensor full(good_info(), static_cast<void*>(buffer), MemoryType::USER_POINTER_CMA);
    const NpuTensor taken = std::move(full);
    for (NpuTensor tensor : {NpuTensor(), full}) {  // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(tensor.get_buffer(), nullptr);
        EXPECT_EQ(tensor.get_virtual_address(), nullptr);
        EXPECT_EQ(tensor.get_physical_address(), 0u);
        EXPECT_EQ(tensor.get_memory_type(), MemoryType::UNKNOWN);
        EXPECT_EQ(tensor.export_buffer(), -1);
        EXPECT_EQ(tensor.get_info().name, "");
        EXPECT_THROW(tensor.sync_buffer(), std::runtime_error);
    }
    EXPECT_EQ(taken.get_buffer(), buffer);
}

TEST(NpuTensor, AConstBufferIsReadOnly) {
    static char buffer[200704];
    NpuTensor tensor(good_info(), static_cast<const void*>(buffer), MemoryType::USER_POINTER_CMA);
    EXPECT_EQ(tensor.get_buffer(), nullptr);
    EXPECT_EQ(tensor.get_virtual_address(), nullptr);
    EXPECT_EQ(std::as_const(tensor).get_buffer(), buffer);
    EXPECT_EQ(std::as_const(tensor).get_virtual_address(), buffer);
    EXPECT_EQ(tensor.export_buffer(), -1);
    EXPECT_THROW(tensor.sync_buffer(), std::runtime_error);
}

TEST(NpuTensor, CopiesTheNumberOfADescriptorAndDuplicatesItOnExport) {
    Descriptor memory(200704);
    int number = memory.fd;
    NpuTensor tensor(good_info(), static_cast<void*>(&number), MemoryType::DMA_FD);
    number = -1;
    EXPECT_EQ(*static_cast<int*>(tensor.get_buffer()), memory.fd);
    EXPECT_EQ(tensor.get_virtual_address(), nullptr);
    const int duplicate = tensor.export_buffer();
    EXPECT_GE(duplicate, 0);
    EXPECT_NE(duplicate, memory.fd);
    close(duplicate);
}

class Allocation : public testing::Test {
protected:
    FakeDevice device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner = make_runner(picture_model());
};

TEST_F(Allocation, GivesZeroedPageAlignedExportableMemory) {
    NpuTensor tensor = runner->allocate_npu_tensor(good_info());
    EXPECT_EQ(tensor.get_memory_type(), MemoryType::XRT_BO);
    auto* const bytes = static_cast<unsigned char*>(tensor.get_virtual_address());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, 0u);
    for (size_t i = 0; i < 200704; ++i) ASSERT_EQ(bytes[i], 0);
    tensor.sync_buffer();
    bytes[7] = 42;
    const int fd = tensor.export_buffer();
    ASSERT_GE(fd, 0);
    void* const other = mmap(nullptr, 200704, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(other, MAP_FAILED);
    EXPECT_EQ(static_cast<unsigned char*>(other)[7], 42);
    munmap(other, 200704);
    // The size is sealed: an importer cannot pull the memory away.
    EXPECT_NE(ftruncate(fd, 4096), 0);
    close(fd);
    // The opaque object can be wrapped again, and outlives its first tensor.
    NpuTensor wrapped(good_info(), tensor.get_buffer(), MemoryType::XRT_BO);
    tensor = NpuTensor();
    runner.reset();
    EXPECT_EQ(static_cast<unsigned char*>(wrapped.get_virtual_address())[7], 42);
    EXPECT_THROW(wrapped.sync_buffer(), std::runtime_error);
}

TEST_F(Allocation, RefusesBadDescriptionsAndBanks) {
    NpuTensorInfo info = good_info();
    info.name = "";
    EXPECT_THROW(runner->allocate_npu_tensor(info), std::invalid_argument);
    EXPECT_THROW(runner->allocate_npu_tensor(good_info(), 16), std::invalid_argument);
    EXPECT_NO_THROW(runner->allocate_npu_tensor(good_info(), 15));
    info = good_info();
    info.size_in_bytes = size_t{1} << 50;
    EXPECT_NE(what([&] { runner->allocate_npu_tensor(info); }).find("'input'"), std::string::npos);
}

TEST_F(Allocation, SubTensorsShareTheParentsMemory) {
    NpuTensorInfo large = good_info();
    large.size_in_bytes *= 4;  // public samples enlarge only this field to hold a batch
    NpuTensor parent = runner->allocate_npu_tensor(large);
    NpuTensor sub = runner->allocate_sub_tensor(parent, good_info(), 200704);
    EXPECT_EQ(sub.get_memory_type(), MemoryType::XRT_BO);
    EXPECT_EQ(static_cast<char*>(sub.get_virtual_address()),
              static_cast<char*>(parent.get_virtual_address()) + 200704);
    sub.sync_buffer();
    const int fd = sub.export_buffer();  // the whole parent
    EXPECT_GE(lseek(fd, 0, SEEK_END), 4 * 200704);
    close(fd);

    const auto refused = [&](const NpuTensor& p, const NpuTensorInfo& info, size_t offset) {
        return what([&] { runner->allocate_sub_tensor(p, info, offset); });
    };
    static char buffer[200704];
    EXPECT_EQ(
        refused(NpuTensor(), good_info(), 0),
        "invalid_argument: allocate_sub_tensor: tensor 'input': the parent is empty, expected "
        "a tensor from allocate_npu_tensor");
    EXPECT_NE(
        refused(NpuTensor(good_info(), static_cast<void*>(buffer), MemoryType::USER_POINTER_CMA),
                good_info(), 0)
            .find("wraps memory"),
        std::string::npos);
    EXPECT_NE(refused(sub, good_info(), 0).find("is a sub-tensor itself"), std::string::npos);
    EXPECT_NE(refused(parent, good_info(), 3 * 200704 + 1).find("exceed"), std::string::npos);
    EXPECT_NE(refused(parent, good_info(), SIZE_MAX).find("exceed"), std::string::npos);
    NpuTensorInfo floats = good_info();
    floats.data_type = DataType::FLOAT32;
    floats.size_in_bytes *= 4;
    NpuTensorInfo tiny = floats;
    tiny.shape = tiny.strides = {1, 1, 1, 1, 1};
    tiny.size = 1;
    tiny.size_in_bytes = 4;
    EXPECT_NE(refused(parent, tiny, 2).find("no multiple of the element size of 4"),
              std::string::npos);
    NpuTensorInfo none = good_info();
    none.size = 0;
    EXPECT_NE(refused(parent, none, 0).find("size is 0"), std::string::npos);
}

}  // namespace
