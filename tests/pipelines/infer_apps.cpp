// SPDX-License-Identifier: Apache-2.0
// The applications to copy run, and show what they say they show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

// y = -x on HW views of bf16 in and fp32 out.
artifact::CompiledModel negation() {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,30]
%y = Neg %x : f32[2,30]
output %y
)"));
    partition.inputs[0].hw = hw_view(partition.inputs[0].cpu, Layout::GENERIC, DataType::bf16);
    partition.outputs[0].hw = hw_view(partition.outputs[0].cpu, Layout::GENERIC, DataType::float32);
    return connect(make_model({std::move(partition)}));
}

class InferApps : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(artifact::write_rai(negation(), dir / "net.rai")); }
    std::string run(const std::string& program, const std::string& arguments, int status = 0) {
        const std::string command = std::string(std::getenv("VARTML_APPS")) + "/infer-" + program +
                                    ' ' + arguments + " >" + (dir / "log") + " 2>&1";
        const int ended = std::system(command.c_str());
        EXPECT_EQ(WEXITSTATUS(ended), status) << command << '\n' << slurp(dir / "log");
        return slurp(dir / "log");
    }
    const TempDir dir;
};

TEST_F(InferApps, SyncShowsTheLargestValueOfEachOutput) {
    std::vector<float> x(60, 1.0f);
    x[41] = -2.5f;
    spill(dir / "x.bin", {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)});
    EXPECT_NE(
        run("sync", dir / "net.rai " + (dir / "x.bin")).find("y: largest of 60 is 2.5 at 41\n"),
        std::string::npos)
        << slurp(dir / "log");
    EXPECT_NE(run("sync", dir / "net.rai /dev/null", 1).find("holds less than the inputs"),
              std::string::npos);
}

TEST_F(InferApps, AsyncGivesTheFramesInTheirOrder) {
    const std::string log = run("async", dir / "net.rai 9");
    size_t last = 0;
    for (int frame = 0; frame < 9; ++frame) {
        const size_t found = log.find("frame " + std::to_string(frame) + ": bytes sum up to ");
        ASSERT_NE(found, std::string::npos) << log;
        EXPECT_GE(found, last);
        last = found;
    }
    // Frame 1 is bf16 0x0101, so the output is fp32 0x81010000, sixty times.
    EXPECT_NE(log.find("frame 1: bytes sum up to " + std::to_string(60 * (0x81 + 1)) + "\n"),
              std::string::npos)
        << log;
}

TEST_F(InferApps, ZeroCopyCopiesNothingAndNamesTheMemory) {
    const std::string log = run("zero-copy", dir / "net.rai");
    EXPECT_NE(log.find("bytes_copied_in: 0\nbytes_copied_out: 0\n"), std::string::npos) << log;
    EXPECT_TRUE(log.find("x: 120 bytes of memfd\n") != std::string::npos ||
                log.find("x: 120 bytes of udmabuf\n") != std::string::npos ||
                log.find("x: 120 bytes of dma-heap\n") != std::string::npos)
        << log;
}

TEST_F(InferApps, SayWhatIsWrongWithAModel) {
    for (const char* program : {"sync", "async", "zero-copy"})
        EXPECT_NE(run(program, "/nowhere.rai", 1).find("create_runner: "), std::string::npos);
}

// The rule of the folder: an example is short, and sees public headers only.
TEST_F(InferApps, AreShort) {
    for (const char* program : {"sync", "async", "zero-copy"}) {
        const std::string path =
            std::string(std::getenv("VARTML_APP_SOURCES")) + "/infer-" + program + "/main.cpp";
        const std::string text = slurp(path);
        EXPECT_GT(text.size(), 1000u) << path;
        EXPECT_LT(std::ranges::count(text, '\n'), 100) << path;
        EXPECT_EQ(text.find("#include \""), std::string::npos) << path;
        EXPECT_EQ(text.find("vartml/"), std::string::npos) << path;
    }
}

}  // namespace
}  // namespace vartml::test
