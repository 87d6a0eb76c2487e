// SPDX-License-Identifier: Apache-2.0
// `vartml compile` in several processes at a time, and killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "lib/model/compiled_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"
#include "tests/tools/compile_program.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using test::Compile;
using test::Finished;
using test::TinyOnnx;

class CompileProcesses : public Compile {
protected:
    pid_t start(const char* log, const std::vector<const char*>& options = {}) {
        std::vector<const char*> arguments{"vartml", "compile", "shelf.onnx"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.push_back(nullptr);
        const pid_t child = ::fork();
        if (child != 0) return child;
        if (::chdir(dir_.path().c_str()) != 0 || !std::freopen(log, "w", stdout) ||
            !std::freopen("/dev/null", "w", stderr))
            ::_exit(99);
        ::execv(program_.c_str(), const_cast<char* const*>(arguments.data()));
        ::_exit(99);
    }
    static int wait(pid_t child) {
        int status = 0;
        ::waitpid(child, &status, 0);
        return status;
    }
};

TEST_F(CompileProcesses, CompileOnceForOneKey) {
    const pid_t a = start("a.txt"), b = start("b.txt");
    EXPECT_EQ(wait(a), 0);
    EXPECT_EQ(wait(b), 0);
    const bool a_waited = test::slurp(dir_ / "a.txt").find("up to date") != std::string::npos;
    const bool b_waited = test::slurp(dir_ / "b.txt").find("up to date") != std::string::npos;
    EXPECT_NE(a_waited, b_waited);
}

// ONNX Runtime learns the shapes of a Loop by running it, and this one never ends.
class CompileAsks : public CompileProcesses {
protected:
    void SetUp() override {
        CompileProcesses::SetUp();
        fs::create_directory(temporary_);
        ::setenv("TMPDIR", temporary_.c_str(), 1);
        TinyOnnx body(17), m(17);
        body.input("i", {}, TinyOnnx::int64).input("c", {}, TinyOnnx::boolean).input("v", {4});
        body.node("Identity", {"c"}, {"d"}).node("Add", {"v", "v"}, {"w"});
        body.output("d", {}, TinyOnnx::boolean).output("w", {4});
        m.input("x", {4}).input("c", {}, TinyOnnx::boolean);
        m.node("Not", {"c"}, {"n"}).node("Or", {"c", "n"}, {"yes"});
        m.node("Loop", {"", "yes", "x"}, {"l"}, {{"body", body.graph()}});
        m.node("NonZero", {"l"}, {"y"}).output("y", {}, TinyOnnx::int64);
        m.save(dir_ / "shelf.onnx");
    }
    void TearDown() override { ::unsetenv("TMPDIR"); }

    // Of ONNX Runtime's programs that read a model in our folder.
    size_t children() {
        size_t count = 0;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const std::string words = test::slurp(entry.path() / "cmdline");
            if (words.find("describe") != words.npos && words.find(temporary_) != words.npos)
                ++count;
        }
        return count;
    }
    bool soon(size_t wanted) {
        for (int i = 0; i < 500; ++i, ::usleep(20'000))
            if (children() == wanted) return true;
        return false;
    }

    const std::string temporary_ = dir_ / "temporary";
};

TEST_F(CompileAsks, AndLeavesNoProgramBehindWhenItIsEnded) {
    for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
        const pid_t child = start("log.txt");
        if (!soon(1)) {
            EXPECT_NE(wait(child), 0);
            GTEST_SKIP() << "no ONNX Runtime that runs the model";
        }
        ::kill(child, signal);
        wait(child);
        EXPECT_TRUE(soon(0)) << signal;
        EXPECT_EQ(fs::is_empty(temporary_), signal != SIGKILL) << signal;
    }
}

// Two models that take each other's place, in all containers. Half of a compile is writing: the
// weights are large for the few operators.
class CompileKilled : public CompileProcesses {
protected:
    using Files = std::map<std::string, std::string>;
    using Microseconds = std::chrono::duration<double, std::micro>;
    static constexpr int nothing = -1;

    void save(int which) {
        const std::string weights = which ? "v" : "w";
        TinyOnnx m;
        m.input("x", {1, 256}).weights(weights, {256, 512}).node("MatMul", {"x", weights}, {"y"});
        m.output("y").save(dir_ / "shelf.onnx");
    }
    Files result() {
        Files all = files("vartml-cache/shelf");
        all.erase("compile.log");  // it holds times
        return all;
    }
    pid_t start_all() { return start("log.txt", {"--format", "dir,rai,tar"}); }
    void compile(int which) {
        save(which);
        ASSERT_EQ(wait(start_all()), 0);
        in_place_ = which;
    }

    // Both results, and how long one takes: the median of five.
    void measure() {
        std::vector<Microseconds> durations;
        for (const int which : {0, 1, 0, 1, 0}) {
            const auto begin = std::chrono::steady_clock::now();
            compile(which);
            durations.emplace_back(std::chrono::steady_clock::now() - begin);
            whole_[which] = result();
        }
        ASSERT_NE(whole_[0], whole_[1]);
        for (const char* file : {"model.vmf", "shelf.rai", "shelf.tar.gz"})
            ASSERT_TRUE(whole_[0].contains(file)) << file;
        std::ranges::nth_element(durations, durations.begin() + 2);
        duration_ = durations[2];
    }

    void kill_after(int which, double part) {
        save(which);
        const pid_t child = start_all();
        ::usleep(static_cast<useconds_t>(part * duration_.count()));
        ::kill(child, SIGKILL);
        finished_ += wait(child) == 0 ? 1 : 0;
        for (const std::string& name : names("vartml-cache"))
            writing_ += name.starts_with(".shelf.tmp-") ? 1 : 0;
    }
    // The old result, the new one, or none where there was none; whole, by its bytes and to read.
    void check(int wanted) {
        const std::string place = dir_ / "vartml-cache/shelf";
        if (!fs::exists(place)) {
            ASSERT_EQ(in_place_, nothing) << "the old result is gone";
            return;
        }
        const Files found = result();
        if (found == whole_[wanted]) in_place_ = wanted;
        ASSERT_NE(in_place_, nothing) << "neither absent nor new";
        ASSERT_TRUE(found == whole_[in_place_]) << "neither old nor new";
        for (const char* container : {"", "/shelf.rai", "/shelf.tar.gz"}) {
            const auto model = artifact::read(place + container);
            ASSERT_TRUE(model) << model.error().message;
        }
    }

    Files whole_[2];
    Microseconds duration_{};
    int in_place_ = nothing;          // which of the two
    int finished_ = 0, writing_ = 0;  // kills that came too late, and while files were written
};

// Which instruction a kill strikes is left to chance. The first ones find nothing in place, the
// others an older result.
TEST_F(CompileKilled, LeavesTheOldOrTheNewResult) {
    constexpr int kills = 100, slices = 25;  // each slice of the duration is struck four times
    ASSERT_NO_FATAL_FAILURE(measure());
    constexpr unsigned seed = 20;
    std::mt19937 random(seed);
    for (int i = 0; i < kills; ++i) {
        SCOPED_TRACE("kill " + std::to_string(i) + " of seed " + std::to_string(seed));
        if (i < slices) {
            fs::remove_all(dir_ / "vartml-cache/shelf");
            in_place_ = nothing;
        } else if (in_place_ == nothing) {
            ASSERT_NO_FATAL_FAILURE(compile(0));
        }
        const double slice = i % slices;
        const double part = std::uniform_real_distribution<>(slice, slice + 1)(random) / slices;
        kill_after(i % 2, part);
        ASSERT_NO_FATAL_FAILURE(check(i % 2));
    }
    RecordProperty("finished", finished_);
    RecordProperty("writing", writing_);
    ASSERT_NO_FATAL_FAILURE(compile(0));
    EXPECT_TRUE(result() == whole_[0]);
    EXPECT_EQ(names("vartml-cache"), std::vector<std::string>{"shelf"});
}

}  // namespace
}  // namespace vartml
