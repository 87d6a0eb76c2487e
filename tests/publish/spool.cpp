// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/spool.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/publish/lines.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml;
using namespace vartml::test;
using publish::Spool;
namespace fs = std::filesystem;

std::string line(uint64_t seq, const std::string& run = "a", size_t bytes = 3) {
    FrameRecord record;
    record.seq = seq;
    const std::string label(bytes, 'x');
    record.objects.emplace_back().label = label;
    PublishLine made;
    format_frame(record, run, made);
    return made.text;
}

Spool opened(const std::string& dir, const Spool::Limits& limits = {}) {
    auto spool = Spool::open(dir, limits);
    EXPECT_TRUE(spool) << (spool ? "" : spool.error().message);
    return std::move(*spool);
}

std::vector<std::string> read_all(Spool& spool) {
    std::vector<std::string> lines;
    while (spool.has_unread()) {
        auto text = spool.read();
        if (text) lines.push_back(*text);
    }
    return lines;
}

uint64_t bytes_in(const std::string& dir) {
    uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(dir)) bytes += entry.file_size();
    return bytes;
}

std::vector<std::string> files_in(const std::string& dir) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir))
        if (entry.path().extension() == ".spool") names.push_back(entry.path());
    std::ranges::sort(names);
    return names;
}

// Puts a disk of so many KiB in a folder, for this process alone. False where that is not allowed.
bool mount_small_disk(const std::string& dir, unsigned kib) {
    if (::unshare(CLONE_NEWNS) != 0) {
        const std::string user = "0 " + std::to_string(::getuid()) + " 1";
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
        std::ofstream("/proc/self/uid_map") << user;
    }
    const std::string size = "size=" + std::to_string(kib) + "k";
    return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", dir.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

// Writes a file until nothing has room any more.
void fill_disk(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    EXPECT_EQ(errno, ENOSPC);
    ::close(fd);
}

class SpoolTest : public testing::Test {
protected:
    TempDir temp_;
    const std::string dir_ = temp_ / "deep/spool";
};

TEST_F(SpoolTest, GivesLinesBackInTheirOrderOverSegments) {
    Spool spool = opened(dir_);
    for (uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(spool.append(line(i, "a", 60000)));
    EXPECT_GT(files_in(dir_).size(), 2u);
    EXPECT_EQ(spool.records(), 40u);
    EXPECT_EQ(spool.bytes(), bytes_in(dir_));
    const auto lines = read_all(spool);
    EXPECT_EQ(lines.size(), 40u);
    EXPECT_EQ(expect_in_order(lines, "a"), 40u);
    for (int i = 0; i < 39; ++i) spool.acknowledge();
    EXPECT_EQ(spool.records(), 1u);
    EXPECT_FALSE(spool.empty());
    spool.acknowledge();
    EXPECT_TRUE(spool.empty());
    EXPECT_EQ(spool.bytes(), 0u);
    EXPECT_EQ(bytes_in(dir_), 0u);
}

// Records tell who was where.
TEST_F(SpoolTest, IsForItsUserAloneWhateverTheUmask) {
    const mode_t before = ::umask(0);
    {
        Spool spool = opened(dir_);
        for (uint64_t i = 0; i < 40; ++i) EXPECT_TRUE(spool.append(line(i, "a", 60000)));
        EXPECT_TRUE(spool.prepend({line(100)}));
    }
    ::umask(before);
    EXPECT_EQ(fs::status(dir_).permissions(), fs::perms::owner_all);
    for (const auto& entry : fs::directory_iterator(dir_))
        EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
            << entry.path();
}

TEST_F(SpoolTest, AReaderThatKeepsUpNeedsOneFile) {
    {
        Spool spool = opened(dir_);
        for (uint64_t i = 0; i < 10000; ++i) {
            ASSERT_TRUE(spool.append(line(i, "a", 500)));
            ASSERT_EQ(seen(*spool.read()).first, i);
            ASSERT_FALSE(spool.has_unread());
            if (i % 10 != 9) continue;
            ASSERT_EQ(spool.records(), 10u);
            ASSERT_EQ(spool.bytes(), bytes_in(dir_));
            for (int k = 0; k < 10; ++k) spool.acknowledge();
            ASSERT_TRUE(spool.empty());
            ASSERT_EQ(bytes_in(dir_), 0u);
            ASSERT_EQ(files_in(dir_).size(), 1u);
        }
    }
    EXPECT_TRUE(files_in(dir_).empty());
}

TEST_F(SpoolTest, KeepsWhatWasReadAndNotAcknowledgedForTheNextProcess) {
    {
        Spool spool = opened(dir_);
        for (uint64_t i = 0; i < 30; ++i) {
            ASSERT_TRUE(spool.append(line(i, "a", 60000)));  // over segments
            ASSERT_TRUE(spool.read());
        }
    }
    Spool spool = opened(dir_);
    EXPECT_EQ(expect_in_order(read_all(spool), "a"), 30u);
}

TEST_F(SpoolTest, KeepsNoLineThatWasAcknowledgedForTheNextProcess) {
    for (const bool in_front : {false, true}) {
        fs::remove_all(dir_);
        {
            Spool spool = opened(dir_);
            for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(spool.append(line(i)));
            for (int i = 0; i < 4; ++i) ASSERT_TRUE(spool.read());
            for (int i = 0; i < 3; ++i) spool.acknowledge();
            spool.rewind();
            if (in_front) {
                ASSERT_TRUE(spool.prepend({line(9)}));
            }
            const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
            const std::string trimmed = files_in(dir_).back();
            ASSERT_EQ(utimensat(AT_FDCWD, trimmed.c_str(), long_ago, 0), 0);
            spool.trim();
            struct stat status{};
            ASSERT_EQ(stat(trimmed.c_str(), &status), 0);
            EXPECT_EQ(status.st_mtim.tv_sec, 1000);  // no younger for that
            EXPECT_EQ(spool.records(), in_front ? 3u : 2u);
            EXPECT_EQ(spool.bytes(), bytes_in(dir_));
            ASSERT_TRUE(spool.append(line(5)));  // goes on behind it
        }
        Spool spool = opened(dir_);
        const auto lines = read_all(spool);
        ASSERT_EQ(lines.size(), in_front ? 4u : 3u);
        EXPECT_EQ(seen(lines[lines.size() - 3]), (Seen{"a", 3, 3, false}));
        EXPECT_EQ(seen(lines.back()), (Seen{"a", 5, 5, false}));
    }
}

TEST_F(SpoolTest, GrowsWhileItIsRead) {
    Spool spool = opened(dir_);
    uint64_t appended = 0;
    std::vector<std::string> lines;
    const auto append = [&](int count) {
        for (int i = 0; i < count; ++i) ASSERT_TRUE(spool.append(line(appended++, "a", 30000)));
    };
    const auto read = [&](int count) {
        for (int i = 0; i < count; ++i) lines.push_back(*spool.read());
    };
    append(3), read(1), append(60), read(20);
    for (int i = 0; i < 15; ++i) spool.acknowledge();
    append(2), read(44);
    EXPECT_FALSE(spool.has_unread());
    append(1), read(1);
    EXPECT_EQ(expect_in_order(lines, "a"), 66u);
    spool.rewind();
    append(1);
    EXPECT_EQ(spool.records(), 52u);
    EXPECT_EQ(spool.bytes(), bytes_in(dir_));
    EXPECT_EQ(expect_in_order(read_all(spool), "a", 15), 67u);
    while (!spool.empty()) spool.acknowledge();
    EXPECT_EQ(bytes_in(dir_), 0u);
    append(1), read(1);
    EXPECT_EQ(expect_in_order(lines, "a", 67), 67u + 1);
}

TEST_F(SpoolTest, ReadsAgainWhatWasNotAcknowledged) {
    Spool spool = opened(dir_);
    for (uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(spool.append(line(i)));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(spool.read());
    spool.acknowledge();
    spool.acknowledge();
    spool.rewind();
    EXPECT_EQ(seen(*spool.read()).first, 2u);
    ASSERT_TRUE(spool.append(line(6)));  // while it is read
    EXPECT_EQ(expect_in_order(read_all(spool), "a", 3), 7u);
}

TEST_F(SpoolTest, PutsLinesInFront) {
    Spool spool = opened(dir_);
    ASSERT_TRUE(spool.prepend({line(2), line(3)}));
    ASSERT_TRUE(spool.append(line(4)));
    ASSERT_TRUE(spool.prepend({line(0), line(1)}));
    EXPECT_EQ(spool.records(), 5u);
    EXPECT_EQ(expect_in_order(read_all(spool), "a"), 5u);
    spool.rewind();
    EXPECT_EQ(expect_in_order(read_all(spool), "a"), 5u);
}

TEST_F(SpoolTest, MakesRoomForLinesInFront) {
    constexpr uint64_t most = 160000;
    Spool spool = opened(dir_, {.max_bytes = most});
    for (uint64_t i = 10; i < 60; ++i) ASSERT_TRUE(spool.append(line(i, "a", 3000)));
    std::vector<std::string> before;
    for (uint64_t i = 0; i < 10; ++i) before.push_back(line(i, "a", 3000));
    ASSERT_TRUE(spool.prepend(before));
    EXPECT_LE(spool.bytes(), most);
    EXPECT_EQ(spool.bytes(), bytes_in(dir_));
    const auto first = spool.read();
    ASSERT_TRUE(first);
    EXPECT_EQ(*first, before.front());
    const uint64_t kept = spool.bytes();
    EXPECT_FALSE(spool.prepend(std::vector<std::string>(70, line(1, "a", 3000))));
    EXPECT_EQ(spool.bytes(), kept);
}

TEST_F(SpoolTest, IsFoundAgainByTheNextProcessWhichWritesBehindIt) {
    {
        ASSERT_TRUE(opened(dir_).append(line(0, "earlier")));
    }
    Spool spool = opened(dir_);
    ASSERT_TRUE(spool.append(line(0, "later")));
    const auto lines = read_all(spool);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(seen(lines[0]).run, "earlier");
    EXPECT_EQ(seen(lines[1]).run, "later");
}

TEST_F(SpoolTest, ATornEndIsCutWhereverItIsTorn) {
    const std::string last = publish::framed(line(2));
    for (size_t kept = 0; kept < last.size(); ++kept) {
        fs::remove_all(dir_);
        {
            Spool spool = opened(dir_);
            for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(spool.append(line(i)));
        }
        const std::string file = files_in(dir_).at(0);
        fs::resize_file(file, fs::file_size(file) - last.size() + kept);
        Spool spool = opened(dir_);
        EXPECT_EQ(spool.records(), 2u) << kept;
        EXPECT_EQ(spool.bytes(), bytes_in(dir_));
        ASSERT_TRUE(spool.append(line(2)));
        EXPECT_EQ(expect_in_order(read_all(spool), "a"), 3u) << kept;
    }
}

TEST_F(SpoolTest, ADamagedByteEndsASegmentBeforeItsLine) {
    {
        Spool spool = opened(dir_);
        for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(spool.append(line(i)));
    }
    const std::string file = files_in(dir_).at(0);
    std::string bytes = slurp(file);
    bytes[publish::framed(line(0)).size() + 40] ^= 1;
    spill(file, bytes);
    Spool spool = opened(dir_);
    EXPECT_EQ(expect_in_order(read_all(spool), "a"), 1u);
}

TEST_F(SpoolTest, IsForOnePublisherAtATime) {
    {
        Spool spool = opened(dir_);
        const auto second = Spool::open(dir_, {});
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, ErrorCode::busy);
        EXPECT_EQ(second.error().message,
                  dir_ +
                      ": another publisher has this spool folder; give each one a folder of its "
                      "own");
    }
    EXPECT_TRUE(Spool::open(dir_, {}));
}

TEST_F(SpoolTest, NeverTakesMoreThanItMayAndSaysWhatItDropped) {
    constexpr uint64_t limit = 64 << 10;
    Spool spool = opened(dir_, {.max_bytes = limit});
    uint64_t dropped = 0;
    for (uint64_t i = 0; i < 2000; ++i) {
        ASSERT_TRUE(spool.append(line(i)));
        ASSERT_LE(bytes_in(dir_), limit);
        ASSERT_EQ(spool.bytes(), bytes_in(dir_));
        dropped += spool.take_dropped();
    }
    EXPECT_GT(spool.bytes(), limit / 2);
    const auto lines = read_all(spool);
    EXPECT_TRUE(seen(lines[0]).gap);
    EXPECT_EQ(seen(lines[0]).last + 1, dropped);
    EXPECT_EQ(std::ranges::count_if(lines, [](const auto& l) { return seen(l).gap; }), 1);
    EXPECT_EQ(expect_in_order(lines, "a"), 2000u);
}

TEST_F(SpoolTest, OnAFullDiskTheGapTakesThePlaceOfWhatGivesWay) {
    fs::create_directories(temp_ / "disk");
    const pid_t child = fork();
    if (child == 0) {
        if (!mount_small_disk(temp_ / "disk", 64)) _exit(77);
        constexpr uint64_t limit = 32 << 10;
        Spool spool = opened(temp_ / "disk/spool", {.max_bytes = limit});
        const size_t bytes = publish::frame_bytes + line(0, "a", 1000).size();
        uint64_t count = 0;
        while (spool.bytes() + bytes + limit / 8 <= limit)
            EXPECT_TRUE(spool.append(line(count++, "a", 1000)));
        fill_disk(temp_ / "disk/other");
        EXPECT_TRUE(spool.append(line(count++, "a", 1000)));
        EXPECT_GT(spool.take_dropped(), 0u);
        const auto lines = read_all(spool);
        EXPECT_TRUE(!lines.empty() && seen(lines[0]).gap);
        EXPECT_EQ(expect_in_order(lines, "a"), count);
        _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "a process may not mount here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(SpoolTest, DropsWhatIsNotOnItsWayToTheReceiver) {
    Spool spool = opened(dir_, {.max_bytes = 16 << 10});
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(spool.append(line(i)));
    std::vector<std::string> lines = {*spool.read(), *spool.read()};
    for (uint64_t i = 20; i < 500; ++i) ASSERT_TRUE(spool.append(line(i)));
    spool.acknowledge();
    spool.rewind();
    for (std::string& text : read_all(spool)) lines.push_back(text);
    EXPECT_EQ(expect_in_order(lines, "a"), 500u);
    EXPECT_EQ(seen(lines[2]), (Seen{"a", 1, 1, false}));  // it was with the receiver: kept
}

TEST_F(SpoolTest, GapsNameEachRun) {
    {
        Spool spool = opened(dir_, {.max_bytes = 8 << 10});
        for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(spool.append(line(i, "a")));
    }
    Spool spool = opened(dir_, {.max_bytes = 8 << 10});
    for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(spool.append(line(i, "b")));
    const auto lines = read_all(spool);
    EXPECT_EQ(seen(lines[0]), (Seen{"a", 0, 4, true}));
    EXPECT_TRUE(seen(lines[1]).gap);
    EXPECT_EQ(expect_in_order(lines, "b"), 200u);
}

TEST_F(SpoolTest, ALineThatHasNoRoomAtAllIsAnErrorAndHarmsNoOther) {
    Spool spool = opened(dir_, {.max_bytes = 64 << 10});
    ASSERT_TRUE(spool.append(line(0)));
    const auto done = spool.append(line(1, "a", 90000));
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("65536 bytes"), std::string::npos) << done.error().message;
    ASSERT_TRUE(spool.append(line(2)));
    const auto lines = read_all(spool);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(seen(lines[0]).first, 0u);
    EXPECT_EQ(seen(lines[1]).first, 2u);
    // A small one keeps less free.
    Spool small = opened(temp_ / "small", {.max_bytes = 8000});
    EXPECT_TRUE(small.append(line(0, "a", 5000)));
}

TEST_F(SpoolTest, OldRecordsGiveWay) {
    {
        Spool spool = opened(dir_);
        for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(spool.append(line(i)));
    }
    const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, files_in(dir_).at(0).c_str(), long_ago, 0), 0);
    {
        EXPECT_EQ(opened(dir_, {.max_age_s = 0}).records(), 3u);
    }
    Spool spool = opened(dir_, {.max_age_s = 3600});
    EXPECT_EQ(spool.take_dropped(), 3u);
    ASSERT_TRUE(spool.append(line(3)));
    const auto lines = read_all(spool);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(seen(lines[0]), (Seen{"a", 0, 2, true}));
    EXPECT_EQ(seen(lines[1]), (Seen{"a", 3, 3, false}));
}

TEST_F(SpoolTest, OldRecordsOfASlowStreamGiveWayToo) {
    using std::chrono::milliseconds;
    Spool spool = opened(dir_, {.max_age_s = 4});
    ASSERT_TRUE(spool.append(line(0)));
    std::this_thread::sleep_for(milliseconds(2400));
    ASSERT_TRUE(spool.append(line(1)));
    std::this_thread::sleep_for(milliseconds(2400));
    ASSERT_TRUE(spool.expire());
    EXPECT_EQ(spool.take_dropped(), 1u);
    const auto lines = read_all(spool);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(seen(lines[0]), (Seen{"a", 0, 0, true}));
    EXPECT_EQ(seen(lines[1]), (Seen{"a", 1, 1, false}));
}

TEST_F(SpoolTest, WhatCannotBeReadNowIsReadLater) {
    {
        ASSERT_TRUE(opened(dir_).append(line(0)));
    }
    Spool spool = opened(dir_);
    rlimit old{};
    getrlimit(RLIMIT_NOFILE, &old);
    const rlimit none{0, old.rlim_max};  // no further descriptor
    setrlimit(RLIMIT_NOFILE, &none);
    const auto failed = spool.read();
    setrlimit(RLIMIT_NOFILE, &old);
    ASSERT_FALSE(failed);
    EXPECT_EQ(spool.take_dropped(), 0u);
    const auto read = spool.read();
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(seen(*read), (Seen{"a", 0, 0, false}));
}

TEST_F(SpoolTest, AWriteThatFailsLeavesNoHalfLine) {
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    Spool spool = opened(dir_);
    ASSERT_TRUE(spool.append(line(0)));
    const rlimit tight{bytes_in(dir_) + 30, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    const auto done = spool.append(line(1));
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, before);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::io);
    EXPECT_EQ(spool.bytes(), bytes_in(dir_));
    ASSERT_TRUE(spool.append(line(1)));
    EXPECT_EQ(expect_in_order(read_all(spool), "a"), 2u);
}

TEST_F(SpoolTest, AFolderThatCannotBeMadeIsAnError) {
    spill(temp_ / "file", "x");
    const auto spool = Spool::open((temp_ / "file") + "/spool", {});
    ASSERT_FALSE(spool);
    EXPECT_NE(spool.error().message.find(temp_ / "file"), std::string::npos);
}

}  // namespace
