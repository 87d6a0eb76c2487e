// SPDX-License-Identifier: Apache-2.0
// compile_onnx with a compiler made of a few lines of shell, which does exactly what each test
// says.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include <vartml/compile.h>
#include <vartml/log.h>
#include <vartml/model.h>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using test::slurp;
using test::spill;

struct CompileOnnx : testing::Test {
    test::TempDir dir;
    std::string onnx = dir / "net v1.onnx";
    CompileOptions options;

    void SetUp() override {
        spill(onnx, "onnx bytes");
        ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "prepared"));
        options.cache_dir = dir / "cache";
        options.compiler = dir / "compiler";
        compiler("compile_it");
    }
    // The arguments are: compile FILE -o OUT --progress-fd 3 …
    void compiler(const std::string& script) {
        spill(dir / "compiler", "#!/bin/sh\necho \"$*\" >> '" + dir / "calls" +
                                    "'\ncompile_it() { cp -r '" + dir / "prepared" +
                                    "' \"$4\"; }\n" + "set -- \"$@\"\n" + with_arguments(script) +
                                    "\n");
        fs::permissions(dir / "compiler", fs::perms::owner_all);
    }
    // Functions of the shell have arguments of their own.
    static std::string with_arguments(std::string script) {
        for (size_t at = 0; (at = script.find("compile_it", at)) != script.npos; at += 15)
            script.insert(at + 10, " \"$@\"");
        return script;
    }
    size_t calls() const {
        const std::string text = fs::exists(dir / "calls") ? slurp(dir / "calls") : "";
        return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    }
    // What lies in the cache; no lock stays.
    std::vector<std::string> cached() const {
        std::vector<std::string> names;
        for (const auto& e : fs::directory_iterator(dir / "cache"))
            names.push_back(e.path().filename().string());
        return names;
    }
    Error failure() {
        const auto r = compile_onnx(onnx, options);
        EXPECT_FALSE(r);
        EXPECT_TRUE(cached().empty());
        return r ? Error() : r.error();
    }
};

TEST_F(CompileOnnx, StartsNoChildTheSecondTime) {
    const auto first = compile_onnx(onnx, options);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_FALSE(first->cache_hit);
    EXPECT_TRUE(open_model(first->path));
    EXPECT_TRUE(fs::path(first->path).filename().string().starts_with("net_v1-"));
    const auto second = compile_onnx(onnx, options);
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->cache_hit);
    EXPECT_EQ(second->path, first->path);
    EXPECT_EQ(calls(), 1u);
    EXPECT_EQ(cached().size(), 1u);
}

// Whoever may write into a folder may have put another model there.
TEST_F(CompileOnnx, TakesNoModelFromAFolderThatOthersMayWrite) {
    const auto first = compile_onnx(onnx, options);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(fs::status(first->path).permissions(), fs::perms::owner_all);
    EXPECT_EQ(fs::status(options.cache_dir).permissions(), fs::perms::owner_all);
    fs::permissions(first->path, fs::perms::group_write, fs::perm_options::add);
    const auto second = compile_onnx(onnx, options);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_FALSE(second->cache_hit);
    EXPECT_EQ(fs::status(second->path).permissions(), fs::perms::owner_all);
    EXPECT_EQ(calls(), 2u);
    if (::geteuid() != 0) return;  // nobody else gives folders away
    ASSERT_EQ(::chown(second->path.c_str(), 1234, 1234), 0);
    EXPECT_FALSE(compile_onnx(onnx, options)->cache_hit);
}

TEST_F(CompileOnnx, PassesItsArgumentsOn) {
    options.arguments = {"--decoder", "yolox"};
    ASSERT_TRUE(compile_onnx(onnx, options));
    const std::string call = slurp(dir / "calls");
    EXPECT_TRUE(call.starts_with("compile " + onnx + " -o ")) << call;
    EXPECT_TRUE(call.ends_with(" --progress-fd 3 --decoder yolox\n")) << call;
}

// Each of these must give another result, and the same again when taken back.
TEST_F(CompileOnnx, CompilesAgainWhenSomethingChanged) {
    const auto path = [&] {
        const auto r = compile_onnx(onnx, options);
        EXPECT_TRUE(r) << r.error().message;
        return r ? r->path : "";
    };
    const std::string first = path();
    options.arguments = {"--labels", dir / "labels.txt"};
    spill(dir / "labels.txt", "cat");
    const std::string labels = path();
    spill(dir / "labels.txt", "dog");
    const std::string other_labels = path();
    options.arguments = {"--labels=" + dir / "labels.txt"};
    const std::string joined = path();
    options.arguments = {};
    spill(dir / "net v1.modelinfo", "[modelinfo]");
    const std::string sidecar = path();
    // What it names becomes part of the model, too.
    spill(dir / "net v1.modelinfo", "[modelinfo]\nx-vartml-labels=labels.txt\n");
    const std::string names = path();
    spill(dir / "labels.txt", "horse");
    const std::string other_names = path();
    fs::remove(dir / "net v1.modelinfo");
    spill(onnx, std::string("onnx \x0a\x08location\x12\x09", 17) + "sub/w.bin");
    const std::string missing_weights = path();
    spill(dir / "sub/w.bin", "weights");
    const std::string weights = path();
    // Its length has two bytes.
    const std::string long_name = std::string(200, 'w');
    spill(onnx, std::string("onnx \x0a\x08location\x12\xc8\x01", 18) + long_name);
    const std::string before = path();
    spill(dir / long_name, "weights");
    const std::string after = path();
    const std::set<std::string> all = {first,   labels, other_labels, joined,
                                       sidecar, names,  other_names,  missing_weights,
                                       weights, before, after};
    EXPECT_EQ(all.size(), 11u);
    EXPECT_EQ(calls(), 11u);
    spill(onnx, "onnx bytes");
    EXPECT_EQ(path(), first);
    EXPECT_EQ(calls(), 11u);
}

TEST_F(CompileOnnx, ReportsProgress) {
    compiler(
        "echo 'progress 0 import' >&3; echo 'progress 250 nonsense' >&3; echo noise >&3\n"
        "echo 'progress 100 write the result' >&3; compile_it");
    std::vector<std::string> seen;
    options.progress = [&](int percent, const std::string& stage) {
        seen.push_back(std::to_string(percent) + ' ' + stage);
    };
    ASSERT_TRUE(compile_onnx(onnx, options));
    EXPECT_EQ(seen, (std::vector<std::string>{"0 import", "100 write the result"}));
}

TEST_F(CompileOnnx, RebuildsADamagedResult) {
    const auto first = compile_onnx(onnx, options);
    ASSERT_TRUE(first);
    const std::string weights = first->path + "/vaiml_par_0/0/weights.bin";
    std::string bytes = slurp(weights);
    bytes[5] = static_cast<char>(bytes[5] ^ 4);
    spill(weights, bytes);
    const auto second = compile_onnx(onnx, options);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_FALSE(second->cache_hit);
    EXPECT_TRUE(artifact::read(second->path));
    EXPECT_EQ(cached().size(), 1u);
}

TEST_F(CompileOnnx, TellsWhatTheCompilerSaid) {
    struct Case {
        const char* script;
        ErrorCode code;
        const char* message;
    };
    const Case cases[] = {
        {"echo 'vartml: INFO: hello' >&2; echo 'vartml: ERROR: a.onnx: node x uses If' >&2; exit 3",
         ErrorCode::unsupported, "a.onnx: node x uses If"},
        {"echo 'bad option' >&2; echo >&2; exit 2", ErrorCode::invalid_argument, "bad option"},
        {"echo 'vartml: disk full' >&2; exit 1", ErrorCode::io, "disk full"},
        {"printf 'not a model' >&2; exit 4", ErrorCode::bad_model, "not a model"},
        {"echo 'left' >&2; exit 5", ErrorCode::unsupported, "left"},
    };
    for (const Case& c : cases) {
        compiler(c.script);
        const Error error = failure();
        EXPECT_EQ(error.code, c.code);
        EXPECT_EQ(error.message, c.message);
    }
}

// The last of several lines says only that there are more.
TEST_F(CompileOnnx, TellsTheFirstOfSeveralFaults) {
    compiler(
        "echo '[vartml] ERROR: a.onnx: node x uses Sine' >&2; echo '[vartml] ERROR: a.onnx: node y "
        "uses Sine' >&2; echo '[vartml] ERROR: a.onnx: 8 more nodes like these' >&2; exit 3");
    const Error error = failure();
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_EQ(error.message, "a.onnx: node x uses Sine (and 9 more)");
}

TEST_F(CompileOnnx, PassesWarningsOnWithoutTheirLevel) {
    static std::vector<std::string> lines;
    lines.clear();
    set_log_function(
        [](LogLevel level, std::string_view, std::string_view text, void*) {
            if (level == LogLevel::warning) lines.emplace_back(text);
        },
        nullptr);
    compiler("echo '[vartml] WARNING: no decoder' >&2; compile_it");
    const auto compiled = compile_onnx(onnx, options);
    set_log_function(nullptr, nullptr);
    ASSERT_TRUE(compiled) << compiled.error().message;
    EXPECT_EQ(lines, std::vector<std::string>{"no decoder"});
}

TEST_F(CompileOnnx, NamesTheFileWhenTheCompilerSaidNothing) {
    compiler("kill -9 $$");
    EXPECT_EQ(failure().message, onnx +
                                     ": the compiler was ended by signal 9 (Killed); run it by "
                                     "hand: " +
                                     options.compiler + " compile " + onnx);
    compiler("mkdir -p \"$4\"; exit 0");
    EXPECT_NE(failure().message.find("left no valid model"), std::string::npos);
}

// As /bin/false and /bin/true are.
TEST_F(CompileOnnx, NamesAProgramThatIsNoCompiler) {
    const std::string which = onnx + ": the compiler " + options.compiler,
                      way_out =
                          ", so it is not the program vartml; name that in the environment "
                          "variable VARTML_COMPILER";
    compiler("exit 3");
    Error error = failure();
    EXPECT_EQ(error.message, which + " ended with status 3 and no message" + way_out);
    EXPECT_EQ(error.code, ErrorCode::io);
    compiler("exit 0");
    error = failure();
    EXPECT_EQ(error.message, which + " ended well and made no model" + way_out);
}

TEST_F(CompileOnnx, NamesAMissingCompiler) {
    options.compiler = dir / "nowhere";
    const Error error = failure();
    EXPECT_EQ(error.code, ErrorCode::io);
    EXPECT_EQ(error.message, dir / "nowhere" +
                                 ": cannot run: No such file or directory; install the program "
                                 "vartml, or name it in the environment variable VARTML_COMPILER");
    options.compiler.clear();
    ASSERT_EQ(::setenv("VARTML_COMPILER", (dir / "elsewhere").c_str(), 1), 0);
    EXPECT_TRUE(failure().message.starts_with(dir / "elsewhere"));
    ::unsetenv("VARTML_COMPILER");
}

TEST_F(CompileOnnx, NamesAMissingModelAndAnUnusableCache) {
    const auto missing = compile_onnx(dir / "no.onnx", options);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    options.cache_dir = onnx + "/cache";
    const auto unusable = compile_onnx(onnx, options);
    ASSERT_FALSE(unusable);
    EXPECT_EQ(unusable.error().code, ErrorCode::io);
    EXPECT_EQ(
        unusable.error().message,
        onnx + "/cache: cannot create the folder: Not a directory; give another cache folder");
    // Where no option names the folder, the sentence names what does.
    options.cache_dir.clear();
    ASSERT_EQ(::setenv("XDG_CACHE_HOME", onnx.c_str(), 1), 0);
    EXPECT_EQ(
        compile_onnx(onnx, options).error().message,
        onnx +
            "/vartml: cannot create the folder: Not a directory; set XDG_CACHE_HOME to another "
            "folder");
    const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("HOME");
    EXPECT_EQ(compile_onnx(onnx, options).error().message,
              "neither XDG_CACHE_HOME nor HOME says where compiled models can be kept; set "
              "XDG_CACHE_HOME to a folder");
    ::setenv("HOME", home.c_str(), 1);
}

TEST_F(CompileOnnx, KillsTheChildWhenCancelled) {
    std::atomic<bool> cancel = false;
    compiler("mkdir -p \"$4\"; echo 'progress 1 import' >&3; sleep 1000");
    options.cancel = &cancel;
    options.progress = [&](int, const std::string&) { cancel = true; };
    const Error error = failure();
    EXPECT_EQ(error.code, ErrorCode::timeout);
    EXPECT_EQ(error.message, onnx + ": compiling was cancelled");
}

TEST_F(CompileOnnx, CleansUpAfterAKilledApplication) {
    // What a killed application leaves: a folder under construction, the lock released.
    const auto first = compile_onnx(onnx, options);
    ASSERT_TRUE(first);
    const std::string name = fs::path(first->path).filename().string();
    fs::rename(first->path, dir / ("cache/." + name + ".tmp-abc"));
    const auto again = compile_onnx(onnx, options);
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->cache_hit);
    EXPECT_EQ(cached(), std::vector<std::string>{name});
}

TEST_F(CompileOnnx, CompilesOnceForConcurrentThreadsAndProcesses) {
    constexpr int count = 6;
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
        const pid_t pid = ::fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) ::_exit(compile_onnx(onnx, options) ? 0 : 1);
        children.push_back(pid);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
        threads.emplace_back([&] { EXPECT_TRUE(compile_onnx(onnx, options)); });
    for (std::thread& t : threads) t.join();
    for (const pid_t pid : children) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(calls(), 1u);
    EXPECT_EQ(cached().size(), 1u);
}

TEST_F(CompileOnnx, UsesTheUsersCacheFolder) {
    options.cache_dir.clear();
    ASSERT_EQ(::setenv("XDG_CACHE_HOME", (dir / "xdg").c_str(), 1), 0);
    const auto r = compile_onnx(onnx, options);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_TRUE(r->path.starts_with(dir / "xdg/vartml/net_v1-"));
    ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace vartml
