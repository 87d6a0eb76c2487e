// SPDX-License-Identifier: Apache-2.0
// What the first arithmetic of a graph says about the pixels that it takes.
#include "lib/tools/verify/made_input.h"

#include <gtest/gtest.h>

#include "lib/compile/onnx/import.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

using test::TinyOnnx;

struct Case {
    const char* name;
    void (*build)(TinyOnnx& m);  // from "x" [1, 3, 8, 8] to "y"
    bool takes_bytes;
};

const Case cases[] = {
    {"ImageScalerOfMeans",
     [](TinyOnnx& m) {
         m.node("ImageScaler", {"x"}, {"y"},
                {{"scale", 1.0F}, {"bias", std::vector<float>{-124, -116.3F, -104}}});
     },
     true},
    {"SubOfMeansBehindATranspose",
     [](TinyOnnx& m) {
         m.node("Transpose", {"x"}, {"t"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
         m.floats("mean", {3}, {104, 117, 123}).node("Sub", {"t", "mean"}, {"y"});
     },
     true},
    {"DivBy255", [](TinyOnnx& m) { m.floats("d", {1}, {255}).node("Div", {"x", "d"}, {"y"}); },
     true},
    {"MulBy1Of128",
     [](TinyOnnx& m) { m.floats("f", {1}, {1 / 128.F}).node("Mul", {"x", "f"}, {"y"}); }, true},
    {"BatchNormalizationOfPixels",
     [](TinyOnnx& m) {
         m.floats("one", {3}, {1, 1, 1}).floats("mean", {3}, {110, 110, 110});
         m.floats("zero", {3}, {0, 0, 0});
         m.node("BatchNormalization", {"x", "one", "zero", "mean", "one"}, {"y"});
     },
     true},
    {"MeansOfOne",
     [](TinyOnnx& m) {
         m.floats("mean", {3, 1, 1}, {0.485F, 0.456F, 0.406F}).node("Sub", {"x", "mean"}, {"c"});
         m.floats("d", {1}, {0.225F}).node("Div", {"c", "d"}, {"y"});
     },
     false},
    {"FromMinusOneToOne",
     [](TinyOnnx& m) { m.floats("f", {1}, {2}).node("Mul", {"x", "f"}, {"y"}); }, false},
    {"MeansBehindAConvolution",
     [](TinyOnnx& m) {
         m.floats("w", {3, 3, 1, 1}, std::vector<float>(9, 1)).node("Conv", {"x", "w"}, {"c"});
         m.floats("mean", {1}, {100}).node("Sub", {"c", "mean"}, {"y"});
     },
     false},
};

class PixelRange : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(FirstArithmetic, PixelRange, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(PixelRange, IsWhatTheGraphSays) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8});
    GetParam().build(m);
    const test::TempDir dir;
    m.output("y").save(dir / "m.onnx");
    const auto imported = onnx::import_onnx(dir / "m.onnx");
    ASSERT_TRUE(imported) << imported.error().message;
    const graph::Graph& graph = imported->graph;
    EXPECT_EQ(takes_bytes(graph, graph.inputs[0]), GetParam().takes_bytes);
}

}  // namespace
}  // namespace vartml::verify
