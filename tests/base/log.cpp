// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vartml/log.h>

namespace vartml {
namespace {

struct Lines : testing::Test {
    std::vector<std::string> lines;
    LogLevel before = log_level();
    void SetUp() override {
        set_log_function(
            [](LogLevel level, std::string_view origin, std::string_view text, void* user) {
                static_cast<Lines*>(user)->lines.push_back(std::to_string(static_cast<int>(level)) +
                                                           ' ' + std::string(origin) + ' ' +
                                                           std::string(text));
            },
            this);
    }
    void TearDown() override {
        set_log_function(nullptr, nullptr);
        set_log_level(before);
    }
};

TEST_F(Lines, ArePassedOnDownToTheLevel) {
    set_log_level(LogLevel::info);
    log(LogLevel::error, "", "a");
    log(LogLevel::info, "runner", "b");
    log(LogLevel::debug, "", "c");
    EXPECT_EQ(lines, (std::vector<std::string>{"0  a", "2 runner b"}));
}

TEST_F(Lines, ArePassedOnWhenForced) {
    set_log_level(LogLevel::error);
    log(LogLevel::debug, "runner", "its own level", true);
    EXPECT_EQ(lines, (std::vector<std::string>{"3 runner its own level"}));
}

TEST(LogDefault, WritesOneLineToStandardError) {
    testing::internal::CaptureStderr();
    log(LogLevel::error, "runner", "two\nlines");
    log(LogLevel::warning, "", "plain");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "[vartml] ERROR runner: two\\x0alines\n[vartml] WARNING: plain\n");
}

}  // namespace
}  // namespace vartml
