// SPDX-License-Identifier: Apache-2.0
// Models that run partly on the NPU, partly on the CPU: what a runner gives for them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "lib/compile/compile.h"
#include "lib/model/compiled_model.h"
#include "lib/run/vart/runner.h"
#include "tests/support/running_model.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::compiler {
namespace {

using test::Running;
using test::TinyOnnx;
using vart::StatusCode;
using Ints = TinyOnnx::Ints;

// A scalar has no axis, though its view shows one.
TEST(Partitions, TakeInputsWithoutDimensions) {
    TinyOnnx m(17);
    m.input("a", {}).input("b", {}).node("Sub", {"a", "b"}, {"c"}).node("Relu", {"c"}, {"y"});
    m.output("y", {});
    Running model(m);
    model.input<float>(0)[0] = 5;
    model.input<float>(1)[0] = 3;
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    EXPECT_EQ(model.output<float>()[0], 2);
}

// Compiled by whoever has the memory, or by a compiler without limits.
TEST(Partitions, ThatTheMachineCannotHoldAreRefusedBeforeTheyTakeMemory) {
    TinyOnnx m(17);
    m.input("x", {1, 1, 1, 1}).ints("sizes", {4}, {1, 256, 65536, 65536});
    m.node("Expand", {"x", "sizes"}, {"y"}).output("y");
    const test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    request.cpu_memory_limit = uint64_t{1} << 50;
    m.save(request.model);
    auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_TRUE(model) << model.error().message;
    const auto state = runtime::prepare("m.rai", std::move(*model), {});
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, ErrorCode::out_of_memory);
    for (const char* said :
         {"model 'm.rai': CPU partition '", "needs 43980465", "bytes of memory, this machine has "})
        EXPECT_NE(state.error().message.find(said), std::string::npos) << state.error().message;
}

// The model's first picture says how outputs lie, not a tensor between partitions that looks as if
// its channels were last.
TEST(Partitions, GiveOutputsOneLayoutWithWhateverTheyBegin) {
    TinyOnnx m(17);
    m.input("x", {1, 9, 2}, TinyOnnx::int64).ints("depth", {1}, {3}).floats("values", {2}, {0, 1});
    m.node("OneHot", {"x", "depth", "values"}, {"h"});  // 1x9x2x3
    TinyOnnx::Floats weights(4 * 9);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
    m.floats("w", {4, 9, 1, 1}, weights).node("Conv", {"h", "w"}, {"y"}).output("y", {1, 4, 2, 3});
    Running model(m);
    ASSERT_EQ(model.partitions().size(), 2U);
    Ints classes(9 * 2);
    for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int64_t>(i * i % 3);
    std::ranges::copy(classes, model.input<int64_t>().begin());
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (size_t o = 0; o < 4; ++o)
        for (size_t row = 0; row < 2; ++row)
            for (size_t c = 0; c < 3; ++c) {
                float sum = 0;
                for (size_t i = 0; i < 9; ++i)
                    if (classes[i * 2 + row] == static_cast<int64_t>(c)) sum += weights[o * 9 + i];
                EXPECT_EQ(model.output<float>()[(o * 2 + row) * 3 + c], sum);
            }
}

// NPU, CPU, NPU, and again the CPU.
TEST(Partitions, HandTensorsFromOneToTheNext) {
    TinyOnnx m(17);
    m.input("x", {1, 2, 4, 4})
        .floats("w", {2, 2, 1, 1}, {1, 1, 1, -1})
        .floats("v", {2, 2, 1, 1}, {2, 0, 0, 1})
        .node("Conv", {"x", "w"}, {"a"})
        .node("Acosh", {"a"}, {"b"})
        .node("Conv", {"b", "v"}, {"c"})
        .node("Cosh", {"c"}, {"y"})
        .output("y")
        .output("a");
    Running model(m);
    EXPECT_EQ(model.partitions(),
              (std::vector<std::string>{"vaiml_par_0", "vaiml_cpu_subgraph_0", "vaiml_par_1",
                                        "vaiml_cpu_subgraph_1"}));
    const auto x = model.input<float>();
    for (size_t i = 0; i < 16; ++i) {
        x[i] = 3 + static_cast<float>(i) / 16;
        x[16 + i] = 1;
    }
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (size_t i = 0; i < 16; ++i) {
        const double sum = x[i] + x[16 + i], difference = x[i] - x[16 + i];
        EXPECT_NEAR(model.output<float>(1)[i], sum, 1e-6);
        EXPECT_NEAR(model.output<float>(0)[i], std::cosh(2 * std::acosh(sum)), 1e-3);
        EXPECT_NEAR(model.output<float>(0)[16 + i], difference, 1e-5);
    }
}

// Rows of scores above 0, in the order of the picture: as many as there are.
TEST(Partitions, FillWhatTheDataLeaveEmpty) {
    TinyOnnx m(17);
    m.input("s", {4})
        .input("v", {4, 2})
        .floats("zero", {}, {0})
        .ints("shape", {1}, {-1})
        .ints("last", {1}, {-2})
        .ints("end", {1}, {std::numeric_limits<int64_t>::max()})
        .node("Greater", {"s", "zero"}, {"is"})
        .node("NonZero", {"is"}, {"n"})
        .node("Reshape", {"n", "shape"}, {"i"})
        .node("Gather", {"v", "i"}, {"rows"}, {{"axis", int64_t{0}}})
        .node("Exp", {"rows"}, {"e"})
        .node("Slice", {"i", "last", "end"}, {"two"})
        .output("e")
        .output("i", {}, TinyOnnx::int64)
        .output("two", {}, TinyOnnx::int64);
    Running model(m);
    EXPECT_EQ(model.shape(0), (std::vector<uint32_t>{4, 2}));
    const auto run = [&](std::vector<float> scores) {
        std::ranges::copy(scores, model.input<float>(0).begin());
        for (size_t i = 0; i < 8; ++i) model.input<float>(1)[i] = 0;
        std::ranges::fill(model.output<float>(0), 7);
        std::ranges::fill(model.output<int64_t>(1), 7);
        return model.run();
    };
    const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
    ASSERT_EQ(run({-1, 5, -1, 2}), StatusCode::SUCCESS) << model.last_error();
    EXPECT_EQ(list(model.output<float>(0)), (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
    EXPECT_EQ(list(model.output<int64_t>(1)), (std::vector<int64_t>{1, 3, -1, -1}));
    EXPECT_EQ(list(model.output<int64_t>(2)).front(), 1);  // of the real end
    ASSERT_EQ(run({1, 1, 1, 1}), StatusCode::SUCCESS);
    EXPECT_EQ(list(model.output<int64_t>(1)), (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(list(model.output<int64_t>(2)).front(), 2);
    ASSERT_EQ(run({-1, -1, -1, -1}), StatusCode::SUCCESS);  // nothing at all
    EXPECT_EQ(list(model.output<float>(0)), std::vector<float>(8, 0));
    EXPECT_EQ(list(model.output<int64_t>(1)), std::vector<int64_t>(4, -1));
}

// What is settled at run time has attributes by then, and its remaining inputs are data.
TEST(Partitions, EncodeAsManyRowsAsThereAre) {
    TinyOnnx m(17);
    m.input("s", {3})
        .ints("axis", {1}, {0})
        .ints("depth", {}, {4})
        .floats("values", {2}, {2, 5})
        .node("NonZero", {"s"}, {"n"})
        .node("Squeeze", {"n", "axis"}, {"i"})
        .node("OneHot", {"i", "depth", "values"}, {"y"})
        .output("y");
    Running model(m);
    const float scores[] = {0, 3, 1};
    std::ranges::copy(scores, model.input<float>().begin());
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    const auto y = model.output<float>();
    EXPECT_EQ(std::vector(y.begin(), y.end()),
              (std::vector<float>{2, 5, 2, 2, 2, 2, 5, 2, 0, 0, 0, 0}));
}

// Operators that are taken apart on import: the pieces know no more of the shape than the whole.
TEST(Partitions, TakeOperatorsApartForAnyNumberOfRows) {
    TinyOnnx softmax(11), crop(18);
    softmax.input("s", {3})
        .input("v", {3, 2, 1, 2})
        .ints("shape", {1}, {-1})
        .node("NonZero", {"s"}, {"n"})
        .node("Reshape", {"n", "shape"}, {"i"})
        .node("Gather", {"v", "i"}, {"rows"}, {{"axis", int64_t{0}}})
        .node("Softmax", {"rows"}, {"y"})
        .node("LogSoftmax", {"rows"}, {"z"})
        .output("y")
        .output("z");
    Running old(softmax);
    const float scores[] = {0, 3, 1};
    std::ranges::copy(scores, old.input<float>(0).begin());
    std::ranges::fill(old.input<float>(1), 0.0F);
    old.input<float>(1)[4] = std::log(5.0F);
    ASSERT_EQ(old.run(), StatusCode::SUCCESS) << old.last_error();
    const float parts[] = {0.625, 0.125, 0.125, 0.125, 0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0};
    for (size_t i = 0; i < 12; ++i) {
        EXPECT_NEAR(old.output<float>(0)[i], parts[i], 1e-6) << i;
        EXPECT_NEAR(old.output<float>(1)[i], i < 8 ? std::log(parts[i]) : 0, 1e-6) << i;
    }

    crop.input("s", {6})
        .ints("axis", {1}, {0})
        .ints("size", {1}, {4})
        .node("NonZero", {"s"}, {"n"})
        .node("Squeeze", {"n", "axis"}, {"i"})
        .node("CenterCropPad", {"i", "size"}, {"y"}, {{"axes", Ints{0}}})
        .output("y", {}, TinyOnnx::int64);
    Running centre(crop);
    const float six[] = {0, 1, 0, 0, 1, 0};
    std::ranges::copy(six, centre.input<float>(0).begin());
    ASSERT_EQ(centre.run(), StatusCode::SUCCESS) << centre.last_error();
    const auto y = centre.output<int64_t>();
    EXPECT_EQ(std::vector(y.begin(), y.end()), (std::vector<int64_t>{0, 1, 4, 0}));
}

// Neither 2^24 + 1 nor -2^63 + 1 is a float.
TEST(Partitions, PadWithIntegersThatNoFloatHolds) {
    constexpr int64_t low = std::numeric_limits<int64_t>::min() + 1, odd = (1 << 24) + 1;
    for (const bool computed : {false, true}) {
        TinyOnnx m(17);
        m.input("x", {2}, TinyOnnx::int64).input("s", {2}, TinyOnnx::int32).ints("p", {2}, {1, 2});
        m.ints("v", {}, {low}).ints("odd", {}, {odd});
        if (computed) m.input("w", {1}, TinyOnnx::int64);
        m.node("Cast", {"odd"}, {"o"}, {{"to", int64_t{TinyOnnx::int32}}})
            .node("Pad", {"x", "p", computed ? "w" : "v"}, {"y"})
            .node("Pad", {"s", "p", "o"}, {"z"})
            .output("y", {}, TinyOnnx::int64)
            .output("z", {}, TinyOnnx::int32);
        Running model(m);
        model.input<int64_t>(0)[0] = std::numeric_limits<int64_t>::max();
        model.input<int64_t>(0)[1] = -7;
        model.input<int32_t>(1)[0] = std::numeric_limits<int32_t>::min();
        model.input<int32_t>(1)[1] = 3;
        if (computed) model.input<int64_t>(2)[0] = low;
        ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
        const auto y = model.output<int64_t>(0);
        EXPECT_EQ(std::vector(y.begin(), y.end()),
                  (std::vector{low, std::numeric_limits<int64_t>::max(), int64_t{-7}, low, low}));
        const auto z = model.output<int32_t>(1);
        EXPECT_EQ(std::vector(z.begin(), z.end()),
                  (std::vector{int32_t{odd}, std::numeric_limits<int32_t>::min(), int32_t{3},
                               int32_t{odd}, int32_t{odd}}));
    }
}

// A frame in which nothing was found is a frame like any other.
TEST(Partitions, ReshapeRowsThatAreNotThere) {
    TinyOnnx m(17);
    m.input("s", {3})
        .input("v", {3, 2, 2})
        .ints("axis", {1}, {0})
        .ints("shape", {2}, {0, -1})
        .node("NonZero", {"s"}, {"n"})
        .node("Squeeze", {"n", "axis"}, {"i"})
        .node("Gather", {"v", "i"}, {"rows"}, {{"axis", int64_t{0}}})
        .node("Reshape", {"rows", "shape"}, {"y"})
        .output("y");
    Running model(m);
    EXPECT_EQ(model.shape(0), (std::vector<uint32_t>{3, 4}));
    std::ranges::fill(model.input<float>(0), 0.0F);
    std::ranges::fill(model.output<float>(), 7.0F);
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (const float y : model.output<float>()) EXPECT_EQ(y, 0);
}

// What Ultralytics exports with nms=True: boxes that are found are suppressed in the model, which
// then pads them to a fixed number. One anchor a row; boxes, two classes, and no masks.
TEST(Partitions, SuppressBoxesInsideTheModel) {
    TinyOnnx m(17);
    m.input("p", {1, 6, 5});
    m.ints("parts", {3}, {4, 2, 0}).ints("zero", {}, {0}).ints("one", {1}, {1});
    m.ints("zero_list", {1}, {0}).ints("four", {1}, {4}).ints("column", {2}, {-1, 1});
    m.ints("ones", {2}, {1, 1}).ints("minus_ones", {2}, {-1, -1}).ints("two", {}, {2});
    m.ints("most", {}, {std::numeric_limits<int64_t>::max()})
        .ints("three", {}, {3})
        .ints("no_pads", {3}, {0, 0, 0});
    m.ints("first", {1, 1}, {0}).ints("last", {1}, {3}).ints("result_shape", {3}, {1, 3, 6});
    m.floats("threshold", {}, {0.25F}).floats("overlap", {}, {0.5F});
    m.floats("scale", {}, {10}).floats("result", {1, 3, 6}, TinyOnnx::Floats(18, 0));
    m.node("Transpose", {"p"}, {"rows"}, {{"perm", Ints{0, 2, 1}}})
        .node("Split", {"rows", "parts"}, {"boxes", "scores", "extras"}, {{"axis", int64_t{2}}})
        .node("ReduceMax", {"scores"}, {"best"}, {{"axes", Ints{2}}, {"keepdims", int64_t{0}}})
        .node("ArgMax", {"scores"}, {"class"}, {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}});
    for (const char* name : {"boxes", "best", "class", "extras"})
        m.node("Gather", {name, "zero"}, {std::string(name) + "_0"}, {{"axis", int64_t{0}}});
    m.node("Greater", {"best_0", "threshold"}, {"mask"})
        .node("NonZero", {"mask"}, {"where"})
        .node("Transpose", {"where"}, {"index"});
    for (const std::string name : {"boxes", "best", "class", "extras"})
        m.node("GatherND", {name + "_0", "index"}, {name + "_m"});
    m.node("Shape", {"boxes_m"}, {"shape"})
        .node("Gather", {"shape", "zero"}, {"count"})
        .node("Unsqueeze", {"count", "zero_list"}, {"count_list"})
        .node("Concat", {"count_list", "four"}, {"wanted"}, {{"axis", int64_t{0}}})
        .node("Equal", {"wanted", "minus_ones"}, {"kept"})
        .node("Where", {"kept", "ones", "wanted"}, {"sizes"})
        .node("Reshape", {"class_m", "column"}, {"class_column"})
        .node("Expand", {"class_column", "sizes"}, {"offsets"})
        .node("Cast", {"offsets"}, {"offsets_f"}, {{"to", int64_t{1}}})
        .node("Mul", {"offsets_f", "scale"}, {"offsets_s"})
        .node("Add", {"boxes_m", "offsets_s"}, {"moved"})
        .node("Unsqueeze", {"moved", "zero_list"}, {"moved_3"})
        .node("Unsqueeze", {"best_m", "zero_list"}, {"best_2"})
        .node("Unsqueeze", {"best_2", "zero_list"}, {"best_3"})
        .node("NonMaxSuppression", {"moved_3", "best_3", "most", "overlap"}, {"selected"})
        .node("Gather", {"selected", "two"}, {"keep_all"}, {{"axis", int64_t{1}}})
        .node("Slice", {"keep_all", "zero_list", "last", "zero_list"}, {"keep"})
        .node("Gather", {"boxes_m", "keep"}, {"boxes_k"})
        .node("Gather", {"best_m", "keep"}, {"best_k"})
        .node("Gather", {"class_m", "keep"}, {"class_k"})
        .node("Gather", {"extras_m", "keep"}, {"extras_k"})
        .node("Reshape", {"best_k", "column"}, {"best_c"})
        .node("Reshape", {"class_k", "column"}, {"class_c"})
        .node("Cast", {"class_c"}, {"class_f"}, {{"to", int64_t{1}}})
        .node("Concat", {"boxes_k", "best_c", "class_f", "extras_k"}, {"found"},
              {{"axis", int64_t{-1}}})
        .node("Shape", {"found"}, {"found_shape"})
        .node("Gather", {"found_shape", "zero"}, {"found_count"})
        .node("Sub", {"three", "found_count"}, {"missing"})
        .node("Unsqueeze", {"missing", "zero_list"}, {"missing_list"})
        // F.pad counts from the last axis: (0, 0, 0, missing), turned around for ONNX.
        .node("Concat", {"no_pads", "missing_list"}, {"torch_pads"}, {{"axis", int64_t{0}}})
        .ints("pairs", {2}, {-1, 2})
        .ints("from", {1}, {-1})
        .ints("to", {1}, {-10})
        .ints("all", {1}, {-1})
        .node("Reshape", {"torch_pads", "pairs"}, {"pads_2"})
        .node("Slice", {"pads_2", "from", "to", "zero_list", "from"}, {"pads_turned"})
        .node("Transpose", {"pads_turned"}, {"pads_t"}, {{"perm", Ints{1, 0}}})
        .node("Reshape", {"pads_t", "all"}, {"pads"})
        .node("Pad", {"found", "pads"}, {"padded"})
        .node("Expand", {"padded", "result_shape"}, {"update"})
        .node("ScatterND", {"result", "first", "update"}, {"y"})
        .output("y", {1, 3, 6});
    CompileRequest request;
    request.convert_floats = false;
    Running model(m, request);
    // Two boxes of one thing, one of another class in the same place, one below the threshold.
    const float p[6][5] = {{0, 0, 0, 5, 9},    {0, 0, 0, 5, 9},          {2, 2, 2, 7, 9},
                           {2, 2.1F, 2, 7, 9}, {0.9F, 0.8F, 0, 0.1F, 0}, {0, 0, 0.7F, 0, 0.2F}};
    for (size_t i = 0; i < 30; ++i) model.input<float>()[i] = p[i / 5][i % 5];
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    const auto y = model.output<float>();
    const std::vector<float> want{0, 0, 2, 2, 0.9F, 0, 0, 0, 2, 2, 0.7F, 1, 0, 0, 0, 0, 0, 0};
    EXPECT_EQ(model.shape(), (std::vector<uint32_t>{1, 3, 6}));
    EXPECT_EQ(std::vector(y.begin(), y.end()), want);
    std::ranges::fill(model.input<float>(), 0.0F);  // nothing is found
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (const float v : y) EXPECT_EQ(v, 0);
}

// A rejected run says which node rejected it, and the next one is none the worse.
TEST(Partitions, FailTheJobForDataThatAnOperatorRejects) {
    TinyOnnx m(17);
    m.input("x", {5})
        .input("i", {2}, TinyOnnx::int64)
        .node("Gather", {"x", "i"}, {"picked"})
        .node("Sinh", {"picked"}, {"y"})
        .output("y");
    Running model(m);
    std::ranges::fill(model.input<float>(0), 0.0F);
    model.input<int64_t>(1)[0] = 4;
    model.input<int64_t>(1)[1] = 5;
    EXPECT_EQ(model.run(), StatusCode::FAILURE);
    EXPECT_NE(model.last_error().find("node 'picked_node' (Gather) takes element 5 of 5"),
              std::string::npos)
        << model.last_error();
    model.input<int64_t>(1)[1] = -5;
    EXPECT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
}

// As many elements as the bound, but longer along an axis: they have no place in the output.
TEST(Partitions, FailTheJobForARealShapeOutsideOfTheBound) {
    TinyOnnx m(17);
    m.input("x", {2, 6})
        .input("s", {2}, TinyOnnx::int64)
        .node("Reshape", {"x", "s"}, {"y"})
        .output("y", {6, 6});
    Running model(m);
    std::ranges::fill(model.input<float>(0), 1.0F);
    model.input<int64_t>(1)[0] = 12;
    model.input<int64_t>(1)[1] = 1;
    EXPECT_EQ(model.run(), StatusCode::FAILURE);
    EXPECT_NE(model.last_error().find("tensor 'y' has [12,1] elements in this run, the model "
                                      "allows for at most [6,6] along each axis"),
              std::string::npos)
        << model.last_error();
    model.input<int64_t>(1)[0] = 4;
    model.input<int64_t>(1)[1] = 3;
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (size_t i = 0; i < 36; ++i)
        EXPECT_EQ(model.output<float>()[i], i / 6 < 4 && i % 6 < 3 ? 1 : 0) << i;
}

// The bytes of a camera frame are the input; the program makes the numbers that the pre-processor
// would have made.
TEST(Partitions, TakeThePictureItself) {
    TinyOnnx m(17);
    m.input("x", {1, 3, 2, 2})
        .floats("w", {1, 3, 1, 1}, {1, 10, 100})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y");
    CompileRequest request;
    request.convert_floats = false;
    request.embed = {*parse_embedded_preprocess("x:u8,rgbx,hwc,mean=1/2/3,scale=0.5")};
    Running model(m, request);
    const uint8_t pixels[] = {1, 2, 3, 99, 3, 2, 3, 99, 1, 4, 3, 99, 1, 2, 255, 99};
    ASSERT_EQ(model.input<uint8_t>().size(), sizeof pixels);
    std::ranges::copy(pixels, model.input<uint8_t>().begin());
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    EXPECT_FLOAT_EQ(model.output<float>()[0], 0);
    EXPECT_FLOAT_EQ(model.output<float>()[1], 1);
    EXPECT_FLOAT_EQ(model.output<float>()[2], 10);
    EXPECT_FLOAT_EQ(model.output<float>()[3], 12600);
}

TEST(Partitions, NeedTheColumnsOfTheirConfiguration) {
    TinyOnnx m(17);
    m.input("x", {1, 4}).node("Relu", {"x"}, {"y"}).output("y");
    test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    m.save(request.model);
    request.device = "ve2-xc2ve3558";
    request.dp_size = 3;
    request.tp_size = 2;
    const auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->partitions[0].columns, 24u);
    request.device = "ve2-xc2ve3358";
    const auto refused = compile_in_memory(request, nullptr, nullptr);
    ASSERT_FALSE(refused);
    EXPECT_EQ(
        refused.error().message,
        "dp_size 3 times tp_size 2 needs 24 columns, ve2-xc2ve3358 has 8; use smaller numbers");
}

// The same numbers wherever the operators run.
TEST(Partitions, MayBeTheCpuAlone) {
    TinyOnnx m(17);
    m.input("x", {1, 2, 4, 4})
        .weights("w", {3, 2, 3, 3})
        .node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}})
        .node("Relu", {"a"}, {"b"})
        .node("Add", {"a", "b"}, {"y"})
        .output("y");
    CompileRequest request;
    Running npu(m, request);
    request.npu = false;
    Running cpu(m, request);
    EXPECT_EQ(cpu.partitions(), std::vector<std::string>{"vaiml_cpu_subgraph_0"});
    for (size_t i = 0; i < 32; ++i)
        npu.input<float>()[i] = cpu.input<float>()[i] = std::sin(static_cast<float>(i));
    // bf16 at the border is exact for neither: the NPU reads its input in bf16.
    ASSERT_EQ(npu.run(), StatusCode::SUCCESS);
    ASSERT_EQ(cpu.run(), StatusCode::SUCCESS);
    for (size_t i = 0; i < 48; ++i)
        EXPECT_NEAR(npu.output<float>()[i], cpu.output<float>()[i], 0.04) << i;
}

// 13 of 7 elements: no float is that ratio, and some of the positions are whole numbers.
TEST(Partitions, ResizeToTheSameElementsOnBothSides) {
    TinyOnnx m(17);
    m.input("x", {1, 1, 1, 7})
        .ints("sizes", {4}, {1, 1, 1, 13})
        .node("Resize", {"x", "", "", "sizes"}, {"y"}, {{"nearest_mode", std::string("ceil")}})
        .output("y");
    for (const bool npu : {true, false}) {
        CompileRequest request;
        request.npu = npu;
        Running model(m, request);
        EXPECT_EQ(model.partitions().front(), npu ? "vaiml_par_0" : "vaiml_cpu_subgraph_0");
        for (size_t i = 0; i < 7; ++i) model.input<float>()[i] = static_cast<float>(i);
        ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
        const auto y = model.output<float>();
        EXPECT_EQ(std::vector(y.begin(), y.end()),
                  (std::vector<float>{0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6}));
    }
}

}  // namespace
}  // namespace vartml::compiler
