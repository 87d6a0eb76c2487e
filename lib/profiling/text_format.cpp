// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/text_format.h"

#include <cstdarg>
#include <cstdio>

namespace vartml::profiling {

std::string format_text(const char* format, ...) {
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
