// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/calibration_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

class CalibrationCacheTest : public testing::Test {
protected:
    void SetUp() override {
        fs::create_directory(dir_ / "kept");
        fs::permissions(dir_ / "kept", fs::perms::owner_all);
    }

    // What is kept under the key; `made` where nothing is.
    std::string get(const std::string& key, const std::string& made) {
        auto bytes = cache_.get(key, [&]() -> Result<std::string> { return made; });
        return bytes ? *bytes : bytes.error().message;
    }
    std::string of_digit(char digit) const {
        return dir_ / ("kept/" + std::string(64, digit) + ".calibration");
    }

    test::TempDir dir_;
    CalibrationCache cache_{dir_ / "kept"};
};

TEST_F(CalibrationCacheTest, KeepsWhatWasMade) {
    EXPECT_EQ(get("a", "first"), "first");
    EXPECT_EQ(get("b", "other"), "other");
    EXPECT_EQ(get("a", "second"), "first");
}

// Of 512 MiB in all: it goes, and takes none with it.
TEST_F(CalibrationCacheTest, RemovesAFileThatIsTooLargeAlone) {
    test::spill(of_digit('1'), "small, and older");
    fs::last_write_time(of_digit('1'), fs::file_time_type::clock::now() - std::chrono::hours(2));
    test::spill(of_digit('2'), "");
    fs::resize_file(of_digit('2'), uint64_t{600} << 20);  // a hole
    EXPECT_EQ(get("a", "first"), "first");
    EXPECT_TRUE(fs::exists(of_digit('1')));
    EXPECT_FALSE(fs::exists(of_digit('2')));
    EXPECT_EQ(get("a", "second"), "first");
}

}  // namespace
}  // namespace vartml::tools
