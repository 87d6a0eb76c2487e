// SPDX-License-Identifier: Apache-2.0
// Every allocation of every call fails once: the execution calls say so by their status and the
// others by their exception, nothing ends the program, and the runner works on.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/allocations.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
using vartml::runtime::VaimlRunner;

constexpr auto forever = std::chrono::milliseconds::max();

// Lines are dropped, but only after they were built.
class NoLog {
public:
    NoLog() {
        vartml::set_log_function([](vartml::LogLevel, std::string_view, std::string_view text,
                                    void*) { (void)std::string(text); },
                                 nullptr);
    }
    ~NoLog() { vartml::set_log_function(nullptr, nullptr); }
};

struct Fixture {
    FakeDevice device;
    std::shared_ptr<VaimlRunner> runner;
    Tensors inputs, outputs, more_outputs, none;
};

struct Call {
    const char* name;
    StatusCode answer;  // besides OUT_OF_MEMORY
    std::function<void(Fixture&)> prepare;
    std::function<StatusCode(Fixture&)> run;
};

StatusCode submit_and_wait(Fixture& f, Runner::ExecuteAsyncCallback callback) {
    const JobHandle job = f.runner->execute_async(f.inputs, f.outputs, std::move(callback));
    if (job.status != StatusCode::SUCCESS) {
        EXPECT_EQ(job.job_id, 0u);
        return job.status;
    }
    const StatusCode status = f.runner->wait(job, forever);
    EXPECT_NE(status, StatusCode::INVALID_JOB_ID);  // the final status is never lost
    return status;
}

const auto nothing = [](Fixture&) {};
const auto lose_device = [](Fixture& f) {
    f.device.set_run(
        [](unsigned, auto, auto) -> Result<void> { return Error{ErrorCode::device, "lost"}; });
};

const Call calls[] = {
    {"execute", StatusCode::SUCCESS, nothing,
     [](Fixture& f) { return f.runner->execute(f.inputs, f.outputs); }},
    {"execute, queued", StatusCode::SUCCESS,
     [](Fixture& f) {
         // So long that what comes behind it waits.
         f.device.set_run([](unsigned run, auto, auto) -> Result<void> {
             if (run == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
             return {};
         });
         f.runner->execute_async(f.inputs, f.outputs);
     },
     [](Fixture& f) { return f.runner->execute(f.inputs, f.more_outputs); }},
    {"execute with wrong inputs", StatusCode::INVALID_INPUT, nothing,
     [](Fixture& f) { return f.runner->execute(f.none, f.outputs); }},
    {"execute with swapped tensors", StatusCode::INVALID_INPUT, nothing,
     [](Fixture& f) { return f.runner->execute(f.outputs, f.inputs); }},
    {"execute on a lost device", StatusCode::RUNTIME_ERROR, lose_device,
     [](Fixture& f) { return f.runner->execute(f.inputs, f.outputs); }},
    {"execute_async and wait", StatusCode::SUCCESS, nothing,
     [](Fixture& f) { return submit_and_wait(f, {}); }},
    {"execute_async with a callback", StatusCode::SUCCESS, nothing,
     [](Fixture& f) { return submit_and_wait(f, [](const JobHandle&) {}); }},
    {"execute_async with a callback that throws", StatusCode::SUCCESS, nothing,
     [](Fixture& f) { return submit_and_wait(f, [](const JobHandle&) { throw 5; }); }},
    {"execute_async on a lost device", StatusCode::RUNTIME_ERROR, lose_device,
     [](Fixture& f) { return submit_and_wait(f, [](const JobHandle&) {}); }},
    {"execute_async without a slot", StatusCode::RESOURCE_UNAVAILABLE,
     [](Fixture& f) {
         f.device.hold();
         f.runner->execute_async(f.inputs, f.outputs);
         f.runner->execute_async(f.inputs, f.more_outputs);
     },
     [](Fixture& f) {
         const StatusCode status = f.runner->execute_async(f.inputs, f.outputs).status;
         f.device.release_all();
         return status;
     }},
    {"wait for nothing", StatusCode::INVALID_JOB_ID, nothing,
     [](Fixture& f) { return f.runner->wait(JobHandle(StatusCode::SUCCESS, 77), forever); }},
};

// Calls `attempt(n, for_good)` with the n-th allocation failing, for n from 0 until none is left,
// once alone and once with all that follow. It returns whether an allocation failed.
void fail_each_allocation(const std::function<bool(ptrdiff_t, bool)>& attempt) {
    for (const bool for_good : {false, true}) {
        ptrdiff_t n = 0;
        while (attempt(n, for_good)) {
            ++n;
            ASSERT_LT(n, 20000);
        }
        EXPECT_GT(n, 0) << "nothing was allocated, so nothing was tested";
    }
}

bool run_without_memory(const Call& call, ptrdiff_t n, bool for_good) {
    Fixture f;  // new each time: in a steady state nothing is allocated
    f.runner = make_runner(picture_model());
    f.inputs = allocate(*f.runner, TensorDirection::INPUT);
    f.outputs = allocate(*f.runner, TensorDirection::OUTPUT);
    f.more_outputs = allocate(*f.runner, TensorDirection::OUTPUT);
    call.prepare(f);
    StatusCode status;
    bool was_hit;
    {
        const FailingAllocations failing(n, for_good);
        status = call.run(f);
        was_hit = FailingAllocations::was_hit();
    }
    f.device.release_all();
    if (status != StatusCode::OUT_OF_MEMORY || !was_hit) {
        EXPECT_EQ(status, call.answer) << "allocation " << n;
    }
    // The runner stays usable.
    f.device.set_run({});
    elements<uint16_t>(f.inputs[0][0])[3] = 77;
    EXPECT_EQ(f.runner->execute(f.inputs, f.outputs), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(f.outputs[0][0])[3], 77);
    EXPECT_EQ(submit_and_wait(f, {}), StatusCode::SUCCESS);
    return was_hit;
}

TEST(WithoutMemory, TheExecutionCallsReturn) {
    const NoLog quiet;
    for (const Call& call : calls) {
        SCOPED_TRACE(call.name);
        fail_each_allocation(
            [&](ptrdiff_t n, bool for_good) { return run_without_memory(call, n, for_good); });
    }
}

// An operator of the CPU partition that needs memory of its own.
TEST(WithoutMemory, ARunOfTheSoftwareNpuReturns) {
    const NoLog quiet;
    fail_each_allocation([](ptrdiff_t n, bool for_good) {
        auto top = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %x : f32[4,30]
%v, %i = TopK %x {axis=1, k=3, largest=1, sorted=1} : f32[4,3], i64[4,3]
output %v
output %i
)"));
        const auto runner = make_runner(connect(make_model({std::move(top)})), cpu_views());
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        StatusCode status;
        bool was_hit;
        {
            const FailingAllocations failing(n, for_good);
            status = runner->execute(in, out);
            was_hit = FailingAllocations::was_hit();
        }
        EXPECT_EQ(status, was_hit ? StatusCode::OUT_OF_MEMORY : StatusCode::SUCCESS) << n;
        EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        return was_hit;
    });
}

TEST(WithoutMemory, ARunnerIsNotMadeAndLeavesNothingBehind) {
    const NoLog quiet;
    const OwnRuntimeFolder folder;
    FakeDevice device;
    fail_each_allocation([&](ptrdiff_t n, bool for_good) {
        auto model = picture_model();
        Options options;
        bool was_hit;
        {
            std::shared_ptr<VaimlRunner> runner;
            const FailingAllocations failing(n, for_good);
            try {
                if (auto state =
                        vartml::runtime::prepare("m.rai", std::move(model), std::move(options)))
                    runner = std::make_shared<VaimlRunner>(std::move(*state));
                was_hit = FailingAllocations::was_hit();
            } catch (const std::exception&) {  // the factory makes one of the contract of it
                was_hit = true;
            }
        }
        EXPECT_EQ(device.alive, 0u) << n;
        // The columns are free again.
        options = {};
        options.aie_columns_sharing = false;
        options.start_column = 0;
        EXPECT_TRUE(vartml::runtime::prepare("m.rai", picture_model(), options)) << n;
        return was_hit;
    });
}

TEST(WithoutMemory, AllocationThrowsWhatTheContractNames) {
    FakeDevice device;
    const auto runner = make_runner(picture_model());
    const auto info = runner->get_tensor_info_by_name("x", TensorType::HW);
    const NpuTensor parent = runner->allocate_npu_tensor(info);
    const std::function<NpuTensor()> makers[] = {
        [&] { return runner->allocate_npu_tensor(info); },
        [&] { return runner->allocate_sub_tensor(parent, info, 0); },
    };
    for (const auto& make : makers)
        fail_each_allocation([&](ptrdiff_t n, bool for_good) {
            bool was_hit = false;
            const FailingAllocations failing(n, for_good);
            try {
                (void)make();
                was_hit = FailingAllocations::was_hit();
            } catch (const std::runtime_error&) {
                was_hit = true;
            } catch (const std::bad_alloc&) {  // not even for the text
                was_hit = true;
            }
            return was_hit;
        });
}

}  // namespace
