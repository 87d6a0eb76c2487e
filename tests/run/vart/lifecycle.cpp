// SPDX-License-Identifier: Apache-2.0
// Runners come and go, also in their own callbacks and by failures: nothing stays behind.
// VARTML_TEST_CYCLES sets how often (a release: 10000).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vart/vart_runner_factory.hpp>

#include "tests/model/models.h"
#include "tests/support/process_state.h"
#include "tests/support/temp_dir.h"

namespace {
using namespace vart;
using namespace vartml::test;
using Options = std::unordered_map<std::string, std::any>;
using Tensors = std::vector<std::vector<NpuTensor>>;

#if defined(__SANITIZE_THREAD__)
constexpr bool makes_no_threads_in_a_fork = true;
#elif defined(__has_feature)
constexpr bool makes_no_threads_in_a_fork = __has_feature(thread_sanitizer);
#else
constexpr bool makes_no_threads_in_a_fork = false;
#endif

// A convolution with weights, so that there is something to map and to pack.
vartml::artifact::CompiledModel picture_net() {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,8,8]
const %w : f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}
%y = Conv %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,8,8]
output %y
)"));
    for (auto* tensor : {&partition.inputs[0], &partition.outputs[0]})
        tensor->hw = hw_view(tensor->cpu, vartml::Layout::HCWNC4, vartml::DataType::bf16);
    return connect(make_model({std::move(partition)}));
}

class Lifecycle : public testing::Test {
protected:
    void SetUp() override {
        setenv("XDG_CACHE_HOME", dir.path().c_str(), 1);
        setenv("XDG_RUNTIME_DIR", dir.path().c_str(), 1);  // columns of other processes
        ASSERT_TRUE(vartml::artifact::write_rai(picture_net(), path));
    }
    std::shared_ptr<Runner> open(Options options = {}) const {
        options["log_level"] = "ERROR";
        return RunnerFactory::create_runner(RunnerType::VAIML, path, options);
    }
    static Tensors allocate(const Runner& runner, TensorDirection direction) {
        Tensors batch(1);
        for (const auto& info : runner.get_tensors_info(direction, TensorType::HW))
            batch[0].push_back(runner.allocate_npu_tensor(info));
        return batch;
    }

    // One life in each of the ways to end.
    void live(size_t number) const {
        auto runner = open({{"aie_columns_sharing", number % 2 == 0}});
        // Whoever came before has given its columns back.
        ASSERT_EQ(std::any_cast<uint32_t>(runner->get_property("start_column")), 0u);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        std::atomic<bool> was_called{false};
        if (number % 4 == 0) {  // the last reference goes in the callback
            auto last = std::make_shared<std::shared_ptr<Runner>>(runner);
            const std::weak_ptr<Runner> watched = runner;
            Runner& still = *runner;
            runner.reset();
            const JobHandle job =
                still.execute_async(in, out, [last, &was_called](const JobHandle&) {
                    last->reset();
                    was_called = true;
                });
            last.reset();
            ASSERT_EQ(job.status, StatusCode::SUCCESS);
            while (!was_called || !watched.expired()) std::this_thread::yield();
            wait_for_columns();
        } else {  // with a job in flight
            ASSERT_EQ(
                runner->execute_async(in, out, [&](const JobHandle&) { was_called = true; }).status,
                StatusCode::SUCCESS);
            runner.reset();
            EXPECT_TRUE(was_called);
        }
        // The memory outlives the runner.
        static_cast<char*>(out[0][0].get_virtual_address())[0] = 1;
    }
    // A runner that ends in its own callback is taken down by another thread.
    void wait_for_columns() const {
        for (;;) try {
                open({{"aie_columns_sharing", false}, {"start_column", 0u}});
                return;
            } catch (const std::runtime_error&) {
                std::this_thread::yield();
            }
    }
    void fail(size_t number) const {
        switch (number % 3) {
            case 0:
                EXPECT_THROW(open({{"colour", 1}}), std::invalid_argument);
                break;
            case 1:
                EXPECT_THROW(open({{"config_json", path}}), std::runtime_error);
                break;
            default:
                EXPECT_THROW(open({{"start_column", 34u}}), std::invalid_argument);
        }
    }
    void live_and_fail(size_t cycles) const {
        for (size_t i = 0; i < cycles && !HasFatalFailure(); ++i) {
            live(i);
            fail(i);
        }
    }

    const TempDir dir;
    const std::string path = dir / "model.rai";
};

TEST_F(Lifecycle, LeavesDescriptorsThreadsMappingsAndColumnsAsTheyWere) {
    const size_t cycles = number_from("VARTML_TEST_CYCLES", 200);
    live_and_fail(20);
    const size_t descriptors = open_descriptors(), threads = running_threads(),
                 files = mapped_files(), resident = resident_bytes();
    live_and_fail(cycles);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(running_threads(), threads);
    EXPECT_EQ(mapped_files(), files);
    std::printf(
        "%zu cycles: %zu descriptors, %zu threads, %zu mapped files; %+zd KiB resident\n", cycles,
        descriptors, threads, files,
        (static_cast<ptrdiff_t>(resident_bytes()) - static_cast<ptrdiff_t>(resident)) / 1024);
}

// What a fork does with a runner of its parent and with its own: 0, or the line that went wrong.
#define REQUIRE(condition) \
    if (!(condition)) return __LINE__
int run_in_a_fork(std::shared_ptr<Runner> inherited, const JobHandle& job, Tensors& in,
                  Tensors& out, const std::function<std::shared_ptr<Runner>()>& create) {
    const auto told = [&](const std::string& call) {
        return std::any_cast<std::string>(inherited->get_property("last_error"))
            .starts_with(call + ": the runner was made before this process was forked");
    };
    REQUIRE(inherited->execute(in, out) == StatusCode::RUNTIME_ERROR && told("execute"));
    const JobHandle refused = inherited->execute_async(in, out);
    REQUIRE(refused.status == StatusCode::RUNTIME_ERROR && refused.job_id == 0);
    REQUIRE(told("execute_async"));
    REQUIRE(inherited->wait(job, std::chrono::milliseconds(0)) == StatusCode::RUNTIME_ERROR);
    REQUIRE(told("wait"));
    const auto own = create();
    REQUIRE(own->execute(in, out) == StatusCode::SUCCESS);
    const JobHandle own_job = own->execute_async(in, out);
    REQUIRE(own->wait(own_job, std::chrono::minutes(1)) == StatusCode::SUCCESS);
    inherited.reset();
    REQUIRE(create()->execute(in, out) == StatusCode::SUCCESS);
    return 0;
}
#undef REQUIRE

TEST_F(Lifecycle, AForkHasRunnersOfItsOwn) {
    if (makes_no_threads_in_a_fork) GTEST_SKIP() << "ThreadSanitizer ends who makes threads there";
    auto runner = open();
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    const JobHandle job = runner->execute_async(in, out);
    ASSERT_EQ(job.status, StatusCode::SUCCESS);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        const int line = run_in_a_fork(std::move(runner), job, in, out, [this] { return open(); });
        if (line) std::fprintf(stderr, "line %d\n", line);
        ::_exit(line ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(runner->wait(job, std::chrono::minutes(1)), StatusCode::SUCCESS);
    EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
}

}  // namespace
