// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/fit.h"

#include <gtest/gtest.h>

#include "lib/graph/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/interpreter.h"
#include "tests/support/measure.h"

namespace vartml::compiler {
namespace {

using graph::Graph;

// A wide convolution, one per channel, and a product that stays float.
Graph net() {
    Graph graph = graph::must_parse(R"(graph net
input %x : f32[1,2,8,8]
const %a : f32[16,2,3,3] = {0.0}
const %b : f32[16,1,3,3] = {0.0}
const %c : f32[8,16,1,1] = {0.0}
const %d : f32[4,8,1,1] = {0.0}
%p = Conv %x, %a {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : f32[1,16,8,8]
%pr = Relu %p : f32[1,16,8,8]
%q = Conv %pr, %b {dilations=[1,1], group=16, pads=[1,1,1,1], strides=[1,1]} : f32[1,16,8,8]
%qr = Relu %q : f32[1,16,8,8]
%r = Conv %qr, %c {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,8,8,8]
%y = Conv %r, %d {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,4,8,8]
output %y
)");
    graph::randomise_constants(graph);
    return graph;
}

constexpr size_t samples = 12;

// The interpreter, with an input of its own per sample.
Result<void> run_both(const Graph& exact, const Graph& found, size_t most, const Take& take) {
    const size_t count = std::min(samples, most);
    for (size_t n = 0; n < count; ++n) {
        std::vector<std::vector<float>> values[2];
        for (size_t m = 0; m < 2; ++m) {
            const auto results = graph::interpret(m == 0 ? exact : found, static_cast<uint32_t>(n));
            if (!results) return results.error();
            for (const auto& v : *results) values[m].emplace_back(v.begin(), v.end());
        }
        take({values[0].begin(), values[0].end()}, {values[1].begin(), values[1].end()}, n, count);
    }
    return {};
}

// Mean squared error of the results on inputs that nobody has seen.
double error_of(const Graph& exact, const Graph& found) {
    double sum = 0;
    for (uint32_t seed = 1000; seed < 1010; ++seed) {
        const auto a = graph::interpret(exact, seed), b = graph::interpret(found, seed);
        if (!a || !b) {
            ADD_FAILURE() << (a ? b.error().message : a.error().message);
            return 0;
        }
        for (size_t i = 0; i < (*a)[0].size(); ++i)
            sum += ((*a)[0][i] - (*b)[0][i]) * ((*a)[0][i] - (*b)[0][i]);
    }
    return sum;
}

TEST(FitToFloat, LosesLessThanRoundingEachWeight) {
    const Graph exact = net();
    const Statistics statistics = test::measure(exact);
    const auto fits = fit_to_float(exact, statistics, {}, run_both);
    ASSERT_TRUE(fits) << fits.error().message;
    EXPECT_EQ(fits->size(), 4u);
    Graph plain = exact, fitted = exact;
    ASSERT_TRUE(quantise(plain, statistics));
    const auto share = quantise(fitted, statistics, {}, *fits);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->operators, 3u);
    const auto good = graph::verify(fitted);
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_LT(error_of(exact, fitted), error_of(exact, plain));
}

TEST(FitToFloat, LeavesAModelThatStaysFloatAsItIs) {
    const Graph exact = net();
    const Statistics statistics = test::measure(exact);
    std::set<std::string> kept;
    for (const graph::Node& node : exact.nodes) kept.insert(node.name);
    const auto fits = fit_to_float(exact, statistics, kept, run_both);
    ASSERT_TRUE(fits) << fits.error().message;
    Graph same = exact;
    const auto share = quantise(same, statistics, kept, *fits);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->operators, 0u);
    EXPECT_LT(error_of(exact, same), 1e-6);
}

TEST(FitToFloat, EndsWithTheErrorOfARun) {
    const auto fails = [](const Graph&, const Graph&, size_t, const Take&) -> Result<void> {
        return Error{ErrorCode::io, "the disk is full"};
    };
    const Graph exact = net();
    const auto fits = fit_to_float(exact, test::measure(exact), {}, fails);
    ASSERT_FALSE(fits);
    EXPECT_EQ(fits.error().message, "the disk is full");
}

TEST(Fits, AreReadAsTheyWereWritten) {
    const Fits fits = {{"a", {{1, 2}, {3, 4}, {0.5F}, {0.25}}}, {"b", {{7}, {}, {}, {}}}};
    const std::string bytes = write_fits(fits);
    const auto read = read_fits(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(write_fits(*read), bytes);
    EXPECT_EQ(read->at("a").codes, (std::vector<int8_t>{3, 4}));
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(read_fits(std::string_view(bytes).substr(0, size))) << size;
    EXPECT_FALSE(read_fits(bytes + "x"));
}

}  // namespace
}  // namespace vartml::compiler
