// SPDX-License-Identifier: Apache-2.0
// What a program takes away when a signal ends it.
#include "lib/base/temporaries.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lib/base/file.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

struct Temporaries : testing::Test {
    test::TempDir dir;
    size_t files() const {
        return static_cast<size_t>(std::distance(fs::recursive_directory_iterator(dir.path()), {}));
    }
};

TEST_F(Temporaries, FoldersFilesAndLocksInTheMakingAreTakenAway) {
    auto staged = StagedDirectory::create(dir / "model");
    ASSERT_TRUE(staged);
    test::spill(staged->path() + "/part", "half");
    auto lock = FileLock::acquire(dir / ".lock", nullptr);
    ASSERT_TRUE(lock);
    const auto written = replace_file(dir / "file", [&](int) {
        EXPECT_EQ(files(), 4u);
        (void)remove_temporaries();
        EXPECT_EQ(files(), 0u);
        return Result<void>();
    });
    EXPECT_FALSE(written) << "what was taken away cannot be put in place";
    EXPECT_FALSE(staged->commit());
    EXPECT_EQ(files(), 0u);
}

TEST_F(Temporaries, WhatIsInPlaceStays) {
    auto staged = StagedDirectory::create(dir / "model");
    ASSERT_TRUE(staged);
    test::spill(staged->path() + "/whole", "all");
    ASSERT_TRUE(staged->commit());
    const Bytes text = as_bytes(std::string_view("text"));
    ASSERT_TRUE(replace_file(dir / "file", std::span(&text, 1)));
    (void)remove_temporaries();
    EXPECT_EQ(test::slurp(dir / "model/whole"), "all");
    EXPECT_EQ(test::slurp(dir / "file"), "text");
}

// The old folder lies in the making's place for a moment.
TEST_F(Temporaries, WhatReplacesAFolderLeavesNothingToTakeAway) {
    for (const char* content : {"old", "new"}) {
        auto staged = StagedDirectory::create(dir / "model");
        ASSERT_TRUE(staged);
        test::spill(staged->path() + "/part", content);
        ASSERT_TRUE(staged->commit());
    }
    (void)remove_temporaries();
    EXPECT_EQ(test::slurp(dir / "model/part"), "new");
    EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace vartml
