// SPDX-License-Identifier: Apache-2.0
// The known name that a misspelt one was meant to be.
#pragma once
#include <span>
#include <string_view>

namespace vartml {

// "" where none is within three changed, added or left-out letters.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace vartml
