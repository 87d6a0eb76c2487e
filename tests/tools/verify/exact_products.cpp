// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime gives for products of 8 bits is right on processors that would saturate, too.
#include <gtest/gtest.h>

#include <filesystem>

#include "lib/compile/onnx/exact_products.h"
#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/reference.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

using test::TinyOnnx;

constexpr int depth = 8;

::onnx::TensorProto codes(const std::string& name, int type, const std::vector<int64_t>& dims,
                          size_t count, char code) {
    ::onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t d : dims) tensor.add_dims(d);
    tensor.set_raw_data(std::string(count, code));
    return tensor;
}

// x [1,8] of codes of `type` times weights [8,1] of 127.
TinyOnnx product(int type, bool has_zero_point_of_weights) {
    TinyOnnx m(13);
    m.input("x", {1, depth}, type);
    m.initialiser(codes("w", TinyOnnx::int8, {depth, 1}, depth, 127));
    m.initialiser(codes("xz", type, {}, 1, 0));
    m.initialiser(codes("wz", TinyOnnx::int8, {}, 1, 0));
    std::vector<std::string> inputs{"x", "w", "xz"};
    if (has_zero_point_of_weights) inputs.push_back("wz");
    m.node("MatMulInteger", inputs, {"y"});
    return m.output("y", {1, 1}, ::onnx::TensorProto::INT32);
}

TEST(ExactProducts, OfTheLargestCodesDoNotSaturate) {
    const auto onnxruntime = OnnxRuntime::find();
    if (!onnxruntime) GTEST_SKIP() << onnxruntime.error().message;
    for (const bool has_zero_point : {false, true}) {
        const test::TempDir folder;
        product(TinyOnnx::uint8, has_zero_point).save(folder / "model.onnx");
        const TensorData x{
            DataType::uint8, {1, depth}, std::vector<std::byte>(depth, std::byte{255})};
        const auto out = onnxruntime->run(folder / "model.onnx", {{"x", x}});
        ASSERT_TRUE(out) << out.error().message;
        EXPECT_EQ(numbers_of(out->at("y")), std::vector<double>{255.0 * 127 * depth});
    }
}

TEST(ExactProducts, HaveNoTwinWhereNothingSaturates) {
    const test::TempDir folder;
    product(TinyOnnx::int8, true).save(folder / "model.onnx");
    const auto is_written = onnx::write_exact_products(folder / "model.onnx", folder / "twin.onnx");
    ASSERT_TRUE(is_written) << is_written.error().message;
    EXPECT_FALSE(*is_written);
    EXPECT_FALSE(std::filesystem::exists(folder / "twin.onnx"));
}

}  // namespace
}  // namespace vartml::verify
