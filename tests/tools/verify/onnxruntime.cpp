// SPDX-License-Identifier: Apache-2.0
// Where ONNX Runtime is looked for, and the ideal device of bf16 that it computes.
#include "lib/tools/verify/onnxruntime.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/places.h"
#include "lib/compile/onnx/rounded.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "x64"
#endif

// A variable of the environment for as long as it lives; nullptr: not set.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* was = std::getenv(name)) before_ = was;
        value ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

class OnnxRuntimePlaces : public testing::Test {
protected:
    void SetUp() override {
        const char* fake = std::getenv("VARTML_FAKE_ONNXRUNTIME");
        if (!fake || !std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without ONNX Runtime's headers";
        fake_ = fake;
    }
    void put(const fs::path& place) {
        fs::create_directories(fs::path(dir_.path()) / place.parent_path());
        fs::create_symlink(fake_, fs::path(dir_.path()) / place);
    }
    test::TempDir dir_;
    std::string fake_;
};

TEST_F(OnnxRuntimePlaces, AreThePackagesOfPythonAndNodeBeforeTheSystems) {
    const char* places[] = {
        ".local/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.30.0",
        "node_modules/onnxruntime-node/bin/napi-v6/linux/" MACHINE "/libonnxruntime.so.1",
    };
    for (const char* place : places) {
        fs::remove_all(dir_ / ".local");
        fs::remove_all(dir_ / "node_modules");
        put(place);
        const Variable home("HOME", dir_.path().c_str()), given("VARTML_ONNXRUNTIME", nullptr);
        const auto found = OnnxRuntime::find();
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_EQ(found->version(), "9.9.9") << place;
    }
}

TEST_F(OnnxRuntimePlaces, AreNotAskedWhereTheEnvironmentNamesALibrary) {
    const Variable given("VARTML_ONNXRUNTIME", "/nowhere/libonnxruntime.so");
    const auto found = OnnxRuntime::find();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::not_found);
    for (const char* words :
         {"/nowhere/libonnxruntime.so", "pip: onnxruntime", "VARTML_ONNXRUNTIME"})
        EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
}

TEST(OnnxRuntimeBuild, ThatLacksAnOperatorIsToldWithTheWayOut) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const auto reference = OnnxRuntime::find();
    if (!reference) GTEST_SKIP() << reference.error().message;
    const test::TempDir dir;
    test::TinyOnnx m;
    m.input("x", {1, 1, 2, 2}, test::TinyOnnx::int8).input("w", {1, 1, 1, 1}, test::TinyOnnx::int8);
    m.node("ConvInteger", {"x", "w"}, {"y"}).output("y", {}, test::TinyOnnx::int32);
    m.save(dir / "m.onnx");
    const auto inputs = reference->inputs(dir / "m.onnx");
    if (inputs) GTEST_SKIP() << "this build of ONNX Runtime has it";
    EXPECT_NE(inputs.error().message.find("name its library in the environment variable "
                                          "VARTML_ONNXRUNTIME"),
              std::string::npos)
        << inputs.error().message;
}

TEST(OnnxRuntimeBuild, IsNotToBlameForOtherFaults) {
    EXPECT_EQ(with_way_out("Got invalid dimensions for input: x"),
              "Got invalid dimensions for input: x");
}

// ---- the ideal device of bf16

float rounded(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

TEST(RoundedTwin, RoundsEachTensorToBf16AndNothingElse) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const auto reference = OnnxRuntime::find();
    if (!reference) GTEST_SKIP() << reference.error().message;
    const test::TempDir dir;
    const std::vector<float> x = {1.001f, -2.7183f, 3.14159f, 100.3f},
                             w = {0.1f, 0.7f, 1.3f, -9.9f};
    test::TinyOnnx m;
    m.input("x", {4}).floats("w", {4}, w).node("Add", {"x", "w"}, {"sum"});
    m.node("Mul", {"sum", "sum"}, {"y"}).output("y").save(dir / "m.onnx");
    ASSERT_TRUE(onnx::write_rounded(dir / "m.onnx", dir / "twin.onnx"));

    NamedTensor input{"x", {DataType::float32, {4}, std::vector<std::byte>(16)}};
    std::memcpy(input.data.bytes.data(), x.data(), 16);
    const auto outputs = reference->run(dir / "twin.onnx", {input});
    ASSERT_TRUE(outputs) << outputs.error().message;
    ASSERT_EQ(outputs->size(), 1U);
    const std::vector<double> y = numbers_of(outputs->at("y"));
    for (size_t i = 0; i < x.size(); ++i) {
        const float sum = rounded(rounded(x[i]) + rounded(w[i]));
        EXPECT_EQ(y[i], rounded(sum * sum)) << i;
    }
}

TEST(RoundedTwin, LeavesWhatSaysHowMuchAsItIs) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const auto reference = OnnxRuntime::find();
    if (!reference) GTEST_SKIP() << reference.error().message;
    const test::TempDir dir;
    test::TinyOnnx m;  // 100 columns times 1.03, which bf16 does not have
    m.input("x", {1, 1, 1, 100}).floats("scales", {4}, {1, 1, 1, 1.03f});
    m.node("Resize", {"x", "", "scales"}, {"y"}).output("y").save(dir / "m.onnx");
    ASSERT_TRUE(onnx::write_rounded(dir / "m.onnx", dir / "twin.onnx"));
    const NamedTensor input{"x", {DataType::float32, {1, 1, 1, 100}, std::vector<std::byte>(400)}};
    const auto outputs = reference->run(dir / "twin.onnx", {input});
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->at("y").shape, (std::vector<int64_t>{1, 1, 1, 103}));
}

}  // namespace
}  // namespace vartml::verify
