// SPDX-License-Identifier: Apache-2.0
// Where ONNX Runtime is looked for.
#include "lib/verify/onnxruntime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/temp_dir.h"

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

}  // namespace
}  // namespace vartml::verify
