// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include <vartml/version.h>

namespace vartml {
namespace {

TEST(Version, HasThreeNumbers) {
    EXPECT_EQ(std::count(version().begin(), version().end(), '.'), 2);
    EXPECT_EQ(version().find_first_not_of("0123456789."), version().npos);
}

TEST(Version, NamesACommitOf40Digits) {
    EXPECT_EQ(source_commit().size(), 40u);
    EXPECT_EQ(source_commit().find_first_not_of("0123456789abcdef"), source_commit().npos);
}

}  // namespace
}  // namespace vartml
