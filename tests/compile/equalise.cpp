// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/equalise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/graphs.h"
#include "tests/support/measure.h"

namespace vartml::compiler {
namespace {

struct Case {
    const char* name;
    const char* middle;  // from %a to %m
    size_t changed;      // tensors
    long multiplied;     // by a Mul of its own
};
void PrintTo(const Case& c, std::ostream* os) {
    *os << c.name;
}

#define WINDOW "{dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,3,6,6]\n"
#define DEPTHWISE "{dilations=[1,1], group=3, pads=[1,1,1,1], strides=[1,1]} : f32[1,3,6,6]\n"
const Case cases[] = {
    {"BehindNothing", "%m = Identity %a : f32[1,3,6,6]\n", 0, 0},
    {"BehindRelu", "%r = Relu %a : f32[1,3,6,6]\n%m = Conv %r, %w " WINDOW, 1, 0},
    {"BehindSiLU", "%r = vartml::SiLU %a : f32[1,3,6,6]\n%m = Conv %r, %w " WINDOW, 1, 1},
    {"InFrontOfDepthwise", "%r = vartml::SiLU %a : f32[1,3,6,6]\n%m = Conv %r, %d " DEPTHWISE, 1,
     1},
    {"AcrossAdditions",
     "%r = Relu %a : f32[1,3,6,6]\n%b = Conv %r, %w " WINDOW
     "%s = Add %r, %b : f32[1,3,6,6]\n%m = Conv %s, %w " WINDOW,
     2, 0},
    {"AcrossGatesAndPools",
     "%r = Relu %a : f32[1,3,6,6]\n%p = GlobalAveragePool %r : f32[1,3,1,1]\n"
     "%k = Conv %p, %e {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,3,1,1]\n"
     "%g = Sigmoid %k : f32[1,3,1,1]\n%t = Mul %r, %g : f32[1,3,6,6]\n%m = Conv %t, %w " WINDOW,
     1, 0},
    // Channels that mix with others, and what leaves the model.
    {"NotInFrontOfConcat",
     "%r = Relu %a : f32[1,3,6,6]\n%c = Concat %r, %r {axis=1} : f32[1,6,6,6]\n"
     "%m = Conv %c, %f " WINDOW,
     0, 0},
};

// The largest channel by the smallest.
float spread(const TensorStatistics& statistics) {
    const auto size = [](const Range& r) { return std::max(-r.low, r.high); };
    const auto [least, most] = std::ranges::minmax(statistics.channel_ranges(), {}, size);
    return size(most) / size(least);
}

class Equalise : public testing::TestWithParam<Case> {};

TEST_P(Equalise, ComputesTheSameFromChannelsAlike) {
    const std::string text = std::string(R"(graph net
input %x : f32[1,3,6,6]
const %u : f32[3,3,1,1] = {30.0, 10.0, 20.0, 0.5, 0.25, 0.5, 0.02, 0.01, -0.01}
const %w : f32[3,3,3,3] = {0.0}
const %d : f32[3,1,3,3] = {0.0}
const %e : f32[3,3,1,1] = {0.0}
const %f : f32[3,6,3,3] = {0.0}
%a = Conv %x, %u {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,3,6,6]
)") + GetParam().middle + "%n = Identity %m : f32[1,3,6,6]\n%y = Conv %n, %w " WINDOW "output %y\n";
    graph::Graph graph = graph::must_parse(text);
    graph::randomise_constants(graph);
    const auto expected = graph::interpret(graph);
    ASSERT_TRUE(expected) << expected.error().message;
    const auto muls = [&] { return std::ranges::count(graph.nodes, "Mul", &graph::Node::kind); };
    const auto muls_before = muls();
    const Statistics before = test::measure(graph);
    const size_t changed = equalise(graph, before);
    EXPECT_GE(changed, GetParam().changed) << graph::print(graph);
    EXPECT_EQ(changed == 0, GetParam().changed == 0) << graph::print(graph);
    EXPECT_EQ(muls() - muls_before, GetParam().multiplied) << graph::print(graph);
    const auto good = graph::verify(graph);
    ASSERT_TRUE(good) << good.error().message;
    const auto found = graph::interpret(graph);
    ASSERT_TRUE(found) << found.error().message;
    double largest = 0;
    for (const double v : (*expected)[0]) largest = std::max(largest, std::fabs(v));
    for (size_t i = 0; i < (*found)[0].size(); ++i)
        ASSERT_NEAR((*found)[0][i], (*expected)[0][i], 1e-5 * largest);
    if (changed == 0) return;
    const Statistics after = test::measure(graph);
    // The sum, where there is one: what is added has its factors, not its sizes.
    const std::string name = before.contains("s") ? "s" : "r";
    const auto behind = after.find(name + "/equalized");
    EXPECT_LT(spread(behind == after.end() ? after.at(name) : behind->second),
              spread(before.at(name)) / 2);
}

// Also where another axis is as long as the channels are.
TEST(EqualiseAnyRank, MultipliesChannels) {
    struct Form {
        const char *tensor, *filter, *window;
    };
    const Form forms[] = {
        {"f32[1,3,6]", "f32[3,3,1]", "{dilations=[1], group=1, pads=[0,0], strides=[1]}"},
        {"f32[3,3,6]", "f32[3,3,1]", "{dilations=[1], group=1, pads=[0,0], strides=[1]}"},
        {"f32[1,3,3,6,6]", "f32[3,3,1,1,1]",
         "{dilations=[1,1,1], group=1, pads=[0,0,0,0,0,0], strides=[1,1,1]}"},
    };
    for (const auto& [tensor, filter, window] : forms) {
        const std::string t = std::string(" : ") + tensor + "\n";
        const std::string conv = std::string(" ") + window + t;
        graph::Graph graph = graph::must_parse(
            "graph net\ninput %x" + t + "const %u : " + filter +
            " = {30.0, 10.0, 20.0, 0.5, 0.25, 0.5, 0.02, 0.01, -0.01}\nconst %w : " + filter +
            " = {1.0, 0.5, 0.25, -0.5, 1.0, 0.5, 0.25, 0.5, -1.0}\n%a = Conv %x, %u" + conv +
            "%r = vartml::SiLU %a" + t + "%m = Conv %r, %w" + conv + "%n = vartml::SiLU %m" + t +
            "%y = Conv %n, %w" + conv + "output %y\n");
        const auto expected = graph::interpret(graph);
        ASSERT_TRUE(expected) << expected.error().message;
        EXPECT_GE(equalise(graph, test::measure(graph)), 1u) << tensor;
        const auto good = graph::verify(graph);
        ASSERT_TRUE(good) << tensor << ' ' << good.error().message;
        const auto found = graph::interpret(graph);
        ASSERT_TRUE(found) << found.error().message;
        double largest = 0;
        for (const double v : (*expected)[0]) largest = std::max(largest, std::fabs(v));
        for (size_t i = 0; i < (*found)[0].size(); ++i)
            ASSERT_NEAR((*found)[0][i], (*expected)[0][i], 1e-5 * largest) << tensor;
    }
}

INSTANTIATE_TEST_SUITE_P(Tensors, Equalise, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace vartml::compiler
