// SPDX-License-Identifier: Apache-2.0
// printf into a string, for texts whose form is given as printf formats.
#pragma once
#include <string>

namespace vartml::profiling {

[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

}  // namespace vartml::profiling
