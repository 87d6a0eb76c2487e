// SPDX-License-Identifier: Apache-2.0
// Old and new operator sets, and versions of the format.
#include <gtest/gtest.h>

#include "tests/compile/onnx/import_fixture.h"

namespace vartml::onnx {
namespace {

TEST_F(Import, RefusesOperatorSetsAndVersionsItDoesNotKnow) {
    TinyOnnx old(6);
    old.input("x", {1}).node("Add", {"x", "x"}, {"y"}).output("y");
    EXPECT_EQ(refusal(old),
              "model.onnx: declares operator set 6, accepted are 7 to 25; convert it with "
              "onnx.version_converter");
    TinyOnnx odd(1);  // as of Custom Vision
    odd.opset("com.microsoft", 1).input("x", {1});
    odd.node("LegacyPadding", {"x"}, {"p"}, {}, "com.microsoft");
    odd.node("Add", {"p", "p"}, {"a"}).node("FC", {"a"}, {"y"}).output("y");
    EXPECT_EQ(refusal(odd),
              "model.onnx: declares operator set 1, accepted are 7 to 25, and uses FC and "
              "com.microsoft::LegacyPadding, which no set of ONNX has, so that "
              "onnx.version_converter stops there; export the model anew without them");
    TinyOnnx same(6);  // what Relu is in set 7, too
    same.input("x", {1}).node("Relu", {"x"}, {"y"}).output("y");
    good(same);
    TinyOnnx ancient(7, 2);
    ancient.input("x", {1}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(refusal(ancient).find("has the IR version 2, expected 3 or newer"),
              std::string::npos);
    TinyOnnx newer(17, 99);
    newer.input("x", {1}).node("Relu", {"x"}, {"y"}).output("y");
    const Imported out = good(newer);
    ASSERT_EQ(out.messages.size(), 1u);
    EXPECT_EQ(out.messages[0].level, LogLevel::warning);
}

TEST_F(Import, ReadsOperatorSetsThatOnlyAddToTheOneItKnows) {
    for (const int set : {23, 24, 25}) {
        TinyOnnx m(set, 13);
        m.input("x", {1, 4}).floats("s", {4}, {1, 1, 1, 1});
        m.node("RMSNormalization", {"x", "s"}, {"n"}, {{"stash_type", int64_t{1}}});
        m.node("Swish", {"n"}, {"y"}, {{"alpha", 2.0F}}).output("y");
        const Imported out = good(m);
        EXPECT_TRUE(out.messages.empty());
        std::vector<std::string> kinds;
        for (const graph::Node& node : out.graph.nodes) kinds.push_back(node.kind);
        EXPECT_EQ(kinds, (std::vector<std::string>{"RMSNormalization", "Mul", "Sigmoid", "Mul"}));
    }
    TinyOnnx newest(26, 10);
    newest.input("x", {1}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(refusal(newest).find("declares operator set 26, accepted are 7 to 25"),
              std::string::npos);
}

// Attributes that sets behind 22 add to its operators.
TEST_F(Import, ReadsNewAttributesThatChangeNothingAndRefusesTheOthers) {
    struct Row {
        const char* op;
        const char* attribute;
        TinyOnnx::Attribute value;
        int opset;
        const char* want;  // kinds of the nodes, or a part of the refusal
    };
    const Row rows[] = {
        {"Cast", "round_mode", std::string("up"), 24, "Cast"},
        {"CastLike", "round_mode", std::string("nearest"), 25, "Cast"},
        {"DequantizeLinear", "output_dtype", int64_t{0}, 23, "DequantizeLinear"},
        {"DequantizeLinear", "output_dtype", int64_t{1}, 23, "DequantizeLinear"},
        {"DequantizeLinear", "output_dtype", int64_t{10}, 23, "DequantizeLinear Cast"},
        {"DequantizeLinear", "output_dtype", int64_t{17}, 23,
         "(DequantizeLinear) makes elements of type FLOAT8E4M3FN, which cannot be compiled"},
        {"DequantizeLinear", "output_dtype", int64_t{1}, 22,
         "(DequantizeLinear) is not valid: Unrecognized attribute: output_dtype"},
        {"QuantizeLinear", "precision", int64_t{0}, 23, "QuantizeLinear"},
        {"QuantizeLinear", "precision", int64_t{1}, 25, "QuantizeLinear"},
        {"QuantizeLinear", "precision", int64_t{10}, 23,
         "(QuantizeLinear) divides in FLOAT16 by its attribute 'precision', which is not done "
         "here; export it without, or with FLOAT"},
        {"QuantizeLinear", "precision", int64_t{1}, 22,
         "(QuantizeLinear) is not valid: Unrecognized attribute: precision"},
        {"QuantizeLinear", "output_dtype", int64_t{23}, 23,
         "(QuantizeLinear) makes elements of type FLOAT4E2M1, which cannot be compiled"},
        {"QuantizeLinear", "output_dtype", int64_t{26}, 25,
         "(QuantizeLinear) makes elements of type INT2, which cannot be compiled"},
        {"Cast", "axis", int64_t{0}, 25, "(Cast) is not valid: Unrecognized attribute: axis"},
    };
    for (const Row& row : rows) {
        const bool is_code = std::string_view(row.op) == "DequantizeLinear";
        const bool has_second = !std::string_view(row.op).starts_with("Cast") || row.op[4] == 'L';
        TinyOnnx m(row.opset, 10);
        m.input("x", {4}, is_code ? TinyOnnx::uint8 : TinyOnnx::int32).floats("s", {}, {1});
        m.node("Cast", {"x"}, {"f"}, {{"to", int64_t{is_code ? TinyOnnx::uint8 : 1}}});
        std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes{
            {row.attribute, row.value}};
        if (!has_second) attributes.emplace_back("to", int64_t{1});
        m.node(row.op,
               has_second ? std::vector<std::string>{is_code ? "x" : "f", "s"}
                          : std::vector<std::string>{"x"},
               {"y"}, attributes);
        m.output("y");
        const auto result = run(m);
        const std::string text = result ? "" : local(result.error().message);
        if (!result) {
            EXPECT_TRUE(text.starts_with("model.onnx: node 'y_node' ")) << text;
            EXPECT_NE(text.find(row.want), std::string::npos) << text;
            continue;
        }
        std::string found;
        for (const graph::Node& node : result->graph.nodes)
            if (node.sources == Kinds{"y_node"}) found += (found.empty() ? "" : " ") + node.kind;
        EXPECT_EQ(found, row.want) << row.op << ' ' << row.attribute;
    }
}

// Where ONNX Runtime computes what is none of ours, it is asked by set 22, and not at all for what
// that set does not have.
TEST_F(Import, AsksOnnxRuntimeByTheSetOfTheSchemas) {
    ImportOptions options;
    options.foreign.allowed = true;
    ::onnx::ModelProto asked;
    options.foreign.ask = [&](const std::string& model) -> Result<std::vector<ForeignOutput>> {
        asked.ParseFromString(model);
        return std::vector<ForeignOutput>{{.elem_type = 1, .has_shape = true, .shape = {4}}};
    };
    TinyOnnx m(25, 13);
    m.input("x", {4}).node("Bernoulli", {"x"}, {"y"}).output("y");
    good(m, options);
    ASSERT_EQ(asked.opset_import_size(), 1);
    EXPECT_EQ(asked.opset_import(0).version(), 22);
    EXPECT_EQ(asked.ir_version(), 10);
    TinyOnnx body(25, 13);
    body.input("i", {}, TinyOnnx::int64).input("c", {}, TinyOnnx::boolean).input("v", {4});
    body.node("Identity", {"c"}, {"d"}).node("Swish", {"v"}, {"w"});
    body.output("d", {}, TinyOnnx::boolean).output("w", {4});
    TinyOnnx loop(25, 13);
    loop.input("x", {4});
    loop.node("Loop", {"", "", "x"}, {"y"}, {{"body", body.graph()}}).output("y", {4});
    good(loop, options);  // what the body has is for ONNX Runtime to judge
    TinyOnnx newer(25, 13);
    newer.input("x", {1, 4, 2}).node("TensorScatter", {"x", "x"}, {"y"}).output("y");
    EXPECT_EQ(refusal(newer, options),
              "model.onnx: node 'y_node' uses TensorScatter (opset 25), an operator on caches of "
              "keys and values that neither the NPU nor the CPU partition runs; export the model "
              "without the cache, or with opset 23, which does without this operator");
}

// Not even where nobody reads what it would make: it may be there for what it does.
TEST_F(Import, RefusesANodeThatNobodyReadsAndNobodyRuns) {
    TinyOnnx model(17);
    model.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y", {4});
    model.opset("com.microsoft", 1).node("Inverse", {"x"}, {"unused"}, {}, "com.microsoft");
    model.node("Inverse", {"y"}, {"unused too"}, {}, "com.microsoft");
    ImportOptions options;
    options.foreign.allowed = true;
    bool is_asked = false;
    options.foreign.ask = [&](const std::string&) -> Result<std::vector<ForeignOutput>> {
        is_asked = true;
        return Error{ErrorCode::unsupported, "no such operator"};
    };
    const std::string text = refusal(model, options);
    EXPECT_NE(text.find("no such operator; no output of the model depends on it: take it out of "
                        "the file\n"),
              text.npos)
        << text;
    EXPECT_TRUE(
        text.ends_with("runs; no output of the model depends on it: take it out of the "
                       "file"))
        << text;
    EXPECT_TRUE(is_asked);
    options.foreign.allowed = false;
    const std::string alone = refusal(model, options);
    EXPECT_NE(alone.find("runs; no output of the model depends on it: take it out of the file\n"),
              alone.npos)
        << alone;
    EXPECT_EQ(alone.find("split"), alone.npos) << alone;
}

// Nothing bounds the scan output, and nobody reads it.
TEST_F(Import, AsksOnnxRuntimeForOutputsThatAreRead) {
    TinyOnnx body(17);
    body.input("i", {}, TinyOnnx::int64).input("c", {}, TinyOnnx::boolean).input("v", {4});
    body.node("Identity", {"c"}, {"d"}).node("Neg", {"v"}, {"w"}).node("Abs", {"v"}, {"s"});
    body.output("d", {}, TinyOnnx::boolean).output("w", {4}).output("s", {4});
    TinyOnnx loop(17);
    loop.input("x", {4}).input("n", {}, TinyOnnx::int64);
    loop.node("Loop", {"n", "", "x"}, {"y", "scan"}, {{"body", body.graph()}});
    loop.node("Relu", {"y"}, {"z"}).output("z", {4});
    ImportOptions options;
    options.foreign.allowed = true;
    ::onnx::ModelProto asked;
    options.foreign.ask = [&](const std::string& model) -> Result<std::vector<ForeignOutput>> {
        asked.ParseFromString(model);
        std::vector<ForeignOutput> answer;
        for (const auto& output : asked.graph().output())
            answer.push_back({.elem_type = 1,
                              .has_shape = true,
                              .shape = {4},
                              .varies = output.name() == "scan"});
        return answer;
    };
    EXPECT_EQ(refusal(loop, options), "imported");
    ASSERT_EQ(asked.graph().output_size(), 1);
    EXPECT_EQ(asked.graph().output(0).name(), "y");
    // The scan output is read by a node alone that nobody reads.
    TinyOnnx beside = loop;
    beside.node("Neg", {"scan"}, {"further"});
    EXPECT_EQ(refusal(beside, options), "imported");
    EXPECT_EQ(kinds(good(beside, options).graph), (Kinds{"OnnxRuntime", "Relu"}));
    TinyOnnx unread = loop;
    loop.output("scan");
    EXPECT_NE(refusal(loop, options).find("output 'scan' has a shape that depends on the data"),
              std::string::npos);
    auto& graph = *unread.proto().mutable_graph();
    graph.mutable_node(1)->set_input(0, "x");
    EXPECT_EQ(refusal(unread, options), "imported");
    EXPECT_EQ(asked.graph().output_size(), 2);
    EXPECT_EQ(kinds(good(unread, options).graph), (Kinds{"Relu"}));
    // Nobody reads what the reader makes.
    TinyOnnx dead = unread;
    dead.node("Neg", {"scan"}, {"further"}).node("Abs", {"further"}, {"nowhere"});
    EXPECT_EQ(refusal(dead, options), "imported");
    EXPECT_EQ(kinds(good(dead, options).graph), (Kinds{"Relu"}));
    // Where there is no ONNX Runtime that could say how large the scan output is, nobody asks.
    options.foreign.ask = nullptr;
    EXPECT_EQ(refusal(unread, options), "imported");
    EXPECT_NE(refusal(loop, options).find("there is no ONNX Runtime here"), std::string::npos);
}

TEST_F(Import, FlattensSoftmaxOfOldSets) {
    TinyOnnx last(11), middle(11);
    last.input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{2}}}).output("y");
    EXPECT_EQ(kinds(good(last).graph), (Kinds{"Softmax"}));
    middle.input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}).output("y");
    const Imported out = good(middle);
    EXPECT_EQ(kinds(out.graph), (Kinds{"Reshape", "Softmax", "Reshape"}));
    EXPECT_EQ(out.operators, 1u);
    EXPECT_EQ(to_string(out.graph.value(out.graph.outputs[0]).type), "f32[2,3,4]");
}

TEST_F(Import, BringsUpsampleAndOldResizeToOneForm) {
    TinyOnnx seven(7), nine(9), ten(10);
    seven.input("x", {1, 2, 4, 4})
        .node("Upsample", {"x"}, {"y"}, {{"scales", TinyOnnx::Floats{1, 1, 2, 2}}})
        .output("y");
    nine.input("x", {1, 2, 4, 4})
        .floats("s", {4}, {1, 1, 2, 2})
        .node("Upsample", {"x", "s"}, {"y"})
        .output("y");
    ten.input("x", {1, 2, 4, 4})
        .floats("s", {4}, {1, 1, 2, 2})
        .node("Resize", {"x", "s"}, {"y"})
        .output("y");
    for (const TinyOnnx* m : {&seven, &nine, &ten}) {
        const Imported out = good(*m);
        ASSERT_EQ(kinds(out.graph), (Kinds{"Resize"}));
        EXPECT_EQ(to_string(out.graph.value(out.graph.outputs[0]).type), "f32[1,2,8,8]");
        EXPECT_EQ(out.graph.nodes[0].get("coordinate_transformation_mode", ""), "asymmetric");
        EXPECT_EQ(out.graph.nodes[0].get("nearest_mode", ""), "floor");
    }
}

}  // namespace
}  // namespace vartml::onnx
