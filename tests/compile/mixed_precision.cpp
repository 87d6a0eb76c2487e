// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/mixed_precision.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

// Five convolutions in a row, of which the last stays float anyway.
graph::Graph five() {
    std::string text = "graph net\ninput %x0 : f32[1,2,6,6]\nconst %w : f32[2,2,1,1] = {0.5}\n";
    for (int i = 0; i < 5; ++i)
        text += "%x" + std::to_string(i + 1) + " = Conv %x" + std::to_string(i) +
                ", %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
                "f32[1,2,6,6]\n";
    return graph::must_parse(text + "output %x5\n");
}

// What each loses in int8; losses add up.
class Losses {
public:
    explicit Losses(const graph::Graph& graph, std::vector<double> losses) {
        for (size_t i = 0; i < losses.size(); ++i) losses_[graph.nodes[i].name] = losses[i];
    }
    Result<Verdict> operator()(const std::set<std::string>& kept) {
        ++calls;
        double sum = 0;
        for (const auto& [name, loss] : losses_)
            if (!kept.contains(name)) sum += loss;
        return Verdict{1 - sum, sum};
    }
    size_t calls = 0;

private:
    std::map<std::string, double> losses_;
};

struct Case {
    const char* name;
    std::vector<double> losses;
    double target;
    std::vector<size_t> kept;
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}
const Case cases[] = {
    {"NothingWhereInt8AgreesAlready", {0.001, 0.002, 0.001, 0.001}, 0.99, {}},
    {"WhatLosesMost", {0.001, 0.3, 0.002, 0.001}, 0.99, {1}},
    {"AsManyAsTheTargetTakes", {0.1, 0.002, 0.2, 0.001}, 0.99, {0, 2}},
    {"AllWhereNothingLessDoes", {0.1, 0.1, 0.1, 0.1}, 1, {0, 1, 2, 3}},
};

class ChooseFloats : public testing::TestWithParam<Case> {};

TEST_P(ChooseFloats, Keeps) {
    const graph::Graph graph = five();
    Losses losses(graph, GetParam().losses);
    const auto chosen = choose_floats(graph, GetParam().target, std::ref(losses));
    ASSERT_TRUE(chosen) << chosen.error().message;
    std::set<std::string> expected;
    for (const size_t i : GetParam().kept) expected.insert(graph.nodes[i].name);
    EXPECT_EQ(*chosen, expected);
    if (expected.empty()) {
        EXPECT_EQ(losses.calls, 1u);
    }
}

INSTANTIATE_TEST_SUITE_P(Losses, ChooseFloats, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ChooseFloatsOf, ATrialThatFailsFails) {
    const auto chosen =
        choose_floats(five(), 0.99, [](const std::set<std::string>&) -> Result<Verdict> {
            return Error{ErrorCode::io, "the disk is full"};
        });
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().message, "the disk is full");
}

}  // namespace
}  // namespace vartml::compiler
