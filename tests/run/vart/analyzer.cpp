// SPDX-License-Identifier: Apache-2.0
// The option ai_analyzer_profiling: what stands in its folder when the runner has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "lib/model/stats_descriptor.h"
#include "tests/model/models.h"
#include "tests/support/captures.h"
#include "tests/support/comma_locale.h"
#include "tests/support/fake_runner.h"
#include "tests/support/temp_dir.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
namespace fs = std::filesystem;

vartml::artifact::CompiledModel model() {
    auto model = connect(make_model({make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,8,8]
%y = Tanh %x : f32[1,3,8,8]
output %y
)"))}));
    model.stats_level = 70;
    add_descriptor(model, descriptor_of(model, 70));
    return model;
}

class Analyzer : public testing::Test {
protected:
    Analyzer() { ::setenv("VARTML_PROFILE_DIR", dir.path().c_str(), 1); }
    ~Analyzer() override { ::unsetenv("VARTML_PROFILE_DIR"); }
    static Options options() {
        Options options = cpu_views();
        options.ai_analyzer_profiling = true;
        return options;
    }
    // Files of the one folder.
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& folder : fs::directory_iterator(dir.path()))
            for (const auto& file : fs::directory_iterator(folder))
                names.push_back(file.path().filename());
        return names;
    }
    // Of the one folder, by the end of its name; "" where there is none.
    std::string file(const std::string& end) const {
        for (const auto& folder : fs::directory_iterator(dir.path()))
            for (const auto& file : fs::directory_iterator(folder))
                if (file.path().filename().string().ends_with(end)) return slurp(file.path());
        return {};
    }
    TempDir dir;
};

TEST_F(Analyzer, WritesTheLastInferencesAndASummaryOfAll) {
    if (!std::getenv("VARTML_COMPILER")) GTEST_SKIP() << "needs the program vartml (-Dtools)";
    constexpr size_t inferences = 40, kept = 32;
    {
        LogLines log;
        const auto runner = make_runner(model(), options());
        ASSERT_TRUE(runner);
        const auto lines = log.take();
        ASSERT_EQ(lines.size(), 1U);
        EXPECT_NE(lines[0].second.find("vartml_profile_"), std::string::npos);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        for (size_t i = 0; i < inferences; ++i)
            ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        EXPECT_TRUE(files().empty());
    }
    const auto names = files();
    const auto ending_in = [&](const char* end) {
        return std::ranges::count_if(names, [&](const auto& name) { return name.ends_with(end); });
    };
    EXPECT_EQ(ending_in("-aiccyclecounts.bin"), ptrdiff_t{kept});
    EXPECT_EQ(ending_in("-trace.json"), 1);
    EXPECT_EQ(ending_in("-latency.txt"), 1);
    EXPECT_EQ(ending_in("opstatsdesc.bin"), 1);
    EXPECT_EQ(names.size(), 2 * kept + 4);
    EXPECT_EQ(file("-activation-0-inf-7.txt"), "");
    EXPECT_NE(file("-activation-0-inf-8.txt"), "");
    std::istringstream summary(file("summary.csv"));
    std::vector<std::string> keys;
    std::string inferences_line;
    for (std::string line; std::getline(summary, line);) {
        keys.push_back(line.substr(0, line.find(',')));
        EXPECT_EQ(line.starts_with("peak_"), line.ends_with("_cycles,-1")) << line;
        if (line.starts_with("inference_count")) inferences_line = line;
    }
    ASSERT_EQ(keys.size(), 19U);
    EXPECT_EQ(inferences_line, "inference_count,40");
    EXPECT_EQ(keys[0], "model_name");
    EXPECT_EQ(keys[8], "average_execution_provider_time_usec");
    EXPECT_EQ(keys[10], "total_gmacs");
}

TEST_F(Analyzer, CountsNoWarmUps) {
    if (!std::getenv("VARTML_COMPILER")) GTEST_SKIP() << "needs the program vartml (-Dtools)";
    {
        LogLines log;
        const auto runner = make_runner(model(), options());
        ASSERT_TRUE(runner);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        {
            const vartml::WarmUpScope scope;
            for (int i = 0; i < 3; ++i) ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        }
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    }
    EXPECT_NE(file("summary.csv").find("\ninference_count,1\n"), std::string::npos)
        << file("summary.csv");
    EXPECT_EQ(file("-inf-0.txt"), "");
    EXPECT_NE(file("-inf-3.txt"), "");
}

// The raw buffers are there all the same, and the log has the command that reads them.
TEST_F(Analyzer, SaysWhatMakesSummariesWhereItsProgramIsAbsent) {
    const char* const own = std::getenv("VARTML_COMPILER");
    const std::string program = own ? own : "";
    ::setenv("VARTML_COMPILER", "/nowhere/vartml", 1);
    std::string said;
    {
        LogLines log;
        auto runner = make_runner(model(), options());
        ASSERT_TRUE(runner);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        runner.reset();
        for (const auto& [level, line] : log.take()) said += line + '\n';
    }
    ::setenv("VARTML_COMPILER", program.c_str(), 1);
    EXPECT_NE(said.find("/nowhere/vartml"), std::string::npos) << said;
    EXPECT_NE(said.find("opstats --model "), std::string::npos) << said;
    EXPECT_NE(file("-aiccyclecounts.bin"), "");
    EXPECT_NE(file("-latency.txt"), "");
    EXPECT_NE(file("summary.csv"), "");
    EXPECT_EQ(file("-inf-0.txt"), "");
}

// Slices of a trace are of one job by these numbers.
TEST_F(Analyzer, CountsTheRunnersOfTheProcess) {
    {
        LogLines log;
        const auto first = make_runner(model(), options()),
                   second = make_runner(model(), options());
        for (const auto& runner : {first, second}) {
            ASSERT_TRUE(runner);
            Tensors in = allocate(*runner, TensorDirection::INPUT);
            Tensors out = allocate(*runner, TensorDirection::OUTPUT);
            ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        }
    }
    std::set<std::string> buffers;
    for (const std::string& name : files())
        if (name.ends_with("-aiccyclecounts.bin")) buffers.insert(name);
    EXPECT_EQ(buffers.size(), 2U);
}

// An application may have set a locale whose decimals begin with what parts the columns.
TEST_F(Analyzer, WritesASummaryOfTwoColumnsInEveryLocale) {
    const CommaLocale comma;
    {
        LogLines log;
        const auto runner = make_runner(model(), options());
        ASSERT_TRUE(runner);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    }
    std::istringstream summary(file("summary.csv"));
    size_t lines = 0;
    for (std::string line; std::getline(summary, line); ++lines)
        EXPECT_EQ(std::ranges::count(line, ','), 1) << line;
    EXPECT_EQ(lines, 19U);
}

// A file may hold any descriptor that is well formed.
TEST_F(Analyzer, TakesADescriptorWithoutCores) {
    auto bare = model();
    vartml::profiling::Descriptor descriptor = descriptor_of(bare, 70);
    descriptor.engines = {vartml::profiling::npu_engine, vartml::profiling::cpu_engine};
    descriptor.cores.clear();
    bare.files.back().bytes = vartml::artifact::write_descriptor(descriptor);
    {
        LogLines log;
        const auto runner = make_runner(std::move(bare), options());
        ASSERT_TRUE(runner);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    }
    const std::string summary = file("summary.csv");
    EXPECT_NE(summary.find("\naverage_npu_time_usec,-1\n"), std::string::npos) << summary;
}

TEST_F(Analyzer, NamesTheFolderThatCannotBeMade) {
    ::setenv("VARTML_PROFILE_DIR", "/nowhere", 1);
    const auto state = vartml::runtime::prepare("m.rai", model(), options());
    ASSERT_FALSE(state);
    EXPECT_TRUE(state.error().message.starts_with(
        "create_runner: option 'ai_analyzer_profiling': cannot make folder '/nowhere/"))
        << state.error().message;
}

TEST_F(Analyzer, LeavesNoFolderOfARunnerThatIsRefused) {
    Options hw;  // views of which this model has none
    hw.ai_analyzer_profiling = true;
    ASSERT_FALSE(vartml::runtime::prepare("m.rai", model(), hw));
    EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST_F(Analyzer, NeedsADescriptorAndLeavesNoFolder) {
    auto without = model();
    without.files.clear();
    const auto state = vartml::runtime::prepare("m.rai", std::move(without), options());
    ASSERT_FALSE(state);
    EXPECT_NE(state.error().message.find("compile it with --stats-level"), std::string::npos);
    EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
