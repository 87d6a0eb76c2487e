// SPDX-License-Identifier: Apache-2.0
// Folders that a program needs for a while: nothing of them stays, whatever ends it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/temporaries.h"
#include "lib/model/entries.h"
#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using artifact::ExtractionFolder;

class TemporaryFolder : public testing::Test {
protected:
    void SetUp() override { ::setenv("TMPDIR", dir_.path().c_str(), 1); }
    void TearDown() override { ::unsetenv("TMPDIR"); }

    // Of a process that was killed an hour ago.
    fs::path old(const std::string& name, mode_t mode = 0700) {
        const fs::path path = dir_ / name;
        test::spill(path / "model.onnx", "left");
        EXPECT_EQ(::chmod(path.c_str(), mode), 0);
        const timespec then[] = {{::time(nullptr) - 3600, 0}, {::time(nullptr) - 3600, 0}};
        EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), then, 0), 0);
        return path;
    }

    test::TempDir dir_;
};

TEST_F(TemporaryFolder, IsTakenAwayByTheNextOneWhereItsOwnerWasKilled) {
    const fs::path left = old(".vartml-unpacked-aaaaaa"), locked = old(".vartml-unpacked-bbbbbb");
    // Of the user.
    const fs::path others[] = {old("vartml-models"), old(".vartml-unpacked-notes.txt"),
                               old(".vartml-unpacked-models", 0755)};
    const Fd lock(::open(locked.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::flock(lock.get(), LOCK_SH), 0);
    const fs::path fresh = dir_ / ".vartml-unpacked-cccccc";
    fs::create_directory(fresh);
    EXPECT_EQ(::chmod(fresh.c_str(), 0700), 0);
    const auto folder = ExtractionFolder::create({});
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(locked / "model.onnx"));
    for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other / "model.onnx")) << other;
    EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(TemporaryFolder, IsItsOwnersWhileItLasts) {
    const auto folder = ExtractionFolder::create({});
    ASSERT_TRUE(folder);
    const Fd other(::open(folder->path().c_str(), O_RDONLY | O_DIRECTORY));
    EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(TemporaryFolder, IsTakenAwayByASignal) {
    const auto folder = ExtractionFolder::create({});
    ASSERT_TRUE(folder);
    test::spill(fs::path(folder->path()) / "model.onnx", "bytes");
    const auto none_is_made = remove_temporaries();
    EXPECT_TRUE(fs::is_empty(dir_.path()));
}

}  // namespace
}  // namespace vartml
