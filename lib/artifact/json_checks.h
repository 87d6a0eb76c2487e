// SPDX-License-Identifier: Apache-2.0
// Whether a JSON file that nobody vouches for may be parsed.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace vartml::artifact {

inline constexpr size_t max_json_bytes = 16u << 20;

// "" or what is wrong, for a sentence: "has key 'name' twice in one object". Refused are more than
// max_json_bytes, more than 64 levels, keys that occur twice in an object, text that is no UTF-8,
// numbers outside of 64-bit integers and finite doubles, and what is no JSON.
std::string json_fault(std::string_view text);

}  // namespace vartml::artifact
