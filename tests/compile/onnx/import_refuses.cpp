// SPDX-License-Identifier: Apache-2.0
// Nodes and attributes that are refused, and in which words.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/text.h"
#include "tests/compile/onnx/import_fixture.h"

namespace vartml::onnx {
namespace {

struct Refused {
    const char* op;
    std::vector<std::string> inputs;
    int opset;
    std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes;
    const char* want;
};
// One row per class of operators that are refused, plus the operator sets.
const Refused refused[] = {
    {"Loop",
     {"", "", "x"},
     13,
     {{"body", ::onnx::GraphProto()}},
     "uses Loop (opset 13), a control-flow operator that neither the NPU nor the CPU partition "
     "runs; export the model with the "
     "loop unrolled, or split it at tensor 'y'"},
    {"SequenceConstruct",
     {"x"},
     13,
     {},
     "a sequence operator that neither the NPU nor the CPU partition runs; keep this part in "
     "the application"},
    {"Optional", {"x"}, 15, {}, "an operator on optional values"},
    {"StringNormalizer", {"x"}, 13, {}, "an operator on strings"},
    {"RandomUniformLike",
     {"x"},
     13,
     {},
     "a random operator that neither the NPU nor the CPU partition runs; export the model in "
     "inference mode"},
    {"DFT", {"x"}, 17, {}, "do this step before the model"},
    {"GivenTensorFill",
     {"x"},
     7,
     {},
     "convert the model to opset 7 or later with current operators"},
    {"Gelu",
     {"x"},
     17,
     {},
     "uses Gelu, which operator set 17 does not have yet; it is there from set 20 on: export the "
     "model "
     "with opset 20"},
    {"Upsample",
     {"x", "s"},
     11,
     {},
     "uses Upsample, which operator set 11 does not have any more; set 9 is the last that has it"},
    {"Frobnicate",
     {"x"},
     17,
     {},
     "uses Frobnicate (opset 17), which neither the NPU nor the CPU partition runs"},
    // kinds of ours, which are no operators of ONNX
    {"SiLU", {"x"}, 17, {}, "uses SiLU (opset 17), which neither"},
    {"QLinearAdd", {"x"}, 17, {}, "uses QLinearAdd (opset 17), which neither"},
    {"QLinearSoftmax", {"x"}, 17, {}, "uses QLinearSoftmax (opset 17), which neither"},
    {"Late", {"x"}, 17, {{"op", std::string("Relu")}}, "uses Late (opset 17), which neither"},
    {"OnnxRuntime", {"x"}, 17, {}, "uses OnnxRuntime (opset 17), which neither"},
    {"Relu",
     {"x"},
     17,
     {{"wrong", int64_t{1}}},
     "(Relu) is not valid: Unrecognized attribute: wrong"},
    {"Relu",
     {"nothing"},
     17,
     {},
     "reads tensor 'nothing', which no node, input or initialiser makes"},
    {"Relu", {"y"}, 17, {}, "stands in a cycle"},
    // names of a file cannot forge a line of ours, nor move the cursor
    {"Frob\n\x1b[2Jnicate",
     {"x"},
     17,
     {},
     "uses Frob\\x0a\\x1b[2Jnicate (opset 17), which neither"},
    {"Relu", {"a\n\x1b[2J"}, 17, {}, "reads tensor 'a\\x0a\\x1b[2J', which no node"},
    {"Relu", {"x"}, 17, {{"a\x1b[2J", int64_t{1}}}, "Unrecognized attribute: a\\x1b[2J"},
};
class ImportRefuses : public Import, public testing::WithParamInterface<Refused> {};
TEST_P(ImportRefuses, NamesNodeProblemAndWayOut) {
    const Refused& row = GetParam();
    TinyOnnx m(row.opset);
    m.input("x", {1, 3, 8, 8})
        .floats("s", {4}, {1, 1, 2, 2})
        .node(row.op, row.inputs, {"y"}, row.attributes)
        .output("y");
    const std::string text = refusal(m);
    EXPECT_TRUE(text.starts_with("model.onnx: node 'y_node' ")) << text;
    EXPECT_NE(text.find(row.want), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(Nodes, ImportRefuses, testing::ValuesIn(refused));

TEST_F(Import, NamesNodesOfAllRefusalsInPlainText) {
    const struct {
        std::vector<std::string> inputs;
        const char* want;
        const char* other = "y";  // what another node makes
    } cases[] = {
        {{"x", "x"}, "(Relu) is not valid: "},
        {{"nothing"}, "reads tensor 'nothing', which no node, input or initialiser makes"},
        {{"a\x7f\x1b[2J"}, "stands in a cycle"},
        {{"x"}, "makes tensor 'a\\x7f\\x1b[2J', which exists already", "a\x7f\x1b[2J"},
    };
    for (const auto& c : cases) {
        TinyOnnx m;
        m.input("x", {4}).node("Relu", c.inputs, {"a\x7f\x1b[2J"}).node("Relu", {"x"}, {c.other});
        m.output("y");
        const std::string text = refusal(m);
        EXPECT_TRUE(text.starts_with("model.onnx: node 'a\\x7f\\x1b[2J_node' ")) << text;
        EXPECT_NE(text.find(c.want), std::string::npos) << text;
        EXPECT_TRUE(is_plain_text(text)) << printable(text);
    }
}

// A value of an attribute that nobody knows, in every operator that behaves otherwise by one.
struct UnknownValue {
    const char* op;
    int opset;
    std::vector<std::string> inputs;
    std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes;
    const char* want;
    const char* domain = "";
};
void PrintTo(const UnknownValue& row, std::ostream* os) {
    *os << row.op << " " << row.want;
}
const std::string other = "frobnicate";
const UnknownValue unknown_values[] = {
    {"Conv", 17, {"x", "w"}, {{"auto_pad", other}}, "known are NOTSET, SAME_LOWER, SAME_UPPER"},
    {"ConvTranspose", 17, {"x", "w"}, {{"auto_pad", other}}, "known are NOTSET"},
    {"MaxPool", 17, {"x"}, {{"auto_pad", other}, {"kernel_shape", Ints{2, 2}}}, "known are NOTSET"},
    {"AveragePool",
     19,
     {"x"},
     {{"ceil_mode", int64_t{2}}, {"kernel_shape", Ints{2, 2}}},
     "'ceil_mode' with the value 2, known are 0 and 1"},
    {"Resize",
     11,
     {"x", "none", "s"},
     {{"coordinate_transformation_mode", other}},
     "known are half_pixel, "},
    {"Resize", 19, {"x", "", "s"}, {{"mode", other}}, "known are nearest, linear, cubic"},
    {"Resize", 19, {"x", "", "s"}, {{"nearest_mode", other}}, "known are round_prefer_floor"},
    {"Resize", 19, {"x", "", "", "l"}, {{"keep_aspect_ratio_policy", other}}, "known are stretch"},
    {"Resize", 19, {"x", "", "s"}, {{"antialias", int64_t{3}}}, "known are 0 and 1"},
    {"Resize", 19, {"x", "", "s"}, {{"exclude_outside", int64_t{3}}}, "known are 0 and 1"},
    {"Resize", 10, {"x", "s"}, {{"mode", other}}, "known are nearest, linear"},
    {"Resize", 10, {"x", "mixed"}, {}, "makes one axis larger and another smaller"},
    {"Upsample", 9, {"x", "s"}, {{"mode", other}}, "known are nearest, linear"},
    {"Pad", 13, {"x", "p"}, {{"mode", other}}, "known are constant, reflect, edge, wrap"},
    {"GridSample", 20, {"x", "g"}, {{"mode", other}}, "known are linear, nearest, cubic"},
    {"GridSample", 20, {"x", "g"}, {{"padding_mode", other}}, "known are zeros, border"},
    {"GridSample", 20, {"x", "g"}, {{"align_corners", int64_t{-1}}}, "known are 0 and 1"},
    {"RoiAlign", 16, {"x", "rois", "batch"}, {{"mode", other}}, "known are avg, max"},
    {"RoiAlign",
     16,
     {"x", "rois", "batch"},
     {{"coordinate_transformation_mode", other}},
     "known are half_pixel, output_half_pixel"},
    {"DepthToSpace", 13, {"x"}, {{"blocksize", int64_t{2}}, {"mode", other}}, "known are DCR, CRD"},
    {"Gelu", 20, {"x"}, {{"approximate", other}}, "known are none, tanh"},
    {"ReduceSum", 13, {"x"}, {{"keepdims", int64_t{2}}}, "known are 0 and 1"},
    {"ArgMax", 13, {"x"}, {{"select_last_index", int64_t{2}}}, "known are 0 and 1"},
    {"ScatterElements", 18, {"x", "i", "x"}, {{"reduction", other}}, "known are none, add, mul"},
    {"ScatterND", 18, {"x", "n", "u"}, {{"reduction", other}}, "known are none, add, mul"},
    {"NonMaxSuppression",
     13,
     {"boxes", "scores"},
     {{"center_point_box", int64_t{2}}},
     "known are 0 and 1"},
    {"BatchNormalization",
     15,
     {"x", "c", "c", "c", "c"},
     {{"training_mode", int64_t{2}}},
     "known are 0 and 1"},
    {"LSTM",
     14,
     {"steps", "lw", "lr"},
     {{"direction", other}, {"hidden_size", int64_t{2}}},
     "known are forward, reverse, bidirectional"},
    {"LSTM",
     14,
     {"steps", "lw", "lr"},
     {{"activations", TinyOnnx::Strings{"Sigmoid", other, "Tanh"}}, {"hidden_size", int64_t{2}}},
     "'activations' with the value 'frobnicate', known are Affine"},
    {"LSTM",
     14,
     {"steps", "lw", "lr"},
     {{"layout", int64_t{2}}, {"hidden_size", int64_t{2}}},
     "known are 0 and 1"},
    // Attributes that nobody knows.
    {"Conv", 17, {"x", "w"}, {{other, int64_t{1}}}, "Unrecognized attribute: frobnicate"},
    {"Pad", 13, {"x", "p"}, {{other, other}}, "Unrecognized attribute: frobnicate"},
    {"Resize", 19, {"x", "", "s"}, {{other, other}}, "Unrecognized attribute: frobnicate"},
    {"Softmax", 11, {"x"}, {{other, 1.0F}}, "Unrecognized attribute: frobnicate"},
    {"Dropout", 13, {"x"}, {{other, 1.0F}}, "Unrecognized attribute: frobnicate"},
    {"FusedConv",
     1,
     {"x", "w"},
     {{"activation", other}},
     "has the activation 'frobnicate'",
     "com.microsoft"},
    {"FusedConv",
     1,
     {"x", "w"},
     {{other, 1.0F}},
     "has the attribute 'frobnicate'",
     "com.microsoft"},
    {"FusedMatMul",
     1,
     {"x", "x"},
     {{other, 1.0F}},
     "has the attribute 'frobnicate', whose meaning is not known here",
     "com.microsoft"},
    {"FusedMatMul",
     1,
     {"x", "x"},
     {{"alpha", int64_t{2}}},
     "has the attribute 'alpha', whose meaning is not known here",
     "com.microsoft"},
    {"QuickGelu", 1, {"x"}, {{other, 1.0F}}, "has the attribute 'frobnicate'", "com.microsoft"},
};
// Operators that the schemas of ONNX do not count the inputs of.
TEST_F(Import, RefusesNodesWithoutWhatTheyReadFirst) {
    const struct {
        const char *op, *domain, *says;
        std::vector<std::string> inputs;
        std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes = {};
    } rows[] = {
        {"If", "", "(If) has 0 inputs, expected one, the condition", {}},
        {"If", "", "(If) has 1 inputs, expected one, the condition", {""}},
        {"NhwcMaxPool", "com.microsoft", "(NhwcMaxPool) lacks input 0", {}},
        {"QLinearConv",
         "com.microsoft",
         "(QLinearConv) lacks input 0",
         {},
         {{"channels_last", int64_t{1}}}},
        {"QLinearSoftmax",
         "com.microsoft",
         "(QLinearSoftmax) lacks input 0",
         {"", "x", "x"},
         {{"opset", int64_t{11}}, {"axis", int64_t{0}}}},
        {"If", "my.ops", "uses my.ops::If", {"x"}},
    };
    for (const auto& row : rows) {
        TinyOnnx m(17);
        if (*row.domain) m.opset(row.domain, 1);
        m.input("x", {1, 4});
        m.node(row.op, row.inputs, {"y"}, row.attributes, row.domain).output("y");
        EXPECT_NE(refusal(m).find(row.says), std::string::npos) << refusal(m);
    }
}

class ImportRefusesValues : public Import, public testing::WithParamInterface<UnknownValue> {};
TEST_P(ImportRefusesValues, ThatNobodyKnows) {
    const UnknownValue& row = GetParam();
    TinyOnnx m(row.domain[0] ? 17 : row.opset);
    if (row.domain[0]) m.opset(row.domain, row.opset);
    m.input("x", {1, 4, 8, 8})
        .input("g", {1, 5, 5, 2})
        .input("boxes", {1, 6, 4})
        .input("scores", {1, 1, 6})
        .input("steps", {3, 1, 2})
        .input("rois", {2, 4})
        .input("u", {1, 4, 8, 8})
        .weights("w", {4, 4, 3, 3})
        .weights("c", {4})
        .weights("lw", {1, 8, 2})
        .weights("lr", {1, 8, 2})
        .floats("none", {0}, {})
        .floats("s", {4}, {1, 1, 2, 2})
        .floats("mixed", {4}, {1, 1, 2, 0.5})
        .ints("l", {4}, {1, 4, 16, 16})
        .ints("p", {8}, {0, 0, 1, 1, 0, 0, 1, 1})
        .ints("batch", {2}, {0, 0})
        .ints("n", {1, 1}, {0});
    m.initialiser(test::int_tensor("i", {1, 4, 8, 8}, Ints(256, 0)));
    m.node(row.op, row.inputs, {"y"}, row.attributes, row.domain).output("y");
    const std::string text = refusal(m);
    EXPECT_TRUE(text.starts_with("model.onnx: node 'y_node' ")) << text;
    EXPECT_NE(text.find(row.want), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(Attributes, ImportRefusesValues, testing::ValuesIn(unknown_values));

// Nor is it left to ONNX Runtime, which takes it in a graph and not in a node.
TEST_F(Import, RefusesASparseConstant) {
    TinyOnnx m;
    m.input("x", {2, 2});
    ::onnx::NodeProto& node = *m.proto().mutable_graph()->add_node();
    node.set_name("sparse");
    node.set_op_type("Constant");
    node.add_output("c");
    ::onnx::AttributeProto& value = *node.add_attribute();
    value.set_name("sparse_value");
    value.set_type(::onnx::AttributeProto::SPARSE_TENSOR);
    ::onnx::SparseTensorProto& sparse = *value.mutable_sparse_tensor();
    sparse.add_dims(4);
    *sparse.mutable_values() = test::int_tensor("v", {1}, {7});
    *sparse.mutable_indices() = test::int_tensor("i", {1}, {2});
    m.node("Add", {"x", "c"}, {"y"}).output("y");
    ImportOptions options;
    options.foreign.allowed = true;
    EXPECT_NE(refusal(m, options)
                  .find("'sparse' (Constant) holds a sparse tensor; export it as a dense one"),
              std::string::npos)
        << refusal(m, options);
}

// ONNX's shape inference divides by them.
TEST_F(Import, RefusesStridesOfNothingInABody) {
    TinyOnnx body;
    body.input("i", {}, TinyOnnx::int64).input("c", {}, TinyOnnx::boolean);
    body.input("v", {1, 8, 5, 5}).node("Identity", {"c"}, {"d"});
    body.node("MaxPool", {"v"}, {"w"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{1, 0}}});
    body.output("d", {}, TinyOnnx::boolean).output("w", {1, 8, 4, 4});
    TinyOnnx loop;
    loop.input("x", {1, 8, 5, 5});
    loop.node("Loop", {"", "", "x"}, {"y"}, {{"body", body.graph()}}).output("y");
    ImportOptions options;
    options.foreign.allowed = true;
    const std::string text = refusal(loop, options);
    EXPECT_NE(text.find("uses Loop (opset 17), in which node 'w_node' (MaxPool) has a number below "
                        "1 in 'strides'; export the model again"),
              std::string::npos)
        << text;
}

}  // namespace
}  // namespace vartml::onnx
