// SPDX-License-Identifier: Apache-2.0
// How many threads share the steps of a run.
#include "lib/run/softnpu/plan.h"

#include <gtest/gtest.h>

namespace vartml::softnpu {
namespace {

class Costs final : public Step {
public:
    Costs(Extent extent, uint32_t items) : extent_(extent) { set_items(items); }
    void run(const Bases&, size_t) noexcept override {}
    std::string describe() const override { return "test"; }
    Extent extent() const override { return extent_; }

private:
    Extent extent_;
};

struct Row {
    const char* why;
    std::vector<std::pair<int64_t, uint32_t>> steps;  // nanoseconds, items
    uint32_t frames;
    unsigned threads, expected;
};

TEST(ThreadsWorth, AreOneWhereTheOthersSaveLessThanWakingThemCosts) {
    const Row rows[] = {
        {"a short step", {{10'000, 2}}, 1, 2, 1},
        {"two of them", {{10'000, 2}, {10'000, 2}}, 1, 2, 2},
        {"two frames of it", {{10'000, 2}}, 2, 2, 2},
        {"a long step that is one piece", {{1'000'000, 1}}, 1, 2, 1},
        {"a long step of one piece for each of two frames", {{1'000'000, 1}}, 2, 2, 2},
        {"four threads save more of the same step", {{11'000, 4}}, 1, 4, 4},
        {"no more than it has pieces", {{11'000, 2}}, 1, 4, 1},
        {"a step whose cost is not known", {{0, 2}}, 1, 2, 2},
        {"one that is one piece", {{0, 1}}, 1, 2, 1},
        {"one thread", {{1'000'000, 1}}, 1, 1, 1},
        {"no step", {}, 1, 2, 1},
    };
    for (const Row& row : rows) {
        std::vector<std::shared_ptr<Step>> steps;
        for (const auto& [cost, items] : row.steps)
            steps.push_back(std::make_shared<Costs>(Extent{100, cost}, items));
        EXPECT_EQ(threads_worth(steps, row.frames, row.threads), row.expected) << row.why;
    }
}

}  // namespace
}  // namespace vartml::softnpu
