// SPDX-License-Identifier: Apache-2.0
// All passes in the order of the table.
#include "lib/compile/pass_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

using graph::Graph;

TEST(PassTable, FusesAResidualBlock) {
    Graph graph = graph::must_parse(R"(
        input %x : f32[1,4,8,8]
        const %w1 : f32[4,4,3,3] = {0}
        const %w2 : f32[4,4,1,1] = {0}
        const %s : f32[4] = {1, 2, 3, 4}
        %a = Conv %x, %w1 {pads=[1,1,1,1]} : f32[1,4,8,8]
        %b = BatchNormalization %a, %s, %s, %s, %s : f32[1,4,8,8]
        %c = Relu %b : f32[1,4,8,8]
        %d = Conv %c, %w2 : f32[1,4,8,8]
        %e = BatchNormalization %d, %s, %s, %s, %s : f32[1,4,8,8]
        %f = Add %e, %x : f32[1,4,8,8]
        %y = Relu %f : f32[1,4,8,8]
        output %y)");
    const auto reports = run_passes(graph, {.level = 2, .verify = true});
    ASSERT_TRUE(reports) << reports.error().message;
    ASSERT_EQ(graph.nodes.size(), 2U);
    EXPECT_EQ(graph.nodes[0].type(), "Conv+Relu");
    EXPECT_EQ(graph.nodes[1].type(), "Conv+Add+Relu");
    EXPECT_EQ(graph.nodes[1].sources, (std::vector<std::string>{"d", "e", "f", "y"}));
}

// A profile shows them in the names of the ONNX file.
TEST(PassTable, NamesEveryNodeThatAnActivationIsMadeOf) {
    Graph graph = graph::must_parse(R"(
        input %x : f32[2,4]
        const %root : f32[] = {1.41421356}
        const %one : f32[] = {1.0}
        const %half : f32[] = {0.5}
        %a = Div %x, %root : f32[2,4]
        %b = Erf %a : f32[2,4]
        %c = Add %b, %one : f32[2,4]
        %d = Mul %x, %c : f32[2,4]
        %y = Mul %d, %half : f32[2,4]
        output %y)");
    ASSERT_TRUE(run_passes(graph, {.level = 2, .verify = true}));
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(graph.nodes[0].kind, "Gelu");
    std::vector<std::string> sources = graph.nodes[0].sources;
    std::ranges::sort(sources);
    EXPECT_EQ(sources, (std::vector<std::string>{"a", "b", "c", "d", "y"}));
}

TEST(PassTable, LeavesFloatModelsAloneAtLevelZero) {
    Graph graph = graph::must_parse(
        "input %x : f32[2]\n%a = Identity %x : f32[2]\n%y = Relu %a : f32[2]\noutput %y");
    const auto reports = run_passes(graph, {.level = 0, .verify = true});
    ASSERT_TRUE(reports);
    for (const PassReport& report : *reports) EXPECT_EQ(report.rewrites, 0U) << report.name;
    EXPECT_EQ(graph.nodes.size(), 2U);
}

TEST(PassTable, FoldsButDoesNotFuseAtLevelOne) {
    Graph graph = graph::must_parse(
        "input %x : f32[1,4,8,8]\nconst %w : f32[6,4,3,3] = {0}\n"
        "const %b : f32[6] = {0}\n"
        "%a = Conv %x, %w, %b : f32[1,6,6,6]\n%i = Identity %a : "
        "f32[1,6,6,6]\n%y = Relu %i : f32[1,6,6,6]\noutput %y");
    ASSERT_TRUE(run_passes(graph, {.level = 1, .verify = true}));
    ASSERT_EQ(graph.nodes.size(), 2U);
    EXPECT_EQ(graph.nodes[0].kind, "Conv");
}

TEST(PassTable, RefusesABrokenGraph) {
    Graph graph = graph::must_parse("input %x : f32[2]\n%y = Relu %x : f32[2]\noutput %y");
    graph.nodes[0].inputs[0] = 7;
    const auto reports = run_passes(graph, {.level = 2, .verify = true});
    ASSERT_FALSE(reports);
    EXPECT_EQ(reports.error().code, ErrorCode::internal);
    EXPECT_EQ(reports.error().message,
              "the graph is broken before the first pass: node 'y' (Relu) reads value number 7, "
              "which does not exist");
}

}  // namespace
}  // namespace vartml::compiler
