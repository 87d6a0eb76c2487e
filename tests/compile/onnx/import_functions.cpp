// SPDX-License-Identifier: Apache-2.0
// Functions that a model brings along.
#include <gtest/gtest.h>

#include "tests/compile/onnx/import_fixture.h"

namespace vartml::onnx {
namespace {

// Adds Name(a) -> b, which calls each of `calls` in turn.
void add_function(TinyOnnx& m, const std::string& name, const std::vector<std::string>& calls) {
    auto* f = m.proto().add_functions();
    f->set_name(name);
    f->set_domain("my");
    f->add_input("a");
    f->add_output("b");
    for (const char* domain : {"", "my"}) {
        auto* set = f->add_opset_import();
        set->set_domain(domain);
        set->set_version(*domain ? 1 : 17);
    }
    for (size_t i = 0; i < calls.size(); ++i) {
        auto* n = f->add_node();
        n->set_op_type(calls[i]);
        if (calls[i] != "Neg") n->set_domain("my");
        n->add_input(i == 0 ? "a" : "t" + std::to_string(i));
        n->add_output(i + 1 == calls.size() ? "b" : "t" + std::to_string(i + 1));
    }
}

void refer(::onnx::NodeProto& node, const char* attribute, const char* of_function) {
    auto* a = node.add_attribute();
    a->set_name(attribute);
    a->set_type(::onnx::AttributeProto::FLOAT);
    a->set_ref_attr_name(of_function);
}

TEST_F(Import, TakesTheAttributesThatAFunctionHasValuesFor) {
    // Outer(a) calls Inner(a) {k}, both with a value of their own for the attribute.
    const auto model = [](std::optional<float> given) {
        TinyOnnx m;
        std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes;
        if (given) attributes.emplace_back("k", *given);
        m.opset("my", 1).input("x", {1, 4}).node("Outer", {"x"}, {"y"}, attributes, "my");
        m.output("y");
        add_function(m, "Outer", {"Inner", "Inner"});
        add_function(m, "Inner", {"Elu"});
        auto& functions = *m.proto().mutable_functions();
        const auto add = [](::onnx::FunctionProto& f, float value) {
            auto* a = f.add_attribute_proto();
            a->set_name("k");
            a->set_type(::onnx::AttributeProto::FLOAT);
            a->set_f(value);
        };
        add(functions[0], 0.5f);
        refer(*functions[0].mutable_node(0), "k", "k");
        add(functions[1], 0.25f);
        functions[1].mutable_node(0)->clear_domain();
        refer(*functions[1].mutable_node(0), "alpha", "k");
        return m;
    };
    const auto alphas = [&](const TinyOnnx& m) {
        std::vector<float> found;
        for (const auto& node : good(m).graph.nodes) found.push_back(node.get("alpha", 1.0f));
        return found;
    };
    EXPECT_EQ(alphas(model({})), (std::vector{0.5f, 0.25f}));
    EXPECT_EQ(alphas(model(2.0f)), (std::vector{2.0f, 0.25f}));
}

// Outer hands on an attribute that its own call leaves out: Inner has a value for it.
TEST_F(Import, TakesTheValueOfTheFunctionThatIsGivenNothing) {
    const auto alpha = [&](std::optional<float> given) {
        TinyOnnx m;
        std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes;
        if (given) attributes.emplace_back("k", *given);
        m.opset("my", 1).input("x", {1, 4}).node("Outer", {"x"}, {"y"}, attributes, "my");
        m.output("y");
        add_function(m, "Outer", {"Inner"});
        add_function(m, "Inner", {"LeakyRelu"});
        auto& functions = *m.proto().mutable_functions();
        functions[0].add_attribute("k");
        refer(*functions[0].mutable_node(0), "k", "k");
        auto* value = functions[1].add_attribute_proto();
        value->set_name("k");
        value->set_type(::onnx::AttributeProto::FLOAT);
        value->set_f(0.9f);
        functions[1].mutable_node(0)->clear_domain();
        refer(*functions[1].mutable_node(0), "alpha", "k");
        return good(m).graph.nodes.at(0).get("alpha", 0.01f);
    };
    EXPECT_EQ(alpha({}), 0.9f);
    EXPECT_EQ(alpha(0.5f), 0.5f);
}

// One overload calls the other, which has a value for the attribute.
TEST_F(Import, TellsFunctionsByTheirOverloads) {
    TinyOnnx m;
    m.opset("my", 1).input("x", {1, 4}).node("F", {"x"}, {"y"}, {}, "my").output("y");
    m.proto().mutable_graph()->mutable_node(0)->set_overload("one");
    add_function(m, "F", {"F", "Neg"});
    add_function(m, "F", {"LeakyRelu"});
    auto& functions = *m.proto().mutable_functions();
    functions[0].set_overload("one");
    functions[0].mutable_node(0)->set_overload("two");
    functions[0].mutable_node(1)->clear_domain();
    functions[1].set_overload("two");
    auto* value = functions[1].add_attribute_proto();
    value->set_name("k");
    value->set_type(::onnx::AttributeProto::FLOAT);
    value->set_f(0.9f);
    functions[1].mutable_node(0)->clear_domain();
    refer(*functions[1].mutable_node(0), "alpha", "k");
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"LeakyRelu", "Neg"}));
    EXPECT_EQ(out.graph.nodes[0].get("alpha", 0.01f), 0.9f);
}

TEST_F(Import, TakesOperatorSetsThatAFunctionAloneHas) {
    TinyOnnx m;
    m.opset("my", 1).input("x", {1, 4}).node("F", {"x"}, {"y"}, {}, "my").output("y");
    add_function(m, "F", {"Gelu"});
    auto& f = *m.proto().mutable_functions(0);
    f.mutable_node(0)->set_domain("com.microsoft");
    auto* set = f.add_opset_import();
    set->set_domain("com.microsoft");
    set->set_version(1);
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Gelu"}));
}

TEST_F(Import, TakesFunctionsOfOtherOperatorSets) {
    const auto model = [](const char* op) {
        TinyOnnx m(20);
        m.opset("my", 1).input("x", {1, 4}).node("F", {"x"}, {"y"}, {}, "my").output("y");
        add_function(m, "F", {"Neg", op});
        m.proto().mutable_functions(0)->mutable_node(1)->clear_domain();
        return m;
    };
    EXPECT_EQ(kinds(good(model("Sigmoid")).graph), (Kinds{"Neg", "Sigmoid"}));
    EXPECT_EQ(refusal(model("IsNaN")),
              "model.onnx: its function 'my::F' is of operator set 17 of ai.onnx, the rest of set "
              "20, and IsNaN of its node 'b' differs between them; export all of the model with "
              "one set");
    // Nothing calls it.
    TinyOnnx idle = model("IsNaN");
    idle.proto().mutable_graph()->mutable_node(0)->set_op_type("Abs");
    idle.proto().mutable_graph()->mutable_node(0)->clear_domain();
    EXPECT_EQ(kinds(good(idle).graph), (Kinds{"Abs"}));
}

TEST_F(Import, TakesFunctionsThatGiveBackWhatTheyAreGiven) {
    TinyOnnx m;
    m.opset("my", 1).input("x", {1, 4}).node("F", {"x"}, {"same", "less", "again"}, {}, "my");
    m.node("Add", {"same", "again"}, {"y"}).output("y").output("less");
    add_function(m, "F", {"Neg"});
    auto& f = *m.proto().mutable_functions(0);
    f.clear_output();
    for (const char* name : {"a", "b", "b"}) f.add_output(name);
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"Neg", "Add"}));
    const auto& neg = out.graph.nodes[0];
    EXPECT_EQ(neg.inputs[0], out.graph.inputs[0]);
    EXPECT_EQ(out.graph.nodes[1].inputs, (std::vector{out.graph.inputs[0], neg.outputs[0]}));
    TinyOnnx nothing;
    nothing.opset("my", 1).input("x", {1, 4}).node("F", {"x"}, {"t"}, {}, "my");
    nothing.node("Neg", {"t"}, {"y"}).output("y");
    add_function(nothing, "F", {});
    nothing.proto().mutable_functions(0)->set_output(0, "a");
    EXPECT_EQ(kinds(good(nothing).graph), (Kinds{"Neg"}));
}

TEST_F(Import, RefusesFunctionsWithoutEnd) {
    const auto calls = [](const std::string& name) {
        TinyOnnx m;
        m.opset("my", 1).input("x", {1, 4}).node(name, {"x"}, {"y"}, {}, "my").output("y");
        return m;
    };
    TinyOnnx itself = calls("Again");
    add_function(itself, "Again", {"Neg", "Again"});
    EXPECT_EQ(refusal(itself),
              "model.onnx: its function 'my::Again' calls itself; write it without");
    TinyOnnx circle = calls("One");
    add_function(circle, "One", {"Two"});
    add_function(circle, "Two", {"One"});
    EXPECT_EQ(refusal(circle), "model.onnx: its function 'my::One' calls itself; write it without");
    // 2^30 nodes in 31 functions.
    TinyOnnx doubled = calls("F30");
    add_function(doubled, "F0", {"Neg"});
    for (int i = 1; i <= 30; ++i) {
        const std::string callee = "F" + std::to_string(i - 1);
        add_function(doubled, "F" + std::to_string(i), {callee, callee});
    }
    EXPECT_EQ(refusal(doubled),
              "model.onnx: with its functions inlined it has more than 1000000 nodes; split the "
              "model");
    TinyOnnx deep = calls("F1000");
    add_function(deep, "F0", {"Neg"});
    for (int i = 1; i <= 1000; ++i)
        add_function(deep, "F" + std::to_string(i), {"F" + std::to_string(i - 1)});
    EXPECT_EQ(refusal(deep),
              "model.onnx: its functions call each other 200 deep; inline some of them");
    TinyOnnx few = calls("F8");
    add_function(few, "F0", {"Neg"});
    for (int i = 1; i <= 8; ++i) {
        const std::string callee = "F" + std::to_string(i - 1);
        add_function(few, "F" + std::to_string(i), {callee, callee});
    }
    EXPECT_EQ(good(few).graph.nodes.size(), 256U);
}

TEST_F(Import, InlinesFunctionsOfTheModel) {
    TinyOnnx m;
    m.opset("my", 1).input("x", {1, 4}).node("Twice", {"x"}, {"y"}, {}, "my").output("y");
    auto* f = m.proto().add_functions();
    f->set_name("Twice");
    f->set_domain("my");
    f->add_input("a");
    f->add_output("b");
    auto* set = f->add_opset_import();
    set->set_domain("");
    set->set_version(17);
    auto* n = f->add_node();
    n->set_op_type("Add");
    n->add_input("a");
    n->add_input("a");
    n->add_output("b");
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Add"}));
    // Its own operator set of ONNX is for nodes of its own.
    m.proto().mutable_opset_import()->DeleteSubrange(0, 1);
    EXPECT_EQ(m.proto().opset_import_size(), 1);
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Add"}));
}

}  // namespace
}  // namespace vartml::onnx
