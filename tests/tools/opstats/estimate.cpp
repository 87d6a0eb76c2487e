// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/layers.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lib/model/derived.h"
#include "tests/model/models.h"

namespace vartml::profiling {
namespace {

// The example of a public page, whose indentation is lost in some copies.
constexpr const char* example =
    "4:\n%name: MLA_0/conv2d_add_relu_3\n%start_cycle: 63615\n%end_cycle: 71558\n"
    "5:\n%name: MLA_0/conv2d_add_relu_4\n%start_cycle: 71559\n%end_cycle: 79502\n";

std::string indented(std::string text, const std::string& by) {
    for (size_t at; (at = text.find('%')) != text.npos;) text.replace(at, 1, by);
    return text;
}

TEST(Estimate, ReadsThePublicExampleWithAnyIndentation) {
    for (const char* by : {"", "  ", "    "}) {
        const auto read = read_estimate(indented(example, by), "f.yaml");
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->layers.size(), 2u);
        EXPECT_EQ(read->layers[0].index, 4u);
        EXPECT_EQ(read->layers[1].name, "MLA_0/conv2d_add_relu_4");
        EXPECT_EQ(read->layers[0].cycles(), 7944u);
        EXPECT_EQ(read->layers[1].end_cycle, 79502u);
        EXPECT_TRUE(read->warnings.empty());
    }
}

TEST(Estimate, ReadsWhatTheCompilerWrites) {
    artifact::CompiledModel model = test::conv_model();
    model.partitions[0].layers[1].name = "MLA_0/a \"quoted\": name\xc3\xa9";
    const auto files = artifact::derived_files(model);
    const auto file = std::ranges::find(files, artifact::estimate_entry(model, model.partitions[0]),
                                        &artifact::File::name);
    ASSERT_NE(file, files.end());
    const auto read = read_estimate(file->bytes, "f.yaml");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->layers.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        const artifact::Layer& layer = model.partitions[0].layers[i];
        EXPECT_EQ(read->layers[i].name, layer.name);
        EXPECT_EQ(read->layers[i].start_cycle, layer.start_cycle);
        EXPECT_EQ(read->layers[i].end_cycle, layer.end_cycle);
    }
    EXPECT_TRUE(read->warnings.empty());
    EXPECT_TRUE(read_estimate("{}\n", "f.yaml")->layers.empty());  // of an empty program
}

struct Sentence {
    const char* text;
    const char* part;
};
class EstimateSentence : public testing::TestWithParam<Sentence> {};

std::string layer(int index, int start, int end) {
    return std::to_string(index) + ":\n  name: l\n  start_cycle: " + std::to_string(start) +
           "\n  end_cycle: " + std::to_string(end) + "\n";
}

TEST_P(EstimateSentence, NamesFileAndLine) {
    const auto read = read_estimate(GetParam().text, "f.yaml");
    ASSERT_FALSE(read) << GetParam().text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_model);
    EXPECT_TRUE(read.error().message.starts_with("f.yaml: line ")) << read.error().message;
    EXPECT_NE(read.error().message.find(GetParam().part), std::string::npos)
        << read.error().message;
}
const Sentence faults[] = {
    {"0:\n name: a\n start_cycle: 0\n end_cycle: 1\n0:\n", "layer 0 occurs twice"},
    {"0:\n name: a\n start_cycle: 5\n end_cycle: 4\n", "ends at cycle 4, before its start at 5"},
    {"0:\n name: a\n start_cycle: 5\n", "has no end_cycle"},
    {"0:\n name: a\n name: b\n", "has 'name' twice"},
    {"0:\n name: a\n start_cycle: -1\n", "expected a number of cycles"},
    {"0:\n start_cycle: 99999999999999999999\n", "expected a number of cycles"},
    {"0: 5\n", "has a value"},
    {"name: a\n", "outside of a layer"},
    {"layers:\n - 1\n", "outside of a layer"},
    {"0:\n name: [a]\n", "is not 'KEY: VALUE'"},
    {"0:\n name: \"a\n", "is not 'KEY: VALUE'"},
    {"0:\n name: 'a' b\n", "is not 'KEY: VALUE'"},
    {"0:\n name: \"\\q\"\n", "is not 'KEY: VALUE'"},
    {"0:\n name:\n", "is empty or no UTF-8"},
    {"0:\n name: \xff\n", "is empty or no UTF-8"},
    {"just text\n", "is not 'KEY: VALUE'"},
};
INSTANTIATE_TEST_SUITE_P(Faults, EstimateSentence, testing::ValuesIn(faults));

TEST(Estimate, GapsOverlapsAndUnknownKeysAreWarnings) {
    const auto warnings = [](const std::string& text) {
        auto read = read_estimate(text, "f.yaml");
        EXPECT_TRUE(read) << read.error().message;
        return read ? read->warnings : std::vector<std::string>();
    };
    EXPECT_TRUE(warnings(layer(0, 0, 9) + layer(1, 10, 10)).empty());
    EXPECT_TRUE(warnings(layer(1, 10, 10) + layer(0, 0, 9)).empty());  // any order
    EXPECT_EQ(
        warnings(layer(0, 0, 9) + layer(1, 11, 12)),
        std::vector<std::string>{"f.yaml: layer 1 starts at cycle 11, layer 0 ends at 9: a gap"});
    EXPECT_EQ(warnings(layer(0, 0, 9) + layer(2, 9, 12)),
              std::vector<std::string>{
                  "f.yaml: layer 2 starts at cycle 9, layer 0 ends at 9: an overlap"});
    EXPECT_EQ(warnings("# head\n---\n" + layer(0, 0, 9) + "  stalls: 3 # many\n"),
              std::vector<std::string>{"f.yaml: key 'stalls' is not known and left out"});
}

}  // namespace
}  // namespace vartml::profiling
