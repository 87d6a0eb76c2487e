// SPDX-License-Identifier: Apache-2.0
// A model that is rounded to bf16 is what it is for in old and new operator sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "lib/compile/onnx/rounded.h"
#include "lib/tools/verify/onnxruntime.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

// To the nearest, the even one of two.
float bf16_of(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7FFFU + (bits >> 16 & 1)) & 0xFFFF0000U);
}

class RoundedModel : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OperatorSets, RoundedModel, testing::Values(11, 17));

TEST_P(RoundedModel, RoundsInputConstantAndResult) {
    const auto onnxruntime = OnnxRuntime::find();
    if (!onnxruntime) GTEST_SKIP() << onnxruntime.error().message;
    constexpr float x[] = {1.003F, -257.5F, 0.1F, 3.14159F}, w = 1.7182F;
    test::TinyOnnx model(GetParam());
    model.input("x", {4}).floats("w", {1}, {w}).node("Mul", {"x", "w"}, {"y"}).output("y", {4});
    model.proto().mutable_graph()->mutable_node(0)->set_name("y");  // as its output, as many are
    const test::TempDir folder;
    model.save(folder / "whole.onnx");
    const auto written = onnx::write_rounded(folder / "whole.onnx", folder / "model.onnx");
    ASSERT_TRUE(written) << written.error().message;
    TensorData in{DataType::float32, {4}, std::vector<std::byte>(sizeof x)};
    std::memcpy(in.bytes.data(), x, sizeof x);
    const auto out = onnxruntime->run(folder / "model.onnx", {{"x", in}});
    ASSERT_TRUE(out) << out.error().message;
    const std::vector<double> y = numbers_of(out->at("y"));
    ASSERT_EQ(y.size(), std::size(x));
    for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(y[i], static_cast<double>(bf16_of(bf16_of(x[i]) * bf16_of(w)))) << x[i];
}

// A mask of infinities, or of the least number.
TEST_P(RoundedModel, LeavesWhatHasNoEndAsItIs) {
    const auto onnxruntime = OnnxRuntime::find();
    if (!onnxruntime) GTEST_SKIP() << onnxruntime.error().message;
    constexpr float least = std::numeric_limits<float>::lowest(), inf = HUGE_VALF;
    constexpr float x[] = {1.003F, 1.003F, 1.003F, 1.003F};
    test::TinyOnnx model(GetParam());
    model.input("x", {4}).floats("w", {4}, {-inf, least, inf, 1});
    model.node("Add", {"x", "w"}, {"y"}).output("y", {4});
    const test::TempDir folder;
    model.save(folder / "whole.onnx");
    const auto written = onnx::write_rounded(folder / "whole.onnx", folder / "model.onnx");
    ASSERT_TRUE(written) << written.error().message;
    TensorData in{DataType::float32, {4}, std::vector<std::byte>(sizeof x)};
    std::memcpy(in.bytes.data(), x, sizeof x);
    const auto out = onnxruntime->run(folder / "model.onnx", {{"x", in}});
    ASSERT_TRUE(out) << out.error().message;
    const std::vector<double> y = numbers_of(out->at("y"));
    EXPECT_EQ(y[0], -HUGE_VAL);
    EXPECT_LE(y[1], -3e38);
    EXPECT_EQ(y[2], HUGE_VAL);
    EXPECT_EQ(y[3], static_cast<double>(bf16_of(bf16_of(x[3]) + 1)));
}

// ONNX's inference ends there, and so did the rounding.
TEST(RoundedModel, RoundsWhatIsBehindAnOperatorOfMicrosoft) {
    const auto onnxruntime = OnnxRuntime::find();
    if (!onnxruntime) GTEST_SKIP() << onnxruntime.error().message;
    constexpr float x[] = {1.003F, -257.5F, 0.1F, 3.14159F}, w = 1.7182F, v = 0.333F;
    test::TinyOnnx model(17);
    model.opset("com.microsoft", 1).input("x", {1, 1, 1, 4}).floats("w", {1, 1, 1, 1}, {w});
    model.floats("v", {1}, {v});
    model.node("FusedConv", {"x", "w"}, {"f"}, {{"activation", "Relu"}}, "com.microsoft");
    model.node("Identity", {"f"}, {"i"}).node("Mul", {"i", "v"}, {"m"}).node("Neg", {"m"}, {"y"});
    model.output("y", {1, 1, 1, 4});
    const test::TempDir folder;
    model.save(folder / "whole.onnx");
    const auto written = onnx::write_rounded(folder / "whole.onnx", folder / "model.onnx");
    ASSERT_TRUE(written) << written.error().message;
    TensorData in{DataType::float32, {1, 1, 1, 4}, std::vector<std::byte>(sizeof x)};
    std::memcpy(in.bytes.data(), x, sizeof x);
    const auto out = onnxruntime->run(folder / "model.onnx", {{"x", in}});
    ASSERT_TRUE(out) << out.error().message;
    const std::vector<double> y = numbers_of(out->at("y"));
    ASSERT_EQ(y.size(), std::size(x));
    for (size_t i = 0; i < y.size(); ++i) {
        const float f = bf16_of(std::max(bf16_of(x[i]) * bf16_of(w), 0.F));
        EXPECT_EQ(y[i], static_cast<double>(-bf16_of(f * bf16_of(v)))) << x[i];
    }
}

TEST(RoundedModel, IsNoneWhereATypeIsNotKnown) {
    test::TinyOnnx model(17);
    model.opset("of.nobody", 1).input("x", {4});
    model.node("Whatever", {"x"}, {"f"}, {}, "of.nobody").node("Relu", {"f"}, {"y"});
    model.output("y", {4});
    const test::TempDir folder;
    model.save(folder / "whole.onnx");
    const auto written = onnx::write_rounded(folder / "whole.onnx", folder / "model.onnx");
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().message.find("the type of tensor 'f', which node 'f_node' (Whatever) "
                                           "makes, is not known"),
              std::string::npos)
        << written.error().message;
}

}  // namespace
}  // namespace vartml::verify
