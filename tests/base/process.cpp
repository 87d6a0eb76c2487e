// SPDX-License-Identifier: Apache-2.0
#include "lib/base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/file.h"
#include "tests/support/emulated.h"

namespace vartml {
namespace {

Child shell(std::string script) {
    Child child;
    child.arguments = {"/bin/sh", "-c", std::move(script)};
    return child;
}

// Neither gone nor a zombie that its new parent has not reaped yet.
bool is_running(pid_t pid) {
    char state = 'X';
    if (FILE* f = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r")) {
        if (std::fscanf(f, "%*d %*s %c", &state) != 1) state = 'X';
        std::fclose(f);
    }
    return state != 'X' && state != 'Z';
}

TEST(Child, ReportsItsExitStatus) {
    const auto r = run_child(shell("exit 3"));
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->exit_status, 3);
    EXPECT_EQ(r->signal, 0);
}

TEST(Child, ReportsTheSignalThatEndedIt) {
    const auto r = run_child(shell("kill -9 $$"));
    ASSERT_TRUE(r);
    EXPECT_EQ(r->exit_status, -1);
    EXPECT_EQ(r->signal, SIGKILL);
}

TEST(Child, DeliversLinesAndStandardError) {
    std::vector<std::string> lines;
    Child child = shell("echo to-nowhere; echo one >&3; echo warning >&2; printf 'two\\nrest' >&3");
    child.on_line = [&](std::string_view line) { lines.emplace_back(line); };
    const auto r = run_child(child);
    ASSERT_TRUE(r);
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(r->stderr_tail, "warning\n");
}

TEST(Child, KeepsTheEndOfALongStandardError) {
    const auto r =
        run_child(shell("i=0; while [ $i -lt 4000 ]; do echo line $i >&2; i=$((i+1)); done"));
    ASSERT_TRUE(r);
    EXPECT_LE(r->stderr_tail.size(), 16u * 1024);
    EXPECT_TRUE(r->stderr_tail.ends_with("line 3999\n"));
}

// As the results of many streams are.
TEST(Child, DeliversALineThatIsLongerThanAPipe) {
    std::string line;
    Child child = shell("head -c 300000 /dev/zero | tr '\\0' x >&3; sleep 0.1; echo end >&3");
    child.on_line = [&](std::string_view text) { line = text; };
    ASSERT_TRUE(run_child(child));
    EXPECT_EQ(line, std::string(300000, 'x') + "end");
}

// A terminal's signal does not reach them.
TEST(Child, EndsWithAProcessThatASignalEnds) {
    std::atomic<bool> has_begun = false;
    std::thread owner([&] {
        Child child = shell("sleep 100 & echo >&3; wait");
        child.on_line = [&](std::string_view) { has_begun = true; };
        const auto r = run_child(child);
        ASSERT_TRUE(r);
        EXPECT_EQ(r->signal, SIGTERM);
    });
    while (!has_begun) std::this_thread::yield();
    {
        const auto none_is_started = end_children();
    }
    owner.join();
    EXPECT_TRUE(run_child(shell("exit 0")));
}

TEST(Child, InheritsNoOtherDescriptor) {
    const int fd = ::fcntl(STDERR_FILENO, F_DUPFD, 100);  // without close-on-exec
    ASSERT_GE(fd, 100);
    const auto r = run_child(shell("[ ! -e /proc/$$/fd/" + std::to_string(fd) + " ]"));
    ::close(fd);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->exit_status, 0);
}

TEST(Child, IsKilledWithItsOwnChildrenWhenCancelled) {
    std::atomic<bool> cancel = false;
    Child child = shell("sleep 1000 & echo $! >&3; wait");
    child.cancel = &cancel;
    pid_t grandchild = 0;
    child.on_line = [&](std::string_view line) {
        grandchild = std::stoi(std::string(line));
        cancel = true;
    };
    const auto r = run_child(child);
    ASSERT_TRUE(r);
    EXPECT_TRUE(r->cancelled);
    EXPECT_EQ(r->signal, SIGKILL);
    while (is_running(grandchild)) std::this_thread::yield();
}

TEST(Child, DoesNotWaitForWhatItLeavesBehind) {
    const auto r = run_child(shell("sleep 1000 & exit 0"));
    ASSERT_TRUE(r);
    EXPECT_EQ(r->exit_status, 0);
}

TEST(Child, IsKilledAfterItsTime) {
    Child child = shell("sleep 1000");
    child.time_limit = std::chrono::milliseconds(1);
    const auto r = run_child(child);
    ASSERT_TRUE(r);
    EXPECT_TRUE(r->timed_out);
    EXPECT_EQ(r->signal, SIGKILL);
}

TEST(Child, LeavesNoDescriptorOpen) {
    const auto open = [] {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return std::distance(begin(all), end(all));
    };
    const auto before = open();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_child(shell("echo; echo >&2")));
    EXPECT_EQ(open(), before);
}

TEST(Child, CannotHaveMoreMemoryThanItsLimit) {
    if (!can_limit_memory) GTEST_SKIP() << "a sanitizer reserves more than any limit";
    if (is_emulated()) GTEST_SKIP() << "QEMU knows no limit of memory";
    // Half a gigabyte in one variable; dash says that there is no room.
    const std::string script =
        "x=0123456789abcdef; i=0; while [ $i -lt 25 ]; do x=$x$x; i=$((i+1)); done";
    Child child = shell(script);
    child.memory_limit = uint64_t{64} << 20;
    const auto r = run_child(child);
    ASSERT_TRUE(r);
    EXPECT_NE(r->exit_status, 0) << r->stderr_tail;
}

TEST(Child, NamesAProgramThatDoesNotExist) {
    if (is_emulated()) GTEST_SKIP() << "QEMU loses why a program cannot be run";
    Child child;
    child.arguments = {"/nowhere/vartml"};
    const auto r = run_child(child);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, ErrorCode::not_found);
    EXPECT_EQ(r.error().message, "/nowhere/vartml: cannot run: No such file or directory");
}

// What a child says through a socket that it was given as descriptor 3.
struct Served {
    std::string answer, end;
};
Served serve(const std::string& script) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const Fd ours(ends[0]);
    Fd theirs(ends[1]);
    auto child = ServingChild::start({"/bin/sh", "-c", script}, std::span(&ends[1], 1));
    EXPECT_TRUE(child) << child.error().message;
    theirs.reset();
    EXPECT_EQ(::write(ours.get(), "hello\n", 6), 6);
    Served served;
    char byte = 0;
    while (::read(ours.get(), &byte, 1) == 1) served.answer += byte;
    served.end = child->end_text();
    return served;
}

TEST(ServingChild, HasTheDescriptorsThatItIsGivenAndSaysHowItEnded) {
    Served served = serve("read -r word <&3; echo \"got $word\" >&3; exit 7");
    EXPECT_EQ(served.answer, "got hello\n");
    EXPECT_EQ(served.end, "ended with status 7");
    served = serve("read -r word <&3; kill -9 $$");
    EXPECT_EQ(served.end, "was killed by signal 9");
}

TEST(ServingChild, EndsWithItsOwner) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd read_end(ends[0]);
    Fd write_end(ends[1]);
    {
        const auto child =
            ServingChild::start({"/bin/sh", "-c", "sleep 1000"}, std::span(&ends[1], 1));
        ASSERT_TRUE(child);
        write_end.reset();
    }
    char byte = 0;
    EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // nobody is left that could write
}

TEST(ServingChild, NamesAProgramThatDoesNotExist) {
    if (is_emulated()) GTEST_SKIP() << "QEMU loses why a program cannot be run";
    const auto child = ServingChild::start({"/nowhere/vartml"}, {});
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace vartml
