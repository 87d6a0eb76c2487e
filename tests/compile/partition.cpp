// SPDX-License-Identifier: Apache-2.0
// The partition policy, rule by rule. Trilu and Cosh run on the CPU only; Trilu counts no
// operations, the others here one per output element.
#include "lib/compile/partition.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

const device::Target& softnpu() {
    return *device::find_target("softnpu");
}

// "npu a b | cpu c": names of the nodes.
std::string describe(const graph::Graph& graph, const Partitioning& p) {
    std::string text;
    for (const Part& part : p.parts) {
        text += text.empty() ? "" : " | ";
        text += part.kind == artifact::PartitionKind::npu ? "npu" : "cpu";
        for (const size_t n : part.nodes) text += ' ' + graph.nodes[n].name;
    }
    return text;
}

// "code code": of the fallbacks, in order.
std::string codes(const Partitioning& p) {
    std::string text;
    for (const artifact::Fallback& f : p.fallbacks) text += (text.empty() ? "" : " ") + f.code;
    return text;
}

// The identities that the report keeps.
void check_counts(const Partitioning& p) {
    EXPECT_LE(p.offloaded.operators, p.supported.operators);
    EXPECT_LE(p.supported.operators, p.total.operators);
    EXPECT_EQ(p.supported.subgraphs,
              p.offloaded.subgraphs + p.compile_errors + p.below_threshold + p.above_max);
    artifact::Count npu;
    uint32_t all = 0;
    for (const Part& part : p.parts) {
        all += part.operators;
        if (part.kind != artifact::PartitionKind::npu) continue;
        npu.operators += part.operators;
        npu.ops += part.ops;
        ++npu.subgraphs;
    }
    EXPECT_EQ(npu.operators, p.offloaded.operators);
    EXPECT_EQ(npu.ops, p.offloaded.ops);
    EXPECT_EQ(npu.subgraphs, p.offloaded.subgraphs);
    EXPECT_EQ(p.fallbacks.size(), p.total.operators - p.offloaded.operators);
    for (const artifact::Fallback& f : p.fallbacks) {
        if (f.partition < 0) continue;
        EXPECT_EQ(p.parts[static_cast<size_t>(f.partition)].kind, artifact::PartitionKind::cpu);
    }
    EXPECT_LE(all, p.total.operators);
}

struct Case {
    const char* why;
    const char* nodes;
    double threshold;
    uint32_t max_subgraphs;
    const char* parts;
    const char* codes;
};
const Case cases[] = {
    {"all of it", "%a = Exp %x : f32[4,4]\n%y = Abs %a : f32[4,4]\n", 20, 7, "npu a y", ""},
    {"none of it", "%a = Trilu %x {k=0, upper=1} : f32[4,4]\n%y = Cosh %a : f32[4,4]\n", 20, 7,
     "cpu a y", "unsupported-operator unsupported-operator"},
    {"a cut in the middle",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%y = Exp %b : f32[4,4]\n",
     20, 7, "npu a | cpu b | npu y", "unsupported-operator"},
    {"beside it: one NPU part around what the CPU does first",
     "%a = Exp %x : f32[4,4]\n%b = Cosh %x : f32[4,4]\n%y = Add %a, %b : f32[4,4]\n", 20, 7,
     "cpu b | npu a y", "unsupported-operator"},
    {"a path that leaves and comes back",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%y = Add %a, %b : "
     "f32[4,4]\n",
     20, 7, "npu a | cpu b | npu y", "unsupported-operator"},
    // a holds 16 of 80 operations: exactly the threshold stays.
    {"the threshold is strict",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%c = Exp %b : f32[4,4]\n%d "
     "= Exp %c : f32[4,4]\n%e = Exp %d : f32[4,4]\n%y = Exp %e : f32[4,4]\n",
     20, 7, "npu a | cpu b | npu c d e y", "unsupported-operator"},
    {"below the threshold",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%c = Exp %b : f32[4,4]\n%d "
     "= Exp %c : f32[4,4]\n%e = Exp %d : f32[4,4]\n%y = Exp %e : f32[4,4]\n",
     20.1, 7, "cpu a b | npu c d e y", "below-threshold unsupported-operator"},
    {"no threshold where nothing counts",
     "%a = Transpose %x {perm=[1,0]} : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%y = "
     "Transpose %b {perm=[1,0]} : f32[4,4]\n",
     100, 7, "npu a | cpu b | npu y", "unsupported-operator"},
    {"too many: those with most operations stay, of equal ones the earlier",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%c = Exp %b : f32[4,4]\n%d "
     "= Trilu %c {k=0, upper=1} : f32[4,4]\n%e = Exp %d : f32[4,4]\n%y = Exp %e : f32[4,4]\n",
     0, 2, "npu a | cpu b c d | npu e y",
     "unsupported-operator above-max-subgraphs unsupported-operator"},
    // The threshold speaks first.
    {"each under the first rule that rejects it",
     "%a = Exp %x : f32[4,4]\n%b = Trilu %a {k=0, upper=1} : f32[4,4]\n%c = Exp %b : f32[4,4]\n%d "
     "= Trilu %c {k=0, upper=1} : f32[4,4]\n%e = Exp %d : f32[4,4]\n%y = Exp %e : f32[4,4]\n",
     30, 0, "cpu a b c d e y",
     "below-threshold unsupported-operator below-threshold unsupported-operator "
     "above-max-subgraphs above-max-subgraphs"},
};
TEST(Partition, FollowsThePolicy) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        const auto graph = graph::must_parse("graph g\ninput %x : f32[4,4]\n" +
                                             std::string(c.nodes) + "output %y\n");
        const PartitionPolicy policy{
            .threshold_gops_percent = c.threshold, .max_subgraphs = c.max_subgraphs, .compile = {}};
        const Partitioning p = partition(graph, {}, softnpu(), policy);
        EXPECT_EQ(describe(graph, p), c.parts);
        EXPECT_EQ(codes(p), c.codes);
        check_counts(p);
    }
}

constexpr const char* three_subgraphs = R"(graph g
input %x : f32[4,4]
%a = Exp %x : f32[4,4]
%b = Trilu %a {k=0, upper=1} : f32[4,4]
%c = Exp %b : f32[4,4]
%d = Trilu %c {k=0, upper=1} : f32[4,4]
%y = Exp %d : f32[4,4]
output %y
)";

TEST(Partition, LetsFallBackWhatDoesNotCompile) {
    const auto graph = graph::must_parse(three_subgraphs);
    std::vector<int32_t> tried;
    PartitionPolicy policy;
    policy.compile = [&](const Part& part) -> std::optional<std::string> {
        tried.push_back(part.candidate);
        if (part.candidate != 1) return std::nullopt;
        return "needs 5 bytes of device memory, limit 4";
    };
    const Partitioning p = partition(graph, {}, softnpu(), policy);
    EXPECT_EQ(tried, (std::vector<int32_t>{0, 1, 2}));
    EXPECT_EQ(describe(graph, p), "npu a | cpu b c d | npu y");
    EXPECT_EQ(p.compile_errors, 1u);
    ASSERT_EQ(p.fallbacks.size(), 3u);
    EXPECT_EQ(p.fallbacks[1].code, "compile-error");
    EXPECT_EQ(p.fallbacks[1].text, "candidate_1 needs 5 bytes of device memory, limit 4");
    EXPECT_EQ(p.fallbacks[1].candidate, 1);
    EXPECT_EQ(p.fallbacks[1].partition, 1);
    EXPECT_EQ(p.fallbacks[0].candidate, -1);
    check_counts(p);
}

TEST(Partition, SaysWhyASubgraphWasRejected) {
    const auto graph = graph::must_parse(three_subgraphs);
    const Partitioning small =
        partition(graph, {}, softnpu(), {.threshold_gops_percent = 50, .compile = {}});
    EXPECT_EQ(small.fallbacks[2].text, "candidate_1 holds 33.333% of the GOPs, threshold 50%");
    const Partitioning many = partition(graph, {}, softnpu(), {.max_subgraphs = 2, .compile = {}});
    EXPECT_EQ(many.fallbacks[2].text,
              "candidate_2 is not among the 2 subgraphs with most operations");
}

TEST(Partition, LeavesTheRestAloneInStandardCompilation) {
    const auto graph = graph::must_parse(three_subgraphs);
    const Partitioning p = partition(graph, {}, softnpu(), {.cpu_parts = false, .compile = {}});
    EXPECT_EQ(describe(graph, p), "npu a | npu c | npu y");
    ASSERT_EQ(p.fallbacks.size(), 2u);
    EXPECT_EQ(p.fallbacks[0].partition, -1);
    check_counts(p);
}

// One ONNX node became three; the last does not run on the NPU.
TEST(Partition, KeepsWhatOneNodeBecameTogether) {
    const auto graph = graph::must_parse(R"(graph g
input %x : f32[4,4]
%a = Exp %x : f32[4,4]
%m1 = Exp %a : f32[4,4] @m1 from "composite"
%m2 = Cosh %m1 : f32[4,4] @m2 from "composite"
%m3 = Exp %m2 : f32[4,4] @m3 from "composite"
%y = Exp %m3 : f32[4,4]
output %y
)");
    const Partitioning p =
        partition(graph, {{"composite", {"MyOp", "my.domain"}}}, softnpu(), {.compile = {}});
    EXPECT_EQ(describe(graph, p), "npu a | cpu m1 m2 m3 | npu y");
    EXPECT_EQ(p.total.operators, 3u);
    ASSERT_EQ(p.fallbacks.size(), 1u);
    EXPECT_EQ(p.fallbacks[0].node, "composite");
    EXPECT_EQ(p.fallbacks[0].op_type, "MyOp");
    EXPECT_EQ(p.fallbacks[0].domain, "my.domain");
    EXPECT_EQ(p.parts[1].ops, 48u);
    check_counts(p);
}

TEST(Partition, GathersTheCpusNodesInAsFewPartsAsTheOrderAllows) {
    // Both Cosh run before the NPU; the Trilu that reads them both joins them.
    const auto graph = graph::must_parse(R"(graph g
input %x : f32[4,4]
input %z : f32[4,4]
%a = Cosh %x : f32[4,4]
%b = Cosh %z : f32[4,4]
%c = Trilu %a {k=0, upper=1} : f32[4,4]
%d = Add %b, %c : f32[4,4]
%y = Trilu %d {k=0, upper=1} : f32[4,4]
output %y
)");
    const Partitioning p = partition(graph, {}, softnpu(), {.compile = {}});
    EXPECT_EQ(describe(graph, p), "cpu a b c | npu d | cpu y");
    check_counts(p);
}

}  // namespace
}  // namespace vartml::compiler
