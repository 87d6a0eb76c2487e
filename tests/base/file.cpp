// SPDX-License-Identifier: Apache-2.0
#include "lib/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;

Result<void> replace(const std::string& path, std::string_view text) {
    return replace_file(path, text);
}

// Names in the folder, hidden ones included.
size_t entries_of(const std::string& path) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), {}));
}

TEST(WriteNewFile, LeavesNothingWhereItFails) {
    const TempDir dir;
    const auto done = write_new_file(dir / "a", [](int fd) -> Result<void> {
        const Bytes half[] = {as_bytes("ha")};
        EXPECT_TRUE(write_pieces(fd, "a", half));
        return Error{ErrorCode::io, "the disk is full"};
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(entries_of(dir.path()), 0U);
}

TEST(WriteOutput, ReplacesAFileWholeAndFeedsWhatIsNone) {
    const TempDir dir;
    ASSERT_TRUE(write_output(dir / "a", "first"));
    fs::create_hard_link(dir / "a", dir / "before");
    fs::create_symlink("a", dir / "link");
    // Who may read it stays.
    ASSERT_EQ(::chmod((dir / "a").c_str(), 0600), 0);
    ASSERT_TRUE(write_output(dir / "link", "second"));
    EXPECT_EQ(std::filesystem::status(dir / "a").permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_TRUE(fs::is_symlink(dir / "link"));
    EXPECT_EQ(slurp(dir / "a"), "second");
    EXPECT_EQ(slurp(dir / "before"), "first");
    EXPECT_EQ(entries_of(dir.path()), 3U);

    ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
    const Fd reader(::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK));
    ASSERT_TRUE(write_output(dir / "pipe", "third"));
    char text[8] = {};
    EXPECT_EQ(::read(reader.get(), text, sizeof text), 5);
    EXPECT_STREQ(text, "third");
    EXPECT_TRUE(fs::is_fifo(dir / "pipe"));

    const auto folder = write_output(dir.path(), "x");
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().message, dir.path() + ": cannot write: Is a directory");
    EXPECT_FALSE(write_output(dir / "none/a", "x"));
}

// As `--json /dev/stdout >> log` asks for: what the log holds stays, and what follows it, too.
TEST(WriteOutput, GoesBehindWhatStandardOutputHasWritten) {
    const TempDir dir;
    spill(dir / "log", "before\n");
    std::fflush(stdout);
    const Fd kept(::dup(STDOUT_FILENO));
    {
        const Fd log(::open((dir / "log").c_str(), O_WRONLY | O_APPEND));
        ASSERT_GE(::dup2(log.get(), STDOUT_FILENO), 0);
    }
    std::fputs("a line\n", stdout);
    const auto done = write_output(dir / "log", "the text\n");
    std::fputs("another\n", stdout);
    std::fflush(stdout);
    ASSERT_GE(::dup2(kept.get(), STDOUT_FILENO), 0);
    EXPECT_TRUE(done);
    EXPECT_EQ(slurp(dir / "log"), "before\na line\nthe text\nanother\n");
    EXPECT_EQ(entries_of(dir.path()), 1U);
}

// Two of one name do not meet, and what has that name beside it stays.
TEST(StagedFile, HasANameOfItsOwn) {
    const TempDir dir;
    spill(dir / "a.part", "mine");
    {
        auto one = StagedFile::create(dir / "a"), other = StagedFile::create(dir / "a");
        ASSERT_TRUE(one && other);
        for (auto* file : {&*one, &*other}) {
            const Bytes pieces[] = {as_bytes(file == &*one ? "one" : "other")};
            ASSERT_TRUE(write_pieces(file->fd(), dir / "a", pieces));
        }
        ASSERT_TRUE(other->commit(Durability::none));
        EXPECT_EQ(slurp(dir / "a"), "other");
        ASSERT_TRUE(one->commit(Durability::synced));
    }
    EXPECT_EQ(slurp(dir / "a"), "one");
    EXPECT_EQ(slurp(dir / "a.part"), "mine");
    (void)StagedFile::create(dir / "a");  // not put in place
    EXPECT_EQ(entries_of(dir.path()), 2U);
}

TEST(MappedFile, HoldsTheBytes) {
    const TempDir dir;
    spill(dir / "a", "hello");
    const auto file = MappedFile::open(dir / "a");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(as_text((*file)->bytes()), "hello");
    spill(dir / "empty", "");
    const auto empty = MappedFile::open(dir / "empty");
    ASSERT_TRUE(empty);
    EXPECT_TRUE((*empty)->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
    const TempDir dir;
    const auto missing = MappedFile::open(dir / "missing");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_EQ(missing.error().message,
              dir / "missing" + ": cannot open: No such file or directory");
    const auto folder = MappedFile::open(dir.path());
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().message, dir.path() + ": cannot read: Is a directory");
    ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
    const auto pipe = MappedFile::open(dir / "pipe");  // would block for ever if it waited
    ASSERT_FALSE(pipe);
    EXPECT_EQ(pipe.error().message, dir / "pipe" + ": is neither a regular file nor a directory");
}

TEST(ReadFile, HasALimit) {
    const TempDir dir;
    spill(dir / "a", std::string(100, 'x'));
    EXPECT_TRUE(read_file(dir / "a", 100));
    const auto r = read_file(dir / "a", 99);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().message, dir / "a" + ": is larger than 99 bytes");
}

TEST(ReadFile, SaysWhatKeepsItFromOpening) {
    const TempDir dir;
    const auto r = read_file(dir / "missing", 100);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::not_found);
    EXPECT_EQ(r.error().message, dir / "missing" + ": cannot open: No such file or directory");
}

TEST(ReplaceFile, WritesAndReplaces) {
    const TempDir dir;
    ASSERT_TRUE(replace(dir / "a", "one"));
    ASSERT_TRUE(replace(dir / "a", "two"));
    EXPECT_EQ(slurp(dir / "a"), "two");
    EXPECT_EQ(entries_of(dir.path()), 1u);
}

TEST(ReplaceFile, GivesTheRightsOfTheUmask) {
    const TempDir dir;
    const mode_t before = ::umask(027);
    ASSERT_TRUE(replace(dir / "a", "one"));
    ::umask(before);
    struct stat info{};
    ASSERT_EQ(::stat((dir / "a").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(ReplaceFile, LeavesNothingWhereItCannotFinish) {
    const TempDir dir;
    fs::create_directories(dir / "a/b");  // a folder that is not empty is not replaced by a file
    const auto r = replace(dir / "a", "one");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::io);
    EXPECT_EQ(entries_of(dir.path()), 1u);
    const auto nowhere = replace(dir / "no/such/folder", "one");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::not_found);
}

TEST(StagedDirectory, ReplacesTheOldOne) {
    const TempDir dir;
    const std::string place = dir / "model";
    spill(place + "/old", "old");
    {
        auto staged = StagedDirectory::create(place + "/");
        ASSERT_TRUE(staged) << staged.error().message;
        spill(staged->path() + "/sub/new", "new");
        EXPECT_EQ(slurp(place + "/old"), "old");
        ASSERT_TRUE(staged->commit());
    }
    EXPECT_EQ(slurp(place + "/sub/new"), "new");
    EXPECT_FALSE(fs::exists(place + "/old"));
    EXPECT_EQ(entries_of(dir.path()), 1u);
}

TEST(StagedDirectory, IsRemovedWhenItIsNotPutInPlace) {
    const TempDir dir;
    {
        auto staged = StagedDirectory::create(dir / "model");
        ASSERT_TRUE(staged);
        spill(staged->path() + "/a/b", "x");
    }
    EXPECT_EQ(entries_of(dir.path()), 0u);
}

// A process that replaces a folder over and over is killed; what is there is whole.
TEST(StagedDirectory, LeavesTheOldOrTheNewWhenKilled) {
    const TempDir dir;
    const std::string place = dir / "model";
    for (unsigned round = 0; round < 20; ++round) {
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const pid_t pid = ::fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            for (int i = 0;; ++i) {
                auto staged = StagedDirectory::create(place);
                if (!staged) ::_exit(1);
                const std::string text = std::to_string(i);
                const Bytes pieces[] = {as_bytes(text)};
                if (!write_new_file(staged->path() + "/a", pieces)) ::_exit(1);
                if (!write_new_file(staged->path() + "/b", pieces)) ::_exit(1);
                if (!staged->commit() || ::write(ready[1], "", 1) != 1) ::_exit(1);
            }
        }
        char byte;
        for (unsigned i = 0; i <= round % 3; ++i) ASSERT_EQ(::read(ready[0], &byte, 1), 1);
        for (unsigned i = 0; i < round * 37; ++i) std::this_thread::yield();
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        ::close(ready[0]);
        ::close(ready[1]);
        const std::string a = slurp(place + "/a");
        EXPECT_FALSE(a.empty());
        EXPECT_EQ(a, slurp(place + "/b"));
    }
    remove_left_overs(place);
    EXPECT_EQ(entries_of(dir.path()), 1u);
}

TEST(RemoveTree, FollowsNoLink) {
    const TempDir dir;
    spill(dir / "keep/file", "x");
    fs::create_directories(dir / "gone/sub");
    fs::create_directory_symlink(dir / "keep", dir / "gone/link");
    ASSERT_TRUE(remove_tree(dir / "gone"));
    EXPECT_FALSE(fs::exists(dir / "gone"));
    EXPECT_EQ(slurp(dir / "keep/file"), "x");
    EXPECT_TRUE(remove_tree(dir / "gone"));
}

TEST(MakeDirectories, MakesParents) {
    const TempDir dir;
    ASSERT_TRUE(make_directories(dir / "a/b/c"));
    EXPECT_TRUE(fs::is_directory(dir / "a/b/c"));
    ASSERT_TRUE(make_directories(dir / "a/b/c"));
    spill(dir / "file", "");
    const auto r = make_directories(dir / "file/x");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::io);
}

TEST(Paths, AreTakenApart) {
    EXPECT_EQ(parent_of("/a/b"), "/a");
    EXPECT_EQ(parent_of("/a"), "/");
    EXPECT_EQ(parent_of("a"), ".");
    EXPECT_EQ(last_part("/a/b"), "b");
    EXPECT_EQ(last_part("b"), "b");
    EXPECT_EQ(without_trailing_slashes("/a//"), "/a");
    EXPECT_EQ(without_trailing_slashes("/"), "/");
}

TEST(FileLock, KeepsAnotherOut) {
    const TempDir dir;
    auto first = FileLock::acquire(dir / "lock", nullptr);
    ASSERT_TRUE(first) << first.error().message;
    const std::atomic<bool> cancel = true;
    const auto second = FileLock::acquire(dir / "lock", &cancel);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::timeout);
    std::thread waiter([&] { EXPECT_TRUE(FileLock::acquire(dir / "lock", nullptr)); });
    {
        const FileLock released = std::move(*first);
    }
    waiter.join();
    EXPECT_FALSE(std::filesystem::exists(dir / "lock"));  // nothing stays
}

// Whoever waited on a file that its holder removed must not hold it beside whoever made a new one.
TEST(FileLock, IsHeldByOneAlthoughItsFileComesAndGoes) {
    const TempDir dir;
    std::atomic<int> holders = 0, most = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                const auto lock = FileLock::acquire(dir / "lock", nullptr);
                ASSERT_TRUE(lock) << lock.error().message;
                const int now = ++holders;
                if (now > most) most = now;
                --holders;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(most, 1);
    EXPECT_FALSE(std::filesystem::exists(dir / "lock"));
}

}  // namespace
}  // namespace vartml
