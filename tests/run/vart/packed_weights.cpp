// SPDX-License-Identifier: Apache-2.0
// The side cache of packed weights through the runner's options and properties.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/support/fake_runner.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

// Two partitions, each with weights to pack.
artifact::CompiledModel model() {
    const auto partition = [](const std::string& name, const std::string& in,
                              const std::string& out) {
        return test::make_partition(
            name, test::parse_graph("graph g\ninput %" + in +
                                    " : f32[1,2,8,8]\n"
                                    "const %w : f32[2,2,1,1] = {1, 2, 3, 4}\n"
                                    "const %b : f32[2] = {0.5, -0.5}\n%" +
                                    out + " = Conv %" + in +
                                    ", %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], "
                                    "strides=[1,1]} : f32[1,2,8,8]\noutput %" +
                                    out + "\n"));
    };
    auto first = partition("vaiml_par_0", "x", "y");
    first.inputs[0].hw = first.inputs[0].cpu;
    first.outputs[0].hw = first.outputs[0].cpu;
    return test::connect(
        test::make_model({std::move(first), partition("vaiml_cpu_subgraph_0", "y", "z")}));
}

class PackedWeights : public testing::Test {
protected:
    test::TempDir dir;

    void SetUp() override { ASSERT_TRUE(artifact::write_rai(model(), dir / "m.rai")); }

    // Bytes in private memory, after the results were found right.
    uint64_t load(const std::string& cache_path, const char* name = "m.rai") {
        std::unordered_map<std::string, std::any> options{
            {"input_tensor_type", std::string("CPU")}, {"output_tensor_type", std::string("CPU")}};
        if (!cache_path.empty()) options["cache_path"] = cache_path;
        const auto runner =
            vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, dir / name, options);
        auto in = test::allocate(*runner, vart::TensorDirection::INPUT);
        auto out = test::allocate(*runner, vart::TensorDirection::OUTPUT);
        for (float& v : test::elements<float>(in[0][0])) v = 1;
        EXPECT_EQ(runner->execute(in, out), vart::StatusCode::SUCCESS);
        // y = {3.5, 6.5}, z = {3.5 + 13 + 0.5, 10.5 + 26 - 0.5}.
        const auto z = test::elements<float>(out[0][0]);
        EXPECT_EQ(z[0], 17.0F);
        EXPECT_EQ(z[64], 36.0F);
        return std::any_cast<uint64_t>(runner->get_property("bytes_weights_private"));
    }
    static long files_in(const std::string& folder) {
        return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    }
};

TEST_F(PackedWeights, LieInTheFolderOfTheOptions) {
    EXPECT_EQ(load(dir / "cache"), 0u);
    EXPECT_EQ(files_in(dir / "cache/weights"), 2);
    EXPECT_EQ(load(dir / "cache"), 0u);
    EXPECT_EQ(files_in(dir / "cache/weights"), 2);
}

// Two files with the same checksums may hold different weights: whoever makes a model chooses them.
TEST_F(PackedWeights, AreThoseOfTheFile) {
    EXPECT_EQ(load(dir / "cache"), 0U);
    const long one = files_in(dir / "cache/weights");
    EXPECT_EQ(load(dir / "cache"), 0U);
    EXPECT_EQ(files_in(dir / "cache/weights"), one);
    fs::copy_file(dir / "m.rai", dir / "copy.rai");
    EXPECT_EQ(load(dir / "cache", "copy.rai"), 0U);
    EXPECT_EQ(files_in(dir / "cache/weights"), 2 * one);
}

TEST_F(PackedWeights, LieInTheUsersCacheWithoutAnOption) {
    const char* const before = ::getenv("XDG_CACHE_HOME");
    const std::string kept = before ? before : "";
    ::setenv("XDG_CACHE_HOME", (dir / "xdg").c_str(), 1);
    EXPECT_EQ(load(""), 0u);
    EXPECT_EQ(files_in(dir / "xdg/vartml/weights"), 2);
    before ? ::setenv("XDG_CACHE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(PackedWeights, ArePrivateWithOneLineWhereTheFolderCannotBeWritten) {
    test::spill(dir / "file", "no folder");
    test::LogLines log;
    EXPECT_GT(load(dir / "file"), 0u);
    int lines = 0;
    for (const auto& [level, text] : log.take())
        if (text.find("packed weights stay in private memory") != text.npos) {
            EXPECT_EQ(level, LogLevel::info);
            ++lines;
        }
    EXPECT_EQ(lines, 1);
}

}  // namespace
}  // namespace vartml
