// SPDX-License-Identifier: Apache-2.0
// The options of `vartml compile` about measuring, in each spelling.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "lib/model/stats_descriptor.h"
#include "tests/tools/compile_program.h"

namespace vartml {
namespace {

using test::Compile;
using test::Finished;

class CompileStats : public Compile {
protected:
    profiling::Descriptor descriptor(const std::string& arguments) {
        const Finished r = run("shelf.onnx -o m.rai --force " + arguments);
        EXPECT_EQ(r.status, 0) << arguments << ": " << r.err;
        const auto model = artifact::read(dir_ / "m.rai");
        if (!model) {
            ADD_FAILURE() << model.error().message;
            return {};
        }
        auto d = artifact::descriptor_of(*model, "m");
        EXPECT_TRUE(d) << d.error().message;
        return d ? std::move(*d) : profiling::Descriptor();
    }
};

TEST_F(CompileStats, EachSpellingOfTheLevelIsOne) {
    EXPECT_EQ(descriptor("").compiled_level, 40);
    for (const char* words :
         {"--stats-level=70", "--stats-level 70", "-stats-level=70", "-stats-level 70"})
        EXPECT_EQ(descriptor(words).compiled_level, 70) << words;
}

TEST_F(CompileStats, EachSpellingOfTheOthersIsOne) {
    for (const char* words : {"--stats-batchsize=4", "-stats-batchsize=4", "-stats-batchsize 4"})
        EXPECT_EQ(descriptor(words).stats_batchsize, 4u) << words;
    for (const char* words : {"--ddr-stats", "-ddr-stats"})
        EXPECT_TRUE(descriptor(words).ddr_stats) << words;
    for (const char* option :
         {"--pmu-recipe", "-pmu-recipe", "--aic-pmu-recipe", "-aic-pmu-recipe"})
        for (const char* between : {" ", "="})
            EXPECT_EQ(descriptor(std::string(option) + between + "AxiRd").pmu.recipe, "AxiRd")
                << option;
    for (const char* option :
         {"--pmu-events", "-pmu-events", "--aic-pmu-events", "-aic-pmu-events"})
        for (const char* between : {" ", "="})
            EXPECT_EQ(descriptor(std::string(option) + between + "3F,0x70,200").pmu.events,
                      (std::vector<uint32_t>{0x3f, 0x70, 0x200}))
                << option;
}

TEST_F(CompileStats, TakesAllRecipes) {
    for (const char* recipe : {"AxiRd", "AxiWr", "AxiRdWr", "KernelUtil", "HmxMacs"})
        EXPECT_EQ(descriptor(std::string("--pmu-recipe ") + recipe).pmu.recipe, recipe);
    EXPECT_EQ(descriptor("--pmu-events 1,2,3,4,5,6,7,8").pmu.events.size(), 8u);
}

TEST_F(CompileStats, LevelsAreThresholds) {
    for (const char* level : {"40", "60", "100"})
        EXPECT_EQ(std::to_string(descriptor(std::string("--stats-level ") + level).compiled_level),
                  level);
    for (const char* level : {"0", "39"}) {
        const Finished r = run("shelf.onnx -o low.rai --force --stats-level " + std::string(level));
        EXPECT_EQ(r.status, 0) << r.err;
        EXPECT_NE(r.err.find("records nothing"), std::string::npos) << r.err;
        const auto model = artifact::read(dir_ / "low.rai");
        ASSERT_TRUE(model);
        EXPECT_EQ(model->find_file(profiling::descriptor_entry), nullptr);
    }
}

TEST_F(CompileStats, AnotherLevelIsAnotherResult) {
    ASSERT_EQ(run("shelf.onnx").status, 0);
    EXPECT_NE(run("shelf.onnx -stats-level=40").out.find("up to date"), std::string::npos);
    EXPECT_EQ(run("shelf.onnx -stats-level=70").out.find("up to date"), std::string::npos);
}

struct Refused {
    const char* arguments;
    std::vector<const char*> parts;
};

// The model is not read: there is none.
TEST_F(CompileStats, UsageErrorsComeBeforeTheModel) {
    const Refused rows[] = {
        {"--stats-level 101", {"--stats-level"}},
        {"-stats-level=101", {"--stats-level"}},
        {"--stats-level -1", {"--stats-level"}},
        {"--stats-level much", {"--stats-level"}},
        {"--stats-level 70.5", {"--stats-level"}},
        {"--stats-batchsize 0", {"--stats-batchsize"}},
        {"--ddr-stats --stats-level 39", {"--ddr-stats", "40"}},
        {"-ddr-stats -stats-level=0", {"--ddr-stats", "40"}},
        {"--pmu-recipe AxiRd --stats-level 0", {"--pmu-recipe", "40"}},
        {"--pmu-events 1 --stats-level 0", {"--pmu-events", "40"}},
        {"--pmu-recipe axird", {"--pmu-recipe", "AxiRd"}},
        {"--pmu-recipe AxiRd --pmu-events 3F", {"--pmu-recipe", "--pmu-events"}},
        {"-aic-pmu-recipe=AxiRd -aic-pmu-events=3F", {"--pmu-recipe", "--pmu-events"}},
        {"--pmu-events 1,2,3,4,5,6,7,8,9", {"--pmu-events", "are 9"}},
        {"--pmu-events 3F,zz", {"--pmu-events", "'zz'"}},
        {"--pmu-events 3F,,70", {"--pmu-events", "''"}},
        {"--pmu-events 100000000", {"--pmu-events", "'100000000'"}},
        {"--pmu-events 3F,0x3f", {"--pmu-events", "twice"}},
        {"--aic-profiling-type=stats", {"--aic-profiling-type", "vartml run"}},
        {"-aic-profiling-num-samples=3", {"-aic-profiling-num-samples", "vartml run"}},
        {"-stats-levels=70", {"-s"}},
        {"-aic-binary-dir=b -o m.rai", {"--aic-binary-dir", "--output"}},
        {"-aic-binary-dir", {"-aic-binary-dir"}},
    };
    for (const Refused& row : rows) {
        const Finished r = run(std::string("none.onnx ") + row.arguments);
        EXPECT_EQ(r.status, 2) << row.arguments << ": " << r.err;
        for (const char* part : row.parts)
            EXPECT_NE(r.err.find(part), std::string::npos) << row.arguments << ": " << r.err;
        EXPECT_EQ(r.err.find("none.onnx"), std::string::npos) << r.err;
    }
    EXPECT_EQ(run("-model=").status, 2);
}

TEST_F(CompileStats, TheModelMayBeAnOption) {
    for (const char* words :
         {"-model=shelf.onnx", "-model shelf.onnx", "-m=shelf.onnx", "-m shelf.onnx"}) {
        const Finished r = run(std::string(words) + " -aic-binary-dir=./binaries -stats-level=70");
        EXPECT_EQ(r.status, 0) << words << ": " << r.err;
        EXPECT_NE(r.out.find("model: ./binaries/programqpc.bin\n"), std::string::npos) << r.out;
    }
    const auto model = artifact::read(dir_ / "binaries/programqpc.bin");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->format, "rai");
    EXPECT_EQ(model->stats_level, 70);
}

TEST_F(CompileStats, AnotherBatchSizeThanTheModelsIsAWarning) {
    const Finished r = run("shelf.onnx -o m.rai --stats-batchsize 8");
    EXPECT_EQ(r.status, 0);
    EXPECT_NE(r.err.find("--stats-batchsize is 8, the batch size of the model 1"),
              std::string::npos)
        << r.err;
    EXPECT_EQ(run("shelf.onnx -o m.rai --stats-batchsize 1 --force").err, "");
}

TEST_F(CompileStats, MetricsAreLinesAndAnEntry) {
    for (const char* option :
         {"--perf-metrics", "-perf-metrics", "--aic-perf-metrics", "-aic-perf-metrics"}) {
        const Finished r = run(std::string("shelf.onnx -o m.tar.gz ") + option);
        EXPECT_EQ(r.status, 0) << r.err;  // the second time up to date, with the same lines
        EXPECT_NE(r.out.find("compiler estimates: vaiml_par_0 (npu)\n"), std::string::npos)
            << r.out;
    }
    const auto model = artifact::read(dir_ / "m.tar.gz");
    ASSERT_TRUE(model) << model.error().message;
    const std::string* text = model->find_file("perf-metrics.json");
    ASSERT_NE(text, nullptr);
    const auto json = nlohmann::json::parse(*text);
    EXPECT_EQ(json["source"], "compiler estimates");
    EXPECT_EQ(json["total"]["macs"], 16 * 16 * 8 * 27);
    EXPECT_EQ(json["partitions"][0]["name"], "vaiml_par_0");
    ASSERT_EQ(run("shelf.onnx -o n.rai").status, 0);
    EXPECT_EQ(artifact::read(dir_ / "n.rai")->find_file("perf-metrics.json"), nullptr);
}

TEST_F(CompileStats, WarningsGoToStandardErrorWithTheirNumber) {
    for (const char* option :
         {"--perf-warnings", "-perf-warnings", "--aic-perf-warnings", "-aic-perf-warnings"}) {
        const Finished r = run(std::string("shelf.onnx ") + option);
        EXPECT_EQ(r.status, 0) << r.err;
        EXPECT_NE(r.err.find("performance warning PW02: images: "), std::string::npos) << r.err;
        size_t lines = 0;
        std::string last;
        for (std::istringstream in(r.err); std::getline(in, last);)
            lines += last.starts_with("performance warning PW");
        EXPECT_EQ(r.err.substr(r.err.rfind("performance warnings: ")),
                  "performance warnings: " + std::to_string(lines) + "\n");
        EXPECT_EQ(r.out.find("performance"), std::string::npos);
    }
}

TEST_F(CompileStats, ForeignSpellingsAreOneGroupOfTheHelp) {
    const Finished r = run("--help");
    EXPECT_EQ(r.status, 0);
    const size_t group = r.out.find("\ncompatibility:\n");
    ASSERT_NE(group, std::string::npos) << r.out;
    const std::string head = r.out.substr(0, group), tail = r.out.substr(group);
    EXPECT_EQ(head.find("aic"), std::string::npos) << head;
    for (const char* word : {" -stats-level", " -model", " -m,", " -ddr-stats", " -pmu-"})
        EXPECT_EQ(head.find(word), std::string::npos) << word;
    for (const char* word :
         {"-stats-level", "-stats-batchsize", "-ddr-stats", "-aic-pmu-recipe", "-aic-pmu-events",
          "-aic-perf-warnings", "-aic-perf-metrics", "-aic-binary-dir", "-model"})
        EXPECT_NE(tail.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace vartml
