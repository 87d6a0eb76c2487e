// SPDX-License-Identifier: Apache-2.0
// What the long runs of fuzz_graphs rest on: that it makes every operator, that a seed is a model,
// and that it finds a fault and cuts it out.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/fuzz_graphs/check.h"
#include "tests/fuzz_graphs/draft.h"
#include "tests/fuzz_graphs/isolated.h"
#include "tests/fuzz_graphs/reduce.h"
#include "tests/support/temp_dir.h"

namespace vartml::fuzz_graphs {
namespace {

std::optional<Model> draft(uint64_t seed, const test::TempDir& temp) {
    std::vector<std::string> refusals;
    return draft_model(seed, temp / "node.onnx", refusals);
}

TEST(FuzzGraphs, MakeTheSameModelOfASeed) {
    const test::TempDir temp;
    for (const uint64_t seed : {1, 2, 3}) {
        const auto first = draft(seed, temp), second = draft(seed, temp);
        ASSERT_TRUE(first && second);
        EXPECT_EQ(first->proto.SerializeAsString(), second->proto.SerializeAsString());
        save(*first, temp / "kept");
        const Model again = load(temp / "kept");
        EXPECT_EQ(again.proto.SerializeAsString(), first->proto.SerializeAsString());
        ASSERT_EQ(again.feed.size(), first->feed.size());
        for (size_t i = 0; i < again.feed.size(); ++i)
            EXPECT_EQ(again.feed[i].data.bytes, first->feed[i].data.bytes);
    }
}

// A new row of the table is drafted by its schema, or needs a recipe.
TEST(FuzzGraphs, MakeEveryOperatorOfTheTable) {
    const test::TempDir temp;
    for (const std::string& kind : drafted_operators()) {
        bool made = false;
        for (uint64_t seed = 1; seed <= 60 && !made; ++seed) {
            Draft draft(seed, temp / "node.onnx");
            made = add_operator(draft, kind);
        }
        EXPECT_TRUE(made) << kind;
    }
    const std::vector<std::string> drafted = drafted_operators();
    for (const graph::OpInfo& op : graph::all_ops())
        EXPECT_NE(std::ranges::find(drafted, op.kind) != drafted.end(),
                  graph::has_trait(op.kind, graph::Trait::internal))
            << op.kind;
}

TEST(FuzzGraphs, LetRoundingDifferAndNothingElse) {
    const test::TempDir temp;
    test::TinyOnnx m(17);
    m.node("Mul", {"x", "x"}, {"a"}).node("Exp", {"a"}, {"b"});
    m.node("Transpose", {"x"}, {"moved"}, {{"perm", Ints{1, 0}}});
    Model model{m.proto(), {}};
    const double numbers[] = {0.5, -1.25, 2, 0.1};
    const Values values = {{"x", tensor_of(DataType::float32, {2, 2}, numbers)}};
    model.feed = {{"x", values.at("x")}};
    for (const char* name : {"b", "moved"})
        model.proto.mutable_graph()->add_output()->set_name(name);
    auto reference = evaluate(model, temp / "node.onnx");
    ASSERT_TRUE(reference) << reference.error().message;
    ASSERT_TRUE(find_tolerances(model, Precision::f32, 4, 1, temp / "node.onnx", *reference));
    EXPECT_EQ(reference->tolerance.at("moved"), 0);
    Values found = reference->values;
    EXPECT_EQ(difference(found, *reference), "");
    auto b = all_numbers(found["b"]);
    b[2] *= 1 + 1e-7;
    found["b"] = tensor_of(DataType::float32, {2, 2}, b);
    EXPECT_EQ(difference(found, *reference), "");
    b[2] *= 1.001;
    found["b"] = tensor_of(DataType::float32, {2, 2}, b);
    EXPECT_TRUE(difference(found, *reference).starts_with("output 'b' element 2 is "))
        << difference(found, *reference);
    found["b"] = reference->values["b"];
    found["moved"] = values.at("x");
    EXPECT_TRUE(difference(found, *reference).starts_with("output 'moved' "));
}

// "Wrong" are models in which a Tanh reads what an Add made.
TEST(FuzzGraphs, CutAFaultOut) {
    const test::TempDir temp;
    test::TinyOnnx m(17);
    m.node("Relu", {"x"}, {"a"}).node("Add", {"a", "x"}, {"b"}).node("Tanh", {"b"}, {"c"});
    m.node("Neg", {"c"}, {"d"}).node("Abs", {"a"}, {"e"});
    Model model{m.proto(), {}};
    const double numbers[] = {1, 2, 3};
    model.feed = {{"x", tensor_of(DataType::float32, {3}, numbers)}};
    model.proto.mutable_graph()->add_input()->set_name("x");
    for (const char* name : {"d", "e"}) model.proto.mutable_graph()->add_output()->set_name(name);
    const auto reference = evaluate(model, temp / "node.onnx");
    ASSERT_TRUE(reference) << reference.error().message;
    const Model least = reduce(model, reference->values, [](const Model& part) {
        bool adds = false, found = false;
        for (const auto& node : part.proto.graph().node()) {
            found = found || (node.op_type() == "Tanh" && adds);
            adds = adds || node.op_type() == "Add";
        }
        return found;
    });
    ASSERT_EQ(least.proto.graph().node_size(), 2);
    EXPECT_EQ(least.proto.graph().node(0).op_type(), "Add");
    EXPECT_EQ(least.proto.graph().output(0).name(), "c");
    ASSERT_EQ(least.feed.size(), 2U);  // what Relu made, too
}

TEST(FuzzGraphs, TakeACrashForAResult) {
    const Isolated crashed = run_isolated(
        [](const Tell& tell) {
            tell("begun");
            std::raise(SIGKILL);
        },
        60);
    EXPECT_EQ(crashed.lines, std::vector<std::string>{"begun"});
    EXPECT_EQ(crashed.end, "crashes (signal 9)");
    const Isolated good = run_isolated([](const Tell& tell) { tell("a\nb"); }, 60);
    EXPECT_EQ(good.lines, std::vector<std::string>{"a b"});
    EXPECT_EQ(good.end, "");
}

}  // namespace
}  // namespace vartml::fuzz_graphs
