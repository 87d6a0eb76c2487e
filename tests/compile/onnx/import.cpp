// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/lower.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"
#include "tests/compile/onnx/import_fixture.h"

namespace vartml::onnx {
namespace {

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

// Its codes are in 8 bits here.
TEST_F(Import, QuantizesToFourBits) {
    const auto quantised = [](const char* op) {
        ::onnx::TensorProto zero;
        zero.set_name("z");
        zero.set_data_type(::onnx::TensorProto::INT4);
        zero.add_int32_data(0);
        TinyOnnx m(21);
        m.input("x", {1, 4}).floats("s", {}, {0.5f}).initialiser(zero);
        if (std::string_view(op) == "CastLike")
            m.node(op, {"x", "z"}, {"q"});
        else
            m.node(op, {"x", "s", "z"}, {"q"});
        return m.node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
    };
    const Imported out = good(quantised("QuantizeLinear"));
    EXPECT_EQ(kinds(out.graph), (Kinds{"QuantizeLinear", "Clip", "DequantizeLinear"}));
    EXPECT_NE(refusal(quantised("CastLike")).find("makes elements of 4 bits"), std::string::npos);
    // Also where its zero point is made of another constant.
    TinyOnnx m = quantised("QuantizeLinear");
    auto& graph = *m.proto().mutable_graph();
    graph.mutable_node(0)->set_input(2, "scalar");
    m.ints("none", {0}, {}).node("Reshape", {"z", "none"}, {"scalar"});
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"QuantizeLinear", "Clip", "DequantizeLinear"}));
}

// The mask of Dropout has the type of the data before set 10.
TEST_F(Import, GivesTheMaskOfDropoutTheTypeOfItsSet) {
    for (const auto& [opset, type] : {std::pair{9, "f32[1,4]"}, {10, "bool[1,4]"}}) {
        TinyOnnx m(opset);
        m.input("x", {1, 4}).node("Dropout", {"x"}, {"y", "mask"}).output("y");
        m.output("mask", {}, opset < 10 ? TinyOnnx::float32 : TinyOnnx::boolean);
        const Imported out = good(m);
        EXPECT_EQ(to_string(out.graph.value(out.graph.outputs[1]).type), type);
    }
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

TEST_F(Import, GuessesThePictureFromTheFirstConvolution) {
    struct Case {
        TinyOnnx::Ints perm;
        TinyOnnx::Ints weights;
        const char* option;
    };
    const Case cases[] = {
        {{0, 3, 1, 2}, {4, 3, 3, 3}, "x:1,640,640,3 "},  // channels last, turned inside
        {{0, 3, 1, 2}, {4, 1, 3, 3}, "x:1,640,640,1 "},
        {{0, 1, 3, 2}, {4, 3, 3, 3}, "x:1,3,640,640 "},
    };
    for (const Case& c : cases) {
        TinyOnnx m;
        m.input("x", {"?", "?", "?", "?"}, TinyOnnx::uint8).weights("w", c.weights);
        m.node("Transpose", {"x"}, {"t"}, {{"perm", c.perm}})
            .node("Cast", {"t"}, {"f"}, {{"to", int64_t{TinyOnnx::float32}}})
            .node("Conv", {"f", "w"}, {"y"})
            .output("y");
        EXPECT_NE(refusal(m).find(std::string("give --input-shape ") + c.option), std::string::npos)
            << refusal(m);
    }
}

TEST_F(Import, TakesTheOnlyAxisForALengthBesideAFixedBatch) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8}).input("row", {"?"}).node("Relu", {"x"}, {"y"});
    m.node("Relu", {"row"}, {"z"}).output("y").output("z");
    EXPECT_NE(refusal(m).find("input 'row' has no number for axis 0; give --input-shape row:"),
              std::string::npos)
        << refusal(m);
    TinyOnnx batch;
    batch.input("x", {1, 3, 8, 8}).input("row", {"batch"}).node("Relu", {"x"}, {"y"});
    batch.node("Relu", {"row"}, {"z"}).output("y").output("z");
    const Imported out = good(batch);
    EXPECT_EQ(to_string(out.graph.value(out.graph.inputs[1]).type), "f32[1]");
    // A batch that an option fixes says nothing of the other axis.
    TinyOnnx open;
    open.input("x", {"N", 3, "H", "W"}).input("row", {"?"}).node("Relu", {"x"}, {"y"});
    open.node("Relu", {"row"}, {"z"}).output("y").output("z");
    ImportOptions options;
    options.input_shapes["x"] = {1, 3, 8, 8};
    EXPECT_EQ(to_string(good(open, options).graph.value(out.graph.inputs[1]).type), "f32[1]");
    // Nor does one of an input of which the file says no shape.
    auto& x = *open.proto().mutable_graph()->mutable_input(0);
    x.mutable_type()->mutable_tensor_type()->clear_shape();
    EXPECT_EQ(to_string(good(open, options).graph.value(out.graph.inputs[1]).type), "f32[1]");
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
        "partition runs; replace it with standard operators, or split the model at tensor 'y'");
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

TEST_F(Import, WarnsWhereOthersAlignCornersElsewhere) {
    for (const float scale : {2.0F, 3.1428571F, 0.2F, 1.7F, 0.6F, 1.5F}) {
        TinyOnnx m(13);
        m.input("x", {1, 1, 10, 7})
            .floats("s", {4}, {1, 1, 1, scale})
            .node("Resize", {"x", "", "s"}, {"y"},
                  {{"coordinate_transformation_mode", std::string("align_corners")},
                   {"mode", std::string("linear")}})
            .output("y");
        const Imported out = good(m);
        const bool same = scale == 2 || scale == 3.1428571F || scale == 0.2F;
        ASSERT_EQ(out.messages.size(), same ? 0u : 1u) << scale;
        if (same) continue;
        const std::string length = " of 7 to " + std::to_string(7 * scale);
        EXPECT_NE(out.messages[0].text.find(length), std::string::npos) << out.messages[0].text;
    }
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

// What Pad fills up with may come with the data: the graph has a float for it, which holds no wide
// integer.
TEST_F(Import, PadsWithWhatTheDataSay) {
    const auto padded = [](int type) {
        TinyOnnx m;
        m.input("x", {1, 4}).input("v", {1}).ints("axis", {1}, {0}).ints("pads", {4}, {0, 1, 0, 1});
        m.node("Squeeze", {"v", "axis"}, {"scalar"});
        m.node("Cast", {"x"}, {"t"}, {{"to", int64_t{type}}});
        m.node("Cast", {"scalar"}, {"fill"}, {{"to", int64_t{type}}});
        m.node("Pad", {"t", "pads", "fill"}, {"p"});
        m.node("Cast", {"p"}, {"y"}, {{"to", int64_t{TinyOnnx::float32}}}).output("y");
        return m;
    };
    EXPECT_EQ(std::ranges::count(kinds(good(padded(TinyOnnx::fp16)).graph), "Sub"), 0);
    EXPECT_EQ(std::ranges::count(kinds(good(padded(TinyOnnx::int64)).graph), "Sub"), 1);
    EXPECT_NE(refusal(padded(TinyOnnx::float64)).find("(Pad) fills up with a float64"),
              std::string::npos);
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
    // A node beside it that makes nothing.
    skip.node("SkipLayerNormalization", {"x", "s", "g", "b"}, {}, {}, "com.microsoft");
    EXPECT_EQ(refusal(skip), "imported");

    TinyOnnx fused;
    fused.opset("com.microsoft", 1).input("x", {2, 8}).input("w", {4, 8});
    fused
        .node("FusedMatMul", {"x", "w"}, {"y"}, {{"transB", int64_t{1}}, {"alpha", 0.5f}},
              "com.microsoft")
        .output("y");
    EXPECT_EQ(kinds(good(fused).graph), (Kinds{"Transpose", "MatMul", "Mul"}));
    // ONNX Runtime's optimiser writes this into models of halves.
    TinyOnnx halves;
    halves.opset("com.microsoft", 1).input("x", {2, 3}, TinyOnnx::fp16);
    halves.input("w", {3, 2}, TinyOnnx::fp16);
    halves.node("FusedMatMul", {"x", "w"}, {"y"}, {{"alpha", 0.125f}}, "com.microsoft").output("y");
    const Imported of_halves = good(halves);
    EXPECT_EQ(to_string(of_halves.graph.value(of_halves.graph.outputs[0]).type), "f16[2,2]");

    // Scales of halves make halves.
    TinyOnnx scaled;
    scaled.opset("com.microsoft", 1).input("x", {2, 3}, TinyOnnx::uint8);
    scaled.input("w", {3, 2}, TinyOnnx::int8).input("s", {1}, TinyOnnx::fp16);
    scaled.node("MatMulIntegerToFloat", {"x", "w", "s", "s"}, {"y"}, {}, "com.microsoft");
    const Imported product = good(scaled.output("y"));
    EXPECT_EQ(to_string(product.graph.value(product.graph.outputs[0]).type), "f16[2,2]");

    // Zero points that are left out are 0.
    TinyOnnx bare;
    bare.opset("com.microsoft", 1).input("x", {2, 8}).weights("s", {});
    bare.node("QuantizeLinear", {"x", "s"}, {"q"});
    bare.node("QLinearSigmoid", {"q", "s", "", "s"}, {"y"}, {}, "com.microsoft").output("y");
    const Imported sigmoid = good(bare);
    EXPECT_EQ(kinds(sigmoid.graph), (Kinds{"QuantizeLinear", "QLinearSigmoid"}));
    EXPECT_EQ(sigmoid.graph.nodes[1].inputs.size(), 5u);
    EXPECT_EQ(std::ranges::count(sigmoid.graph.nodes[1].inputs, graph::none), 0);

    TinyOnnx dynamic;
    dynamic.input("x", {2, 8}).node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
    dynamic.node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
    EXPECT_TRUE(run(dynamic)) << refusal(dynamic);

    TinyOnnx crop(18);
    crop.input("x", {1, 3, 10, 7}).ints("to", {2}, {6, 10});
    crop.node("CenterCropPad", {"x", "to"}, {"y"}, {{"axes", Ints{2, 3}}}).output("y");
    EXPECT_EQ(to_string(good(crop).graph.value(good(crop).graph.outputs[0]).type), "f32[1,3,6,10]");
}

TEST_F(Import, KnowsBothNamesOfTheDefaultDomain) {
    TinyOnnx m;
    m.input("x", {1, 4}).node("Neg", {"x"}, {"y"}, {}, "ai.onnx").output("y");
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Neg"}));
    m.proto().mutable_opset_import(0)->set_domain("ai.onnx");
    EXPECT_EQ(kinds(good(m).graph), (Kinds{"Neg"}));
    m.proto().mutable_opset_import(0)->set_version(int64_t{1} << 40);
    EXPECT_NE(refusal(m).find("declares operator set 2147483647, accepted are"), std::string::npos)
        << refusal(m);
}

TEST_F(Import, RefusesOperatorsOfADomainWhoseSetIsNotDeclared) {
    TinyOnnx m;
    m.input("x", {1, 4}).node("Neg", {"x"}, {"y"}).output("y");
    m.proto().clear_opset_import();
    EXPECT_EQ(
        refusal(m),
        "model.onnx: declares no operator set of the domain ai.onnx, which node 'y_node' is of; "
        "add it to the model's opset_import");
}

TEST_F(Import, CountsThePartsOfASplitThatHaveNoName) {
    for (const size_t named : {0U, 1U, 2U}) {
        TinyOnnx m(13);
        std::vector<std::string> parts(3);
        parts[named] = "y";
        m.input("x", {6, 2}).node("Split", {"x"}, parts).output("y");
        const Imported out = good(m);
        ASSERT_EQ(kinds(out.graph), (Kinds{"Split"}));
        const graph::Node& split = out.graph.nodes[0];
        EXPECT_EQ(split.get("split", std::vector<int64_t>()), (std::vector<int64_t>{2, 2, 2}));
        ASSERT_EQ(split.outputs.size(), 3U);
        EXPECT_EQ(split.outputs[named], out.graph.outputs[0]);
    }
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
