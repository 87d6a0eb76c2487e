// SPDX-License-Identifier: Apache-2.0
// A locale whose decimals begin with a comma, on systems that have none installed.
#pragma once
#include <gtest/gtest.h>
#include <locale.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/temp_dir.h"

namespace vartml::test {

// The calling thread's while it lives.
class CommaLocale {
public:
    CommaLocale() {
        // LC_NUMERIC as glibc compiles it: magic, six values and their places; then the decimal
        // point, no thousands, the decimal point as a wide character, no thousands, the character
        // set.
        using namespace std::string_view_literals;
        constexpr std::string_view bytes =
            "\x14\x11\x03\x20\6\0\0\0 \0\0\0\"\0\0\0#\0\0\0$\0\0\0(\0\0\0,\0\0\0"
            ",\0\0\0,\0\0\0\0\0\0\0UTF-8\0"sv;
        spill(folder_ / "comma/LC_NUMERIC", bytes);
        ::setenv("LOCPATH", folder_.path().c_str(), 1);
        own_ = ::newlocale(LC_NUMERIC_MASK, "comma", nullptr);
        ::unsetenv("LOCPATH");
        if (own_) before_ = ::uselocale(own_);
        char text[16];
        std::snprintf(text, sizeof text, "%.1f", 0.5);
        EXPECT_STREQ(text, "0,5");
    }
    CommaLocale(const CommaLocale&) = delete;
    ~CommaLocale() {
        if (!own_) return;
        ::uselocale(before_);
        ::freelocale(own_);
    }

private:
    TempDir folder_;
    locale_t own_ = nullptr, before_ = nullptr;
};

}  // namespace vartml::test
