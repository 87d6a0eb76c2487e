// SPDX-License-Identifier: Apache-2.0
// A configuration file as strict JSON: no comments, no key twice, bounded in size and depth.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <vartml/result.h>

namespace vartml::compiler::config {

using Json = nlohmann::json;

// Errors: invalid_argument with the sentence for the user, which begins with the file's name.
Result<Json> parse(const std::string& file);

// "is a string", for "…, expected a number".
std::string is(const Json& value);
std::string in_quotes(std::string_view text);

}  // namespace vartml::compiler::config
