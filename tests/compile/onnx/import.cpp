// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/lower.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::onnx {
namespace {

using test::TempDir;
using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

class Import : public testing::Test {
protected:
    Result<Imported> run(const TinyOnnx& model, const ImportOptions& options = {}) {
        model.save(path_);
        return import_onnx(path_, options);
    }
    Imported good(const TinyOnnx& model, const ImportOptions& options = {}) {
        auto result = run(model, options);
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        const auto verified = graph::verify(result->graph);
        EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
        return std::move(*result);
    }
    // The sentence without the path of the folder.
    std::string refusal(const TinyOnnx& model, const ImportOptions& options = {}) {
        const auto result = run(model, options);
        return result ? "imported" : local(result.error().message);
    }
    std::string local(std::string text) const {
        for (size_t at; (at = text.find(folder_.path() + '/')) != std::string::npos;)
            text.erase(at, folder_.path().size() + 1);
        return text;
    }
    static std::vector<std::string> kinds(const graph::Graph& graph) {
        std::vector<std::string> out;
        for (const auto& node : graph.nodes) out.push_back(node.kind);
        return out;
    }

    TempDir folder_;
    std::string path_ = folder_ / "model.onnx";
};
using Kinds = std::vector<std::string>;

// Such an operator would go to ONNX Runtime, or be refused, whatever has become of it here.
TEST(Refused, OperatorsAreNoneOfOurs) {
    for (const RefusedClass& refused : refused_classes())
        for (const std::string_view op : refused.operators)
            EXPECT_FALSE(can_lower("", op)) << op << " is ours: take it out of " << refused.problem;
}

TEST_F(Import, TakesOverNamesTypesAndSources) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {4, 3, 3, 3})
        .node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
    m.node("Relu", {"c"}, {"y"}).output("y");
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"Conv", "Relu"}));
    EXPECT_EQ(out.graph.nodes[0].name, "c_node");
    EXPECT_EQ(out.graph.nodes[0].sources, (Kinds{"c_node"}));
    EXPECT_EQ(out.graph.value(out.graph.inputs[0]).name, "x");
    EXPECT_EQ(out.graph.value(out.graph.outputs[0]).name, "y");
    EXPECT_EQ(to_string(out.graph.value(out.graph.outputs[0]).type), "f32[1,4,8,8]");
    EXPECT_EQ(out.operators, 2u);
    EXPECT_EQ(out.folded, 0u);
    // 2 per multiply-accumulate of the convolution, 1 per element of the activation; there is no
    // bias.
    EXPECT_EQ(out.ops, 2u * 4 * 8 * 8 * 3 * 3 * 3 + 4 * 8 * 8);
    EXPECT_TRUE(out.messages.empty());
    EXPECT_EQ(out.signature.size(), 32u);
}

TEST_F(Import, AcceptsInitialisersThatAreListedAsInputs) {
    TinyOnnx m(7, 3);
    m.input("x", {1, 4})
        .input("w", {4})
        .weights("w", {4})
        .node("Mul", {"x", "w"}, {"y"})
        .output("y");
    EXPECT_EQ(good(m).graph.inputs.size(), 1u);
}

TEST_F(Import, FoldsConstantNodesAndShapeArithmetic) {
    TinyOnnx m(13);
    m.input("x", {2, 3, 4}).node("Shape", {"x"}, {"s"});
    m.node("Constant", {}, {"zero"}, {{"value", test::int_tensor("", {1}, {0})}});
    m.node("Gather", {"s", "zero"}, {"n"})
        .ints("rest", {1}, {-1})
        .node("Concat", {"n", "rest"}, {"to"}, {{"axis", int64_t{0}}});
    m.node("Reshape", {"x", "to"}, {"y"}).output("y");
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"Reshape"}));
    EXPECT_EQ(to_string(out.graph.value(out.graph.outputs[0]).type), "f32[2,12]");
    EXPECT_EQ(out.operators, 1u);
    EXPECT_EQ(out.folded, 3u);  // Shape, Gather, Concat
}

TEST_F(Import, RemovesIdentityDropoutAndDeadNodes) {
    TinyOnnx m;
    m.input("x", {1, 4})
        .node("Identity", {"x"}, {"a"})
        .node("Dropout", {"a"}, {"b"})
        .node("Exp", {"x"}, {"dead"});
    m.node("Neg", {"b"}, {"c"}).node("Identity", {"c"}, {"y"}).output("y");
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"Neg"}));
    EXPECT_EQ(out.graph.value(out.graph.outputs[0]).name, "y");
}

TEST_F(Import, KeepsIdentityBetweenModelInputAndOutput) {
    TinyOnnx m;
    m.input("x", {1, 4}).node("Identity", {"x"}, {"y"}).output("y");
    const Imported out = good(m);
    EXPECT_EQ(kinds(out.graph), (Kinds{"Identity"}));
    EXPECT_EQ(out.operators, 1u);
}

TEST_F(Import, GivesTwoOutputsOfOneValueTheirOwnNames) {
    TinyOnnx m;
    m.input("x", {1, 4})
        .node("Neg", {"x"}, {"y"})
        .node("Identity", {"y"}, {"z"})
        .output("y")
        .output("z");
    const Imported out = good(m);
    EXPECT_EQ(kinds(out.graph), (Kinds{"Neg", "Identity"}));
    EXPECT_EQ(out.graph.value(out.graph.outputs[0]).name, "y");
    EXPECT_EQ(out.graph.value(out.graph.outputs[1]).name, "z");
}

TEST_F(Import, RefusesAnOutputThatIsAnInputAndSaysWhatToDo) {
    TinyOnnx m;
    m.input("x", {1, 4}).node("Neg", {"x"}, {"y"}).output("y").output("x");
    EXPECT_NE(refusal(m).find("has two inputs or outputs named 'x', each needs a name of its own; "
                              "give the output that of an Identity, or remove it"),
              std::string::npos)
        << refusal(m);
}

TEST_F(Import, SortsNodesWithOneWarning) {
    TinyOnnx m;
    m.input("x", {1, 4})
        .node("Relu", {"c"}, {"y"})
        .node("Exp", {"b"}, {"c"})
        .node("Neg", {"x"}, {"b"})
        .output("y");
    const Imported out = good(m);
    EXPECT_EQ(kinds(out.graph), (Kinds{"Neg", "Exp", "Relu"}));
    ASSERT_EQ(out.messages.size(), 1u);
    EXPECT_EQ(out.messages[0].level, LogLevel::warning);
}

TEST_F(Import, BindsASymbolicBatchToOneWithOneLine) {
    TinyOnnx m;
    m.input("x", {"N", 4}).input("z", {"N", 4}).node("Add", {"x", "z"}, {"y"}).output("y");
    const Imported out = good(m);
    EXPECT_EQ(to_string(out.graph.value(out.graph.inputs[0]).type), "f32[1,4]");
    ASSERT_EQ(out.messages.size(), 1u);
    EXPECT_EQ(out.messages[0].level, LogLevel::info);
    EXPECT_EQ(local(out.messages[0].text),
              "model.onnx: the symbolic first axis of inputs 'x', 'z' becomes 1");
}

TEST_F(Import, BindsSymbolsFromOptionsEverywhere) {
    TinyOnnx m;
    m.input("x", {1, 3, "H", "W"})
        .input("m", {1, 1, "H", "W"})
        .node("Mul", {"x", "m"}, {"y"})
        .output("y");
    const Imported out = good(m, {.input_shapes = {{"x", {1, 3, 6, 8}}}});
    EXPECT_EQ(to_string(out.graph.value(out.graph.inputs[1]).type), "f32[1,1,6,8]");
}

TEST_F(Import, AsksForSizesWithALineThatCompiles) {
    TinyOnnx named;
    named.input("x", {"N", 3, "H", "W"}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_EQ(refusal(named),
              "model.onnx: input 'x' has no number for 'H' (axis 2) and 'W' (axis 3); give "
              "--input-shape x:1,3,640,640 to vartml compile, or what the model was trained for");
    TinyOnnx unnamed;
    unnamed.input("x", {"", 3, "", ""}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_EQ(refusal(unnamed),
              "model.onnx: input 'x' has no number for axis 2 and axis 3; give --input-shape "
              "x:1,3,640,640 to vartml compile, or what the model was trained for");
    TinyOnnx two;
    two.input("x", {1, "T", 4}).input("z", {1, 4, "U"}).node("MatMul", {"x", "z"}, {"y"});
    two.output("y");
    EXPECT_EQ(refusal(two),
              "model.onnx: input 'x' has no number for 'T' (axis 1) and input 'z' has no number "
              "for 'U' (axis 2); give --input-shape x:1,128,4 --input-shape z:1,4,128 to vartml "
              "compile, or what the model was trained for");
}

TEST_F(Import, TriesWhichSizesTheModelTakes) {
    // The outputs are said to be those of a picture of 416x416, which any size could be given to.
    TinyOnnx by_output;
    by_output.input("x", {1, 3, "H", "W"}).node("Relu", {"x"}, {"y"}).output("y", {1, 3, 416, 416});
    EXPECT_NE(refusal(by_output).find("--input-shape x:1,3,416,416 "), std::string::npos)
        << refusal(by_output);
    // Only pictures of 256x256 have 65536 pixels.
    TinyOnnx by_node;
    by_node.input("x", {1, 1, "H", "W"}).ints("s", {2}, {256, 256});
    by_node.node("Reshape", {"x", "s"}, {"y"}).output("y");
    EXPECT_NE(refusal(by_node).find("--input-shape x:1,1,256,256 "), std::string::npos)
        << refusal(by_node);
    TinyOnnx by_none;
    by_none.input("x", {1, 1, "H", "W"}).ints("s", {2}, {7, 11});
    by_none.node("Reshape", {"x", "s"}, {"y"}).output("y");
    EXPECT_NE(refusal(by_none).find("give --input-shape x:1,1,<H>,<W> to vartml compile"),
              std::string::npos)
        << refusal(by_none);
}

TEST_F(Import, GuessesTheShapesThatPicturesHave) {
    struct Case {
        std::vector<TinyOnnx::Dim> shape;
        const char* option;
    };
    const Case cases[] = {
        {{"?", "?", "?", 3}, "x:1,640,640,3 "},                // channels last
        {{"height", "width", 3}, "x:640,640,3 "},              // no batch
        {{"batch", "points", 3}, "x:1,128,3 "},                // no picture
        {{"?", 3, 32, "?"}, "x:1,3,32,320 "},                  // a line of text
        {{"None", "None", "None", "None"}, "x:1,3,640,640 "},  // nothing known
        {{"size", 3, "size", "size"}, "x:1,3,640,640 "},       // a batch of the same name
    };
    for (const Case& c : cases) {
        TinyOnnx m;
        m.input("x", c.shape).node("Relu", {"x"}, {"y"}).output("y");
        EXPECT_NE(refusal(m).find(std::string("give --input-shape ") + c.option), std::string::npos)
            << refusal(m);
    }
}

TEST_F(Import, TakesUnnamedAxesForIndependent) {
    for (const char* mark : {"?", "", "None", "*", "-1"}) {
        TinyOnnx m;
        m.input("x", {mark, 3, mark, mark}).node("Relu", {"x"}, {"y"}).output("y");
        EXPECT_NE(refusal(m).find("has no number for axis 2 and axis 3"), std::string::npos)
            << refusal(m);
        const Imported out = good(m, {.input_shapes = {{"x", {1, 3, 48, 64}}}});
        EXPECT_EQ(to_string(out.graph.value(out.graph.inputs[0]).type), "f32[1,3,48,64]");
    }
}

TEST_F(Import, NamesTheBatchThatIsFixedInside) {
    TinyOnnx m;
    m.input("x", {"N", 4, 5}).ints("shape", {3}, {2, 2, 10});
    m.node("Reshape", {"x", "shape"}, {"y"}).output("y");
    EXPECT_EQ(refusal(m),
              "model.onnx: node 'y_node' (Reshape) reshapes f32[1,4,5] to [2,2,10], which has "
              "another number of elements; inside, its batch is fixed to 2: give --input-shape "
              "x:2,4,5 to vartml compile");
    EXPECT_EQ(kinds(good(m, {.input_shapes = {{"x", {2, 4, 5}}}}).graph), (Kinds{"Reshape"}));
}

TEST_F(Import, TakesThePictureSizeOfTheMetadata) {
    TinyOnnx m;
    m.input("images", {"batch", 3, "height", "width"}).node("Relu", {"images"}, {"y"}).output("y");
    m.metadata("imgsz", "[480, 640]");
    const Imported out = good(m);
    EXPECT_EQ(to_string(out.graph.value(out.graph.inputs[0]).type), "f32[1,3,480,640]");
    ASSERT_FALSE(out.messages.empty());
    EXPECT_EQ(local(out.messages[0].text),
              "model.onnx: pictures of input 'images' are 640x480, as its metadata say (imgsz); "
              "--input-shape gives another size");
    const Imported other = good(m, {.input_shapes = {{"images", {1, 3, 64, 32}}}});
    EXPECT_EQ(to_string(other.graph.value(other.graph.inputs[0]).type), "f32[1,3,64,32]");
}

TEST_F(Import, RefusesShapeOptionsThatDoNotFit) {
    TinyOnnx m;
    m.input("x", {1, 3, "H", "W"}).node("Relu", {"x"}, {"y"}).output("y");
    const std::pair<ImportOptions, const char*> cases[] = {
        {{{{"x", {1, 3, 8}}}}, "has 3 dimensions, the model has 4"},
        {{{{"x", {1, 4, 8, 8}}}}, "has 4 at axis 1, the model fixes 3"},
        {{{{"x", {1, 3, 0, 8}}}}, "has the dimension 0, expected 1 or more"},
        {{{{"image", {1, 3, 8, 8}}}}, "names no input; the inputs are 'x'"},
    };
    for (const auto& [options, want] : cases)
        EXPECT_NE(refusal(m, options).find(want), std::string::npos) << refusal(m, options);
}

TEST_F(Import, FoldsIfWithAConstantCondition) {
    TinyOnnx then_branch, else_branch;
    then_branch.node("Neg", {"x"}, {"t"}).output("t");
    else_branch.node("Loop", {"", ""}, {"t"}, {{"body", ::onnx::GraphProto()}}).output("t");
    TinyOnnx m;
    m.input("x", {1, 4})
        .node("Shape", {"x"}, {"s"})
        .node("Size", {"s"}, {"rank"})
        .ints("two", {}, {2});
    m.node("Equal", {"rank", "two"}, {"flat"});
    m.node("If", {"flat"}, {"i"},
           {{"then_branch", then_branch.graph()}, {"else_branch", else_branch.graph()}});
    m.node("Relu", {"i"}, {"y"}).output("y");
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Neg", "Relu"}));
}

TEST_F(Import, RefusesIfWithAConditionOfRunTime) {
    TinyOnnx branch;
    branch.node("Neg", {"x"}, {"t"}).output("t");
    TinyOnnx m(13);
    m.input("x", {1, 4}).input("flag", {}, TinyOnnx::boolean);
    m.node("If", {"flag"}, {"y"},
           {{"then_branch", branch.graph()}, {"else_branch", branch.graph()}})
        .output("y");
    EXPECT_EQ(refusal(m),
              "model.onnx: node 'y_node' uses If (opset 13), a control-flow operator that neither "
              "the NPU nor the "
              "CPU partition runs; export the model with the branch folded, or split it at tensor "
              "'flag'");
}

TEST_F(Import, RefusesOtherDomainsBeforeItLooksAtShapes) {
    TinyOnnx m;
    m.opset("onnx.brevitas", 1).input("x", {1, "H"}).floats("s", {}, {1});
    m.node("Quant", {"s", "x"}, {"y"}, {}, "onnx.brevitas").output("y");
    EXPECT_EQ(
        refusal(m),
        "model.onnx: node 'y_node' uses onnx.brevitas::Quant (opset 1), which neither the NPU nor "
        "the CPU "
        "partition runs; replace it with standard operators, or split the model at tensor 'x'");
}

// What ONNX Runtime saves at its highest level, which names the way out and no operator to replace.
TEST_F(Import, RefusesTheLayoutsOfOnnxRuntimesOptimiser) {
    for (const char* domain : {"com.microsoft.nchwc", "com.ms.internal.nhwc"}) {
        TinyOnnx m;
        m.opset(domain, 1).input("x", {1, 8, 4, 4}).weights("w", {8, 8, 1, 1});
        m.node("Conv", {"x", "w"}, {"y"}, {}, domain).output("y");
        EXPECT_EQ(refusal(m), std::string("model.onnx: node 'y_node' uses ") + domain +
                                  "::Conv (opset 1), which ONNX Runtime's optimiser makes for one "
                                  "processor; save it at optimisation level basic "
                                  "(ORT_ENABLE_BASIC), or give the model that was optimised");
    }
}

TEST_F(Import, ListsTwentyRefusedNodesThenACount) {
    TinyOnnx m;
    m.opset("my", 1).input("x", {1});
    for (int i = 0; i < 23; ++i) m.node("Thing", {"x"}, {"y" + std::to_string(i)}, {}, "my");
    m.output("y0");
    const std::string text = refusal(m);
    EXPECT_EQ(std::ranges::count(text, '\n'), 20);
    EXPECT_TRUE(text.ends_with("model.onnx: 3 more nodes like these")) << text;
}

struct Refused {
    const char* op;
    std::vector<std::string> inputs;
    int opset;
    std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes;
    const char* want;
};
// One row per class of the format document's 13.3, plus the operator sets.
const Refused refused[] = {
    {"Loop",
     {"", "", "x"},
     13,
     {{"body", ::onnx::GraphProto()}},
     "uses Loop (opset 13), a control-flow operator that neither the NPU nor the CPU partition "
     "runs; export the model with the "
     "loop unrolled, or split it at tensor 'x'"},
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

TEST_F(Import, TakesTheResizeThatTensorFlowWrites) {
    TinyOnnx m(11);
    m.input("x", {1, 1, 1, 4})
        .floats("none", {0}, {})
        .floats("s", {4}, {1, 1, 1, 0.5})
        .node("Resize", {"x", "none", "s"}, {"y"},
              {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
               {"nearest_mode", std::string("floor")}})
        .output("y");
    EXPECT_EQ(good(m).graph.nodes[0].get("coordinate_transformation_mode", ""),
              "tf_half_pixel_for_nn");
}

// Room by what the model says elsewhere, and a warning; without any such thing a refusal.
TEST_F(Import, GuessesTheRoomOfWhatNothingBounds) {
    TinyOnnx m(17);
    m.input("first", {}, TinyOnnx::int64)
        .input("last", {}, TinyOnnx::int64)
        .ints("one", {}, {1})
        .node("Range", {"first", "last", "one"}, {"r"})
        .node("Neg", {"r"}, {"n"})
        .node("Abs", {"n"}, {"y"})
        .output("y", {7}, TinyOnnx::int64);
    const Imported out = good(m);
    ASSERT_EQ(out.messages.size(), 1u);
    EXPECT_EQ(out.messages[0].level, LogLevel::warning);
    EXPECT_NE(out.messages[0].text.find(
                  "model.onnx: node 'r_node' (Range): nothing says how large its output can be; it "
                  "gets room for i64[7], runs that need more fail; give the tensor a shape in the "
                  "model"),
              std::string::npos);
    TinyOnnx open(17);
    open.input("first", {}, TinyOnnx::int64)
        .ints("one", {}, {1})
        .node("Range", {"one", "first", "one"}, {"r"})
        .node("ReduceSum", {"r"}, {"y"}, {{"keepdims", int64_t{0}}})
        .output("y", {}, TinyOnnx::int64);
    EXPECT_NE(refusal(open).find("takes its limits from a tensor that depends on the input data"),
              std::string::npos);
}

TEST_F(Import, RefusesOperatorSetsAndVersionsItDoesNotKnow) {
    TinyOnnx old(6);
    old.input("x", {1}).node("Add", {"x", "x"}, {"y"}).output("y");
    EXPECT_EQ(refusal(old),
              "model.onnx: declares operator set 6, accepted are 7 to 25; convert it with "
              "onnx.version_converter");
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

TEST_F(Import, RefusesBorderTypesThatApplicationsCannotHold) {
    TinyOnnx text;
    text.input("x", {1}, TinyOnnx::string)
        .node("Identity", {"x"}, {"y"})
        .output("y", {1}, TinyOnnx::string);
    EXPECT_NE(refusal(text).find("input 'x' has the element type STRING; accepted are FLOAT"),
              std::string::npos);
    TinyOnnx wide;
    wide.input("x", {1})
        .node("Cast", {"x"}, {"y"}, {{"to", int64_t{11}}})
        .output("y", {1}, TinyOnnx::float64);
    EXPECT_NE(refusal(wide).find("output 'y' has the element type DOUBLE"), std::string::npos)
        << refusal(wide);
    TinyOnnx empty;
    empty.input("x", {1, 0}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(refusal(empty).find("without elements"), std::string::npos);
}

TEST_F(Import, ReadsWeightsOfEveryStoredForm) {
    // The number 1.5 as double, half and bfloat16, typed and raw.
    for (const auto& [type, raw] :
         {std::pair{10, std::string("\x00\x3e", 2)}, std::pair{16, std::string("\xc0\x3f", 2)},
          std::pair{11, std::string("\0\0\0\0\0\0\xf8\x3f", 8)}}) {
        ::onnx::TensorProto t;
        t.set_name("w");
        t.set_data_type(type);
        t.add_dims(1);
        t.set_raw_data(raw);
        TinyOnnx m;
        m.input("x", {1}).initialiser(t).node("Cast", {"w"}, {"f"}, {{"to", int64_t{1}}});
        m.node("Mul", {"x", "f"}, {"y"}).output("y");
        const Imported out = good(m);
        ASSERT_EQ(kinds(out.graph), (Kinds{"Mul"})) << "type " << type;
        EXPECT_EQ(out.graph.value(out.graph.nodes[0].inputs[1]).constant->as<float>()[0], 1.5f)
            << "type " << type;
    }
}

TEST_F(Import, RefusesWeightsWhoseBytesDoNotFitTheirShape) {
    ::onnx::TensorProto t = test::float_tensor("w", {2, 3}, {1, 2, 3, 4, 5});
    TinyOnnx m;
    m.input("x", {2, 3}).initialiser(t).node("Mul", {"x", "w"}, {"y"}).output("y");
    EXPECT_EQ(refusal(m),
              "model.onnx: initialiser 'w' holds 20 bytes, its shape and type need 24; the file is "
              "damaged, export it "
              "again");
}

// ---- files
// ---------------------------------------------------------------------------------------------------------

TEST_F(Import, SaysWhatAFileIsThatIsNoModel) {
    TinyOnnx m;
    m.input("x", {1, 1000}).weights("w", {1000}).node("Mul", {"x", "w"}, {"y"}).output("y");
    const std::string whole = m.bytes();
    const std::pair<std::string, const char*> cases[] = {
        {"", "model.onnx: is empty, expected an ONNX model"},
        {whole.substr(0, whole.size() / 2), "in the middle of the model; copy or export it again"},
        {std::string(5000, 'z'),
         "model.onnx: is not an ONNX model, or a damaged one; export it again"},
        {"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"},
        {"PK\x03\x04more", "is a ZIP archive"},
        {"\xff\xd8\xff\xe0", "is a JPEG picture, not a model; give the model's ONNX file"},
    };
    for (const auto& [bytes, want] : cases) {
        test::spill(path_, bytes);
        const auto result = import_onnx(path_);
        ASSERT_FALSE(result);
        EXPECT_NE(local(result.error().message).find(want), std::string::npos)
            << result.error().message;
        EXPECT_EQ(result.error().code, ErrorCode::bad_model);
    }
    std::filesystem::remove(path_);
    EXPECT_EQ(import_onnx(path_).error().code, ErrorCode::not_found);
    EXPECT_EQ(import_onnx(folder_.path()).error().code, ErrorCode::io);
}

TEST_F(Import, SurvivesEveryTruncation) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {2, 3, 1, 1})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y");
    const std::string whole = m.bytes();
    for (size_t size = 0; size < whole.size(); ++size) {
        test::spill(path_, whole.substr(0, size));
        const auto result = import_onnx(path_);
        if (!result) {
            EXPECT_FALSE(result.error().message.empty());
        }
    }
}

class ImportExternalData : public Import {
protected:
    // One weight of two numbers in `location`.
    TinyOnnx model(const std::string& location, const std::string& offset = "4",
                   const std::string& length = "8") {
        ::onnx::TensorProto t;
        t.set_name("w");
        t.set_data_type(TinyOnnx::float32);
        t.add_dims(2);
        t.set_data_location(::onnx::TensorProto::EXTERNAL);
        for (const auto& [key, value] :
             {std::pair{"location", location}, std::pair{"offset", offset},
              std::pair{"length", length}}) {
            auto* entry = t.add_external_data();
            entry->set_key(key);
            entry->set_value(value);
        }
        TinyOnnx m;
        m.input("x", {2}).initialiser(t).node("Mul", {"x", "w"}, {"y"}).output("y");
        return m;
    }
};

TEST_F(ImportExternalData, IsReadBesideAndBelowTheModel) {
    std::filesystem::create_directory(folder_ / "data");
    const float values[] = {9, 1.5f, -2};
    const std::string bytes(reinterpret_cast<const char*>(values), sizeof values);
    test::spill(folder_ / "data/w.bin", bytes);
    const Imported out = good(model("data/w.bin"));
    EXPECT_EQ(out.graph.value(out.graph.nodes[0].inputs[1]).constant->as<float>()[1], -2);
    // The signature covers the external file.
    test::spill(folder_ / "data/w.bin", bytes + "x");
    EXPECT_NE(good(model("data/w.bin")).signature, out.signature);
}

TEST_F(ImportExternalData, NeverLeavesTheFolder) {
    test::spill(folder_ / "w.bin", std::string(12, '\0'));
    std::filesystem::create_directory(folder_ / "sub");
    std::filesystem::create_symlink("../w.bin", folder_ / "sub/link.bin");
    std::filesystem::create_directory_symlink("..", folder_ / "sub/up");
    const std::pair<TinyOnnx, const char*> cases[] = {
        {model("../w.bin"), "external data '../w.bin' is no path below the folder of the model"},
        {model("/etc/passwd"), "is no path below the folder"},
        {model(""), "is no path below the folder"},
        {model("sub/link.bin"),
         "external data 'sub/link.bin' is a link; replace it by the file itself"},
        {model("missing.bin"),
         "external data 'missing.bin': cannot open: No such file or directory"},
        {model("w.bin", "8"), "lies at 8 and has 8 bytes, the file ends at 12"},
        {model("w.bin", "18446744073709551612"), "the file ends at 12"},
        {model("w.bin", "4", "9"), "holds 9 bytes, its shape and type need 8"},
        {model("w.bin", "-1"), "has the offset '-1'"},
        {model("sub"), "cannot read: Is a directory"},
    };
    for (const auto& [m, want] : cases)
        EXPECT_NE(refusal(m).find(want), std::string::npos) << refusal(m);
    EXPECT_NE(refusal(model("sub/up/w.bin")), "imported");
}

// ---- lowering
// ------------------------------------------------------------------------------------------------------

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

TEST_F(Import, DecomposesCompositeOperators) {
    TinyOnnx skip;
    skip.opset("com.microsoft", 1)
        .input("x", {2, 8})
        .input("s", {2, 8})
        .weights("g", {8})
        .weights("b", {8});
    skip.node("SkipLayerNormalization", {"x", "s", "g", "b"}, {"y"}, {}, "com.microsoft")
        .output("y");
    EXPECT_EQ(kinds(good(skip).graph), (Kinds{"Add", "LayerNormalization"}));
    EXPECT_EQ(good(skip).operators, 1u);

    TinyOnnx fused;
    fused.opset("com.microsoft", 1).input("x", {2, 8}).input("w", {4, 8});
    fused
        .node("FusedMatMul", {"x", "w"}, {"y"}, {{"transB", int64_t{1}}, {"alpha", 0.5f}},
              "com.microsoft")
        .output("y");
    EXPECT_EQ(kinds(good(fused).graph), (Kinds{"Transpose", "MatMul", "Mul"}));

    // Zero points that are left out are 0.
    TinyOnnx bare;
    bare.opset("com.microsoft", 1).input("x", {2, 8}).weights("s", {});
    bare.node("QuantizeLinear", {"x", "s"}, {"q"});
    bare.node("QLinearSigmoid", {"q", "s", "", "s"}, {"y"}, {}, "com.microsoft").output("y");
    EXPECT_EQ(kinds(good(bare).graph), (Kinds{"QuantizeLinear", "QLinearSigmoid"}));

    TinyOnnx dynamic;
    dynamic.input("x", {2, 8}).node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
    dynamic.node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
    EXPECT_TRUE(run(dynamic)) << refusal(dynamic);

    TinyOnnx crop(18);
    crop.input("x", {1, 3, 10, 7}).ints("to", {2}, {6, 10});
    crop.node("CenterCropPad", {"x", "to"}, {"y"}, {{"axes", Ints{2, 3}}}).output("y");
    EXPECT_EQ(to_string(good(crop).graph.value(good(crop).graph.outputs[0]).type), "f32[1,3,6,10]");
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
}

TEST_F(Import, AcceptsAbsentOptionalInputs) {
    TinyOnnx m(13);
    m.input("x", {1, 4}).floats("top", {}, {6}).node("Clip", {"x", "", "top"}, {"y"}).output("y");
    const Imported out = good(m);
    ASSERT_EQ(kinds(out.graph), (Kinds{"Clip"}));
    EXPECT_FALSE(out.graph.nodes[0].has("min"));
    EXPECT_EQ(out.graph.nodes[0].get("max", 0.0f), 6);
}

}  // namespace
}  // namespace vartml::onnx
