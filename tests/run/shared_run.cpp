// SPDX-License-Identifier: Apache-2.0
// Runs that several threads share: every item once, steps in order, whoever helps and whenever.
#include "lib/run/exec/shared_run.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "lib/run/exec/executor.h"

namespace {

using vartml::device::Executor;
using vartml::device::SharedRun;
using Items = std::vector<uint32_t>;

// Counts what ran, and that no step began before the one before it was complete.
class Recorder : SharedRun::Work {
public:
    Recorder(const Items& items, unsigned threads, std::chrono::microseconds longest = {})
        : items_(items), longest_(longest), counts_(items.size()), shared_(*this, items, threads) {
        for (size_t s = 0; s < items.size(); ++s)
            counts_[s] = std::vector<std::atomic<int>>(items[s]);
    }
    void run() { shared_.run(); }
    // Each item ran `runs` times.
    void expect_complete(int runs) const {
        for (size_t s = 0; s < items_.size(); ++s)
            for (size_t i = 0; i < items_[s]; ++i)
                EXPECT_EQ(counts_[s][i], runs) << "step " << s << ", item " << i;
        EXPECT_EQ(early_, 0);
    }
    size_t threads_seen() const {
        const std::lock_guard lock(mutex_);
        return threads_.size();
    }

private:
    void run_item(size_t step, size_t item) noexcept override {
        if (step > 0) {
            const int now = counts_[step][item];
            for (const auto& count : counts_[step - 1]) early_ += count != now + 1;
        }
        if (longest_.count() > 0) {
            thread_local std::mt19937 random(
                static_cast<unsigned>(std::hash<std::thread::id>{}(std::this_thread::get_id())));
            std::this_thread::sleep_for(longest_ * (random() % 100) / 100);
        }
        {
            const std::lock_guard lock(mutex_);
            threads_.insert(std::this_thread::get_id());
        }
        ++counts_[step][item];
    }

    const Items items_;
    const std::chrono::microseconds longest_;
    std::vector<std::vector<std::atomic<int>>> counts_;
    std::atomic<int> early_{0};
    mutable std::mutex mutex_;
    std::set<std::thread::id> threads_;  // guarded by mutex_
    SharedRun shared_;
};

// A task that runs a recorder and may be waited for.
struct RunTask final : Executor::Task {
    explicit RunTask(Recorder& r) : recorder(r) {}
    void run(unsigned) noexcept override {
        recorder.run();
        is_done = true;
    }
    void wait() const {
        while (!is_done) std::this_thread::yield();
    }
    Recorder& recorder;
    std::atomic<bool> is_done{false};
};

TEST(SharedRun, outside_an_executor_runs_every_item_on_the_calling_thread) {
    Recorder recorder({1, 3, 2}, 4);
    recorder.run();
    recorder.expect_complete(1);
    EXPECT_EQ(recorder.threads_seen(), 1u);
}

TEST(SharedRun, for_one_thread_stays_on_it) {
    Executor executor("test", 3);
    Recorder recorder({4, 4}, 1, std::chrono::microseconds(500));
    executor.call([&] { recorder.run(); });
    recorder.expect_complete(1);
    EXPECT_EQ(recorder.threads_seen(), 1u);
}

TEST(SharedRun, idle_threads_help) {
    Executor executor("test", 3);
    Recorder recorder(Items(8, 12), 3, std::chrono::microseconds(2000));
    executor.call([&] { recorder.run(); });
    recorder.expect_complete(1);
    EXPECT_EQ(recorder.threads_seen(), 3u);
}

TEST(SharedRun, no_more_threads_help_than_it_is_for) {
    Executor executor("test", 4);
    Recorder recorder(Items(8, 12), 2, std::chrono::microseconds(1000));
    executor.call([&] { recorder.run(); });
    recorder.expect_complete(1);
    EXPECT_LE(recorder.threads_seen(), 2u);
}

TEST(SharedRun, many_runs_one_after_another_lose_and_repeat_nothing) {
    Executor executor("test", 4);
    Recorder recorder({1, 4, 2, 1, 7, 3, 4, 4}, 4);
    constexpr int runs = 5000;
    executor.call([&] {
        for (int r = 0; r < runs; ++r) recorder.run();
    });
    recorder.expect_complete(runs);
}

TEST(SharedRun, as_many_runs_as_threads_leave_no_helper) {
    Executor executor("test", 2);
    Recorder a(Items(40, 2), 2, std::chrono::microseconds(300)),
        b(Items(40, 2), 2, std::chrono::microseconds(300));
    RunTask first(a), second(b);
    executor.submit(first);
    executor.submit(second);
    first.wait();
    second.wait();
    a.expect_complete(1);
    b.expect_complete(1);
}

TEST(SharedRun, may_go_as_soon_as_its_run_is_over) {
    Executor executor("test", 4);
    for (int i = 0; i < 500; ++i) {
        Recorder recorder({4, 4, 4}, 4);
        executor.call([&] { recorder.run(); });
        recorder.expect_complete(1);
    }
}

TEST(Executor, runs_on_the_calling_thread_only_when_nothing_waits) {
    Executor executor("test", 1);
    Recorder slow(Items(2, 1), 1, std::chrono::microseconds(20000)), quick(Items(2, 1), 1);
    RunTask first(slow), second(quick);
    executor.submit(first);
    RunTask third(quick);
    // The only slot is taken, or is about to be.
    if (executor.try_run(third)) {
        quick.expect_complete(1);
    } else {
        executor.submit(third);
        third.wait();
    }
    first.wait();
    while (!executor.try_run(second)) std::this_thread::yield();
    EXPECT_TRUE(second.is_done);
    quick.expect_complete(2);
}

TEST(Executor, tasks_of_many_callers_all_run) {
    Executor executor("test", 2);
    std::atomic<int> ran{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c)
        callers.emplace_back([&] {
            for (int i = 0; i < 300; ++i) executor.call([&] { ++ran; });
        });
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(ran, 1200);
}

TEST(Executor, two_tasks_in_a_row_run_side_by_side) {
    struct Step final : Executor::Task {
        void run(unsigned) noexcept override {
            mine = true;
            while (!*other) std::this_thread::yield();
            is_done = true;
        }
        std::atomic<bool> mine{false}, is_done{false};
        std::atomic<bool>* other = nullptr;
    };
    Executor executor("test", 2);
    for (int i = 0; i < 300; ++i) {
        Step a, b;
        a.other = &b.mine;
        b.other = &a.mine;
        executor.submit(a);
        executor.submit(b);
        while (!a.is_done || !b.is_done) std::this_thread::yield();
        if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

TEST(Executor, a_task_that_waits_leaves_its_processor_to_helpers) {
    Executor executor("test", 3);
    Recorder recorder(Items(8, 12), 3, std::chrono::microseconds(2000));
    struct Idle final : Executor::Task {
        void run(unsigned) noexcept override {
            const Executor::Waiting waiting;
            waits = true;
            while (!may_end) std::this_thread::yield();
        }
        std::atomic<bool> waits{false}, may_end{false};
    } idle;
    std::thread caller([&] { EXPECT_TRUE(executor.try_run(idle)); });
    while (!idle.waits) std::this_thread::yield();
    executor.call([&] { recorder.run(); });
    idle.may_end = true;
    caller.join();
    EXPECT_EQ(recorder.threads_seen(), 3u);
}

TEST(Executor, rounds_to_nearest_whatever_its_caller_has_set) {
    const auto sum = [] {
        volatile float one = 1, little = 0x1p-25F;
        return one + little;
    };
    std::fesetround(FE_UPWARD);
    float own = 0, on_a_thread = 0;
    {
        Executor executor("test", 2);
        struct Here final : Executor::Task {
            explicit Here(std::function<float()> sum) : sum(std::move(sum)) {}
            void run(unsigned) noexcept override { result = sum(); }
            const std::function<float()> sum;
            float result = 0;
        } here(sum);
        while (!executor.try_run(here)) std::this_thread::yield();
        own = here.result;
        executor.call([&] { on_a_thread = sum(); });
    }
    const float afterwards = sum();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(own, 1);
    EXPECT_EQ(on_a_thread, 1);
    EXPECT_GT(afterwards, 1) << "the caller has what it had set";
}

TEST(Executor, sleeping_threads_wake_for_a_task) {
    Executor executor("test", 2);
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        bool ran = false;
        executor.call([&] { ran = true; });
        EXPECT_TRUE(ran);
    }
}

}  // namespace
