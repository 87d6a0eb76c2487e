// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX's own tests do not have, beside ONNX Runtime: those of com.microsoft that its
// quantisers and optimisers write, and those that ONNX dropped.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <numeric>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml {
namespace {

using test::TinyOnnx;
using Ints = TinyOnnx::Ints;
using Attributes = std::vector<std::pair<std::string, TinyOnnx::Attribute>>;

constexpr const char* microsoft = "com.microsoft";

// Numbers of all sizes that the type has.
::onnx::TensorProto codes(const std::string& name, int type, const Ints& shape) {
    ::onnx::TensorProto t;
    t.set_name(name);
    t.set_data_type(type);
    int64_t count = 1;
    for (const int64_t d : shape) {
        t.add_dims(d);
        count *= d;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t v = i * 37 % 251;
        t.add_int32_data(static_cast<int32_t>(type == TinyOnnx::int32  ? v * 11 - 1000
                                              : type == TinyOnnx::int8 ? v - 125
                                                                       : v));
    }
    return t;
}
::onnx::TensorProto code(const std::string& name, int type, int value) {
    ::onnx::TensorProto t;
    t.set_name(name);
    t.set_data_type(type);
    t.add_int32_data(value);
    return t;
}

// x of this shape, q its codes with scale xs and zero point xz; s and z for a result.
TinyOnnx quantised(const std::vector<TinyOnnx::Dim>& shape, int type = TinyOnnx::uint8) {
    TinyOnnx m(13);
    m.opset(microsoft, 1).input("x", shape);
    m.floats("xs", {}, {0.01F}).initialiser(code("xz", type, type == TinyOnnx::uint8 ? 120 : -3));
    m.floats("s", {}, {0.02F}).initialiser(code("z", type, type == TinyOnnx::uint8 ? 97 : 5));
    m.node("QuantizeLinear", {"x", "xs", "xz"}, {"q"});
    return m;
}
TinyOnnx finished(TinyOnnx m) {
    m.node("DequantizeLinear", {"r", "s", "z"}, {"y"}).output("y");
    return m;
}
TinyOnnx unary(const char* op, const std::vector<std::string>& inputs, const Attributes& more = {},
               const std::vector<TinyOnnx::Dim>& shape = {1, 6, 4, 4}) {
    TinyOnnx m = quantised(shape);
    m.node(op, inputs, {"r"}, more, microsoft);
    return finished(m);
}

TinyOnnx gemm(bool with_scale, bool row, const Attributes& more, int type = TinyOnnx::uint8) {
    TinyOnnx m = quantised({4, 16}, type);
    m.initialiser(codes("w", TinyOnnx::int8, {16, 8})).floats("ws", {}, {0.003F});
    m.initialiser(code("wz", TinyOnnx::int8, 0));
    m.initialiser(codes("b", TinyOnnx::int32, row ? Ints{8} : Ints{4, 8}));
    std::vector<std::string> inputs{"q", "xs", "xz", "w", "ws", "wz", "b"};
    if (with_scale) inputs.insert(inputs.end(), {"s", "z"});
    m.node("QGemm", inputs, {with_scale ? "r" : "y"}, more, microsoft);
    return with_scale ? finished(m) : m.output("y");
}

TinyOnnx matmul_to_float(bool per_column) {
    TinyOnnx m = quantised({2, 4, 16});
    m.initialiser(codes("w", TinyOnnx::int8, {16, 8}));
    m.floats("ws", per_column ? Ints{8} : Ints{},
             per_column ? TinyOnnx::Floats{.1F, .2F, .3F, .4F, .5F, .6F, .7F, .8F}
                        : TinyOnnx::Floats{0.003F});
    m.weights("b", {8});
    m.node("MatMulIntegerToFloat", {"q", "w", "xs", "ws", "xz", "", "b"}, {"y"}, {}, microsoft);
    return m.output("y");
}

TinyOnnx dynamic_matmul() {
    TinyOnnx m(13);
    m.opset(microsoft, 1).input("x", {3, 16}).weights("b", {8});
    m.initialiser(codes("w", TinyOnnx::int8, {16, 8})).floats("ws", {}, {0.003F});
    m.node("DynamicQuantizeMatMul", {"x", "w", "ws", "", "b"}, {"y"}, {}, microsoft);
    return m.output("y");
}

TinyOnnx where() {
    TinyOnnx m = quantised({1, 6, 4, 4});
    m.floats("zero", {}, {0}).node("Greater", {"x", "zero"}, {"c"});
    m.floats("other", {}, {0.05F});
    m.node("QLinearWhere", {"c", "q", "xs", "xz", "xz", "other", "z", "s", "z"}, {"r"}, {},
           microsoft);
    return finished(m);
}

TinyOnnx conv_of_channels_last() {
    TinyOnnx m = quantised({1, 5, 6, 3});
    m.initialiser(codes("w", TinyOnnx::int8, {4, 3, 3, 3})).floats("ws", {}, {0.003F});
    m.initialiser(code("wz", TinyOnnx::int8, 0));
    m.node("QLinearConv", {"q", "xs", "xz", "w", "ws", "wz", "s", "z"}, {"r"},
           {{"channels_last", int64_t{1}}, {"pads", Ints{1, 1, 1, 1}}}, microsoft);
    return finished(m);
}

TinyOnnx fused_gemm(const char* activation, const Attributes& more) {
    TinyOnnx m(13);
    m.opset(microsoft, 1).input("x", {4, 16}).weights("w", {8, 16}).weights("b", {8});
    Attributes attributes{{"transB", int64_t{1}}, {"activation", std::string(activation)}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    m.node("FusedGemm", {"x", "w", "b"}, {"y"}, attributes, microsoft);
    return m.output("y");
}

// x [6,2,3,4] as it is or turned, times w of the shape given.
TinyOnnx fused_matmul(const Ints& w, const Attributes& attributes) {
    TinyOnnx m(13);
    m.opset(microsoft, 1).input("x", {6, 2, 3, 4}).weights("w", w);
    return m.node("FusedMatMul", {"x", "w"}, {"y"}, attributes, microsoft).output("y");
}

TinyOnnx old(const char* op, const Attributes& attributes) {
    TinyOnnx m(9);
    m.input("x", {1, 3, 8, 10}).node(op, {"x"}, {"y"}, attributes).output("y");
    return m;
}

TinyOnnx layer_normalization_in_an_older_set() {
    TinyOnnx m(12);
    m.input("x", {2, 4, 8}).weights("s", {8}).weights("b", {8});
    m.node("LayerNormalization", {"x", "s", "b"}, {"y"}, {{"axis", int64_t{-1}}}).output("y");
    return m;
}

// Two pictures whose channels come last before, and what is sampled beside others behind.
TinyOnnx grid_sample(const Attributes& attributes) {
    TinyOnnx m(20);
    m.input("x", {2, 7, 5, 12}).input("g", {2, 6, 4, 2}).input("z", {2, 6, 6, 4});
    m.node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 3, 1, 2}}});
    m.node("GridSample", {"t", "g"}, {"s"}, attributes);
    return m.node("Concat", {"s", "z"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
}

struct Case {
    const char* name;
    TinyOnnx model;
};
std::vector<Case> cases() {
    const Attributes transposed{{"alpha", 0.5F}};
    return {
        {"QGemm", gemm(true, true, {})},
        {"QGemmOfSignedCodes", gemm(true, true, transposed, TinyOnnx::int8)},
        {"QGemmWithAMatrixOfBiases", gemm(true, false, {})},
        {"QGemmToFloat", gemm(false, true, transposed)},
        {"MatMulIntegerToFloat", matmul_to_float(false)},
        {"MatMulIntegerToFloatPerColumn", matmul_to_float(true)},
        {"DynamicQuantizeMatMul", dynamic_matmul()},
        {"QLinearSigmoid", unary("QLinearSigmoid", {"q", "xs", "xz", "s", "z"})},
        {"QLinearLeakyRelu",
         unary("QLinearLeakyRelu", {"q", "xs", "xz", "s", "z"}, {{"alpha", 0.1F}})},
        {"QLinearSoftmax", unary("QLinearSoftmax", {"q", "xs", "xz", "s", "z"},
                                 {{"axis", int64_t{-1}}, {"opset", int64_t{13}}})},
        {"QLinearSoftmaxThatFlattens", unary("QLinearSoftmax", {"q", "xs", "xz", "s", "z"},
                                             {{"axis", int64_t{1}}, {"opset", int64_t{12}}})},
        {"QLinearAveragePool",
         unary("QLinearAveragePool", {"q", "xs", "xz", "s", "z"}, {{"kernel_shape", Ints{2, 2}}})},
        {"QLinearGlobalAveragePoolOfChannelsLast",
         unary("QLinearGlobalAveragePool", {"q", "xs", "xz", "s", "z"},
               {{"channels_last", int64_t{1}}})},
        {"QLinearConcat", unary("QLinearConcat", {"s", "z", "q", "xs", "xz", "q", "s", "xz"},
                                {{"axis", int64_t{1}}})},
        {"QLinearAdd", unary("QLinearAdd", {"q", "xs", "xz", "q", "s", "z", "s", "z"})},
        {"QLinearWhere", where()},
        {"QLinearConvOfChannelsLast", conv_of_channels_last()},
        {"FusedGemmWithRelu", fused_gemm("Relu", {})},
        {"FusedGemmWithLeakyRelu", fused_gemm("LeakyRelu", {{"activation_alpha", 0.2F}})},
        {"FusedMatMulThatMovesTheBatchOfA",
         fused_matmul({2, 3, 4, 5}, {{"transBatchA", int64_t{1}}, {"alpha", 0.5F}})},
        {"FusedMatMulThatMovesTheBatchOfAAndTurnsIt",
         fused_matmul({2, 3, 6, 5}, {{"transBatchA", int64_t{1}}, {"transA", int64_t{1}}})},
        {"FusedMatMulThatMovesTheBatchOfBAndTurnsIt",
         fused_matmul({5, 6, 2, 4}, {{"transBatchB", int64_t{1}}, {"transB", int64_t{1}}})},
        {"LayerNormalizationInAnOlderSet", layer_normalization_in_an_older_set()},
        {"GridSample", grid_sample({})},
        {"GridSampleOfCubesAtTheBorder",
         grid_sample({{"mode", std::string("cubic")}, {"padding_mode", std::string("border")}})},
        {"GridSampleOfTheNearestMirrored", grid_sample({{"mode", std::string("nearest")},
                                                        {"padding_mode", std::string("reflection")},
                                                        {"align_corners", int64_t{1}}})},
        {"ImageScaler",
         old("ImageScaler", {{"scale", 0.5F}, {"bias", TinyOnnx::Floats{1, -2, 3}}})},
        {"Crop", old("Crop", {{"border", Ints{1, 2, 3, 1}}})},
        {"CropToASize", old("Crop", {{"border", Ints{1, 2, 0, 0}}, {"scale", Ints{4, 5}}})},
        {"Affine", old("Affine", {{"alpha", 2.0F}, {"beta", -1.0F}})},
        {"ParametricSoftplus", old("ParametricSoftplus", {{"alpha", 0.5F}, {"beta", 2.0F}})},
        {"ScaledTanh", old("ScaledTanh", {{"alpha", 0.5F}, {"beta", 2.0F}})},
    };
}

class OtherOperators : public testing::TestWithParam<Case> {};
TEST_P(OtherOperators, GiveWhatOnnxRuntimeGives) {
    const char* program = std::getenv("VARTML_PROGRAM");
    ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const test::TempDir dir;
    GetParam().model.save(dir / "m.onnx");
    const std::string command =
        "cd '" + dir.path() + "' && '" + program + "' verify m.onnx --numerics f32 >out.txt 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << test::slurp(dir / "out.txt");
}
INSTANTIATE_TEST_SUITE_P(All, OtherOperators, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml
