// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/text.h"

#include <locale.h>

#include <cstdarg>
#include <cstdio>

namespace vartml::profiling {
namespace {

// Numbers have a point whatever the application's locale says.
class PlainNumbers {
public:
    PlainNumbers() {
        static const locale_t plain = ::newlocale(LC_NUMERIC_MASK, "C", nullptr);
        if (plain) before_ = ::uselocale(plain);
    }
    PlainNumbers(const PlainNumbers&) = delete;
    PlainNumbers& operator=(const PlainNumbers&) = delete;
    ~PlainNumbers() {
        if (before_) ::uselocale(before_);
    }

private:
    locale_t before_ = nullptr;
};

}  // namespace

std::string format_text(const char* format, ...) {
    const PlainNumbers numbers;
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int size = std::vsnprintf(nullptr, 0, format, list);
    va_end(list);
    std::string text(size < 0 ? 0 : static_cast<size_t>(size), '\0');
    if (size > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

}  // namespace vartml::profiling
