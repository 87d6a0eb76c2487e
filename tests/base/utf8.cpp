// SPDX-License-Identifier: Apache-2.0
#include "lib/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>

using namespace std::string_literals;

namespace vartml {
namespace {

struct Case {
    std::string text;
    bool utf8, plain;
};
const Case cases[] = {
    {"", true, true},
    {"images:0/conv", true, true},
    {"Größe", true, true},
    {"\xe2\x82\xac", true, true},        // U+20AC
    {"\xf0\x9f\x90\xbb", true, true},    // U+1F43B
    {"\xf4\x8f\xbf\xbf", true, true},    // U+10FFFF, the last
    {"tab\t", true, false},              // control
    {"\x7f", true, false},               // DEL
    {"\xc2\x80", true, false},           // C1
    {"a\0b"s, true, false},              // NUL
    {"\x80", false, false},              // continuation without lead
    {"\xc3", false, false},              // cut
    {"\xe2\x82", false, false},          // cut
    {"\xc0\xaf", false, false},          // overlong /
    {"\xe0\x80\xaf", false, false},      // overlong, three bytes
    {"\xf0\x80\x80\xaf", false, false},  // overlong, four bytes
    {"\xc2\xa0", true, true},            // U+A0, the first behind C1
    {"\xed\x9f\xbf", true, true},        // U+D7FF, the last before the surrogates
    {"\xed\xa0\x80", false, false},      // surrogate, the first
    {"\xed\xbf\xbf", false, false},      // surrogate, the last
    {"\xee\x80\x80", true, true},        // U+E000
    {"\xf4\x90\x80\x80", false, false},  // above U+10FFFF
    {"\xff", false, false},              // never a lead
};

TEST(Utf8, KnowsWellFormedText) {
    for (const Case& c : cases) {
        EXPECT_EQ(is_utf8(c.text), c.utf8) << printable(c.text);
        EXPECT_EQ(is_plain_text(c.text), c.plain) << printable(c.text);
    }
}

TEST(Utf8, PrintsWhatIsNoText) {
    EXPECT_EQ(printable("Größe\n\xff"), "Größe\\x0a\\xff");
    EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(WithCommas, PartThousands) {
    EXPECT_EQ(with_commas(0), "0");
    EXPECT_EQ(with_commas(999), "999");
    EXPECT_EQ(with_commas(1000), "1,000");
    EXPECT_EQ(with_commas(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace vartml
