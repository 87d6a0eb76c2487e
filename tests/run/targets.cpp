// SPDX-License-Identifier: Apache-2.0
// The data files of the devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/graph/ops.h"
#include "lib/model/target.h"

namespace vartml::device {
namespace {

std::map<std::string, std::string_view> texts() {
    std::map<std::string, std::string_view> all;
    for (const EmbeddedFile& file : target_files()) all.emplace(file.name, file.text);
    return all;
}

TEST(Targets, AreTheSevenDevicesWithTheDefaultFirst) {
    const std::vector<std::string_view> names = {
        "softnpu", "aic100", "mlsoc", "ve2", "ve2-xc2ve3358", "ve2-xc2ve3558", "ve2-xc2ve3858"};
    EXPECT_EQ(target_names(), names);
    for (const std::string_view name : names) {
        ASSERT_TRUE(find_target(name)) << name;
        EXPECT_EQ(find_target(name)->device, name);
        EXPECT_EQ(find_target(name)->program, "softnpu-1");  // all run on the software NPU
    }
    EXPECT_EQ(find_target("ve3"), nullptr);
}

TEST(Targets, EveryFileReads) {
    for (const auto& [name, text] : texts()) {
        if (name == "operators") continue;
        const auto target = parse_target(text, texts());
        ASSERT_TRUE(target) << name << ": " << target.error().message;
        EXPECT_EQ(target->device, name);
    }
}

// Columns and memory as the devices have them.
TEST(Targets, HaveTheGivenColumnsAndMemory) {
    const std::pair<const char*, uint32_t> columns[] = {
        {"ve2", 36},     {"ve2-xc2ve3858", 36}, {"ve2-xc2ve3558", 24}, {"ve2-xc2ve3358", 8},
        {"softnpu", 36}, {"mlsoc", 4},          {"aic100", 16}};
    for (const auto& [name, count] : columns) {
        EXPECT_EQ(find_target(name)->columns, count) << name;
        EXPECT_EQ(find_target(name)->footprint, 4u) << name;
        EXPECT_EQ(find_target(name)->memory_bytes, uint64_t{2} << 30) << name;
    }
}

// A figure comes from a source or is marked as a guess, never both.
TEST(Targets, SayWhereEveryFigureComesFrom) {
    const std::set<std::string> figures = {"columns",         "footprint",
                                           "max_rank",        "memory_bytes",
                                           "on_chip_bytes",   "bandwidth_bytes_per_second",
                                           "clock_hz",        "macs_per_cycle",
                                           "bytes_per_cycle", "elements_per_cycle"};
    for (const Target& t : all_targets()) {
        std::set<std::string> told(t.assumptions.begin(), t.assumptions.end());
        EXPECT_EQ(told.size(), t.assumptions.size());
        for (const auto& [key, source] : t.sources) {
            EXPECT_FALSE(source.empty());
            EXPECT_TRUE(told.insert(key).second) << t.device << ' ' << key;
        }
        EXPECT_EQ(told, figures) << t.device;
        EXPECT_GT(t.clock_hz, 0) << t.device;
        for (const uint64_t figure : {t.on_chip_bytes, t.bandwidth_bytes_per_second,
                                      t.macs_per_cycle, t.elements_per_cycle, t.bytes_per_cycle})
            EXPECT_GT(figure, 0u) << t.device;
        EXPECT_FALSE(t.title.empty());
        EXPECT_EQ(std::ranges::count(t.types, DataType::unknown), 0) << t.device;
        EXPECT_EQ(std::ranges::count(t.layouts, Layout::unknown), 0) << t.device;
    }
}

TEST(Targets, NameOperatorsAndAttributesOfTheIr) {
    for (const OperatorRule& rule : all_targets().front().operators) {
        const graph::OpInfo* op = graph::find_op(rule.kind);
        ASSERT_TRUE(op) << rule.kind;
        EXPECT_FALSE(rule.types.empty()) << rule.kind;
        EXPECT_EQ(rule.types.find_first_not_of("fqiub"), std::string::npos) << rule.kind;
        for (const auto& [key, accepted] : rule.attributes) {
            EXPECT_NE(op->attributes.find(key + ":s"), std::string_view::npos) << rule.kind;
            EXPECT_FALSE(accepted.empty()) << rule.kind;
        }
        for (const std::string& key : rule.fixed)
            EXPECT_NE(op->attributes.find(key + ":is"), std::string_view::npos)
                << rule.kind << ' ' << key;
    }
    const auto& rules = all_targets().front().operators;
    EXPECT_TRUE(std::ranges::is_sorted(rules, {}, &OperatorRule::kind));
    EXPECT_EQ(std::ranges::adjacent_find(rules, {}, &OperatorRule::kind), rules.end());
}

TEST(Targets, RefuseADamagedFile) {
    const auto operators = texts();
    for (const char* text : {"", "{}", "[1]", R"({"device": 7})"}) {
        const auto target = parse_target(text, operators);
        ASSERT_FALSE(target) << text;
        EXPECT_EQ(target.error().code, ErrorCode::bad_model);
    }
}

}  // namespace
}  // namespace vartml::device
