// SPDX-License-Identifier: Apache-2.0
// The applications that read the inference record, in C and in Python, say the same of the same
// frames.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

struct Program {
    std::string name, command;
};
const Program programs[] = {
    {"C", variable("VARTML_READ_METADATA")},
    {"Python", std::string("python3 ") + variable("VARTML_READ_METADATA_PY")},
};

struct Finished {
    int status;
    std::string out, err;
};
Finished run(const Program& program, const std::string& arguments) {
    const TempDir dir;
    const int status = std::system(
        (program.command + " " + arguments + " >" + (dir / "out") + " 2>" + (dir / "err")).c_str());
    return {WEXITSTATUS(status), slurp(dir / "out"), slurp(dir / "err")};
}

// 640x480 letterboxed into 320x320: twice the pixels, 80 lines of border above.
constexpr char description[] =
    ": inferred, model qrfinder\n"
    "  to_frame: x = 2.000 u + 0.000 v + 0.000, y = 0.000 u + 2.000 v + -80.000\n"
    "  tensor output0: cpu view, fp32 NHW 1x5x2100\n";

TEST(ReadMetadata, DescribesEachFrameInBothLanguages) {
    std::string expected;
    for (const char* frame : {"frame 0", "frame 1", "frame 2"})
        expected += std::string(frame) + description;
    for (const Program& program : programs) {
        const Finished f = run(program, variable("VARTML_MODEL"));
        EXPECT_EQ(f.status, 0) << program.name << ": " << f.err;
        EXPECT_EQ(f.out, expected) << program.name;
    }
}

TEST(ReadMetadata, SaysWhyThereAreNoFrames) {
    for (const Program& program : programs) {
        const Finished f = run(program, "/nowhere.rai");
        EXPECT_EQ(f.status, 1) << program.name;
        EXPECT_EQ(f.out, "");
        EXPECT_NE(f.err.find("Could not load the model: model '/nowhere.rai': No such file"),
                  std::string::npos)
            << program.name << ": " << f.err;
        EXPECT_EQ(run(program, "").status, 2) << program.name;
        EXPECT_EQ(run(program, std::string(variable("VARTML_MODEL")) + " /nowhere.mp4").status, 1)
            << program.name;
    }
}

// The rule of the folder: an example is short, and sees nothing private.
TEST(ReadMetadata, IsShort) {
    const std::string folder =
        std::filesystem::path(variable("VARTML_READ_METADATA_PY")).parent_path();
    for (const char* file : {"/main.c", "/read_metadata.py"}) {
        const std::string text = slurp(folder + file);
        EXPECT_GT(text.size(), 1000u) << file;
        EXPECT_LT(std::ranges::count(text, '\n'), 120) << file;
        EXPECT_EQ(text.find("#include \""), std::string::npos) << file;
    }
}

}  // namespace
}  // namespace vartml::test
