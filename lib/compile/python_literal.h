// SPDX-License-Identifier: Apache-2.0
// Reads the Python literals that training tools leave in a model's metadata.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vartml::compiler {

// "{0: 'person', 1: \"bicycle\"}" or "['person', 'bicycle']": the strings by index. Nothing for any
// other text, for indices that do not run from 0 without a gap, and for more than 65536 entries.
std::optional<std::vector<std::string>> parse_python_names(std::string_view text);

// "[640, 640]", "(640, 640)", "640": the numbers.
std::optional<std::vector<int64_t>> parse_python_ints(std::string_view text);

}  // namespace vartml::compiler
