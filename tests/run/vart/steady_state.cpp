// SPDX-License-Identifier: Apache-2.0
// With NpuTensor objects used again, a run on the HW path allocates nothing and maps nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/allocations.h"
#include "tests/support/captures.h"
#include "tests/support/fake_runner.h"

namespace {
std::atomic<size_t> mappings{0};
}

// Calls of the program go here before the C library's own.
extern "C" void* mmap(void* address, size_t size, int access, int flags, int fd,
                      off_t offset) noexcept {
    ++mappings;
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, access, flags, fd, offset));
}
extern "C" int munmap(void* address, size_t size) noexcept {
    ++mappings;
    return static_cast<int>(syscall(SYS_munmap, address, size));
}

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::Layout;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
using vartml::runtime::VaimlRunner;

vartml::artifact::CompiledModel picture_net() {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,32,32]
const %w : f32[5,3,1,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
%c = Conv %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,5,32,32]
%y = Sigmoid %c : f32[1,5,32,32]
output %y
)"));
    partition.inputs[0].hw =
        hw_view(partition.inputs[0].cpu, Layout::HCWNC4, vartml::DataType::bf16);
    partition.outputs[0].hw =
        hw_view(partition.outputs[0].cpu, Layout::HCWNC8, vartml::DataType::float32);
    auto model = connect(make_model({std::move(partition)}));
    model.desired_batch_size = model.actual_batch_size = 2;
    return model;
}

enum class Memory { object, descriptor, pointer };

class SteadyState : public testing::TestWithParam<Memory> {
protected:
    void SetUp() override {
        Options options;
        options.max_concurrent_runs = 2;
        options.numerics = "f32";  // oneDNN, which does bf16, allocates in each call
        runner = make_runner(picture_net(), options);
        ASSERT_TRUE(runner);
        for (Set& set : sets)
            for (int element = 0; element < 2; ++element) {
                set.inputs.push_back({make(TensorDirection::INPUT)});
                set.outputs.push_back({make(TensorDirection::OUTPUT)});
            }
    }
    void TearDown() override {
        for (const int fd : descriptors) close(fd);
    }
    struct Set {
        Tensors inputs, outputs;
    };
    NpuTensor make(TensorDirection direction) {
        const auto& info = runner->get_tensors_info(direction, TensorType::HW)[0];
        switch (GetParam()) {
            case Memory::object:
                return runner->allocate_npu_tensor(info);
            case Memory::descriptor:
                descriptors.push_back(memfd_create("steady", MFD_CLOEXEC));
                EXPECT_EQ(ftruncate(descriptors.back(), static_cast<off_t>(info.size_in_bytes)), 0);
                return NpuTensor(info, static_cast<void*>(&descriptors.back()), MemoryType::DMA_FD);
            case Memory::pointer:
                break;
        }
        buffers.push_back(std::make_unique<float[]>(info.size_in_bytes / sizeof(float)));
        return NpuTensor(info, static_cast<void*>(buffers.back().get()),
                         MemoryType::USER_POINTER_CMA);
    }
    JobHandle submit(Set& set, Runner::ExecuteAsyncCallback callback) {
        JobHandle job;
        do {
            job = runner->execute_async(set.inputs, set.outputs, callback);
        } while (job.status == StatusCode::RESOURCE_UNAVAILABLE);
        return job;
    }
    // As many jobs, callbacks and records at once as a round can ever have: what they need stays.
    // (Nobody reads the outputs that some of these share.)
    void warm_up() {
        std::atomic<bool> is_inside{false}, may_go{false};
        std::vector<JobHandle> jobs;
        jobs.push_back(submit(sets[0], [&](const JobHandle&) {
            is_inside = true;
            while (!may_go) std::this_thread::yield();
        }));
        while (!is_inside) std::this_thread::yield();
        for (Set* set : {&sets[1], &sets[2]})  // their callbacks wait for the first
            jobs.push_back(submit(*set, [this](const JobHandle&) { ++called; }));
        EXPECT_EQ(runner->execute(sets[0].inputs, sets[0].outputs), StatusCode::SUCCESS);
        may_go = true;
        for (int i = 0; i < 16; ++i) jobs.push_back(submit(sets[0], {}));
        for (const JobHandle& job : jobs)
            EXPECT_EQ(runner->wait(job, std::chrono::milliseconds::max()), StatusCode::SUCCESS);
        while (called < 2) std::this_thread::yield();
        called = 0;
    }
    // Every way of running, with two jobs in flight and a third that may find no slot.
    void round() {
        ASSERT_EQ(runner->execute(sets[0].inputs, sets[0].outputs), StatusCode::SUCCESS);
        const JobHandle jobs[] = {submit(sets[0], {}),
                                  submit(sets[1], [this](const JobHandle&) { ++called; }),
                                  runner->execute_async(sets[2].inputs, sets[2].outputs)};
        for (const JobHandle& job : jobs) {
            if (job.status == StatusCode::RESOURCE_UNAVAILABLE) continue;
            ASSERT_EQ(runner->wait(job, std::chrono::milliseconds::max()), StatusCode::SUCCESS);
        }
        const unsigned want = ++rounds;
        while (called < want) std::this_thread::yield();
    }

    std::shared_ptr<VaimlRunner> runner;
    Set sets[3];
    std::vector<int> descriptors;
    std::vector<std::unique_ptr<float[]>> buffers;
    std::atomic<unsigned> called{0};
    unsigned rounds = 0;
};

TEST_P(SteadyState, AllocatesNothingAndMapsNothing) {
    warm_up();
    for (int i = 0; i < 200; ++i) round();  // every thread has run once
    const size_t allocated = allocations, mapped = mappings;
    for (int i = 0; i < 200; ++i) round();
    EXPECT_EQ(allocations, allocated);
    EXPECT_EQ(mappings, mapped);
}

std::string name_of(const testing::TestParamInfo<Memory>& info) {
    constexpr const char* names[] = {"XrtBo", "DmaFd", "UserPointerCma"};
    return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Memories, SteadyState,
                         testing::Values(Memory::object, Memory::descriptor, Memory::pointer),
                         name_of);

class CountingSink final : public vartml::profiling::CaptureSink {
public:
    unsigned level_of(uint64_t) noexcept override { return 70; }
    void take(const vartml::profiling::Capture& capture) noexcept override {
        operators += capture.threads[0].ops.size();
    }
    std::atomic<size_t> operators{0};
};

// Of operators that allocate nothing themselves.
TEST(CapturedRuns, AllocateNothing) {
    auto model = connect(make_model({make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,8,32,32]
%a = Tanh %x : f32[1,8,32,32]
%y = Sigmoid %a : f32[1,8,32,32]
output %y
)"))}));
    model.stats_level = 70;
    add_descriptor(model, descriptor_of(model, 70));
    Options options = cpu_views();
    const auto sink = std::make_shared<CountingSink>();
    options.capture_sink = sink;
    const auto runner = make_runner(std::move(model), options);
    ASSERT_TRUE(runner);
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    const auto run = [&](size_t times) {
        for (size_t i = 0; i < times; ++i) ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    };
    run(500);  // every thread has helped, every core was used
    const size_t allocated = allocations, operators = sink->operators;
    run(500);
    EXPECT_EQ(allocations, allocated);
    EXPECT_EQ(sink->operators, operators + 500 * 5);
}

// The counter works: a tensor over a descriptor is mapped once, at its first use, and its copies
// share the mapping.
TEST(Descriptors, AreMappedAtFirstUseOnce) {
    const auto runner = make_runner(picture_net());
    const auto& in = runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0];
    const auto& out = runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0];
    int fd = memfd_create("once", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(in.size_in_bytes)), 0);
    Tensors outputs{{runner->allocate_npu_tensor(out)}};
    size_t before = mappings;
    {
        const NpuTensor tensor(in, static_cast<void*>(&fd), MemoryType::DMA_FD);
        EXPECT_EQ(mappings, before);  // not at construction
        Tensors inputs{{tensor}}, copies{{NpuTensor(tensor)}};
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
            EXPECT_EQ(runner->execute(copies, outputs), StatusCode::SUCCESS);
        }
        EXPECT_EQ(mappings, before + 1);
    }
    EXPECT_EQ(mappings, before + 2);  // unmapped with the last copy
    close(fd);
}

}  // namespace
