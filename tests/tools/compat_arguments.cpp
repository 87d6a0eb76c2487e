// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/compat_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vartml::tools {
namespace {

const CompatTable& table() {
    static const CompatTable rows = {
        {{"", {"-model", "-m"}, "the MODEL"},
         {"--stats-level", {"-stats-level"}},
         {"--dir", {"-dir"}, "a folder", true},
         {"--pmu-recipe", {"-pmu-recipe", "--aic-pmu-recipe", "-aic-pmu-recipe"}}},
        {{"--aic-profiling-", "belongs to vartml run"}}};
    return rows;
}

struct Case {
    std::vector<const char*> given;
    std::vector<std::string> want;
};

class CompatArguments : public testing::TestWithParam<Case> {};

TEST_P(CompatArguments, BecomeTheWordsOfThisProgram) {
    const auto out = rewrite_compat(table(), GetParam().given);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(*out, GetParam().want);
}

const Case cases[] = {
    {{}, {}},
    {{"-stats-level=70"}, {"--stats-level=70"}},
    {{"-stats-level", "70"}, {"--stats-level", "70"}},
    {{"--stats-level=70"}, {"--stats-level=70"}},
    {{"-pmu-recipe=AxiRd"}, {"--pmu-recipe=AxiRd"}},
    {{"--aic-pmu-recipe=AxiRd"}, {"--pmu-recipe=AxiRd"}},
    {{"-aic-pmu-recipe", "AxiRd"}, {"--pmu-recipe", "AxiRd"}},
    {{"-model=a=b.onnx", "-m", "c.onnx"}, {"a=b.onnx", "c.onnx"}},  // of "=" the first counts
    // Only whole names: a longer word and a short option with its value stay as they are.
    {{"-stats-levels=70", "-s", "-mx", "-o", "out"},
     {"-stats-levels=70", "-s", "-mx", "-o", "out"}},
    {{"-dir", "d", "-dir=-d"}, {"--dir", "d", "--dir=-d"}},
    {{"--", "-stats-level", "-m"}, {"--", "-stats-level", "-m"}},
    {{"aic-profiling-type"}, {"aic-profiling-type"}},  // a value, not an option
};
INSTANTIATE_TEST_SUITE_P(Words, CompatArguments, testing::ValuesIn(cases));

TEST(CompatArguments, WordsOfAnotherSubcommandNameIt) {
    for (const char* word : {"--aic-profiling-type=stats", "-aic-profiling-num-samples"}) {
        const auto out = rewrite_compat(table(), {{word}});
        ASSERT_FALSE(out);
        EXPECT_NE(out.error().message.find("belongs to vartml run"), std::string::npos);
        EXPECT_EQ(out.error().message.find('='), std::string::npos) << out.error().message;
    }
}

TEST(CompatArguments, APositionalArgumentAndAHiddenOptionNeedTheirValues) {
    for (const auto& words : {std::vector{"-model="}, std::vector{"-m"}, std::vector{"-m", ""},
                              std::vector{"-m", "-stats-level=70"}, std::vector{"-dir"},
                              std::vector{"-dir="}, std::vector{"-dir", "-m=x"}}) {
        const auto out = rewrite_compat(table(), words);
        ASSERT_FALSE(out);
        EXPECT_NE(out.error().message.find("needs a value"), std::string::npos);
    }
}

TEST(CompatArguments, HelpHasOneLinePerOption) {
    EXPECT_EQ(compat_help(table()),
              "compatibility:\n"
              "  -model, -m                  the MODEL\n"
              "  -stats-level                same as --stats-level\n"
              "  -dir                        a folder\n"
              "  -pmu-recipe, --aic-pmu-recipe, -aic-pmu-recipe\n"
              "                              same as --pmu-recipe\n");
    EXPECT_EQ(compat_help({}), "");
}

}  // namespace
}  // namespace vartml::tools
