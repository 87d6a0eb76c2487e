// SPDX-License-Identifier: Apache-2.0
// The option --input-shape.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml::tools {

using InputShapes = std::map<std::string, std::vector<int64_t>>;

// Adds "x:1,3,640,640"; the name may hold colons itself. Errors: invalid_argument.
Result<void> take_input_shape(const std::string& text, InputShapes& shapes);

}  // namespace vartml::tools
