// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/mixed_precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "lib/compile/quantise.h"
#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

// Five convolutions in a row, of which the last stays float anyway: tensors x0 to x4 have codes.
graph::Graph five(int channels = 256) {
    const std::string n = std::to_string(channels);
    std::string text = "graph net\ninput %x0 : f32[1," + n + ",6,6]\nconst %w : f32[" + n + "," +
                       n + ",1,1] = {0.5}\n";
    for (int i = 0; i < 5; ++i)
        text += "%x" + std::to_string(i + 1) + " = Conv %x" + std::to_string(i) +
                ", %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1," + n +
                ",6,6]\n";
    return graph::must_parse(text + "output %x5\n");
}

// What the codes of each tensor lose; losses add up.
class Losses {
public:
    Losses(const graph::Graph& graph, std::vector<double> losses)
        : graph_(graph), losses_(std::move(losses)) {}

    Judge judge() {
        return {.all_but = [this](const std::set<std::string>& kept) -> Result<Verdict> {
                    ++trials;
                    double sum = 0;
                    for (const CodedTensors& t : coded_tensors(graph_))
                        if (std::ranges::any_of(t.products, [&](size_t i) {
                                return !kept.contains(graph_.nodes[i].name);
                            }))
                            sum += loss_of(t.values);
                    return Verdict{1 - sum, sum, sum / usual_loss};
                },
                .codes_at = [this](const std::vector<graph::ValueId>& values) -> Result<Verdict> {
                    const double sum = loss_of(values);
                    return Verdict{1 - sum, sum, sum / usual_loss};
                }};
    }
    static constexpr double usual_loss = 0.0005;
    size_t trials = 0;

private:
    double loss_of(const std::vector<graph::ValueId>& values) const {
        double sum = 0;
        for (const graph::ValueId id : values)
            sum += losses_[static_cast<size_t>(graph_.value(id).name[1] - '0')];
        return sum;
    }
    const graph::Graph& graph_;
    std::vector<double> losses_;
};

struct Case {
    const char* name;
    std::vector<double> losses;
    std::optional<double> target;
    std::vector<size_t> kept;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}
const Case cases[] = {
    {"NothingWhereInt8AgreesAlready", {0.001, 0.001, 0.002, 0.001, 0.001}, 0.99, {}},
    // Of a tensor in the middle what writes it and what reads it.
    {"WhatIsAroundTheTensorThatLosesMost", {0.001, 0.001, 0.3, 0.001, 0.001}, 0.99, {1, 2}},
    {"OneProductForAnInput", {0.3, 0.001, 0.002, 0.001, 0.001}, 0.99, {0}},
    {"AsManyAsTheTargetTakes", {0.1, 0.002, 0.001, 0.001, 0.2}, 0.99, {0, 3}},
    {"AllWhereNothingLessDoes", {0.1, 0.1, 0.1, 0.1, 0.1}, 1, {0, 1, 2, 3}},
    {"AsIsUsualWhereNobodySays", {0.0001, 0.0001, 0.0001, 0.0001, 0.01}, std::nullopt, {3}},
};

class ChooseFloats : public testing::TestWithParam<Case> {};

TEST_P(ChooseFloats, Keeps) {
    const graph::Graph graph = five();
    Losses losses(graph, GetParam().losses);
    const auto chosen = choose_floats(graph, GetParam().target, losses.judge());
    ASSERT_TRUE(chosen) << chosen.error().message;
    std::set<std::string> expected;
    for (const size_t i : GetParam().kept) expected.insert(graph.nodes[i].name);
    EXPECT_EQ(*chosen, expected);
    if (expected.empty()) {
        EXPECT_EQ(losses.trials, 1u);
    }
}

INSTANTIATE_TEST_SUITE_P(Losses, ChooseFloats, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

// What int8 saves grows with the channels that a result is a sum of, what conversions cost does
// not.
TEST(ChooseFloatsOf, FewChannelsLeaveNoProductAloneInInt8) {
    struct Row {
        int channels;
        std::vector<double> losses;
        std::set<std::string> kept;
    };
    const Row rows[] = {
        {16, {0.001, 0.001, 0.3, 0.001, 0.001}, {"x1", "x2", "x3", "x4"}},
        {256, {0.001, 0.001, 0.3, 0.001, 0.001}, {"x2", "x3"}},
        // Codes of the input cost more than one product of 128 channels saves.
        {128, {0.001, 0.001, 0.3, 0.001, 0.001}, {"x1", "x2", "x3"}},
        {128, {0.001, 0.001, 0.001, 0.001, 0.3}, {"x4"}},
    };
    for (const Row& row : rows) {
        const graph::Graph graph = five(row.channels);
        Losses losses(graph, row.losses);
        const auto chosen = choose_floats(graph, 0.99, losses.judge());
        ASSERT_TRUE(chosen) << chosen.error().message;
        EXPECT_EQ(*chosen, row.kept) << row.channels;
    }
}

// Classes that agree less than numbers may, beside numbers that miss until a product is float: what
// misses in one trial is not asked of all outputs in the next.
TEST(ChooseFloatsOf, OutputsOfTwoKindsAsksOfEachWhatItsKindCanGive) {
    const graph::Graph graph = five();
    const std::string last = graph.nodes[3].name;  // the one behind it stays float anyway
    const double classes = 0.02 / 0.03;
    const Judge judge{
        .all_but = [&](const std::set<std::string>& kept) -> Result<Verdict> {
            return Verdict{0.98, 0.02, kept.contains(last) ? classes : 2.0};
        },
        .codes_at = [&](const std::vector<graph::ValueId>& values) -> Result<Verdict> {
            const double loss = graph.value(values.back()).name == "x4" ? 0.001 : 0.00001;
            return Verdict{0.98, loss, loss};
        }};
    const auto chosen = choose_floats(graph, std::nullopt, judge);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_EQ(*chosen, std::set<std::string>{last});
}

TEST(ChooseFloatsOf, ATrialThatFailsFails) {
    const Error full{ErrorCode::io, "the disk is full"};
    const Judge judges[] = {
        {.all_but = [&](const auto&) -> Result<Verdict> { return full; }, .codes_at = {}},
        {.all_but = [](const auto&) -> Result<Verdict> { return Verdict{0.5, 0.5}; },
         .codes_at = [&](const auto&) -> Result<Verdict> { return full; }},
    };
    for (const Judge& judge : judges) {
        const auto chosen = choose_floats(five(), 0.99, judge);
        ASSERT_FALSE(chosen);
        EXPECT_EQ(chosen.error().message, "the disk is full");
    }
}

}  // namespace
}  // namespace vartml::compiler
