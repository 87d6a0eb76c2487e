// SPDX-License-Identifier: Apache-2.0
// `vartml compile` run as a program, in a folder of its own.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::test {

namespace fs = std::filesystem;

struct Finished {
    int status = -1;
    std::string out, err;
};

class Compile : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        program_ = program;
        small().save(dir_ / "shelf.onnx");
    }

    // A picture model of three operators.
    static TinyOnnx small(const std::string& symbol = "") {
        TinyOnnx m;
        m.input("images", {symbol.empty() ? TinyOnnx::Dim(1) : TinyOnnx::Dim(symbol), 3, 16, 16})
            .weights("w", {8, 3, 3, 3});
        m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node("Relu", {"c"}, {"r"});
        m.node("GlobalAveragePool", {"r"}, {"scores"}).output("scores");
        return m;
    }

    Finished run(const std::string& arguments, const std::string& setup = "") {
        const std::string command = "cd '" + dir_.path() + "' && { " + setup + "'" + program_ +
                                    "' compile " + arguments + "; } >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir_ / "out.txt"),
                slurp(dir_ / "err.txt")};
    }

    std::map<std::string, std::string> files(const std::string& folder) {
        std::map<std::string, std::string> all;
        for (const auto& entry : fs::recursive_directory_iterator(dir_ / folder))
            if (entry.is_regular_file())
                all[fs::relative(entry.path(), dir_ / folder).string()] =
                    slurp(entry.path().string());
        return all;
    }
    std::vector<std::string> names(const std::string& folder) {
        std::vector<std::string> all;
        for (const auto& entry : fs::directory_iterator(dir_ / folder))
            all.push_back(entry.path().filename().string());
        std::ranges::sort(all);
        return all;
    }

    TempDir dir_;
    std::string program_;
};

}  // namespace vartml::test
