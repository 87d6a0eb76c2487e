// SPDX-License-Identifier: Apache-2.0
// The values that attributes with a choice may have: modes by name, switches by 0 and 1.
#pragma once
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

// Which form a node is in: as ONNX writes it, or as ops.h has it.
enum class Form { onnx, canonical };

// Errors: unsupported naming the node, the attribute, its value and those that are known. A value
// that passes means what the operator's kernels take it for: they need no fallback.
Result<void> check_attribute_values(const Node& node, Form form);

// The values of a choice in canonical form, separated by '|'; empty where the attribute of this
// operator is none.
std::string_view choices_of(std::string_view kind, std::string_view attribute);

}  // namespace vartml::graph
