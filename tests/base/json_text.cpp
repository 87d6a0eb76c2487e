// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vartml {
namespace {

std::string in_json(std::string_view text) {
    std::string out;
    append_quoted(out, text);
    return out;
}

TEST(JsonText, QuotesWhatAReaderUndoes) {
    std::string every;
    for (int c = 0; c < 0x80; ++c) every += static_cast<char>(c);
    for (const std::string& text : {std::string(), std::string("plain"), every,
                                    std::string("\xC3\xBC \xE2\x82\xAC \xF0\x9F\x8E\xA5")})
        EXPECT_EQ(nlohmann::json::parse(in_json(text)).get<std::string>(), text);
    EXPECT_EQ(in_json("\x01\t\n\r\"\\\x7f"), R"("\u0001\t\n\u000d\"\\\u007f")");
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
    const struct {
        std::string_view text, wanted;
    } cases[] = {
        {"a\xFF"
         "b",
         "a\xEF\xBF\xBD"
         "b"},                                                     // never a byte of UTF-8
        {"\xC3", "\xEF\xBF\xBD"},                                  // cut off
        {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},                  // too long
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // half a surrogate
    };
    for (const auto& [text, wanted] : cases)
        EXPECT_EQ(in_json(text), '"' + std::string(wanted) + '"');
}

// Bytes 0x80 to 0xff are the characters of these numbers, of two bytes in UTF-8.
TEST(TextOfBytes, HasACharacterPerByte) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const std::string text = text_of_bytes({'a', static_cast<char>(byte), 'z'});
        const std::string wide = byte < 0x80
                                     ? std::string(1, static_cast<char>(byte))
                                     : std::string{static_cast<char>(byte < 0xc0 ? 0xc2 : 0xc3),
                                                   static_cast<char>(0x80 + byte % 64)};
        EXPECT_EQ(text, "a" + wide + "z") << byte;
    }
}

}  // namespace
}  // namespace vartml
